"""Where to look for other plans: the best site with more or fewer training devices, the other sites, other engines.

Whether training or rollout is the one to spare devices for, and how large engines should be where that makes nearly no
difference, is what a model knows least; so the neighbours of the best trainer and the best plan with engines of another
size come along for the simulator to judge.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from rollart.domain.planning import Objective
from rollart.sched.placement.candidates import candidate_for, candidate_of
from rollart.sched.placement.cheapest import Terms, cheapest
from rollart.sched.placement.difference import differs
from rollart.sched.placement.oracle import Answer, Oracle
from rollart.sched.placement.report import Candidate
from rollart.sched.placement.resized import resized
from rollart.sched.placement.shortest import shortest
from rollart.sched.placement.sites import Site

_NEIGHBOURS = (-1, 1, -2, 2)
_TRIES = 3
"""Places that are looked at for each alternative that is asked for."""
_WORSE = 3.0
"""An alternative whose step is so many times as long is none."""


def best_candidates(
    first: Answer,
    behind: tuple[tuple[float, Site], ...],
    objective: Objective,
    terms: Terms,
    oracle: Oracle,
    top: int,
) -> list[Candidate]:
    """The plan of the best answer, and others that differ from it and each other in substance, best first."""
    best = candidate_for(first, objective, oracle)
    found = [] if best is None else [best]
    for value, site in list(_places(first, behind))[: _TRIES * (top - 1)]:
        if len(found) >= top or oracle.left_s <= 0:
            break
        answer = _answer(site, value, objective, terms, oracle)
        if answer is None or answer.step_s > _WORSE * first.step_s:
            continue
        other = candidate_for(answer, objective, oracle)
        if other is not None and all(differs(other, one) for one in found):
            found.append(other)
    if top > 1:
        found += _resized(found, objective, first, terms, oracle)
    return sorted(found, key=_order(objective))[:top]


def _resized(
    found: list[Candidate], objective: Objective, first: Answer, terms: Terms, oracle: Oracle
) -> list[Candidate]:
    """The best plan with engines of another size, where that is another plan; none under rules on engines."""
    base = first.site.instance
    if not found or base.rules.engines or base.rules.tasks:
        return []
    made = []
    for plan in resized(found[0].plan, base.job.cluster):
        if oracle.left_s <= 0:
            break
        other = candidate_of(base, plan, objective)
        if other is not None and _allowed(other, terms) and all(differs(other, one) for one in found):
            made.append(other)
    return sorted(made, key=_order(objective))[:1]


def _allowed(candidate: Candidate, terms: Terms) -> bool:
    predicted = candidate.predicted
    return predicted.step_s <= terms.longest_s and predicted.cost_per_step <= terms.cost_per_step


def _order(objective: Objective) -> Callable[[Candidate], float]:
    return (lambda one: -one.value) if objective.maximised else (lambda one: one.value)


def _places(first: Answer, behind: tuple[tuple[float, Site], ...]) -> Iterator[tuple[float, Site]]:
    """Neighbours of the best trainer and other sites in turn; one site for each policy, pool and fetch."""
    site = first.site
    at = site.trainers.index(first.trainer)
    near = [
        (first.step_s * site.instance.penalty, replace(site, trainers=(site.trainers[at + by],)))
        for by in _NEIGHBOURS
        if 0 <= at + by < len(site.trainers)
    ]
    others: dict[object, tuple[float, Site]] = {}
    for value, other in behind:
        key = (id(other.instance), other.trainers[0].placement.pool, other.fetch_s)
        if key != (id(site.instance), site.trainers[0].placement.pool, site.fetch_s):
            others.setdefault(key, (value, other))
    far = list(others.values())
    for index in range(max(len(near), len(far))):
        yield from near[index : index + 1]
        yield from far[index : index + 1]


def _answer(site: Site, value: float, objective: Objective, terms: Terms, oracle: Oracle) -> Answer | None:
    """The best answer of one place."""
    if objective is Objective.STEP_TIME:
        least = value if len(site.trainers) > 1 else 0.0
        found = shortest([site], oracle, least=least, longest_s=terms.longest_s)
        return None if found is None else found.answer
    quick = shortest([site], oracle, longest_s=terms.longest_s)
    best = None if quick is None else cheapest([site], oracle, quick.bound / site.instance.penalty, terms)
    return None if best is None else best.answer
