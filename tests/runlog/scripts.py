"""Short logs written down by hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.runlog.header import RunHeader
from rollart.runlog.reader import records
from rollart.runlog.reducer import Reducer
from rollart.runlog.samples import Sample
from rollart.runlog.schema import Record
from rollart.runlog.statistics import RunStatistics
from rollart.runlog.window import Window
from rollart.runlog.writer import RunLogWriter

Line = tuple[float, e.Event | Sample, Sequence[c.Command]]
"""Time, what happened (or was sampled), and what was ordered."""


class Collector:
    """A sink that keeps its windows."""

    def __init__(self) -> None:
        self.windows: list[Window] = []

    def consume(self, window: Window) -> None:
        self.windows.append(window)


def write(writer: RunLogWriter, script: Sequence[Line]) -> None:
    """Log a script."""
    for time_s, said, ordered in script:
        if isinstance(said, Sample):
            writer.sample(time_s, said)
        else:
            writer.commands(time_s, ordered, writer.event(time_s, said))


def reduce_script(header: RunHeader, script: Sequence[Line], window_records: int = 65_536) -> RunStatistics:
    """Its statistics."""
    reducer = Reducer(header)
    with RunLogWriter(None, header, [reducer], window_records=window_records) as writer:
        write(writer, script)
    return reducer.statistics()


def records_of(script: Sequence[Line]) -> Iterator[tuple[int, float, Record]]:
    """Its records, as a reader gives them."""
    seq = 0
    for time_s, said, ordered in script:
        for record in (said, *ordered):
            yield seq, time_s, record
            seq += 1


def log_records(path: Path) -> list[tuple[int, float, Record]]:
    """All records of a file."""
    return list(records(path))


def reset(number: int, trajectory: int, **changes: Any) -> c.ResetEnvironment:
    """A reset of the first attempt in version 0."""
    fields: dict[str, Any] = {
        "task": "maze",
        "prompt": 0,
        "group": 0,
        "member": 0,
        "attempt": 0,
        "version": 0,
        "timeout_s": 60.0,
    }
    return c.ResetEnvironment(id=number, trajectory=trajectory, **(fields | changes))


def generate(number: int, trajectory: int, *, engine: int = 0, incarnation: int = 0) -> c.GenerateTurn:
    """A turn on an engine."""
    return c.GenerateTurn(
        id=number,
        trajectory=trajectory,
        group=0,
        turn=0,
        engine=engine,
        incarnation=incarnation,
        prefill_engine=None,
        context_tokens=100,
        reusable_tokens=0,
        shared_tokens=0,
        partial_tokens=0,
        max_tokens=1000,
    )


def step(number: int, trajectory: int) -> c.StepEnvironment:
    """An action."""
    return c.StepEnvironment(id=number, trajectory=trajectory, turn=0, timeout_s=9.0)


def score(number: int, trajectory: int) -> c.ScoreTrajectory:
    """A request for the reward."""
    return c.ScoreTrajectory(id=number, trajectory=trajectory, attempt=0, timeout_s=9.0)


def train(number: int, *trajectories: int, step: int = 0, installed: int = 0) -> c.TrainBatch:
    """A batch of trajectories begun at version 0, of 100 tokens each."""
    return c.TrainBatch(
        id=number,
        step=step,
        version=step + 1,
        installed=installed,
        trajectories=trajectories,
        start_versions=(0,) * len(trajectories),
        context_tokens=(100,) * len(trajectories),
    )


def ready(number: int) -> e.EnvironmentReady:
    """The environment is there."""
    return e.EnvironmentReady(command_id=number, prompt_tokens=100, shared_tokens=10)


def generated(number: int, *, truncated: bool = False) -> e.TurnGenerated:
    """A turn of 50 tokens, three quarters of its time in decode."""
    return e.TurnGenerated(
        command_id=number,
        output_tokens=50,
        cached_tokens=0,
        recomputed_tokens=0,
        preemptions=0,
        truncated=truncated,
        queue_s=0.0,
        prefill_s=1.0,
        decode_s=3.0,
    )


def stepped(number: int, *, done: bool = True) -> e.EnvironmentStepped:
    """An observation."""
    return e.EnvironmentStepped(command_id=number, observation_tokens=10, kept_tokens=None, done=done)


def one_step_run(*, begin_s: float = 0.0) -> list[Line]:
    """One trajectory is made and trained on: reset 2 s, turn 4 s, step 1 s, score 3 s, training 10 s."""
    t = begin_s
    return [
        (t, e.RunStarted(), [reset(0, 0)]),
        (t + 2, ready(0), [generate(1, 0)]),
        (t + 6, generated(1), [step(2, 0)]),
        (t + 7, stepped(2), [c.CloseEnvironment(id=3, trajectory=0), score(4, 0)]),
        (t + 7.5, e.EnvironmentClosed(command_id=3), []),
        (
            t + 10,
            e.TrajectoryScored(command_id=4, reward=1.0),
            [c.EndTrajectory(id=5, trajectory=0, end=_TRAINED), train(6, 0)],
        ),
        (t + 20, e.TrainingEnded(command_id=6, version=1), [c.StopRun(id=7)]),
    ]


_TRAINED = c.End.TRAINED
