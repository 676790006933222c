"""Whether the KV cache that engines on CPUs are given holds a single context; vLLM refuses to start with less."""

import math

from rollart.domain.errors import CapacityError
from rollart.domain.execution import ExecutionSettings
from rollart.domain.job import Job
from rollart.domain.plan import Role

GIB = 2**30
BYTES = {"float32": 4, "bfloat16": 2}


def check_kv_room(job: Job, settings: ExecutionSettings) -> None:
    """Raise CapacityError where `kv_cache_gb` is less than a trajectory at the context limit takes of an engine."""
    context = job.training.context_limit
    for group in job.plan.placement.engines:
        # In whole blocks, and vLLM keeps one for itself.
        tokens = (math.ceil(context / group.block_size) + 1) * group.block_size
        in_bf16 = job.model.kv_bytes(tokens, "bf16") / group.tensor_parallel
        needed = in_bf16 * BYTES[settings.dtype] / BYTES["bfloat16"]
        on_cpu = job.cluster.pools[group.pool].device.kind == "cpu"
        if on_cpu and group.role is not Role.JUDGE and settings.kv_cache_gb * GIB < needed:
            raise CapacityError(
                f"execution.kv_cache_gb: is {settings.kv_cache_gb:g}, and a context of {context} tokens takes "
                f"{needed / GIB:.3g} of an engine of {group.name!r}; must be at least that"
            )
