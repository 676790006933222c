"""steps.csv: one row a step, warm-up steps among them."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rollart.report.output import write_text
from rollart.report.words import culprit
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics, StepStatistics

Cell = str | int | float | None


def write_steps(path: Path, statistics: RunStatistics) -> None:
    """Write the table; an unknown value is an empty cell. Raises OutputError."""
    pools = {pool.name: pool.devices for pool in statistics.header.pools}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_columns(pools))
    table.writerows(_row(step, pools) for step in statistics.steps)
    write_text(path, text.getvalue())


def _columns(pools: dict[str, int]) -> list[str]:
    return [
        *("step", "begin_s", "end_s", "step_time_s", "trajectories", "tokens", "tokens_per_s"),
        *("staleness_mean", "staleness_max"),
        *(f"path_{stage.value}_s" for stage in Stage),
        *(f"busy_{stage.value}_s" for stage in Stage),
        *("kv_occupancy", "cost"),
        *(f"utilization_{pool}" for pool in pools),
        *("slowest_trajectory", "slowest_task", "slowest_s"),
    ]


def _row(step: StepStatistics, pools: dict[str, int]) -> Sequence[Cell]:
    slowest = culprit(step.path)
    return [
        *(step.step, step.begin_s, step.end_s, step.duration_s, step.trajectories, step.tokens),
        step.tokens / step.duration_s if step.duration_s else None,
        sum(step.staleness) / len(step.staleness) if step.staleness else None,
        max(step.staleness, default=None),
        *(step.stages_s[stage] for stage in Stage),
        *(step.busy_s[stage] for stage in Stage),
        *_hardware(step, pools),
        *((None,) * 3 if slowest is None else _slowest(step, slowest.trajectory, slowest.seconds)),
    ]


def _slowest(step: StepStatistics, trajectory: int, seconds: float) -> tuple[Cell, ...]:
    return trajectory, step.task_of.get(trajectory), seconds


def _hardware(step: StepStatistics, pools: dict[str, int]) -> list[Cell]:
    usage = step.usage
    if usage is None:
        return [None] * (2 + len(pools))
    occupancy = usage.kv_block_s / usage.kv_capacity_block_s if usage.kv_capacity_block_s else None
    return [
        occupancy,
        usage.cost,
        *(
            usage.pool_busy_device_s[pool] / (devices * step.duration_s) if devices and step.duration_s else None
            for pool, devices in pools.items()
        ),
    ]
