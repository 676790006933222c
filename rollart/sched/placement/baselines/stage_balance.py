"""StreamRL's way (2504.15930): one pool trains, one generates, and data-parallel units move until the stages balance.

A profiler gives the seconds of each stage; units of generation are added as long as the slower stage gets faster by it.
Every ordered pair of pools is tried, a pool with itself too, and the best balance kept. Not re-made is the dispatch of
the longest prompts to engines of their own: affinity here is by task. The stages' seconds come from the same costs as
our own planner's, for engines of the smallest size that fits, at the concurrency with the best rate; tasks are not
placed, every engine serves all of them.
"""

from collections.abc import Iterator, Mapping

from rollart.domain.plan import Plan
from rollart.sched.placement.ground import Ground
from rollart.sched.placement.trainers import TrainerOption


def stage_balance(ground: Ground) -> Plan:
    """The plan whose slower stage is fastest."""
    pools = ground.job.cluster.pools
    rates = {pool: ground.rate(pool, size) for pool in pools if (size := ground.least_size(pool))}
    best: tuple[float, int, TrainerOption, str] | None = None
    for training in pools:
        for generating in pools:
            for option, slower_s in _growing(ground, training, generating, rates):
                found = (slower_s, option.placement.devices, option, generating)
                if best is None or found[:2] < best[:2]:
                    best = found
    assert best is not None, "the ground has an engine and a trainer"
    _, _, option, generating = best
    groups = ground.grid.groups(option.placement, {generating: ground.least_size(generating)})
    return ground.grid.plan(option.placement, groups)


def _growing(
    ground: Ground, training: str, generating: str, rates: Mapping[str, float]
) -> Iterator[tuple[TrainerOption, float]]:
    """Trainers on a pool beside generation on a pool, from the largest trainer on, while the slower stage gains."""
    size = ground.least_size(generating)
    options = [option for option in ground.trainers if option.placement.pool == training]
    before_s = float("inf")
    for option in sorted(options, key=lambda each: -each.placement.devices):
        free = ground.job.cluster.pools[generating].count
        free -= option.placement.devices if training == generating else 0
        if not size or free < size:
            continue
        slower_s = max(option.step_s, 1.0 / (rates[generating] * (free // size)))
        yield option, slower_s
        if slower_s > before_s:
            return
        before_s = slower_s
