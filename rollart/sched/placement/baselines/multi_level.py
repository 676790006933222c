"""HetRL's way (2512.12476): a search over levels whose budget successive halving hands out; no model, no bound.

The upper level is the trainer: each of the grid's is an arm. The lower levels are the sizes of the engines and the
groups of each task: a draw from the arm at random. In each round every arm that is left gets the same number of draws,
each simulated once under one common seed; then the half of the arms whose best draw is worse leaves. The best draw of
all is the plan. The paper's own moves inside an arm are not re-made.
"""

from dataclasses import replace

import numpy as np

from rollart.domain.plan import Plan
from rollart.sched.placement.grid import PlanGrid
from rollart.sched.placement.ground import Ground
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.trial import Evaluate


def multi_level(
    ground: Ground, judge: Judge, evaluate: Evaluate, generator: np.random.Generator, simulations: int
) -> Plan:
    """The best plan that the search finds within as many simulations."""
    grid = ground.grid
    arms = [replace(grid, trainers=(trainer,)) for trainer in grid.trainers]
    arms = [arms[int(index)] for index in generator.permutation(len(arms))[:simulations]]
    rounds = max(1, int(np.ceil(np.log2(len(arms)))))
    best: tuple[float, Plan] | None = None
    left = simulations
    for turn in range(rounds):
        draws = max(1, left // (rounds - turn) // len(arms))
        scored = [_best_draw(arm, judge, evaluate, generator, min(draws, left // len(arms) or 1)) for arm in arms]
        left -= draws * len(arms)
        order = sorted(range(len(arms)), key=lambda index: scored[index][0])
        if best is None or scored[order[0]][0] < best[0]:
            best = scored[order[0]]
        arms = [arms[index] for index in order[: max(1, len(arms) // 2)]]
        if left < len(arms):
            break
    assert best is not None, "there is at least one arm and one round"
    return best[1]


def _best_draw(
    arm: PlanGrid, judge: Judge, evaluate: Evaluate, generator: np.random.Generator, draws: int
) -> tuple[float, Plan]:
    plans = [arm.drawn(generator) for _ in range(draws)]
    outcomes = evaluate([judge.trials.of(plan, 0) for plan in plans])
    losses = [judge.loss(outcome) for outcome in outcomes]
    place = int(np.argmin(losses))
    return losses[place], plans[place]
