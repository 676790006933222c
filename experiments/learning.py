"""Does it learn? The default run under several seeds and policies, and with shuffled rewards, which must not learn.

    .venv/bin/python experiments/learning.py --seeds 5 --policies sync rollart --control

Each run takes some minutes on two cores. Writes experiments/results/learning.json after each run, and learning.png;
what is there already is kept, and a run that is there is not made again (--again makes it).
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from milestones import GOAL, milestones

from rollart import api
from rollart.report.figures.canvas import SERIES_COLOURS, label, new_panels, save
from rollart.running.reals import LEARNING_FILE, learning_curve

ROOT = Path(__file__).resolve().parents[1]
LAPTOP = ROOT / "experiments/scenarios/laptop.yaml"
RESULT = ROOT / "experiments/results/learning.json"
FIGURE = ROOT / "experiments/results/learning.png"
KEPT = ("reward", "logprob_gap", "step_time_s", "predicted_step_time_s", "tokens_per_s", "weight_update_s", "staleness")


def one_run(policy: str, seed: int, steps: int | None, *, shuffled: bool) -> dict[str, Any]:
    """Run, check the log, and keep the figures and the curves."""
    settings = ["execution.learning.shuffle_rewards=true"] if shuffled else []
    scenario = api.load_scenario(LAPTOP, settings).with_changes(policy=policy, seed=seed, steps=steps)
    folder = Path(tempfile.mkdtemp(prefix="rollart-learning-")) / "run"
    try:
        summary = api.run(scenario, out=folder).summary
        checked = api.check(folder).ok
        curve = learning_curve(folder / LEARNING_FILE)
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)
    curves = {task: [round(step[task], 4) for step in curve] for task in curve[0]}
    facts = {key: summary[key] for key in KEPT}
    return {
        "policy": policy,
        "seed": seed,
        "shuffled": shuffled,
        "steps": summary["steps"],
        "wall_s": summary["simulator"]["wall_s"],
        "log_holds": checked,
        **facts,
        "curves": curves,
    }


def name_of(run: dict[str, Any]) -> str:
    """Policy and seed."""
    return f"{run['policy']}{' shuffled' if run['shuffled'] else ''}, seed {run['seed']}"


def show(runs: list[dict[str, Any]]) -> None:
    """A row for each run."""
    print(
        "| run | task | first | last | reached 0.9 in step | worst after | a step, s | predicted | the whole, s | log |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for run in runs:
        for place, (task, reward) in enumerate(run["reward"].items()):
            reached, worst = milestones(run["curves"][task])
            fall = ["-", "-"] if reached is None else [str(reached), f"{worst:.2f}"]
            facts = [
                f"{run['step_time_s']['mean']:.2f}",
                f"{run['predicted_step_time_s']:.2f}",
                f"{run['wall_s']:.0f}",
                "holds" if run["log_holds"] else "BROKEN",
            ]
            cells = [task, f"{reward['first']:.2f}", f"{reward['last']:.2f}", *fall]
            print(f"| {' | '.join([name_of(run) if not place else '', *cells, *(facts if not place else [''] * 4)])} |")


def draw(runs: list[dict[str, Any]]) -> None:
    """One panel a task, a line for each run."""
    tasks = list(runs[0]["curves"])
    figure, panels = new_panels("mean reward of what was trained on", len(tasks))
    kinds = list(dict.fromkeys((run["policy"], run["shuffled"]) for run in runs))
    for axes, task in zip(panels, tasks, strict=True):
        for run in runs:
            kind = (run["policy"], run["shuffled"])
            colour = SERIES_COLOURS[kinds.index(kind)]
            first = next(other for other in runs if (other["policy"], other["shuffled"]) == kind) is run
            text = f"{run['policy']}{', rewards shuffled' if run['shuffled'] else ''}" if first else None
            axes.plot(run["curves"][task], color=colour, linewidth=1.2, label=text)
        axes.axhline(GOAL, color="#BBBBBB", linewidth=1)
        axes.set_title(task, loc="left", fontsize=11)
        axes.set_ylim(0, 1.02)
        label(axes, "training step", "reward")
    panels[0].legend(frameon=False, fontsize=10)
    save(figure, FIGURE)


def main() -> None:
    """Run what is missing, print, write and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--policies", nargs="+", default=["rollart"])
    parser.add_argument("--control", action="store_true", help="also one run of each policy with shuffled rewards")
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    runs: list[dict[str, Any]] = json.loads(RESULT.read_text())["runs"] if RESULT.is_file() else []
    wanted = [(policy, seed, False) for seed in range(options.seeds) for policy in options.policies]
    wanted += [(policy, 0, True) for policy in options.policies if options.control]
    for policy, seed, shuffled in wanted:
        same = [run for run in runs if (run["policy"], run["seed"], run["shuffled"]) == (policy, seed, shuffled)]
        if same and not options.again:
            continue
        runs = [run for run in runs if run not in same]
        made = one_run(policy, seed, options.steps, shuffled=shuffled)
        runs = sorted([*runs, made], key=lambda run: (run["shuffled"], run["policy"], run["seed"]))
        text = json.dumps({"scenario": LAPTOP.name, "version": api.code_version(), "runs": runs})
        RESULT.write_text(text + "\n", encoding="utf-8")
        show([made])
    show(runs)
    draw(runs)


if __name__ == "__main__":
    main()
