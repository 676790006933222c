"""What given engine groups make of a step: the model with its engines fixed.

The engines of a group share its tasks, so a group works at one batch: at one of the grid, or between two neighbours.
Under a barrier, loads of several tasks share an engine as they come: half the load of each is half the work of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rollart.sched.placement.columns import Column
from rollart.sched.placement.families import Block, Draft, Terms, add_engines, add_environments, add_flow, add_links
from rollart.sched.placement.instance import Instance
from rollart.sched.placement.program import Program, Variable

_ROUGHLY = 0.05
"""Relative gap of how many batches are fed beyond one, or short of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """What a group does in a step."""

    running: Mapping[int, float]
    """Task -> trajectories under way on the group."""
    served: Mapping[int, float]
    """Task -> trajectories that the group starts."""
    busy: float
    """Part of its engines' time that is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """How groups roll out in a step of a duration."""

    batches: float
    """That they feed; 1 or more where they keep up."""
    loads: tuple[GroupLoad, ...]
    """Of each group, in the order of the kinds."""


def balance(
    instance: Instance,
    engines: tuple[int, ...],
    allowed: frozenset[tuple[int, int]],
    step_s: float,
    window_s: float,
    *,
    integer: bool,
) -> Balance | None:
    """The best division of the tasks; `engines` by kind, `allowed` pairs of (task, kind). None: nothing can be fed.

    Without `integer` each fraction of an engine may work at its own batch: faster, and a bound.
    """
    columns = [c for c in instance.columns(step_s, window_s) if (c.task, c.kind) in allowed]
    if {column.task for column in columns} != set(range(len(instance.demands))):
        return None
    program = Program(integer=integer)
    blocks: dict[Block, Variable] = {block: program.number() for block in _blocks(columns)}
    draft = Draft(
        program=program,
        instance=instance,
        columns=columns,
        step_s=step_s,
        work=[program.number() for _ in columns],
        blocks=blocks,
        batches=program.number(),
    )
    for kind, count in enumerate(engines):
        at = [n for (e, _), n in blocks.items() if e == kind]
        program.at_most(float(count), [(n, 1.0) for n in at])
        if not instance.composition.barrier:
            _one_batch(program, at, count)
    for add in (add_flow, add_engines, add_environments, add_links):
        add(draft)
    if not _feeds_most(program, draft.batches):
        return None
    return Balance(
        batches=draft.batches.solution_value(),
        loads=tuple(_load(draft, kind, count) for kind, count in enumerate(engines)),
    )


def _feeds_most(program: Program, batches: Variable) -> bool:
    """Solve for the most batches: to the last where it decides whether one is fed, else roughly (that takes long)."""
    most = [(batches, 1.0)]
    found = program.solve(most, maximise=True, gap=_ROUGHLY)
    if found is not None and found.value < 1.0 <= found.bound:
        found = program.solve(most, maximise=True)
    return found is not None


def _blocks(columns: list[Column]) -> list[Block]:
    found = {(column.kind, column.batch) for column in columns}
    return sorted(found | {(column.prefill_kind, -1) for column in columns if column.prefill_kind is not None})


def _one_batch(program: Program, at: list[Variable], engines: int) -> None:
    """All engines at one batch, or at two that are neighbours."""
    if program.integer and len(at) > 2:
        between = [program.count(1) for _ in at[:-1]]
        program.at_most(1.0, [(flag, 1.0) for flag in between])
        for index, count in enumerate(at):
            near: Terms = [(flag, -float(engines)) for flag in between[max(0, index - 1) : index + 1]]
            program.at_most(0.0, [(count, 1.0), *near])


def _load(draft: Draft, kind: int, engines: int) -> GroupLoad:
    running: dict[int, float] = {}
    served: dict[int, float] = {}
    busy = 0.0
    for column, variable in zip(draft.columns, draft.work, strict=True):
        work = variable.solution_value()
        if work > 1e-9 and column.kind == kind:
            running[column.task] = running.get(column.task, 0.0) + work * column.concurrency
            served[column.task] = served.get(column.task, 0.0) + work * column.starts
            busy += work / engines
        if work > 1e-9 and column.prefill_kind == kind:
            busy += work * column.prefill_use / engines
    return GroupLoad(running=running, served=served, busy=busy)
