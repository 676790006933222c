"""Does a fitted profile stand for its trace? Fitted on one half of the prompts, compared with the other.

    python experiments/profile_check.py TRACE... [--times PROFILE] [--splits 5] [--policies sync+,rollart] [--one-task]

For each split, a seed cuts the groups of a trace in two halves. A profile is fitted to each; training runs that draw
from a profile, and runs that replay a half in random order of its groups, are simulated with the same plan. "profile /
other half" is the step time of a profile over that of the half which it has not seen, as the geometric mean of both
directions (so that it does not matter which half happens to be slower): its mean over the splits says how far the fit
is off, the interval is Student's, of 95 %. "halves" is what the halves themselves differ by, slower over faster.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import yaml
from scipy.stats import t as student

from rollart import api
from rollart.workload.fit.document import fit_profile
from rollart.workload.group_choice import group_place, in_share
from rollart.workload.profile_file import load_document
from rollart.workload.profile_writer import write_profile
from rollart.workload.selection import longest_tokens
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_writer import write_trace

WITHIN = 0.03
CONTEXT_LIMIT = 32768
"""Trajectories that exceed it are left out: replayed and drawn ones are not cut at the same place."""
_FEWEST = 64
"""A task has at least this part of a batch, one over it."""
_ORDER = 1_000_000
"""Added to the seed of a split for the order of its groups, which must not go with the side they are on."""
SCENARIO: dict[str, Any] = {
    "schema_version": 1,
    "name": "profile-check",
    "description": "Eight H800 train an 8B model on one trace; sizes assumed, the same for everything compared",
    "model": "Qwen3-8B",
    "cluster": {
        "pools": {"h800": {"device": "H800", "count": 8}},
        "environments": {"hosts": 8, "cores_per_host": 64},
    },
    "training": {"batch_size": 128, "context_limit": CONTEXT_LIMIT},
    "placement": {
        "trainer": {"pool": "h800", "devices": 4, "tensor_parallel": 4},
        "engines": [{"name": "h800", "pool": "h800", "engines": 4}],
        "environment_slots": 512,
    },
    "steps": 7,
    "warmup_steps": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A file that a scenario can name."""

    keys: dict[str, str]
    tasks: dict[str, int]
    """Trajectories of each task, for its share of the batch."""
    group_size: int

    def step_time_s(self, folder: Path, policy: str, seed: int) -> float:
        """Mean time of a step."""
        # A batch must hold a group of each task.
        counts = {task: max(count, sum(self.tasks.values()) / _FEWEST) for task, count in self.tasks.items()}
        tasks = [
            {
                "name": re.sub("[^A-Za-z0-9 _+-]", "-", task),
                "workload": self.keys | {"task": task},
                "share": count / sum(counts.values()),
                "group_size": self.group_size,
            }
            for task, count in counts.items()
        ]
        # A recorded group of one has the same trajectory for every member, a drawn one does not: where the faster of
        # two counts, as with redundant members, the two would differ by that alone.
        rules: Any = policy if self.group_size > 1 else {"preset": policy, "group": {"redundant_members": 0}}
        path = folder / "scenario.yaml"
        path.write_text(yaml.safe_dump(SCENARIO | {"tasks": tasks, "policy": rules, "seed": seed}), encoding="utf-8")
        return float(api.simulate(api.load_scenario(path)).summary["step_time_s"]["mean"])


def main() -> None:
    """Print the table."""
    options = _options()
    print(f"{'trace':<28}{'policy':<9}{'trajectories':>13}{'groups':>8}   profile / other half  halves")
    for path in options.trace:
        fitting = (one for one in TraceReader(path) if one.turns and longest_tokens(one) <= CONTEXT_LIMIT)
        trajectories = [_of_one_task(one) if options.one_task else one for one in fitting]
        for policy in options.policies.split(","):
            ratios = [_ratios(trajectories, options.times, policy, seed) for seed in range(options.splits)]
            groups = len({(one.task, one.group) for one in trajectories})
            fitted, halves = ([ratio[side] for ratio in ratios] for side in (0, 1))
            print(
                f"{path.name.split('.')[0]:<28}{policy:<9}{len(trajectories):>13,}{groups:>8,}   "
                f"{_interval(fitted)}        {fmean(halves):.3f}   {_verdict(fitted)}",
                flush=True,
            )


def _of_one_task(one: TraceTrajectory) -> TraceTrajectory:
    return msgspec.structs.replace(one, task="all", group=f"{one.task} {one.group}")


def _ratios(trajectories: Sequence[TraceTrajectory], times: Path | None, policy: str, seed: int) -> tuple[float, float]:
    """(profile / other half, slower / faster half) of one split."""
    drawn_s, replayed_s = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in (True, False):
            half = [one for one in trajectories if in_share(one, 0.5, seed) is side]
            half.sort(key=lambda one: group_place(one, seed + _ORDER))
            replayed = _replayed(folder, half, times)
            drawn = replace(replayed, keys=_fitted(folder, half, times))
            drawn_s.append(drawn.step_time_s(folder, policy, seed))
            replayed_s.append(replayed.step_time_s(folder, policy, seed))
    return sqrt(prod(drawn_s) / prod(replayed_s)), max(replayed_s) / min(replayed_s)


def _fitted(folder: Path, half: Sequence[TraceTrajectory], times: Path | None) -> dict[str, str]:
    path = folder / "fitted.yaml"
    borrowed = None if times is None else load_document(times)
    write_profile(path, fit_profile(half, name="fitted", source="one half", times=borrowed))
    return {"profile": str(path)}


def _replayed(folder: Path, half: Sequence[TraceTrajectory], times: Path | None) -> Workload:
    path = folder / "half.jsonl"
    write_trace(path, half)
    tasks: dict[str, int] = {}
    sizes: dict[tuple[str, str], int] = {}
    for one in half:
        tasks[one.task] = tasks.get(one.task, 0) + 1
        sizes[one.task, one.group] = sizes.get((one.task, one.group), 0) + 1
    keys = {"trace": str(path)} | ({} if times is None else {"times": str(times.resolve())})
    usual = max(set(sizes.values()), key=list(sizes.values()).count)
    return Workload(keys=keys, tasks=tasks, group_size=max(size for size in (1, 2, 4, 8) if size <= usual))


def _half_width(ratios: Sequence[float]) -> float:
    """Of Student's interval of 95 % for the mean."""
    return stdev(ratios) / sqrt(len(ratios)) * float(student.ppf(0.975, len(ratios) - 1))


def _interval(ratios: Sequence[float]) -> str:
    return f"{fmean(ratios):.3f} +- {_half_width(ratios):.3f}"


def _verdict(ratios: Sequence[float]) -> str:
    off, half = abs(fmean(ratios) - 1.0), _half_width(ratios)
    if off + half <= WITHIN:
        return f"within {WITHIN:.0%}"
    return f"beyond {WITHIN:.0%}" if off - half > WITHIN else f"undecided ({'within' if off <= WITHIN else 'beyond'})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="+", help="trace files of this project's schema")
    parser.add_argument("--times", type=Path, help="profile for the times that a trace lacks")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--one-task", action="store_true", help="take all tasks of a trace for one")
    parser.add_argument("--policies", default="sync+,rollart")
    return parser.parse_args()


if __name__ == "__main__":
    main()
