from collections.abc import Callable

import msgspec
import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.trajectory import End
from rollart.runlog.header import EnvironmentEntry
from rollart.runlog.invariants import InvariantReport, check_invariants
from rollart.runlog.writer import RunLogWriter
from tests.runlog.scripts import (
    Collector,
    Line,
    generate,
    generated,
    one_step_run,
    ready,
    records_of,
    reset,
    train,
)
from tests.runlog.toyrun import ToyRun, header


def check(script: list[Line], *, staleness_bound: int | None = 1, slots: int = 6) -> InvariantReport:
    environment = EnvironmentEntry(slots=slots, cores=1.0, price_per_core_hour=0.0)
    return check_invariants(
        records_of(script),
        msgspec.structs.replace(header(), environment=environment),
        staleness_bound=staleness_bound,
    )


def violation(script: list[Line], **options: int) -> str:
    found = check(script, **options).violation
    assert found is not None and "\n" not in found
    return found


def test_a_good_run_has_counts_and_no_violation() -> None:
    assert check(one_step_run()) == InvariantReport(
        violation=None, events=7, commands=8, trajectories=1, late_answers=0, open_at_stop=0
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_toy_run_keeps_its_promises(seed: int) -> None:
    sink = Collector()
    with RunLogWriter(None, header(seed=seed), [sink]) as writer:
        ToyRun(writer, seed=seed, lose_engine_at_s=6.0 + seed).play()
    records = [record for window in sink.windows for record in window.in_order()]
    report = check_invariants(records, header(seed=seed), staleness_bound=1)
    assert report.violation is None and report.events > 100


def at(place: int, change: Callable[[Line], Line]) -> list[Line]:
    script = one_step_run()
    script[place] = change(script[place])
    return script


def more(*commands: c.Command) -> Callable[[Line], Line]:
    return lambda line: (line[0], line[1], [*line[2], *commands])


def test_time_must_not_go_back() -> None:
    assert "time goes back from 6 s" in violation(at(3, lambda line: (5.0, *line[1:])))


def test_ids_must_rise() -> None:
    assert "id 3 follows 4" in violation(at(3, more(c.SetTimer(id=3, delay_s=1.0))))


def test_a_command_is_answered_once() -> None:
    assert "command 1 was answered before" in violation([*one_step_run()[:3], (6.0, generated(1), [])])


def test_an_answer_needs_a_command() -> None:
    assert "command 77 was never issued" in violation([(0.0, generated(77), [])])


def test_an_answer_must_fit_its_command() -> None:
    found = violation([one_step_run()[0], (2.0, generated(0), [])])
    assert "answers the ResetEnvironment 0, which takes EnvironmentReady or EnvironmentFailed" in found


def test_open_commands_need_a_stop() -> None:
    assert "1 commands are open and there is no StopRun" in violation(one_step_run()[:2])


def test_nothing_is_ordered_after_the_stop() -> None:
    assert "comes after StopRun" in violation(at(6, more(c.SetTimer(id=8, delay_s=1.0))))


def test_open_commands_at_the_stop_are_void() -> None:
    script = at(5, more(c.SetTimer(id=7, delay_s=99.0)))
    script[6] = (20.0, script[6][1], [c.StopRun(id=8)])
    assert check(script).open_at_stop == 1


def test_a_trajectory_ends_once() -> None:
    again = c.EndTrajectory(id=7, trajectory=0, end=End.STALE)
    assert "trajectory 0 ends a second time, as stale" in violation(at(5, more(again)))


def test_every_trajectory_ends() -> None:
    stop: Line = (
        10.0,
        e.TrajectoryScored(command_id=4, reward=1.0),
        [c.EndTrajectory(id=6, trajectory=0, end=End.STALE), c.StopRun(id=7)],
    )
    script = [*at(4, more(reset(5, 8)))[:5], stop]
    assert "1 trajectories have not ended; the first is 8" in violation(script)


def test_what_was_never_begun_is_not_trained_on() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [c.EndTrajectory(id=0, trajectory=0, end=End.TRAINED)]),
    ]
    assert "trained on and was never begun" in violation(script)


def test_a_queued_trajectory_may_end() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [c.EndTrajectory(id=0, trajectory=0, end=End.STALE), c.StopRun(id=1)]),
    ]
    assert check(script).violation is None


