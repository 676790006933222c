"""The `placement` and `policy` sections, which are also all that a plan file holds."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rollart.scenario.sections.base import Count, Name, Parallel, Section, Share

DEFAULT_POLICY = "rollart"
SLOTS = ("admission", "group", "staleness", "router", "sync", "interaction", "recovery")


class TrainerSection(Section):
    """Where training runs and how it is cut."""

    pool: Name = Field(description="Pool that trains")
    devices: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        description="Devices; a multiple of tensor x pipeline x context parallel"
    )
    tensor_parallel: Parallel = Field(default=1, description="Devices that share a layer; within a node")
    pipeline_parallel: Parallel = Field(default=1, description="Stages of layers")
    context_parallel: Parallel = Field(default=1, description="Devices that share a sequence")
    expert_parallel: Parallel = Field(default=1, description="Devices that share the experts of a layer")
    publishers: Parallel = Field(
        default=1,
        description="Parts of the trainer that gather, convert and push their share of new weights at the same time, "
        "each at the rate measured for a trainer of 4 nodes",
    )


class EngineGroupSection(Section):
    """Equal engines on one pool."""

    name: Name = Field(description="Name of the group")
    pool: Name = Field(description="Pool that it runs on")
    engines: Annotated[int, Field(ge=1, le=1_000_000)] = Field(description="Engines")
    tensor_parallel: Parallel = Field(default=1, description="Devices of one engine; within a node")
    expert_parallel: Parallel = Field(
        default=1, description="1: every expert is split over the engine; as tensor_parallel: experts are spread whole"
    )
    role: Literal["both", "prefill", "decode", "judge"] = Field(
        default="both", description="Phases that it serves; judge: a reward model, no rollout"
    )
    model: str | None = Field(default=None, description="Model of a judge; default: the model that is trained")
    max_num_seqs: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=256, description="Most requests in a batch")
    max_num_batched_tokens: Count = Field(default=8192, description="Most tokens of an iteration")
    gpu_memory_utilization: Share = Field(default=0.9, description="Part of the device memory that an engine takes")
    block_size: Annotated[int, Field(ge=1, le=65536)] = Field(default=16, description="Tokens of a KV block")
    prefix_caching: bool = Field(default=True, description="Reuse the KV of equal beginnings")
    scheduling_lag: Annotated[int, Field(ge=0, le=1)] = Field(
        default=0, description="Iterations between composing and running a batch; 1: asynchronous scheduling"
    )
    time_shared: bool = Field(default=False, description="Runs on the trainer's devices, in turns with it")


class PlacementSection(Section):
    """Which devices do what."""

    trainer: TrainerSection = Field(description="Where training runs")
    engines: list[EngineGroupSection] = Field(min_length=1, max_length=1000, description="Engine groups")
    affinity: dict[str, list[Name]] = Field(
        default={},
        description="Engine groups that suit a task; others serve it while these are down; `default`: other tasks",
    )
    shares: dict[str, dict[Name, Share]] = Field(
        default={},
        description="Parts of a task's trajectories that its suited groups hold, by group; default: by load. "
        "For routers that look at load",
    )
    environment_slots: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=1024, description="Environments that may exist at once"
    )
    kv_return: Literal["recompute", "transfer"] = Field(
        default="recompute", description="How a prefill engine gets the tokens that were decoded elsewhere"
    )


def _plain_part(value: dict[str, Any]) -> dict[str, Any]:
    """What every part has in common; its own parameters are checked where it is built."""
    if not isinstance(value.get("kind", ""), str):
        raise ValueError("kind must be the name of a rule")
    for key, parameter in value.items():
        if isinstance(parameter, float) and not math.isfinite(parameter):
            raise ValueError(f"{key} is {parameter}; must be finite")
    return value


Part = Annotated[dict[str, Any], AfterValidator(_plain_part)]


class PolicySection(Section):
    """A preset, and parts that differ from it; parts and their parameters are those of the preset's slots."""

    preset: str = Field(default=DEFAULT_POLICY, min_length=1, max_length=64, description="Name of a published policy")
    admission: Part = Field(default={}, description="When a trajectory may start")
    group: Part = Field(default={}, description="Which trajectories of a group are needed")
    staleness: Part = Field(default={}, description="How old a trajectory may be, and what happens then")
    router: Part = Field(default={}, description="Which engine serves a trajectory")
    sync: Part = Field(default={}, description="How weights reach the engines")
    interaction: Part = Field(default={}, description="Whether environments act one by one or in batches")
    recovery: Part = Field(default={}, description="What happens after a failure")

    def overrides(self) -> dict[str, dict[str, Any]]:
        """The slots that differ from the preset."""
        return {slot: dict(getattr(self, slot)) for slot in SLOTS if getattr(self, slot)}


def expand_policy(value: Any) -> Any:
    """A preset's bare name stands for {preset: name}."""
    return {"preset": value} if isinstance(value, str) else value


Policy = Annotated[PolicySection, BeforeValidator(expand_policy)]


class PlanFile(Section):
    """A plan file: a placement and a policy that replace those of a scenario."""

    schema_version: Literal[1] = Field(default=1, description="Version of this form")
    placement: PlacementSection | None = Field(default=None, description="Which devices do what")
    policy: Policy | None = Field(default=None, description="The rules the controller plays by")
