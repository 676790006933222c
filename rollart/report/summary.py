"""summary.json: a run in one page.

Times, throughput, staleness, occupancy, utilisation and cost leave the warm-up steps out; ends, tasks and waste are of
the whole run. What is undefined (no counted step, no samples) is null.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rollart.domain.trajectory import End
from rollart.report.output import write_text
from rollart.report.words import describe_path
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import RunStatistics, StepStatistics, TaskStatistics, Usage

_WORST_STEPS = 3
_WASTE = ("stale", "surplus", "failed", "recomputed", "preempted")


def summarize(statistics: RunStatistics, simulator: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The summary as plain data; `simulator` is the driver's own block and taken as it is."""
    header, steps = statistics.header, statistics.counted_steps
    total_s = sum(step.duration_s for step in steps)
    staleness = [each for step in steps for each in step.staleness]
    lag = [each for step in steps for each in step.lag]
    summary: dict[str, Any] = _finite(
        {
            "policy": header.policy,
            "driver": header.driver,
            "scenario": header.scenario,
            "seed": header.seed,
            "steps": len(statistics.steps),
            "warmup_steps": header.warmup_steps,
            "step_time_s": _spread([step.duration_s for step in steps]),
            "throughput": {
                "tokens_per_s": _ratio(sum(step.tokens for step in steps), total_s),
                "trajectories_per_s": _ratio(sum(step.trajectories for step in steps), total_s),
            },
            "trajectories": {end.value: statistics.ends[end] for end in End},
            "staleness": {"mean": _mean(staleness), "max": max(staleness, default=None)},
            "lag": {"mean": _mean(lag), "max": max(lag, default=None)},
            "truncated_share": _truncated(statistics.tasks),
            "stages_s": {stage.value: _mean([step.stages_s[stage] for step in steps]) for stage in Stage},
            "busy_s": {stage.value: _mean([step.busy_s[stage] for step in steps]) for stage in Stage},
            "waste": {name: statistics.waste and getattr(statistics.waste, name) for name in _WASTE},
            **_hardware(statistics, steps),
            "tasks": [_task(task) for task in statistics.tasks],
            "critical_path": [describe_path(step) for step in _worst(steps)],
            "simulator": None if simulator is None else dict(simulator),
        }
    )
    return summary


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write summary.json. Raises OutputError."""
    write_text(path, json.dumps(summary, indent=2, allow_nan=False) + "\n")


def _hardware(statistics: RunStatistics, steps: Sequence[StepStatistics]) -> dict[str, Any]:
    usages = [step.usage for step in steps if step.usage is not None]
    complete = bool(usages) and len(usages) == len(steps)
    total_s = sum(step.duration_s for step in steps)
    return {
        "kv_occupancy": _kv_occupancy(usages),
        "utilization": {
            pool.name: _ratio(sum(usage.pool_busy_device_s[pool.name] for usage in usages), total_s * pool.devices)
            if complete
            else None
            for pool in statistics.header.pools
        },
        "cost_per_step": _mean([usage.cost for usage in usages]) if complete else None,
    }


def _kv_occupancy(usages: Iterable[Usage]) -> float | None:
    pairs = [(usage.kv_block_s, usage.kv_capacity_block_s) for usage in usages]
    return _ratio(sum(used for used, _ in pairs), sum(capacity for _, capacity in pairs))


def _task(task: TaskStatistics) -> dict[str, Any]:
    return {
        "task": task.task,
        "started": task.started,
        **{end.value: task.ends[end] for end in End},
        "mean_reward": task.mean_reward,
        "mean_turns": task.mean_turns,
        "truncated_share": task.truncated_share,
    }


def _truncated(tasks: Iterable[TaskStatistics]) -> float | None:
    shares = [(task.truncated_share, task.ends[End.TRAINED]) for task in tasks if task.truncated_share is not None]
    return _ratio(sum(share * count for share, count in shares), sum(count for _, count in shares))


def _worst(steps: Sequence[StepStatistics]) -> list[StepStatistics]:
    return sorted(steps, key=lambda step: -step.duration_s)[:_WORST_STEPS]


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {"mean": None, "p50": None, "p90": None}
    p50, p90 = np.percentile(values, [50, 90]).tolist()
    return {"mean": _mean(values), "p50": p50, "p90": p90}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _ratio(over: float, under: float) -> float | None:
    return over / under if under > 0 else None


def _finite(value: Any) -> Any:
    """The same with null for every number that JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value
