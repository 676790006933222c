"""Samples of a trace that is read once."""

from rollart.workload.trace import TraceTrajectory, TraceTurn
from rollart.workload.trace_sample import TraceSample

MANY = [
    TraceTrajectory(task=task, group=str(group), prompt_tokens=9, turns=(TraceTurn(output_tokens=1),))
    for task in "ab"
    for group in range(50)
]


def sampled(size: int, trace: list[TraceTrajectory], seed: int = 0) -> TraceSample:
    found = TraceSample(size, seed)
    for one in trace:
        found.add(one)
    return found


def test_a_sample_does_not_depend_on_the_order_of_the_trace() -> None:
    forth, back = sampled(5, MANY), sampled(5, MANY[::-1])
    assert forth.tasks == ("a", "b")
    for task in "ab":
        assert forth.of(task) == back.of(task)
        assert len({one.group for one in forth.of(task)}) == 5


def test_a_larger_sample_begins_with_the_smaller() -> None:
    assert sampled(9, MANY).of("a")[:4] == sampled(4, MANY).of("a")
    assert sampled(9, MANY, seed=1).of("a") != sampled(9, MANY).of("a")


def test_trajectories_without_a_turn_are_not_shown() -> None:
    lost = TraceTrajectory(task="a", group="x", prompt_tokens=9, turns=(), reset_outcome="failed", outcome="failed")
    found = sampled(5, [lost, MANY[0]])
    assert found.of("a") == [MANY[0]] and found.of("c") == []
