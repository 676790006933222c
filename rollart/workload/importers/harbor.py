"""Harbor's trials: `result.json` with the agent's `trajectory.json` (ATIF) beside it, or NeMo Gym's rows of them.

A result has the times of the phases, the reward, and sums of tokens; the turns are in `agent/trajectory.json`,
where each step of the agent has `metrics` with its own counts. A result without that file is read only if the
agent called the model once.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.episode import Call, Episode, turns_of_calls
from rollart.workload.importers.format_reader import EachRecord, FormatReader, ImportJob, RecordReader
from rollart.workload.importers.harbor_phases import Phases
from rollart.workload.importers.nemo_gym import NemoGymReader
from rollart.workload.importers.records import Record, document, lines
from rollart.workload.importers.sample import Sample, look
from rollart.workload.trace import Tokens


class _Trial(Phases, frozen=True):
    task_name: str = ""
    trial_name: str = ""
    source: str | None = None
    id: str | None = None


class _Metrics(msgspec.Struct, frozen=True):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None


class _Step(msgspec.Struct, frozen=True):
    source: str
    metrics: _Metrics | None = None


class _Trajectory(msgspec.Struct, frozen=True):
    steps: list[_Step]


class HarborReader(FormatReader):
    """Reads `result.json` of trials; trials of one task are a group. A job's own result, a summary, is no trial."""

    format: ClassVar[str] = "harbor"
    about: ClassVar[str] = "a Harbor trial's result.json, or NeMo Gym rows of the Harbor agent"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The phases of a trial, or a row of NeMo Gym."""
        trial = sample.has("trial_name", "task_name") or sample.has("agent_result", "verifier_result")
        return not sample.is_list and (trial or sample.has("responses_create_params"))

    def __init__(self, job: ImportJob) -> None:
        super().__init__(job)
        self._rows = NemoGymReader(job)

    def records(self, path: Path) -> Iterator[Record]:
        """The document of a trial, or lines."""
        return lines(path) if NemoGymReader.recognises(look(path)) else document(path)

    def open(self, path: Path) -> RecordReader:
        """One document, one trajectory; of NeMo Gym, one line."""
        if NemoGymReader.recognises(look(path)):
            return self._rows.open(path)
        return EachRecord(lambda content: _episodes(content, path.parent / "agent" / "trajectory.json"))


_decode = msgspec.json.Decoder(_Trial).decode
_decode_trajectory = msgspec.json.Decoder(_Trajectory).decode


def _episodes(content: bytes, trajectory: Path) -> Iterable[Episode]:
    trial = _decode(content)
    prompt_tokens, turns = turns_of_calls(_calls(trial, trajectory))
    yield Episode(
        task=trial.source or "harbor",
        group=trial.task_name or trial.trial_name or "trial",
        identity=trial.id or trial.trial_name or None,
        prompt_tokens=prompt_tokens,
        turns=trial.spread(turns),
        reset_s=trial.reset_s,
        reward_s=trial.reward_s,
        reward=trial.reward,
        outcome="failed" if trial.failed else "ok",
        tokens="counted",
        env="estimated",
    )


def _calls(trial: _Trial, trajectory: Path) -> list[Call]:
    """Calls of the model, of the file beside the result, or of the result if there was one call."""
    if trajectory.is_file():
        (record,) = document(trajectory)
        return _calls_of_steps(_decode_trajectory(record.content or b"").steps)
    result = trial.agent_result
    if result is None or result.n_input_tokens is None or result.n_output_tokens is None:
        raise ValueError("agent_result has no token counts; must have them, or agent/trajectory.json beside it")
    called = result.metadata.n_episodes if result.metadata else None
    if called != 1:
        shown = "an unknown number of" if called is None else str(called)
        raise ValueError(f"has sums over {shown} calls and no agent/trajectory.json beside it; must have it")
    return [Call(context_tokens=result.n_input_tokens, output_tokens=result.n_output_tokens)]


def _calls_of_steps(steps: list[_Step]) -> list[Call]:
    calls = []
    for number, step in enumerate(steps):
        if step.source != "agent" or step.metrics is None:
            continue
        metrics = step.metrics
        if metrics.prompt_tokens is None or metrics.completion_tokens is None:
            raise ValueError(f"steps[{number}].metrics lacks prompt_tokens or completion_tokens; must have both")
        calls.append(
            Call(
                context_tokens=metrics.prompt_tokens,
                output_tokens=metrics.completion_tokens,
                cached_tokens=metrics.cached_tokens,
            )
        )
    return calls
