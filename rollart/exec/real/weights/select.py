"""How the weights of a run travel, and whether its plan allows that."""

import hashlib
import socket
from pathlib import Path

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import ExecutionSettings, WeightTransfer
from rollart.domain.job import Job
from rollart.domain.plan import Role
from rollart.exec.real.weights.carrier import Carrier, RayObjects
from rollart.exec.real.weights.mooncake import MooncakeStore
from rollart.sched.parts import build


def carrier_of(settings: ExecutionSettings, folder: Path) -> Carrier:
    """The carrier that the settings name. `folder`: of the run, whose name in a store that others use follows from it.

    A resumed run so has the name that it had before, and finds what its killed driver has left there.
    """
    if settings.mooncake is None:
        return RayObjects()
    place = f"{socket.gethostname()}:{folder.resolve()}"
    return MooncakeStore(settings.mooncake, f"rollart-{hashlib.sha256(place.encode()).hexdigest()[:16]}")


def check_plan(job: Job, settings: ExecutionSettings) -> None:
    """Raise ScenarioError where the plan has no devices for a broadcast, or does not stand still for it."""
    if settings.weight_transfer is not WeightTransfer.NCCL:
        return
    placement = job.plan.placement
    for group in placement.engine_groups:
        if group.time_shared:
            raise ScenarioError(
                f"execution.weight_transfer: nccl needs engines and trainer on devices of their own; engine group "
                f"{group.name!r} is time_shared"
            )
    engines = [("GPU engines", group.pool) for group in placement.engine_groups if group.role is not Role.JUDGE]
    for what, name in (*engines, ("a GPU trainer", placement.trainer.pool)):
        device = job.cluster.pools[name].device
        if device.kind != "gpu":
            raise ScenarioError(f"execution.weight_transfer: nccl needs {what}; pool {name!r} has device {device.name}")
    sync = build(job.plan.policy.parts).sync
    if sync.transport != "broadcast" or not sync.suspend:
        raise ScenarioError(
            "execution.weight_transfer: nccl sends to engines that stand still; policy.sync must have transport: "
            f"broadcast and suspend: true, not {sync.transport} and {str(sync.suspend).lower()}"
        )
