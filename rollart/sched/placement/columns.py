"""Columns of the model: what an engine at an operating point yields in a step of a given duration.

For a step of s seconds, of which a window of w seconds is open to the rollout:

    starts      = rate * (w - rebuild)                       of a steady point; the load of a drain that fits w
    stale       = part of the groups that take longer than the (oldest + 1) * s after which they are evicted
    unfinished  = sum over i of the part of the groups that take longer than i * s:
                  groups still open, of those opened at each step boundary, when a batch is due
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollart.sched.placement.composition import Composition
from rollart.sched.placement.demand import TaskDemand
from rollart.sched.placement.draining import Drain
from rollart.sched.placement.points import Point
from rollart.sched.placement.sample import Array

_BOUNDARIES = 12
"""Step boundaries that are looked at after the opening of a group."""
_MOST_STALE = 0.5
"""Part of the groups; a point that loses more is not worked at."""


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
    points: Sequence[Point], demands: Sequence[TaskDemand], composition: Composition, step_s: float, window_s: float
) -> list[Column]:
    """What steady points yield in a step."""
    open_s = window_s - np.array([point.rebuild_s for point in points])
    usable: list[int] = np.flatnonzero(open_s > 0.0).tolist()
    if not usable:
        return []
    task = np.array([points[index].task for index in usable])
    pace_s = np.array([points[index].pace_s for index in usable]) * step_s / open_s[usable]
    output = np.stack([demand.group_output_tokens for demand in demands])
    waits_s = np.stack([demand.group_waits_s for demand in demands])
    longer = _longer(output[task] * pace_s[:, None] + waits_s[task], step_s, composition.oldest)
    unfinished = longer.sum(axis=1).tolist()
    stale = longer[:, -1].tolist() if composition.oldest is not None else [0.0] * len(unfinished)
    return [
        Column(
            kind=points[index].kind,
            task=points[index].task,
            batch=points[index].batch,
            starts=points[index].rate * float(open_s[index]),
            concurrency=points[index].concurrency,
            unfinished=unfinished[row],
            trained=1.0 - stale[row],
            prefill_kind=points[index].prefill_kind,
            prefill_use=points[index].prefill_use,
            moved_bytes_per_s=points[index].moved_bytes_per_s,
        )
        for row, index in enumerate(usable)
        if stale[row] < _MOST_STALE
    ]


def drain_columns(found: Sequence[Drain], window_s: float) -> list[Column]:
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
    """For each row the parts that take longer than 1, 2, ... steps, up to the step at which groups are evicted."""
    most = _BOUNDARIES if oldest is None else min(oldest + 1, _BOUNDARIES)
    return np.stack([(taken_s > step_s * boundary).mean(axis=1) for boundary in range(1, most + 1)], axis=1)
