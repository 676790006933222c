"""Which trajectories of a trace are kept: by what they are, by chance, or by group."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest

from msgspec.structs import replace

from rollart.workload.group_choice import group_place, member_place
from rollart.workload.trace import TraceTrajectory

Source = Callable[[], Iterable[TraceTrajectory]]
"""Opens a trace anew; what needs two passes reads it twice and holds its groups only."""
Keeps = Callable[[TraceTrajectory], bool]
Key = Callable[[TraceTrajectory], Hashable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Bounds that a trajectory must meet, all of them; None is no bound. Bounds are inclusive."""

    tasks: Collection[str] = ()
    """Empty: every task."""
    outcomes: Collection[str] = ()
    """"ok", "failed", "truncated"; empty: every outcome. A failed reset is a failure."""
    least_turns: int | None = None
    most_turns: int | None = None
    least_tokens: int | None = None
    """Of the longest context, its output included."""
    most_tokens: int | None = None
    least_reward: float | None = None
    """A trajectory without a reward meets no bound on it."""
    most_reward: float | None = None

    def keeps(self, trajectory: TraceTrajectory) -> bool:
        """Whether it meets every bound."""
        outcome = "failed" if trajectory.reset_outcome != "ok" else trajectory.outcome
        return (
            (not self.tasks or trajectory.task in self.tasks)
            and (not self.outcomes or outcome in self.outcomes)
            and _between(len(trajectory.turns), self.least_turns, self.most_turns)
            and _between(longest_tokens(trajectory), self.least_tokens, self.most_tokens)
            and _between(trajectory.reward, self.least_reward, self.most_reward)
        )


def longest_tokens(trajectory: TraceTrajectory) -> int:
    """Longest context of a trajectory, the output after it included; 0 without a turn."""
    outputs = (turn.output_tokens for turn in trajectory.turns)
    return max((context + output for context, output in zip(trajectory.contexts(), outputs, strict=True)), default=0)


def filtered(source: Source, rule: Filter, *, whole_groups: bool = False) -> Iterator[TraceTrajectory]:
    """Trajectories that the rule keeps; with `whole_groups`, only of groups that it keeps all of."""
    broken = {(one.task, one.group) for one in source() if not rule.keeps(one)} if whole_groups else set()
    return (one for one in source() if rule.keeps(one) and (one.task, one.group) not in broken)


def merged(sources: Iterable[tuple[str, Iterable[TraceTrajectory]]], *, same_groups: bool) -> Iterator[TraceTrajectory]:
    """All trajectories of several (name, trace).

    With `same_groups`, groups of one task and id are one group, and their members get new numbers where they clash;
    else each group's id is preceded by the name of its source.
    """
    taken: dict[tuple[str, str], set[int]] = {}
    for name, trajectories in sources:
        for one in trajectories:
            if not same_groups:
                yield replace(one, group=f"{name}/{one.group}")
                continue
            members = taken.setdefault((one.task, one.group), set())
            member = one.member if one.member not in members else max(members) + 1
            members.add(member)
            yield one if member == one.member else replace(one, member=member)


def sampled(source: Source, *, groups: int | None, members: int | None, seed: int) -> Iterator[TraceTrajectory]:
    """At most `groups` groups of each task and `members` of each group, by seed, in the order of the trace.

    None keeps all. A smaller sample of the same seed is a part of a larger one.
    """
    keeps_group: Keeps = _nothing_refused
    if groups is not None:
        keeps_group = _lowest(source, groups, lambda one: one.task, _group, lambda one: group_place(one, seed))
    keeps_member: Keeps = _nothing_refused
    if members is not None:
        keeps_member = _lowest(source, members, _group, _member, lambda one: member_place(one, seed))
    return (one for one in source() if keeps_group(one) and keeps_member(one))


def _lowest(source: Source, count: int, within: Key, key: Key, place: Callable[[TraceTrajectory], float]) -> Keeps:
    """Whether a trajectory's key is among the `count` of lowest place of all with the same `within`."""
    places: dict[Hashable, dict[Hashable, float]] = {}
    for one in source():
        places.setdefault(within(one), {})[key(one)] = place(one)
    kept = {outer: set(nsmallest(count, inner, key=inner.__getitem__)) for outer, inner in places.items()}
    return lambda one: key(one) in kept[within(one)]


def _nothing_refused(_: TraceTrajectory) -> bool:
    return True


def _group(one: TraceTrajectory) -> Hashable:
    return one.task, one.group


def _member(one: TraceTrajectory) -> Hashable:
    return one.member


def _between(value: float | None, least: float | None, most: float | None) -> bool:
    if least is None and most is None:
        return True
    return value is not None and (least is None or value >= least) and (most is None or value <= most)
