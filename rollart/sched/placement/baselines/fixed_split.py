"""A fixed split: so many rollout devices for one that trains, whatever the tasks are.

The pool with the most FLOP/s for its price trains, as near to the ratio as its trainers allow; all other devices roll
out with the smallest engines that fit, and every engine serves every task.
"""

from rollart.domain.cluster import Pool
from rollart.domain.plan import Plan
from rollart.sched.placement.ground import Ground


def fixed_split(ground: Ground, rollout_per_training: float) -> Plan:
    """The plan of a ratio, for instance 3 for 3:1."""
    pools = ground.job.cluster.pools
    total = sum(pool.count for pool in pools.values())
    wanted = total / (1.0 + rollout_per_training)
    training_pool = max(
        {option.placement.pool for option in ground.trainers}, key=lambda name: (_flops_for_price(pools[name]), name)
    )
    options = [option.placement for option in ground.trainers if option.placement.pool == training_pool]
    alone = len([name for name in pools if ground.least_size(name)]) == 1
    room = pools[training_pool].count - (ground.least_size(training_pool) if alone else 0)
    fitting = [trainer for trainer in options if trainer.devices <= room] or options
    trainer = min(fitting, key=lambda one: (abs(one.devices - wanted), one.devices))
    groups = ground.grid.groups(trainer, {name: ground.least_size(name) for name in pools})
    return ground.grid.plan(trainer, groups)


def _flops_for_price(pool: Pool) -> float:
    flops = pool.device.peak_flops_per_s("bf16")
    return flops / pool.price_per_hour if pool.price_per_hour > 0 else flops
