"""Exhaustive enumeration: every plan of the grid through the simulator.

All are simulated under the first seeds; those within a margin of the best again under more, so that the best is not
the luckiest of many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rollart.domain.plan import Plan
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.trial import Evaluate, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerated:
    """A plan of the grid with its outcomes under seeds 0, 1, ..."""

    plan: Plan
    outcomes: tuple[Outcome, ...]
    loss: float
    """Mean over the outcomes; infinite for a plan that cannot run."""


def enumeration(
    plans: Sequence[Plan],
    judge: Judge,
    evaluate: Evaluate,
    *,
    first: int = 1,
    repetitions: int = 4,
    margin: float = 0.1,
) -> list[Enumerated]:
    """All plans, the best first: those that were simulated `repetitions` times ahead of the others."""
    everything = _simulated(plans, judge, evaluate, first)
    best = min(one.loss for one in everything)
    near = [one.plan for one in everything if one.loss <= best * (1.0 + margin)]
    rest = [one for one in everything if one.loss > best * (1.0 + margin)]
    again = _simulated(near, judge, evaluate, repetitions)
    return sorted(again, key=lambda one: one.loss) + sorted(rest, key=lambda one: one.loss)


def _simulated(plans: Sequence[Plan], judge: Judge, evaluate: Evaluate, seeds: int) -> list[Enumerated]:
    trials = [judge.trials.of(plan, seed) for plan in plans for seed in range(seeds)]
    outcomes = list(evaluate(trials))
    found = []
    for place, plan in enumerate(plans):
        own = tuple(outcomes[place * seeds : (place + 1) * seeds])
        found.append(Enumerated(plan=plan, outcomes=own, loss=fmean(judge.loss(outcome) for outcome in own)))
    return found
