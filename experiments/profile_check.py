"""Does a fitted profile stand for the trace it was fitted to? Fitted on one half of the prompts, compared with the other.

    python experiments/profile_check.py TRACE... [--times PROFILE] [--splits 8] [--policies sync+,rollart]

For each split, a seed cuts the groups of a trace in two. The profile is fitted to one half; a training run that
draws from it and one that replays the other half are simulated with the same plan. "profile / other" is the ratio of
their step times: its mean over the splits says how far the fit is off, the interval is Student's, of 95 %. "half /
other", the ratio with the first half itself replayed, says what two halves of this trace differ by without any fit.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml
from scipy.stats import t as student

from rollart import api
from rollart.workload.fit.document import fit_profile
from rollart.workload.group_choice import in_share
from rollart.workload.profile_file import load_document
from rollart.workload.profile_writer import write_profile
from rollart.workload.trace import TraceTrajectory
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_writer import write_trace

WITHIN = 0.03
SCENARIO: dict[str, Any] = {
    "schema_version": 1,
    "name": "profile-check",
    "description": "Eight H800 train an 8B model on one trace; sizes assumed, the same for everything compared",
    "model": "Qwen3-8B",
    "cluster": {
        "pools": {"h800": {"device": "H800", "count": 8}},
        "environments": {"hosts": 8, "cores_per_host": 64},
    },
    "training": {"batch_size": 128, "context_limit": 32768},
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
        all_tasks = sum(self.tasks.values())
        tasks = [
            {"name": task, "workload": self.keys, "share": count / all_tasks, "group_size": self.group_size}
            for task, count in self.tasks.items()
        ]
        path = folder / "scenario.yaml"
        path.write_text(yaml.safe_dump(SCENARIO | {"tasks": tasks, "policy": policy, "seed": seed}), encoding="utf-8")
        return float(api.simulate(api.load_scenario(path)).summary["step_time_s"]["mean"])


def main() -> None:
    """Print the table."""
    options = _options()
    print(f"{'trace':<28}{'policy':<9}{'trajectories':>13}{'groups':>8}   profile / other       half / other")
    for path in options.trace:
        trajectories = [one for one in TraceReader(path) if one.turns]
        for policy in options.policies.split(","):
            ratios = [_ratios(trajectories, options.times, policy, seed) for seed in range(options.splits)]
            groups = len({(one.task, one.group) for one in trajectories})
            fitted, halves = ([ratio[side] for ratio in ratios] for side in (0, 1))
            verdict = "within" if abs(fmean(fitted) - 1.0) <= WITHIN else "beyond"
            print(
                f"{path.name.split('.')[0]:<28}{policy:<9}{len(trajectories):>13,}{groups:>8,}   "
                f"{_interval(fitted)}   {_interval(halves)}   {verdict} {WITHIN:.0%}",
                flush=True,
            )


def _ratios(trajectories: Sequence[TraceTrajectory], times: Path | None, policy: str, seed: int) -> tuple[float, float]:
    """(profile / other half, half / other half) of one split."""
    first = [one for one in trajectories if in_share(one, 0.5, seed)]
    other = [one for one in trajectories if not in_share(one, 0.5, seed)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        borrowed = None if times is None else load_document(times)
        write_profile(folder / "fitted.yaml", fit_profile(first, name="fitted", source="one half", times=borrowed))
        sides = [_replayed(folder, side, half, times) for side, half in (("first", first), ("other", other))]
        profile = Workload(
            keys={"profile": str(folder / "fitted.yaml")}, tasks=sides[1].tasks, group_size=sides[1].group_size
        )
        fitted_s, half_s, other_s = (work.step_time_s(folder, policy, seed) for work in (profile, *sides))
    return fitted_s / other_s, half_s / other_s


def _replayed(folder: Path, name: str, half: Sequence[TraceTrajectory], times: Path | None) -> Workload:
    path = folder / f"{name}.jsonl"
    write_trace(path, half)
    tasks: dict[str, int] = {}
    sizes: dict[tuple[str, str], int] = {}
    for one in half:
        tasks[one.task] = tasks.get(one.task, 0) + 1
        sizes[one.task, one.group] = sizes.get((one.task, one.group), 0) + 1
    keys = {"trace": str(path)} | ({} if times is None else {"times": str(times.resolve())})
    usual = max(set(sizes.values()), key=list(sizes.values()).count)
    return Workload(keys=keys, tasks=tasks, group_size=max(size for size in (1, 2, 4, 8) if size <= usual))


def _interval(ratios: Sequence[float]) -> str:
    half = stdev(ratios) / len(ratios) ** 0.5 * float(student.ppf(0.975, len(ratios) - 1)) if len(ratios) > 1 else 0.0
    return f"{fmean(ratios):.3f} +- {half:.3f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="+", help="trace files of this project's schema")
    parser.add_argument("--times", type=Path, help="profile for the times that a trace lacks")
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--policies", default="sync+,rollart")
    return parser.parse_args()


if __name__ == "__main__":
    main()
