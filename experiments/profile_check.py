"""Does a fitted profile stand for its trace? Fitted on one half of the prompts, compared with the other.

    python experiments/profile_check.py TRACE... [--times PROFILE] [--splits 20] [--draws 2] [--one-task] [-o RESULTS]

For each split, a seed cuts the groups of a trace in two halves. A profile is fitted to each, and traces of the half's
size are drawn from it. Training runs that play the half (in random order of its groups), and runs that play what was
drawn from the profile of the other one, are simulated with the same plan.

"profile / other half" is the geometric mean of both directions, so that which half happens to be slower falls out: its
mean over the splits says how far the fit is off, and the interval is Student's, of 95 %. (All splits are of one trace:
the interval is about this trace, not about others like it.) "one fit, one half" is how far a single drawn trace is off
from the other half, as a root mean square; "halves" is the same for the halves themselves, without any fit: no profile
can come closer to a half that it has not seen than about that.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, expm1, log, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import yaml
from scipy.stats import t as student

from rollart import api
from rollart.workload.fit.document import fit_profile
from rollart.workload.group_choice import group_place, in_share
from rollart.workload.profile_file import load_document, profile_from_mapping
from rollart.workload.selection import longest_tokens
from rollart.workload.synth import synthesize
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
    "steps": 13,
    "warmup_steps": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A file that a scenario can name."""

    keys: dict[str, str]
    tasks: Mapping[str, int]
    """Trajectories of each task, for its share of the batch."""
    groups: Mapping[str, int]
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
        path = folder / "scenario.yaml"
        path.write_text(yaml.safe_dump(SCENARIO | {"tasks": tasks, "policy": policy, "seed": seed}), encoding="utf-8")
        return float(api.simulate(api.load_scenario(path)).summary["step_time_s"]["mean"])


def main() -> None:
    """Print the table, and write the figures behind it."""
    options = _options()
    print(
        f"{'trace':<12}{'policy':<9}{'trajectories':>13}{'groups':>8}   profile / other half   "
        "one fit, one half   halves"
    )
    written = []
    for path in options.trace:
        fitting = (one for one in TraceReader(path) if one.turns and longest_tokens(one) <= CONTEXT_LIMIT)
        trajectories = [_of_one_task(one) if options.one_task else one for one in fitting]
        groups = len({(one.task, one.group) for one in trajectories})
        splits = [_told(_split(trajectories, options, seed), seed) for seed in range(options.splits)]
        for policy in options.policies.split(","):
            found = [split[policy] for split in splits]
            bias = [split.bias for split in found]
            print(
                f"{path.name.split('.')[0]:<12}{policy:<9}{len(trajectories):>13,}{groups:>8,}   {_interval(bias):<23}"
                f"{_typical(off for split in found for off in split.off):<20}"
                f"{_typical(split.halves for split in found):<9}{_verdict(bias)}",
                flush=True,
            )
            written.append({"trace": path.name, "policy": policy, "splits": [asdict(split) for split in found]})
    if options.out:
        about = {"splits": options.splits, "draws": options.draws, "one_task": options.one_task, "scenario": SCENARIO}
        options.out.write_text(json.dumps(about | {"results": written}, indent=1), encoding="utf-8")


