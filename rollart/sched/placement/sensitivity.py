"""How the winner fares in other worlds, and what planning again would gain there.

Each variation is solved again, which says what the best there would be by the model. Where simulations are granted, the
kept plan and the new one are simulated in it under the same seed as the winner in its own world, so the changes are
those of common luck; and drifting lengths are looked at too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from rollart.domain.errors import RollArtError
from rollart.domain.job import Job
from rollart.sched.placement.judge import Judge
from rollart.sched.placement.report import Candidate, SolveReport
from rollart.sched.placement.trial import Evaluate, Outcome
from rollart.sched.placement.variations import Variation, drifts, variations
from rollart.workload.reshaped import Reshape

Solve = Callable[[Job, Reshape], SolveReport | None]
"""Solves a varied problem with the objective and the limits of the first one; None where the time for it is over."""

WORTH_IT = 0.05
"""Planning again pays when the kept plan is worse than the new one by more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one variation does; values of the objective, None where nothing was simulated or nothing fits."""

    variation: str
    predicted: float | None
    """Of the new best plan, by the model; None where it was not solved to a proof in time."""
    kept: float | None
    """Of the plan that was made for the old world, simulated in the new one."""
    replanned: float | None
    """Of the new best plan, simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The table of effects, and how far output lengths may drift."""

    predicted: float
    """Of the winner in its own world."""
    simulated: float | None
    """Of the winner in its own world, under the seed of the table."""
    effects: tuple[Effect, ...]
    drifts: tuple[tuple[float, Effect], ...]
    """Scale of the output lengths, and what it does."""

    def plan_again(self, maximised: bool) -> tuple[float | None, float | None]:
        """The nearest shorter and the nearest longer scale at which planning again pays; None: at none looked at."""
        worth = [scale for scale, effect in self.drifts if _gain(effect, maximised) > WORTH_IT]
        shorter, longer = [s for s in worth if s < 1], [s for s in worth if s > 1]
        return max(shorter, default=None), min(longer, default=None)


def _gain(effect: Effect, maximised: bool) -> float:
    """What planning again gains in this world, relatively to the new plan."""
    if effect.kept is None or effect.replanned is None:
        return 0.0
    worse, better = (effect.replanned, effect.kept) if maximised else (effect.kept, effect.replanned)
    return worse / better - 1.0


def predicted_sensitivity(job: Job, predicted: float, solve: Solve) -> Sensitivity:
    """The table by the model alone."""
    effects = []
    for world in variations(job):
        found = _solved(world, solve)
        effects.append(_effect(world, found, kept=None, replanned=None))
    return Sensitivity(predicted=predicted, simulated=None, effects=tuple(effects), drifts=())


def simulated_sensitivity(job: Job, winner: Candidate, judge: Judge, solve: Solve, evaluate: Evaluate) -> Sensitivity:
    """The table for a winner, by the model and by simulations: two for each variation, and one of the winner."""
    scales, drifted = zip(*drifts(job), strict=True)
    table = list(variations(job))
    worlds = [*table, *drifted]
    solved = [_solved(world, solve) for world in worlds]
    trials = [judge.trials.of(winner.plan, 0)]
    for world, found in zip(worlds, solved, strict=True):
        own = replace(judge.trials, job=world.job, reshape=world.reshape)
        kept = winner.plan if world.same_for_kept else replace(winner.plan, policy=world.job.plan.policy)
        trials.append(trials[0] if world.same_for_kept else own.of(kept, 0))
        trials.append(own.of(kept if found is None else found.best.plan, 0))
    now, *values = (_value(outcome, judge) for outcome in evaluate(trials))
    effects = [
        _effect(world, found, kept=values[2 * place], replanned=None if found is None else values[2 * place + 1])
        for place, (world, found) in enumerate(zip(worlds, solved, strict=True))
    ]
    return Sensitivity(
        predicted=winner.value,
        simulated=now,
        effects=tuple(effects[: len(table)]),
        drifts=tuple(zip(scales, effects[len(table) :], strict=True)),
    )


def _effect(world: Variation, found: SolveReport | None, *, kept: float | None, replanned: float | None) -> Effect:
    return Effect(
        variation=world.name,
        predicted=found.best.value if found is not None and found.status == "optimal" else None,
        kept=kept,
        replanned=replanned,
    )


def _solved(world: Variation, solve: Solve) -> SolveReport | None:
    try:
        return solve(world.job, world.reshape)
    except RollArtError:
        return None


def _value(outcome: Outcome, judge: Judge) -> float | None:
    value = outcome.value(judge.objective)
    return None if outcome.failure is not None or not math.isfinite(value) else value
