"""Random search: plans drawn from the grid, each simulated once under the same seed; the best one is taken."""

import numpy as np

from rollart.domain.plan import Plan
from rollart.sched.placement.ground import Ground
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.trial import Evaluate


def random_search(
    ground: Ground, judge: Judge, evaluate: Evaluate, generator: np.random.Generator, simulations: int
) -> Plan:
    """The best of as many random plans as simulations are granted; plans may be drawn twice."""
    drawn = [ground.grid.drawn(generator) for _ in range(simulations)]
    outcomes = evaluate([judge.trials.of(plan, 0) for plan in drawn])
    losses = [judge.loss(outcome) for outcome in outcomes]
    return drawn[int(np.argmin(losses))]
