"""The simple split: where a scenario names no placement, a stated rule makes one. It is a start, not an optimum.

1. The trainer goes to the pool with the most bf16 FLOP/s for its price (all alike where prices are 0).
2. It takes about a third of the cluster's FLOP/s, in whole nodes where the pool has several, in powers of two of
   devices below a node; at most the pool, and at least what its memory needs.
3. It is cut by the least tensor, then pipeline, then context parallelism that fits its memory; experts are spread
   over whole nodes where that is needed.
4. Every other device rolls out. An engine takes the least tensor parallelism (a power of two, within a node) that
   leaves room for the KV of four trajectories at the context limit, or else of one. A pool where that is impossible
   stays idle.
5. A pool of which nothing is left, where it is the only one, is time-shared by training and rollout.
6. There is no affinity, and two environment slots for each trajectory of a batch.
"""

from collections.abc import Iterator

from rollart.domain.cluster import Cluster, Pool
from rollart.domain.errors import CapacityError, RollArtError, ScenarioError
from rollart.domain.job import Precision
from rollart.domain.model import Model
from rollart.domain.plan import EngineGroup, Placement, TrainerPlacement
from rollart.domain.training import Training
from rollart.scenario.placement_checks import check_engine, check_trainer

TRAINING_SHARE = 1 / 3
ROOM_SEQUENCES = 4
SLOTS_PER_TRAJECTORY = 2
_MOST_STAGES = 64


def simple_split(cluster: Cluster, model: Model, training: Training, precision: Precision) -> Placement:
    """The placement by the rule above; ScenarioError, with the numbers, where the model does not fit."""
    trainer = _trainer(cluster, model, training)
    groups = []
    for pool in cluster.pools.values():
        left = pool.count - (trainer.devices if pool.name == trainer.pool else 0)
        group = _engines(pool, left, model, training, precision)
        if group is not None:
            groups.append(group)
    if not groups:
        groups = [_time_shared(cluster.pools[trainer.pool], trainer, model, training, precision)]
    return Placement(
        engine_groups=tuple(groups),
        trainer=trainer,
        environment_slots=SLOTS_PER_TRAJECTORY * training.batch_size,
    )


def _trainer(cluster: Cluster, model: Model, training: Training) -> TrainerPlacement:
    pool = max(cluster.pools.values(), key=_flops_per_price)
    total = sum(each.count * each.device.peak_flops_per_s("bf16") for each in cluster.pools.values())
    wanted = TRAINING_SHARE * total / pool.device.peak_flops_per_s("bf16")
    refusal: RollArtError | None = None
    for devices in _device_counts(pool, wanted):
        for cut in _cuts(pool, devices, model):
            try:
                check_trainer(cut, pool, model, training)
            except RollArtError as error:
                refusal = error if isinstance(error, CapacityError) else refusal
            else:
                return cut
    tried = (
        f"no cut of {model.name} over up to {pool.count} {pool.device.name} can train; the last one tried: {refusal}"
    )
    raise ScenarioError(f"placement: no simple split, {tried if refusal else 'the trainer cannot be cut'}; give one")


def _flops_per_price(pool: Pool) -> float:
    flops = pool.device.peak_flops_per_s("bf16")
    return flops / pool.price_per_hour if pool.price_per_hour > 0 else flops


def _device_counts(pool: Pool, wanted: float) -> Iterator[int]:
    """Counts to try: the wanted one, then more up to the whole pool."""
    per_node = pool.devices_per_node
    if pool.count > per_node:
        nodes = max(1, min(pool.count // per_node, round(wanted / per_node)))
        while nodes <= pool.count // per_node:
            yield nodes * per_node
            nodes *= 2
    else:
        devices = 1
        while devices * 2 <= min(wanted, pool.count):
            devices *= 2
        while devices <= pool.count:
            yield devices
            devices *= 2


def _cuts(pool: Pool, devices: int, model: Model) -> Iterator[TrainerPlacement]:
    """Ways to cut training over `devices`, those that cost the least communication first."""
    expert_choices = [1] if model.experts is None else [1, pool.devices_per_node, 4 * pool.devices_per_node]
    for context in (1, 2, 4, 8):
        for stages in _powers_of_two(min(_MOST_STAGES, model.layers)):
            for tensor in _powers_of_two(min(pool.devices_per_node, devices)):
                for experts in expert_choices:
                    if devices % (tensor * stages * context) == 0:
                        yield TrainerPlacement(
                            pool=pool.name,
                            devices=devices,
                            tensor_parallel=tensor,
                            pipeline_parallel=stages,
                            context_parallel=context,
                            expert_parallel=experts,
                        )


def _engines(pool: Pool, devices: int, model: Model, training: Training, precision: Precision) -> EngineGroup | None:
    """Engines on `devices` of a pool, None where no engine fits."""
    for sequences in (ROOM_SEQUENCES, 1):
        for tensor in _powers_of_two(min(pool.devices_per_node, devices)):
            group = EngineGroup(name=pool.name, pool=pool.name, engines=devices // tensor, tensor_parallel=tensor)
            try:
                kv_tokens = check_engine(group, pool, model, precision)
            except RollArtError:
                continue
            if kv_tokens >= sequences * training.context_limit:
                return group
    return None


def _time_shared(
    pool: Pool, trainer: TrainerPlacement, model: Model, training: Training, precision: Precision
) -> EngineGroup:
    group = _engines(pool, trainer.devices, model, training, precision)
    if group is None:
        raise ScenarioError(
            f"placement: no simple split, no engine of {model.name} fits a node of any pool with a trajectory of "
            f"{training.context_limit} tokens; give one, or other devices"
        )
    return EngineGroup(
        name=group.name,
        pool=group.pool,
        engines=group.engines,
        tensor_parallel=group.tensor_parallel,
        time_shared=True,
    )


def _powers_of_two(most: int) -> Iterator[int]:
    power = 1
    while power <= most:
        yield power
        power *= 2
