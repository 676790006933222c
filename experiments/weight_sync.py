"""What a weight update costs the rollout: engines that stop for all of it, or fetch the weights beside the rollout.

    .venv/bin/python experiments/weight_sync.py --steps 30

Two real runs of `laptop.yaml` that differ in the sync rule alone. *Naive*: the engines stop, the trainer publishes,
they fetch and install, they go on. *Overlapped*: the trainer publishes and the engines fetch while they generate; they
stop to install. The figures are those of the updates behind the first two, by the run log. After every update the
engines' log-probs of fixed prompts are compared with the trainer's. Writes experiments/results/weight_sync.json after
each run; one that is there is not made again (--again makes it).
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rollart import api
from rollart.cli.present import show_table
from rollart.domain.commands import PullWeights, PushWeights, ResumeEngine, SuspendEngine, UpdateEngine
from rollart.domain.events import Answer, EngineResumed, EngineSuspended
from rollart.runlog.reader import records
from rollart.runlog.stages import Stage

ROOT = Path(__file__).resolve().parents[1]
LAPTOP = ROOT / "experiments/scenarios/laptop.yaml"
RESULT = ROOT / "experiments/results/weight_sync.json"
WAYS = {
    "naive": ["policy.sync={transport: broadcast, prefetch: false}"],
    "overlapped": [],
}
"""Way -> how it differs from the preset `rollart`."""
PARTS: dict[Any, str] = {
    PushWeights: "push",
    PullWeights: "pull",
    SuspendEngine: "suspend",
    UpdateEngine: "install",
    ResumeEngine: "resume",
}
LEFT_OUT = 2
"""First updates, in which everything is done for the first time."""

Interval = tuple[float, float]


@dataclass(slots=True)
class Update:
    """One version on its way: the intervals in which each part of it was under way."""

    parts: dict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    stopped: dict[int, Interval] = field(default_factory=dict)
    """Engine -> from when to when it did not generate."""


def updates_of(log: Iterable[tuple[int, float, object]]) -> list[Update]:
    """The updates of a run by its log, those that were complete, in order."""
    made: list[Update] = []
    open_: dict[int, tuple[Any, float, Update]] = {}
    since: dict[int, float] = {}
    for _, time_s, record in log:
        if isinstance(record, PushWeights):
            made.append(Update())
        if type(record) in PARTS and made:
            command: Any = record
            open_[command.id] = (command, time_s, made[-1])
        elif isinstance(record, Answer) and record.command_id in open_:
            command, began_s, update = open_.pop(record.command_id)
            update.parts[PARTS[type(command)]].append((began_s, time_s))
            if isinstance(record, EngineSuspended):
                since[command.engine] = time_s
            elif isinstance(record, EngineResumed) and command.engine in since:
                update.stopped[command.engine] = (since.pop(command.engine), time_s)
    return [update for update in made if update.stopped]


def seconds(intervals: Iterable[Interval]) -> float:
    """Time in at least one of the intervals."""
    total_s, end_s = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total_s += max(0.0, end - max(begin, end_s))
        end_s = max(end_s, end)
    return total_s


def figures(updates: Sequence[Update]) -> dict[str, float]:
    """Means over the updates, in seconds: each part, all of it, and for how long an engine stood still."""
    parts = {f"{part}_s": fmean(seconds(update.parts.get(part, ())) for update in updates) for part in PARTS.values()}
    everything = [[each for part in update.parts.values() for each in part] for update in updates]
    stopped = [[end - begin for begin, end in update.stopped.values()] for update in updates]
    return {
        **parts,
        "total_s": fmean(seconds(each) for each in everything),
        "stopped_s": fmean(fmean(each) for each in stopped),
    }


def one_run(settings: Sequence[str], steps: int) -> dict[str, Any]:
    """Run for real; figures of its updates."""
    scenario = api.load_scenario(LAPTOP, [*settings, f"steps={steps}", "warmup_steps=2"])
    with tempfile.TemporaryDirectory(prefix="rollart-sync-") as folder:
        run = api.run(scenario, out=Path(folder) / "run")
        updates = updates_of(records(Path(folder) / "run" / "runlog.parquet"))
        checked = api.check(Path(folder) / "run").ok
    path_s = [step.stages_s[Stage.WEIGHT_SYNC_EXPOSED] for step in run.statistics.counted_steps]
    return {
        "version": api.code_version(),
        "settings": list(settings),
        "steps": steps,
        "updates": len(updates) - LEFT_OUT,
        **figures(updates[LEFT_OUT:]),
        "critical_path_s": fmean(path_s),
        "step_s": run.summary["step_time_s"]["mean"],
        "logprob_gap": run.summary["logprob_gap"],
        "log_holds": checked,
    }


def rows(runs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each way, times in milliseconds."""
    keys = ("push_s", "pull_s", "install_s", "total_s", "stopped_s", "critical_path_s", "step_s")
    return [
        (way, str(run["updates"]), *(f"{1e3 * run[key]:.0f}" for key in keys), f"{run['logprob_gap']['max']:.1e}")
        for way, run in runs.items()
    ]


def main() -> None:
    """Run both ways, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--set", dest="settings", action="append", default=[], help="KEY=VALUE, for both runs")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    runs: dict[str, Any] = json.loads(RESULT.read_text())["runs"] if RESULT.is_file() and not options.again else {}
    for way, settings in WAYS.items():
        if way not in runs:
            runs[way] = one_run([*settings, *options.settings], options.steps)
            RESULT.write_text(json.dumps({"runs": runs}, indent=2) + "\n", encoding="utf-8")
    columns = ("updates", "push", "pull", "install", "total", "stopped", "on the path", "step", "log-prob gap")
    show_table("A weight update, mean milliseconds", ("", *columns), rows(runs))


if __name__ == "__main__":
    main()
