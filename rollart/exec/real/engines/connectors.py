"""How the KV of a prompt gets from a prefill engine to a decode engine: vLLM's KV connectors, by name.

`folder` is this package's own (`folder_connector.py`), for engines that share a host's memory; `nixl` is vLLM's
NixlConnector, from GPU to GPU. This module imports no vLLM, since the driver looks here for what to refuse.
"""

import importlib.util
from dataclasses import dataclass
from typing import Any

from rollart.domain.errors import CapacityError, InputError
from rollart.domain.execution import ExecutionSettings
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, KvReturn, Role

FOLDER, NIXL = "folder", "nixl"
FOLDER_CONNECTOR = "rollart.exec.real.engines.folder_connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class KvTransfer:
    """An engine's part in handing KV over."""

    connector: str
    prefills: bool
    """It computes prompts for others; else it decodes behind them."""
    folder: str
    """Where `folder` keeps files, in memory."""

    def vllm_config(self) -> dict[str, Any]:
        """Fields of vLLM's KVTransferConfig; KV that does not arrive is computed again."""
        fields: dict[str, Any] = {
            "kv_role": "kv_producer" if self.prefills else "kv_consumer",
            "kv_load_failure_policy": "recompute",
        }
        if self.connector == NIXL:
            return {**fields, "kv_connector": "NixlConnector"}
        return {
            **fields,
            "kv_connector": "FolderConnector",
            "kv_connector_module_path": FOLDER_CONNECTOR,
            "kv_connector_extra_config": {"folder": self.folder},
        }


def connector_of(job: Job, settings: ExecutionSettings) -> str | None:
    """The connector of a plan; None where no engine prefills for others.

    Raises CapacityError where a plan asks for what real engines cannot do, InputError where a package is missing.
    """
    placement, pools = job.plan.placement, job.cluster.pools
    groups = [group for group in placement.engine_groups if group.role in (Role.PREFILL, Role.DECODE)]
    if not groups:
        return None
    if placement.kv_return is not KvReturn.RECOMPUTE:
        raise CapacityError("placement.kv_return: real engines send no KV back yet; must be recompute")
    kinds = {pools[group.pool].device.kind for group in groups}
    if len(kinds) > 1:
        raise CapacityError("placement.engines: prefill and decode engines are on CPUs and GPUs; must be of one kind")
    chosen = settings.kv_connector or (FOLDER if kinds == {"cpu"} else NIXL)
    if chosen == FOLDER:
        _must_be_alike(groups)
    elif not job.plan.policy.parts["sync"].get("suspend", True):
        raise CapacityError("policy.sync.suspend: must be true; nixl keeps KV that an update would have to drop")
    elif any(group.time_shared for group in groups):
        raise CapacityError("placement.engines: nixl holds on to the memory that time-shared engines must give back")
    elif importlib.util.find_spec(NIXL) is None:
        raise InputError("execution.kv_connector: nixl needs the package nixl, which is not installed")
    return chosen


def _must_be_alike(groups: list[EngineGroup]) -> None:
    """Files hold whole blocks of each rank."""
    for field in ("block_size", "tensor_parallel"):
        found = sorted({getattr(group, field) for group in groups})
        if len(found) > 1:
            told = " and ".join(str(value) for value in found)
            raise CapacityError(
                f"placement.engines: prefill and decode engines have a {field} of {told}; with the connector folder "
                "it must be the same"
            )
