"""Why the policies differ as they do: one change at a time, and what it does to the critical path.

    python experiments/policies_why.py [--steps 6] [--workers 2] [--only WORD]
    python experiments/policies_why.py --large --steps 2        the batch read as 512 groups of eight

Each row is a scenario of `experiments/scenarios` with the settings in its line. Prints step time, critical path, busy
seconds of the rollout, and suspended seconds of the engines; `docs/policies.md` draws the conclusions.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from rollart import api

SCENARIOS = Path(__file__).parent / "scenarios"
SWE_ONLY = "tasks=[{name: SWE-bench, workload: {profile: traces/paper-five-tasks.yaml}, max_turns: 50}]"
FAST_TRAINER = ("cluster.pools.h800.count=192", "placement.trainer.devices=128")
H20_ONLY = ("placement.engines=[{name: h20, pool: h20, engines: 52, tensor_parallel: 4}]", "placement.affinity={}")


class Question(NamedTuple):
    """A scenario, what is changed in it, and to what end."""

    about: str
    scenario: str
    settings: tuple[str, ...]


QUESTIONS = (
    Question("barrier: 128 trajectories, sync", "paper-128-h800", ("training.batch_size=128", "policy=sync")),
    Question("barrier: 128 trajectories, sync+", "paper-128-h800", ("training.batch_size=128", "policy=sync+")),
    Question("barrier: one task, sync", "paper-128-h800", (SWE_ONLY, "training.batch_size=128", "policy=sync")),
    Question("barrier: one task, sync+", "paper-128-h800", (SWE_ONLY, "training.batch_size=128", "policy=sync+")),
    Question("barrier: one group, sync", "paper-128-h800", (SWE_ONLY, "training.batch_size=8", "policy=sync")),
    Question("barrier: one group, sync+", "paper-128-h800", (SWE_ONLY, "training.batch_size=8", "policy=sync+")),
    Question("hardware: rollart on 128 H800", "paper-128-h800", ("policy=rollart",)),
    Question("prefetch off", "paper-128", ("policy={preset: rollart, sync: {prefetch: false}}",)),
    Question("push by 8 publishers", "paper-128", ("placement.trainer.publishers=8", "policy=rollart")),
    Question("push by 8 publishers, areal", "paper-128-h800", ("placement.trainer.publishers=8", "policy=areal")),
    Question(
        "redundancy off",
        "paper-128",
        ("policy={preset: rollart, admission: {redundant_groups: 0.0}, group: {redundant_members: 0}}",),
    ),
    Question("4x trainer: one-off", "paper-128", (*FAST_TRAINER, "policy=one-off")),
    Question("4x trainer: areal", "paper-128", (*FAST_TRAINER, "policy=areal")),
    Question("4x trainer: alpha 1", "paper-128", (*FAST_TRAINER, "policy=rollart")),
    Question("4x trainer: alpha 2", "paper-128", (*FAST_TRAINER, "policy={preset: rollart, staleness: {bound: 2}}")),
    Question("4x trainer: alpha 4", "paper-128", (*FAST_TRAINER, "policy={preset: rollart, staleness: {bound: 4}}")),
    Question(
        "affinity: sync+, 64 H800 + 24 H20",
        "paper-128",
        ("cluster.pools.h20.count=24", "placement.engines.h20.engines=6", "policy=sync+"),
    ),
    Question(
        "affinity: sync+, the same without affinity",
        "paper-128",
        ("cluster.pools.h20.count=24", "placement.engines.h20.engines=6", "placement.affinity={}", "policy=sync+"),
    ),
    Question(
        "affinity: sync+, 72 H800",
        "paper-128-h800",
        ("cluster.pools.h800.count=104", "placement.engines.h800.engines=18", "policy=sync+"),
    ),
    Question(
        "affinity: sync+, 208 H20",
        "paper-128",
        ("cluster.pools.h800.count=32", "cluster.pools.h20.count=208", *H20_ONLY, "policy=sync+"),
    ),
)
AFFINITY = tuple(each for each in QUESTIONS if each.about.startswith("affinity"))
LARGE = tuple(
    Question(
        each.about.replace("affinity:", "4,096 trajectories:"),
        each.scenario,
        ("training.batch_size=4096", "placement.environment_slots=8192", *each.settings),
    )
    for each in AFFINITY
)


def uncached(question: Question) -> Question:
    """The same without prefix caches: every turn computes the KV of its whole history."""
    scenario = api.load_scenario(SCENARIOS / f"{question.scenario}.yaml", question.settings)
    groups = scenario.job().plan.placement.engine_groups
    off = tuple(f"placement.engines.{group.name}.prefix_caching=false" for group in groups)
    about = question.about.replace("affinity:", "no prefix cache:")
    return Question(about, question.scenario, (*question.settings, *off))


def answer(question: Question, steps: int) -> Mapping[str, Any]:
    """Simulate it."""
    scenario = api.load_scenario(SCENARIOS / f"{question.scenario}.yaml", question.settings)
    return api.simulate(scenario.with_changes(steps=steps)).summary


def line(question: Question, summary: Mapping[str, Any]) -> str:
    """One row of the table."""
    path, busy = summary["stages_s"], summary["busy_s"]
    stages = (path[name] for name in ("generation", "environment", "reward", "training", "weight_sync_exposed"))
    cells = " ".join(f"{seconds:6.0f}" for seconds in stages)
    step_s, rollout_s, still_s = summary["step_time_s"]["mean"], busy["generation"], busy["weight_sync_exposed"]
    return f"{question.about:44} {step_s:7.1f} {cells} {rollout_s:10.0f} {still_s:9.1f}"


def main() -> None:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--large", action="store_true", help="eight times the batch")
    parser.add_argument("--only", default="", help="questions with this word")
    options = parser.parse_args()
    asked = LARGE if options.large else (*QUESTIONS, *map(uncached, AFFINITY))
    questions = [each for each in asked if options.only in each.about]
    print(
        f"{'':44} {'step s':>7} {'gen':>6} {'env':>6} {'reward':>6} {'train':>6} {'sync':>6} {'gen. busy':>10} "
        f"{'suspended':>9}"
    )
    with ProcessPoolExecutor(options.workers) as pool:
        answers = pool.map(answer, questions, [options.steps] * len(questions))
        for question, summary in zip(questions, answers, strict=True):
            print(line(question, summary))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
