"""What planning a scenario gives: the winner with proof and verdict, and what came after it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rollart.domain.planning import Objective
from rollart.scenario.plan_file import placement_mapping, policy_mapping
from rollart.sched.placement.judge import Standing, Verdict
from rollart.sched.placement.report import Candidate, SolveReport
from rollart.sched.placement.sensitivity import Sensitivity
from rollart.sched.placement.trial import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """The best plan, how far from the bound it is proven to be, and how the simulator judged it."""

    solved: SolveReport
    verdict: Verdict | None
    """None where the model alone decided."""
    sensitivity: Sensitivity | None
    """None where it was not asked for."""
    simulated: int
    """Simulations that were run for this."""
    remembered: int
    """Simulations that were known from before."""
    judged_s: float
    """Wall time of judging."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, the winner first."""
        found = self.solved.candidates
        return found if self.verdict is None else tuple(found[place] for place in self.verdict.places)

    @property
    def best(self) -> Candidate:
        """The winner."""
        return self.candidates[0]

    def outcomes(self, rank: int) -> tuple[Outcome, ...]:
        """Simulations of a candidate: of the winner the fresh ones, of the others those that they were judged by."""
        if self.verdict is None:
            return ()
        return self.verdict.fresh if rank == 0 else self.verdict.standings[rank].outcomes

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data; seconds, and the scenario's money."""
        solved, verdict = self.solved, self.verdict
        best, *others = (self._candidate(rank) for rank in range(len(self.candidates)))
        return {
            "status": solved.status,
            "objective": solved.objective.value,
            **best,
            "bound": solved.bound,
            "gap": solved.gap,
            "floor": solved.floor,
            "binding": list(solved.binding),
            "wall_s": solved.wall_s,
            "seed": solved.seed,
            "judged": None
            if verdict is None
            else {
                "clear": verdict.clear,
                "equally_good": verdict.equally_good,
                "out_of_time": verdict.out_of_time,
                "simulated": self.simulated,
                "remembered": self.remembered,
                "wall_s": self.judged_s,
            },
            "sensitivity": None if self.sensitivity is None else self._sensitivity(self.sensitivity),
            "alternatives": others,
        }

    def _sensitivity(self, table: Sensitivity) -> dict[str, Any]:
        shorter, longer = table.plan_again(self.solved.objective.maximised)
        return {
            "predicted": table.predicted,
            "simulated": table.simulated,
            "effects": [asdict(effect) for effect in table.effects],
            "drifts": [{"output_scale": scale, **asdict(effect)} for scale, effect in table.drifts],
            "plan_again": {"shorter": shorter, "longer": longer},
        }

    def _candidate(self, rank: int) -> dict[str, Any]:
        candidate, standing = self.candidates[rank], self._standing(rank)
        predicted = candidate.predicted
        return {
            "predicted": candidate.value,
            "predicted_step_s": predicted.step_s,
            "predicted_cost": predicted.cost_per_step,
            "bottleneck": predicted.bottleneck,
            "simulated": spread(self.outcomes(rank), self.solved.objective),
            "simulated_step_s": spread(self.outcomes(rank), Objective.STEP_TIME),
            "simulated_cost": spread(self.outcomes(rank), Objective.COST),
            "behind": None if standing is None else standing.behind,
            "plan": placement_mapping(candidate.plan.placement),
            "policy": policy_mapping(candidate.plan.policy),
            "pools": {
                name: {
                    "training": use.training_devices,
                    "rollout": use.rollout_devices,
                    "idle": use.idle_devices,
                    "busy": use.busy,
                    "bottleneck": use.bottleneck,
                }
                for name, use in predicted.pools.items()
            },
            "shares": {task: dict(groups) for task, groups in predicted.shares.items()},
        }

    def _standing(self, rank: int) -> Standing | None:
        return None if self.verdict is None else self.verdict.standings[rank]


def spread(outcomes: Sequence[Outcome], objective: Objective) -> dict[str, float] | None:
    """Mean over the outcomes, and quantiles over all their steps; None where nothing was simulated to its end."""
    finished = [outcome for outcome in outcomes if outcome.failure is None]
    if not finished:
        return None
    steps = [value for outcome in finished for value in outcome.values(objective)]
    p50, p90 = np.quantile(steps, [0.5, 0.9]).tolist()
    return {"mean": float(np.mean([outcome.value(objective) for outcome in finished])), "p50": p50, "p90": p90}
