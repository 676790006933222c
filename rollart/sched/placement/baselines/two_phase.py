"""AReaL-Hex's way (2511.00796): resources first, devices second; tasks are one mixture and go anywhere.

1. *Constrained search and a mixed-integer program* over kinds of devices, pools of one kind being one: for each trainer
   that fits, the numbers of engines of each size that generate the mixture fastest on what is left. The plan with the
   smallest max(training, generation) is kept.
2. *Graph partitioning* over nodes: the trainer's nodes are grown from each node of its kind by the widest link to those
   that are in already, and the set with the widest narrowest link is kept; the engines fill the other nodes.

The paper's planner knows no agent tasks, so there is no affinity. Engines generate at the concurrency with the best
rate, as in our own columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ortools.linear_solver import pywraplp

from rollart.domain.plan import EngineGroup, Plan
from rollart.sched.placement.ground import Ground
from rollart.sched.placement.trainers import TrainerOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the first phase decides."""

    trainer: TrainerOption
    engines: Mapping[tuple[str, int], int]
    """(kind of device, tensor parallelism) -> engines."""
    slower_s: float


def two_phase(ground: Ground) -> Plan:
    """The plan of both phases."""
    resources = chosen_resources(ground)
    return placed(ground, resources)


def chosen_resources(ground: Ground) -> Resources:
    """Phase 1: a trainer, and engines by kind of device."""
    rates = _rates_by_device(ground)
    best: Resources | None = None
    for option in ground.trainers:
        free = _devices_by_kind(ground)
        free[_device(ground, option.placement.pool)] -= option.placement.devices
        engines = _fastest_engines(free, rates)
        rate = sum(rates[key] * count for key, count in engines.items())
        if not rate:
            continue
        slower_s = max(option.step_s, 1.0 / rate)
        if best is None or slower_s < best.slower_s:
            best = Resources(trainer=option, engines=engines, slower_s=slower_s)
    assert best is not None, "the ground has an engine and a trainer"
    return best


def _fastest_engines(free: Mapping[str, int], rates: Mapping[tuple[str, int], float]) -> dict[tuple[str, int], int]:
    """Numbers of engines with the largest total rate on free devices: a mixed-integer program."""
    solver = pywraplp.Solver.CreateSolver("SCIP")
    counts = {key: solver.IntVar(0, max(0, free[key[0]]) // key[1], f"{key[0]}-{key[1]}") for key in rates}
    for device, devices in free.items():
        solver.Add(sum(key[1] * count for key, count in counts.items() if key[0] == device) <= devices)
    solver.Maximize(sum(rates[key] * count for key, count in counts.items()))
    solver.Solve()
    return {key: round(count.solution_value()) for key, count in counts.items() if count.solution_value() > 0.5}


def _rates_by_device(ground: Ground) -> dict[tuple[str, int], float]:
    rates: dict[tuple[str, int], float] = {}
    for engine, rate in zip(ground.engines, ground.batches_per_s, strict=True):
        rates.setdefault((_device(ground, engine.pool), engine.tensor_parallel), rate)
    return rates


def _device(ground: Ground, pool: str) -> str:
    return ground.job.cluster.pools[pool].device.name


def _devices_by_kind(ground: Ground) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pool in ground.job.cluster.pools.values():
        counts[pool.device.name] = counts.get(pool.device.name, 0) + pool.count
    return counts


def placed(ground: Ground, resources: Resources) -> Plan:
    """Phase 2: the trainer on concrete nodes, engines on the others."""
    pool = _training_pool(ground, resources.trainer)
    trainer = replace(resources.trainer.placement, pool=pool)
    free = {name: each.count for name, each in ground.job.cluster.pools.items()}
    free[pool] -= trainer.devices
    groups = []
    for (device, size), wanted in sorted(resources.engines.items(), key=lambda one: (-one[0][1], one[0][0])):
        left = wanted
        for name in (each for each in free if _device(ground, each) == device):
            count = min(left, free[name] // size)
            if count:
                groups.append(replace(_engine(ground, name, size), engines=count))
                free[name] -= count * size
                left -= count
    return ground.grid.plan(trainer, groups)


def _engine(ground: Ground, pool: str, size: int) -> EngineGroup:
    return next(e for e in ground.engines if (e.pool, e.tensor_parallel) == (pool, size))


def _training_pool(ground: Ground, option: TrainerOption) -> str:
    """Pool of the trainer's nodes after partitioning; a trainer stays within one pool, as a placement has it."""
    pools = ground.job.cluster.pools
    kind = _device(ground, option.placement.pool)
    nodes = [
        name
        for name, pool in pools.items()
        if pool.device.name == kind and pool.count >= option.placement.devices
        for _ in range(-(-pool.count // pool.devices_per_node))
    ]
    needed = -(-option.placement.devices // pools[option.placement.pool].devices_per_node)
    grown = [_grown(ground, nodes, start, needed) for start in range(len(nodes))]
    whole = [(width, -index, names[0]) for index, (width, names) in enumerate(grown) if len(set(names)) == 1]
    return max(whole)[2] if whole else option.placement.pool


def _grown(ground: Ground, nodes: Sequence[str], start: int, needed: int) -> tuple[float, list[str]]:
    """Nodes grown from one by their widest links, and the narrowest of these."""
    inside, outside, narrowest = [start], [n for n in range(len(nodes)) if n != start], float("inf")
    while len(inside) < needed and outside:
        widths = {
            node: max(ground.job.cluster.link(nodes[node], nodes[other]).bandwidth_bytes_per_s for other in inside)
            for node in outside
        }
        chosen = max(widths, key=lambda node: (widths[node], -node))
        narrowest = min(narrowest, widths[chosen])
        inside.append(chosen)
        outside.remove(chosen)
    return narrowest, [nodes[node] for node in inside]
