"""Answers about sites: can a step be kept, and at what price? Linear relaxations first, integers where they matter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rollart.sched.placement.model import Rollout, RolloutModel, Room
from rollart.sched.placement.program import INFINITY
from rollart.sched.placement.sites import Site
from rollart.sched.placement.trainers import TrainerOption

_MODELS = 24
"""Programs that are kept; neighbours in the search ask for the same ones."""
_LONGEST_SOLVE_S = 10.0
_SHORTEST_SOLVE_S = 2.0
"""Whatever the time limit: so that a search that is late still ends with a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A trainer and a rollout that keep a step."""

    site: Site
    trainer: TrainerOption
    room: Room
    step_s: float
    window_s: float
    rollout: Rollout
    price_per_hour: float
    """Of all that is taken."""
    least_price_per_hour: float
    """Nothing in the site that keeps the step costs less; 0 where that was not asked."""


class Oracle:
    """Builds programs when they are asked for; `clock` gives seconds, and nothing is solved beyond `ends_s`."""

    def __init__(self, clock: Callable[[], float], ends_s: float) -> None:
        self._clock = clock
        self._ends_s = ends_s
        self._models: dict[tuple[int, float, float, bool], RolloutModel] = {}
        self.doubtful = False
        """A program ran out of time, so that its answer depends on the machine."""

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self._ends_s - self._clock()

    def feeds(self, site: Site, step_s: float, *, integer: bool) -> Answer | None:
        """The most batches that a site feeds in a step, at least one; None where it cannot keep the step."""
        best: Answer | None = None
        for trainer, window_s, room in _choices(site, step_s):
            model = self._model(site, step_s, window_s, integer=integer)
            found = model.most_batches(room, at_least=1.0 if integer else 0.0, time_limit_s=self._limit_s(integer))
            self.doubtful = self.doubtful or not model.program.proven
            if found is not None and found.value >= 1.0 - 1e-9 and (best is None or found.value > best.rollout.value):
                best = _answer(site, trainer, room, step_s, window_s, found, 0.0)
        return best

    def cheapest(self, site: Site, step_s: float, *, integer: bool) -> Answer | None:
        """The cheapest way of a site to keep a step; None where it cannot."""
        best: Answer | None = None
        for trainer, window_s, room in _choices(site, step_s):
            model = self._model(site, step_s, window_s, integer=integer)
            found = model.least_price(room, time_limit_s=self._limit_s(integer))
            self.doubtful = self.doubtful or not model.program.proven
            if found is None:
                continue
            least = site.fixed_price(trainer) + found.bound
            if best is None or least < best.least_price_per_hour:
                best = _answer(site, trainer, room, step_s, window_s, found, least)
        return best

    def _limit_s(self, integer: bool) -> float:
        return min(_LONGEST_SOLVE_S, max(_SHORTEST_SOLVE_S, self.left_s)) if integer else INFINITY

    def _model(self, site: Site, step_s: float, window_s: float, *, integer: bool) -> RolloutModel:
        key = (id(site.instance), step_s, window_s, integer)
        if key not in self._models:
            if len(self._models) >= _MODELS:
                self._models.pop(next(iter(self._models)))
            self._models[key] = RolloutModel(site.instance, step_s, window_s, integer=integer)
        return self._models[key]


def _choices(site: Site, step_s: float) -> Iterator[tuple[TrainerOption, float, Room]]:
    """Trainers of a site that leave room for rollout, each with the window of that and the room."""
    for trainer, window_s in site.choices(step_s):
        room = site.room(trainer)
        if room is not None:
            yield trainer, window_s, room


def _answer(
    site: Site, trainer: TrainerOption, room: Room, step_s: float, window_s: float, rollout: Rollout, least: float
) -> Answer:
    kinds, pools = site.instance.kinds, site.instance.job.cluster.pools
    price = sum(n * kinds[e].devices * pools[kinds[e].pool].price_per_hour for (e, _), n in rollout.engines.items())
    return Answer(
        site=site,
        trainer=trainer,
        room=room,
        step_s=step_s,
        window_s=window_s,
        rollout=rollout,
        price_per_hour=site.fixed_price(trainer) + price,
        least_price_per_hour=least,
    )
