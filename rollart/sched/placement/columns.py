"""Columns of the model: what an engine at an operating point yields in a step of a given duration.

For a step of s seconds, of which a window of w seconds is open to the rollout:

    starts      = rate * (w - rebuild)                       of a steady point; the load of a drain that fits w
    stale       = part of the groups that take longer than the (oldest + 1) * s after which they are evicted
    unfinished  = sum over i of the part of the groups that take longer than i * s:
                  groups still open, of those opened at each step boundary, when a batch is due
"""

from dataclasses import dataclass

import numpy as np

from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.draining import Drain
from rollart.sched.placement.points import Point
from rollart.sched.placement.sample import Array

_BOUNDARIES = 12
"""Step boundaries that are looked at after the opening of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One engine of a kind at a batch, for a task; rates are per step."""

    kind: int
    task: int
    batch: int
    starts: float
    """Trajectories that it starts."""
    concurrency: float
    unfinished: float
    """Groups that are open at a step boundary for each that is opened in a step."""
    trained: float
    """Part of the started groups that is not evicted as stale."""
    prefill_kind: int | None = None
    prefill_use: float = 0.0
    moved_bytes_per_s: float = 0.0


def steady_columns(
    points: list[Point], demands: list[TaskDemand], composition: Composition, step_s: float, window_s: float
) -> list[Column]:
    """What steady points yield in a step."""
    made = []
    for point in points:
        open_s = window_s - point.rebuild_s
        if open_s <= 0.0:
            continue
        demand = demands[point.task]
        pace_s = point.pace_s * step_s / open_s
        taken_s = demand.group_output_tokens * pace_s + demand.group_waits_s
        longer = _longer(taken_s, step_s, composition.oldest)
        made.append(
            Column(
                kind=point.kind,
                task=point.task,
                batch=point.batch,
                starts=point.rate * open_s,
                concurrency=point.concurrency,
                unfinished=float(longer.sum()),
                trained=1.0 - (float(longer[-1]) if composition.oldest is not None else 0.0),
                prefill_kind=point.prefill_kind,
                prefill_use=point.prefill_use,
                moved_bytes_per_s=point.moved_bytes_per_s,
            )
        )
    return [column for column in made if column.trained > 0.5]


def drain_columns(found: list[Drain], window_s: float) -> list[Column]:
    """The drains that fit the window."""
    return [
        Column(
            kind=drain.kind,
            task=drain.task,
            batch=drain.load,
            starts=float(drain.load),
            concurrency=float(drain.load),
            unfinished=0.0,
            trained=1.0,
        )
        for drain in found
        if drain.makespan_s <= window_s
    ]


def _longer(taken_s: Array, step_s: float, oldest: int | None) -> Array:
    """Part of the groups that takes longer than 1, 2, ... steps, up to the step at which they are evicted."""
    boundaries = step_s * np.arange(1, 2 + (_BOUNDARIES if oldest is None else min(oldest, _BOUNDARIES)))
    longer: Array = (taken_s[None, :] > boundaries[:, None]).mean(axis=1)
    return longer