def test_a_batch_takes_only_what_ended_as_trained() -> None:
    def unended(line: Line) -> Line:
        return (line[0], line[1], [line[2][1]])

    assert "has not ended once as trained" in violation(at(5, unended))


def test_staleness_is_bounded() -> None:
    script = at(5, lambda line: (line[0], line[1], [line[2][0], train(6, 0, step=3, installed=2)]))
    assert "trajectory 0 has staleness 2, the bound is 1" in violation(script)
    assert "staleness" not in (check(script, staleness_bound=None).violation or "")


def test_a_batch_states_the_true_start_versions() -> None:
    script = at(0, lambda line: (line[0], line[1], [reset(0, 0, version=1)]))
    assert "was begun at version 1, the batch says 0" in violation(script)


def test_environments_fit_the_slots() -> None:
    script: list[Line] = [(0.0, e.RunStarted(), [reset(0, 0), reset(1, 1)])]
    assert "2 environments exist, the slots are 1" in violation(script, slots=1)


LOST = e.EngineLost(engine=0, incarnation=0, commands=(1,), saved_tokens=(0,))


def test_a_lost_engine_gets_no_orders() -> None:
    script = [*one_step_run()[:2], (3.0, LOST, [generate(2, 0)])]
    assert "an order to engine 0, which is down" in violation(script)


def test_an_earlier_incarnation_gets_no_orders() -> None:
    script: list[Line] = [
        *one_step_run()[:2],
        (3.0, LOST, [c.RestartEngine(id=2, engine=0, incarnation=1)]),
        (4.0, e.EngineStarted(command_id=2), [generate(3, 0)]),
    ]
    assert "incarnation 0 of engine 0, the current one is 1" in violation(script)
    script[-1] = (4.0, e.EngineStarted(command_id=2), [generate(3, 0, incarnation=1)])
    assert "incarnation" not in violation(script)


def test_late_answers_to_void_commands_are_counted() -> None:
    script: list[Line] = [
        *one_step_run()[:2],
        (3.0, LOST, [c.RestartEngine(id=2, engine=0, incarnation=1)]),
        (4.0, generated(1), [c.EndTrajectory(id=3, trajectory=0, end=End.FAILED), c.StopRun(id=4)]),
    ]
    report = check(script)
    assert (report.violation, report.late_answers) == (None, 1)


def test_engines_do_not_go_back_to_older_versions() -> None:
    def update(number: int, version: int) -> c.UpdateEngine:
        return c.UpdateEngine(id=number, engine=0, incarnation=0, version=version, source=c.WeightSource.STORE)

    script: list[Line] = [
        (0.0, e.RunStarted(), [update(0, 2), update(1, 1)]),
        (1.0, e.EngineUpdated(command_id=0, version=2), []),
        (2.0, e.EngineUpdated(command_id=1, version=1), []),
    ]
    assert "engine 0 goes back to version 1 from 2" in violation(script)


def test_pushed_versions_do_not_go_back() -> None:
    pushes = [c.PushWeights(id=number, version=2 - number, broadcast=False) for number in range(2)]
    script: list[Line] = [
        (0.0, e.RunStarted(), pushes),
        (1.0, e.WeightsPushed(command_id=0, version=2), []),
        (2.0, e.WeightsPushed(command_id=1, version=1), []),
    ]
    assert "pushes version 1 after 2" in violation(script)


def test_cancelled_timers_and_aborted_turns_need_no_answer() -> None:
    script: list[Line] = [
        (0.0, e.RunStarted(), [reset(0, 0), c.SetTimer(id=1, delay_s=5.0)]),
        (1.0, ready(0), [generate(2, 0), c.CancelTimer(id=3, target=1)]),
        (
            2.0,
            e.TimerFired(command_id=1),
            [c.AbortGeneration(id=4, target=2, trajectory=0, engine=0, incarnation=0)],
        ),
        (
            3.0,
            e.GenerationAborted(command_id=4, output_tokens=0),
            [c.EndTrajectory(id=5, trajectory=0, end=End.SURPLUS)],
        ),
    ]
    assert check(script) == InvariantReport(
        violation=None, events=4, commands=6, trajectories=1, late_answers=1, open_at_stop=0
    )
