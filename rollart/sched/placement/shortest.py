"""The shortest step: a search by halves over all sites at once, relaxations first, then whole engines.

Values are penalised seconds: a site's step times its penalty. At a value that no site can keep, the bound is proven;
sites that cannot keep a value that another one can are left behind.
"""

from dataclasses import dataclass

from rollart.sched.placement.oracle import Answer, Oracle
from rollart.sched.placement.sites import Site

_RELAXED = 1e-3
"""Relative width at which the search over relaxations ends."""
_STEPS = (1e-3, 2e-3, 3e-3, 5e-3, 8e-3, 0.012, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 1.0)
"""By how much more than its relaxation a step of whole engines is tried."""
_FINE = 2e-3
"""Relative width at which the search over whole engines ends."""
_LATE = 0.02
"""Once time is up, a step is no longer tried closer than this."""
_LONGEST_S = 1e7


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortest:
    """The best value of the model, and the proof."""

    answer: Answer
    bound: float
    """No plan of any site has a smaller value."""
    behind: tuple[tuple[float, Site], ...]
    """Sites that were left behind, each with a value that it cannot keep, best first."""


def shortest(
    sites: list[Site], oracle: Oracle, *, least: float = 0.0, longest_s: float = _LONGEST_S
) -> Shortest | None:
    """The search from a value of `least` on; None where no site can keep a step of `longest_s`."""
    low = max(least, min(site.least_s() * site.instance.penalty for site in sites))
    relaxed = _relaxed(sites, oracle, low, longest_s)
    if relaxed is None:
        return None
    return _whole_engines(relaxed[0], relaxed[1], relaxed[2], oracle)


def _whole_engines(
    start: float, alive: list[Site], behind: list[tuple[float, Site]], oracle: Oracle
) -> Shortest | None:
    """From the relaxed optimum upwards until whole engines keep a value, then by halves between the last two."""
    bound, high, best = start, 0.0, None
    for more in _STEPS:
        high = start * (1 + more)
        if oracle.left_s <= 0 and more < _LATE:
            continue
        best = _best(high, alive, behind, oracle)
        if best is not None:
            break
        if not oracle.doubtful:
            bound = high
    if best is None:
        return None
    while high > bound * (1 + _FINE) and oracle.left_s > 0 and not oracle.doubtful:
        middle = (bound * high) ** 0.5
        better = _best(middle, alive, behind, oracle)
        if better is None:
            bound = middle if not oracle.doubtful else bound
        else:
            best, high = better, middle
    others = [(high, site) for site in alive if site is not best.site]
    return Shortest(answer=best, bound=bound, behind=tuple(sorted([*behind, *others], key=lambda one: one[0])))


def _best(value: float, alive: list[Site], behind: list[tuple[float, Site]], oracle: Oracle) -> Answer | None:
    """The answer that keeps a value with most to spare; sites that were behind may be ahead of others' integers."""
    open_sites = [*alive, *(site for late, site in behind if late < value)]
    found = [one for site in open_sites if (one := _whole(site, value, oracle)) is not None]
    return max(found, key=lambda one: one.rollout.value, default=None)


def relaxed_bound(sites: list[Site], oracle: Oracle) -> float | None:
    """The value that no relaxation of any site beats; None where none keeps any step."""
    if not sites:
        return None
    found = _relaxed(sites, oracle, min(site.least_s() * site.instance.penalty for site in sites), _LONGEST_S)
    return None if found is None else found[0]


def _whole(site: Site, value: float, oracle: Oracle) -> Answer | None:
    """Relaxed first: it refuses at once what cannot be kept."""
    step_s = value / site.instance.penalty
    return oracle.feeds(site, step_s, integer=True) if oracle.feeds(site, step_s, integer=False) else None


def _relaxed(
    sites: list[Site], oracle: Oracle, low: float, longest_s: float
) -> tuple[float, list[Site], list[tuple[float, Site]]] | None:
    """A value that no relaxation keeps, those that keep one a little above, and the others."""
    alive, behind = list(sites), []
    high = low
    while not (keep := [site for site in alive if _keeps(site, high, oracle)]):
        if high >= longest_s:
            return None
        low, high = high, min(high * 2, longest_s)
    behind += [(high, site) for site in alive if site not in keep]
    alive = keep
    while high > low * (1 + _RELAXED):
        middle = (low * high) ** 0.5
        keep = [site for site in alive if _keeps(site, middle, oracle)]
        if keep:
            behind += [(middle, site) for site in alive if site not in keep]
            alive, high = keep, middle
        else:
            low = middle
    return low, alive, sorted(behind, key=lambda one: one[0])


def _keeps(site: Site, value: float, oracle: Oracle) -> bool:
    return oracle.feeds(site, value / site.instance.penalty, integer=False) is not None
