"""The judge: simulates the best plans of the model under common luck until it is clear which one is best.

Successive halving: every plan is simulated under the same seeds, and the repetitions of those that are left double
from round to round. The first round, of one simulation each, dismisses those of the worse half that are far behind.
After any other a plan leaves when it is worse than the leader beyond doubt (95 %), or when it is in
the worse half of three or more and probably worse (80 %). The end is one plan; or several that differ by less than
matters; or the most repetitions, and then the verdict says that it is not clear. The winner is simulated again under
seeds that had no part in choosing it.

Where simulations are long, time decides: what the best plan of the model takes alone says how many others are judged,
and a round that would not end in time is not begun. The verdict then says so.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rollart.domain.plan import Plan
from rollart.domain.planning import Limits, Objective
from rollart.sched.placement.comparison import CONFIDENCE, difference
from rollart.sched.placement.trial import Evaluate, Outcome, Trials

FIRST_LOOK = 0.1
"""Behind the leader by more than this under the one seed of the first round, the worse half of three or more leaves."""
PROBABLE = 0.8
"""Confidence at which the worse half of three or more leaves."""
INDIFFERENCE = 0.01
"""Plans whose difference is smaller than this beyond doubt are equally good."""
FRESH_SEED = 1000
"""Seeds from here on judge the winner; those from 0 on choose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A plan and how it did in the rounds that it took part in."""

    plan: Plan
    outcomes: tuple[Outcome, ...]
    """Under seeds 0, 1, ..."""
    left_in: int | None = None
    """Round that it left after, from 1; None: it stayed to the end."""
    behind: float = 0.0
    """Mean relative loss against the leader, under their common seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Who won, and how sure that is."""

    standings: tuple[Standing, ...]
    """The winner first, then by their losses, those that stayed longest first."""
    places: tuple[int, ...]
    """Of each standing, its place among the plans that were handed in."""
    clear: bool
    """Whether of those that stayed to the end all are worse than the winner beyond doubt, or equally good."""
    equally_good: int
    """Plans besides the winner that cannot matter to choose between."""
    fresh: tuple[Outcome, ...]
    """Of the winner, under fresh seeds."""
    simulations: int
    out_of_time: bool = False
    """Whether plans, rounds or fresh seeds were left out since there was no time for them."""

    @property
    def winner(self) -> Standing:
        """The plan that won."""
        return self.standings[0]


def _no_time() -> float:
    return 0.0


@dataclass(slots=True)
class Allowance:
    """Time for simulations; `spent_s` says how much of it has passed."""

    spent_s: Callable[[], float] = _no_time
    limit_s: float = math.inf
    ran_out: bool = False

    def covers(self, more: int, done: int) -> int:
        """How many of `more` simulations there is time for, if they take as long as the `done` ones did."""
        spent_s = self.spent_s()
        each_s = spent_s / max(1, done)
        affordable = more if each_s <= 0.0 else int(max(0.0, min(more, (self.limit_s - spent_s) / each_s)))
        self.ran_out = self.ran_out or affordable < more
        return affordable


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """How plans are judged."""

    trials: Trials
    objective: Objective = Objective.STEP_TIME
    limits: Limits = field(default_factory=Limits)
    most_repetitions: int = 8
    fresh_repetitions: int = 3
    allowance: Callable[[], Allowance] = Allowance
    """Time for each verdict; as long as it takes, if nothing else is said."""

    def verdict(self, plans: Sequence[Plan], evaluate: Evaluate, surcharge: Sequence[float] = ()) -> Verdict:
        """Judge plans; `surcharge` is what their losses are multiplied by, for penalties that no simulation knows."""
        allowance = self.allowance()
        first = evaluate([self.trials.of(plans[0], 0)])
        plans = plans[: 1 + allowance.covers(len(plans) - 1, 1)]
        race = _Race(self, plans, evaluate, surcharge or [1.0] * len(plans), allowance)
        race.run(first)
        ranked = race.ranked()
        winner = plans[ranked[0]]
        again = min(self.fresh_repetitions, max(1, allowance.covers(self.fresh_repetitions, race.simulations)))
        fresh = evaluate([self.trials.of(winner, FRESH_SEED + n) for n in range(again)])
        return Verdict(
            standings=tuple(race.standing(place) for place in ranked),
            places=tuple(ranked),
            clear=race.clear,
            equally_good=race.equally_good,
            fresh=tuple(fresh),
            simulations=race.simulations + again,
            out_of_time=allowance.ran_out,
        )

    def loss(self, outcome: Outcome) -> float:
        """Positive, smaller is better; infinite where a limit is broken or the simulation failed."""
        limits = self.limits
        if outcome.failure is not None or _over(outcome.mean_step_s, limits.step_s):
            return math.inf
        if _over(outcome.mean_cost, limits.cost_per_step):
            return math.inf
        value = outcome.value(self.objective)
        return 1.0 / value if self.objective.maximised else value


def _over(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit


class _Race:
    """Plans by their places in the list that was handed in."""

    def __init__(
        self,
        judge: Judge,
        plans: Sequence[Plan],
        evaluate: Evaluate,
        surcharge: Sequence[float],
        allowance: Allowance,
    ) -> None:
        self._judge = judge
        self._allowance = allowance
        self._plans = plans
        self._evaluate = evaluate
        self._surcharge = surcharge
        self._outcomes: list[list[Outcome]] = [[] for _ in plans]
        self._left_in: dict[int, int] = {}
        self._round = 0
        self.clear = True
        self.equally_good = 0

    @property
    def simulations(self) -> int:
        return sum(len(outcomes) for outcomes in self._outcomes)

    @property
    def _staying(self) -> list[int]:
        return [place for place in range(len(self._plans)) if place not in self._left_in]

    def run(self, first: Sequence[Outcome]) -> None:
        """Until it is decided; `first` is what is known of the first plan."""
        self._outcomes[0] += first
        most = self._judge.most_repetitions
        repetitions = 1
        while len(self._staying) > 1 or not self._round:
            self._simulate(repetitions)
            self._dismiss()
            following = min(2 * repetitions, most)
            if self._settled() or repetitions >= most or not self._has_time_for(following - repetitions):
                break
            repetitions = following
        self._conclude()

    def _has_time_for(self, repetitions: int) -> bool:
        """Whether all who stay can be simulated so many times more."""
        if len(self._staying) == 1:
            return True
        more = len(self._staying) * repetitions
        return self._allowance.covers(more, self.simulations) == more

    def _simulate(self, repetitions: int) -> None:
        """Bring everybody who stays to this number of repetitions."""
        self._round += 1
        wanted = [(place, seed) for place in self._staying for seed in range(len(self._outcomes[place]), repetitions)]
        trials = [self._judge.trials.of(self._plans[place], seed) for place, seed in wanted]
        for (place, _), outcome in zip(wanted, self._evaluate(trials), strict=True):
            self._outcomes[place].append(outcome)

    def _dismiss(self) -> None:
        leader, *others = sorted(self._staying, key=self._mean_loss)
        better_half = -(-(1 + len(others)) // 2)
        for rank, place in enumerate(others, start=1):
            in_worse_half = len(others) > 1 and rank >= better_half
            found = difference(self._losses(place), self._losses(leader), PROBABLE if in_worse_half else CONFIDENCE)
            far = in_worse_half and self._round == 1 and found.mean > FIRST_LOOK
            if found.clear or far:
                self._left_in[place] = self._round

    def _settled(self) -> bool:
        """Whether those who stay are equally good beyond doubt."""
        leader, *others = sorted(self._staying, key=self._mean_loss)
        return all(difference(self._losses(p), self._losses(leader)).high < INDIFFERENCE for p in others)

    def _conclude(self) -> None:
        leader, *others = sorted(self._staying, key=self._mean_loss)
        for place in others:
            found = difference(self._losses(place), self._losses(leader))
            if found.high < INDIFFERENCE:
                self.equally_good += 1
            elif not found.clear:
                self.clear = False

    def ranked(self) -> list[int]:
        """All places, the winner first."""
        rounds = self._round + 1
        return sorted(
            range(len(self._plans)),
            key=lambda place: (-self._left_in.get(place, rounds), self._mean_loss(place), place),
        )

    def standing(self, place: int) -> Standing:
        """How one plan did."""
        leader = self.ranked()[0]
        common = len(self._outcomes[place])
        return Standing(
            plan=self._plans[place],
            outcomes=tuple(self._outcomes[place]),
            left_in=self._left_in.get(place),
            behind=difference(self._losses(place), self._losses(leader)[:common]).mean,
        )

    def _losses(self, place: int) -> list[float]:
        return [self._surcharge[place] * self._judge.loss(outcome) for outcome in self._outcomes[place]]

    def _mean_loss(self, place: int) -> float:
        losses = self._losses(place)
        return math.fsum(losses) / len(losses)
