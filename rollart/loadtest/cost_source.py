"""Which cost model stands behind an engine under load, by name."""

from dataclasses import replace

from rollart.costs.assumptions import assumptions_for
from rollart.costs.engine_shape import EngineShape
from rollart.costs.host import DEFAULT_ENGINE_VERSION, HostTime, host_time
from rollart.costs.interface import EngineCosts
from rollart.costs.roofline import RooflineEngine
from rollart.costs.select import engine_costs
from rollart.loadtest.expert_ranks import CostsOf
from rollart.loadtest.mixed_attention import MixedAttention, reads_again
from rollart.serving.config import known_scheduler

_HOSTS = {
    # Asynchronous scheduling does the work for each request while the device runs; a fixed part stays exposed.
    ("vllm", True): host_time(DEFAULT_ENGINE_VERSION)._replace(request_s=0.0),
    ("vllm", False): host_time("vllm-v1-sync"),
}


def host_of(scheduler: str, *, async_scheduling: bool = True) -> HostTime:
    """Host time of an engine by its scheduler, and whether that composes an iteration while another one runs."""
    return _HOSTS.get((scheduler, async_scheduling)) or host_time(known_scheduler(scheduler))


def costs_from(
    source: str, *, scheduler: str = "vllm", async_scheduling: bool = True, host: HostTime | None = None
) -> CostsOf:
    """Costs of a source, made when an engine's shape is known; `host` replaces the host time that they assume.

    Raises InputError, then, for a source that is not known.
    """

    def costs_of(shape: EngineShape) -> EngineCosts:
        if source == "roofline" and host is not None:
            taken = assumptions_for(shape.device)
            iteration_s, request_s = host
            return RooflineEngine(shape, replace(taken, iteration_overhead_s=iteration_s, request_overhead_s=request_s))
        costs = engine_costs(shape, source, host=host or host_of(scheduler, async_scheduling=async_scheduling))
        if source != "roofline" and reads_again(shape.model, shape.device):
            return MixedAttention(costs)
        return costs

    return costs_of
