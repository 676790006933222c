from typing import Any

import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import Cause
from rollart.report.spans import SUSPENDED, Span, spans
from rollart.runlog.stages import Stage
from tests.runlog.scripts import Line, generate, one_step_run, ready, records_of, reset, step


def shown(script: list[Line], *, steps: int | None = None) -> list[tuple[str, float, float, str]]:
    found = spans(records_of(script), steps=steps)
    return [(span.what, span.begin_s, span.end_s, span.outcome) for span in found]


def test_a_span_is_a_command_from_issue_to_answer() -> None:
    found = list(spans(records_of(one_step_run()), steps=None))
    assert found[1] == Span(
        what="GenerateTurn",
        stage=Stage.GENERATION,
        begin_s=2.0,
        end_s=6.0,
        outcome="done",
        trajectory=0,
        engine=0,
        task="maze",
        turn=0,
    )
    assert [span.what for span in found] == [
        "ResetEnvironment",
        "GenerateTurn",
        "StepEnvironment",
        "CloseEnvironment",
        "ScoreTrajectory",
        "TrainBatch",
    ]


def test_outcomes() -> None:
    suspend = c.SuspendEngine(id=4, engine=1, incarnation=0, release_memory=False)
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0), reset(1, 1), c.SetTimer(id=2, delay_s=9.0)]),
        (1.0, ready(0), [generate(3, 0), suspend]),
        (2.0, e.EnvironmentFailed(command_id=1, cause=Cause.ERROR), [c.CancelTimer(id=5, target=2)]),
        (3.0, e.EngineSuspended(command_id=4), []),
        (
            4.0,
            e.EngineLost(engine=0, incarnation=0, commands=(3,), saved_tokens=(0,)),
            [step(6, 0), c.CloseEnvironment(id=7, trajectory=0)],
        ),
        (5.0, e.TimerFired(command_id=99), [generate(8, 0, engine=1)]),
        (
            6.0,
            e.TimerFired(command_id=98),
            [c.AbortGeneration(id=9, target=8, trajectory=0, engine=1, incarnation=0)],
        ),
        (7.0, e.GenerationAborted(command_id=9, output_tokens=0), []),
    ]
    assert shown(script) == [
        ("ResetEnvironment", 0.0, 1.0, "done"),
        ("ResetEnvironment", 0.0, 2.0, "failed"),
        ("SetTimer", 0.0, 2.0, "aborted"),
        ("SuspendEngine", 1.0, 3.0, "done"),
        ("GenerateTurn", 1.0, 4.0, "lost"),
        ("StepEnvironment", 4.0, 4.0, "aborted"),
        ("AbortGeneration", 6.0, 7.0, "done"),
        ("GenerateTurn", 5.0, 7.0, "aborted"),
        ("CloseEnvironment", 4.0, 7.0, "open"),
        (SUSPENDED, 3.0, 7.0, "open"),
    ]


def test_what_is_open_at_the_stop_is_stopped() -> None:
    script = one_step_run()
    script[5][2].append(c.SetTimer(id=8, delay_s=9.0))
    assert ("SetTimer", 10.0, 20.0, "stopped") in shown(script)


@pytest.mark.parametrize("steps", [1, 2])
def test_only_the_first_steps_are_read(toy: Any, steps: int) -> None:
    last_s = max(span.end_s for span in spans(toy.records(), steps=steps))
    assert last_s == toy.statistics.steps[steps - 1].end_s