def _of_one_task(one: TraceTrajectory) -> TraceTrajectory:
    return msgspec.structs.replace(one, task="all", group=f"{one.task} {one.group}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Step times of one split under one policy, one entry for each half."""

    replayed_s: tuple[float, ...]
    drawn_s: tuple[tuple[float, ...], ...]
    """Of each trace that was drawn from the profile of this half."""

    @property
    def bias(self) -> float:
        """Profiles over the halves that they have not seen; which half is the slower one falls out."""
        drawn = [log(drawn_s) for of_half in self.drawn_s for drawn_s in of_half]
        return exp(fmean(drawn) - fmean(log(replayed_s) for replayed_s in self.replayed_s))

    @property
    def off(self) -> list[float]:
        """log(one drawn trace / the half that its profile has not seen)."""
        other = self.replayed_s[::-1]
        return [log(s / over) for of_half, over in zip(self.drawn_s, other, strict=True) for s in of_half]

    @property
    def halves(self) -> float:
        """log(one half / the other)."""
        return log(self.replayed_s[0] / self.replayed_s[1])


def _told(split: dict[str, Split], seed: int) -> dict[str, Split]:
    """The same, told on stderr: a long check shows where it is."""
    found = ", ".join(f"{policy} {one.bias:.3f}" for policy, one in split.items())
    print(f"  split {seed}: profile / other half {found}", file=sys.stderr, flush=True)
    return split


def _split(trajectories: Sequence[TraceTrajectory], options: argparse.Namespace, seed: int) -> dict[str, Split]:
    """Of each policy."""
    policies = options.policies.split(",")
    replayed_s: dict[str, list[float]] = {policy: [] for policy in policies}
    drawn_s: dict[str, list[tuple[float, ...]]] = {policy: [] for policy in policies}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in (True, False):
            half = [one for one in trajectories if in_share(one, 0.5, seed) is side]
            half.sort(key=lambda one: group_place(one, seed + _ORDER))
            played = _played(folder / f"half-{side}.jsonl", half, options.times)
            drawn = [
                _played(folder / f"drawn-{side}-{draw}.jsonl", trace, options.times)
                for draw, trace in enumerate(_drawn(half, played, options, seed))
            ]
            for policy in policies:
                replayed_s[policy].append(played.step_time_s(folder, policy, seed))
                drawn_s[policy].append(tuple(one.step_time_s(folder, policy, seed) for one in drawn))
    return {policy: Split(replayed_s=tuple(replayed_s[policy]), drawn_s=tuple(drawn_s[policy])) for policy in policies}


def _drawn(
    half: Sequence[TraceTrajectory], like: Workload, options: argparse.Namespace, seed: int
) -> Iterator[list[TraceTrajectory]]:
    """Traces of as many groups and members as the half, from a profile that was fitted to it."""
    borrowed = None if options.times is None else load_document(options.times)
    document = fit_profile(half, name="fitted", source="one half", times=borrowed, context_limit_tokens=CONTEXT_LIMIT)
    profile = profile_from_mapping(document, "the fitted profile")
    for draw in range(options.draws):
        found: list[TraceTrajectory] = []
        for task, groups in like.groups.items():
            found += synthesize(
                profile, tasks=[task], groups=groups, group_size=like.group_size, seed=seed * options.draws + draw
            )
        # Times that are borrowed are drawn anew at each replay, on both sides alike.
        yield found if borrowed is None else [_without_times(one) for one in found]


def _without_times(one: TraceTrajectory) -> TraceTrajectory:
    turns = tuple(msgspec.structs.replace(turn, env_s=None) for turn in one.turns)
    return msgspec.structs.replace(one, turns=turns, reset_s=None, reward_s=None)


def _played(path: Path, trace: Sequence[TraceTrajectory], times: Path | None) -> Workload:
    write_trace(path, trace)
    sizes = Counter((one.task, one.group) for one in trace)
    usual = Counter(sizes.values()).most_common(1)[0][0]
    return Workload(
        keys={"trace": str(path)} | ({} if times is None else {"times": str(times.resolve())}),
        tasks=Counter(one.task for one in trace),
        groups=Counter(task for task, _ in sizes),
        group_size=max(size for size in (1, 2, 4, 8) if size <= usual),
    )


def _half_width(ratios: Sequence[float]) -> float:
    """Of Student's interval of 95 % for the mean."""
    return stdev(ratios) / sqrt(len(ratios)) * float(student.ppf(0.975, len(ratios) - 1))


def _interval(ratios: Sequence[float]) -> str:
    return f"{fmean(ratios):.3f} +- {_half_width(ratios):.3f}"


def _typical(offs: Iterable[float]) -> str:
    """Root mean square of logarithms of ratios."""
    return f"{expm1(sqrt(fmean(off * off for off in offs))):.1%}"


def _verdict(ratios: Sequence[float]) -> str:
    off, half = abs(fmean(ratios) - 1.0), _half_width(ratios)
    if off + half <= WITHIN:
        return f"within {WITHIN:.0%}"
    return f"beyond {WITHIN:.0%}" if off - half > WITHIN else f"undecided ({'within' if off <= WITHIN else 'beyond'})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="+", help="trace files of this project's schema")
    parser.add_argument("--times", type=Path, help="profile for the times that a trace lacks")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--draws", type=int, default=2, help="traces drawn from each profile")
    parser.add_argument("--one-task", action="store_true", help="take all tasks of a trace for one")
    parser.add_argument("--policies", default="sync+,rollart")
    parser.add_argument("-o", "--out", type=Path, help="JSON file for the step times of every run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
