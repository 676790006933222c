"""Ray: a cluster of one on this machine, or an existing one; what each worker asks of it.

A pool is a custom resource `pool:NAME` with as many units as devices; on this machine they are made up as the scenario
says. A cluster that has no such resource is asked for the pool's device kind as an accelerator type. Ray's own
restarts and retries are off: they are the controller's business.
"""

import os
import socket
from collections.abc import Mapping
from typing import Any

import ray
from ray._private import ray_constants

from rollart.domain.cluster import Cluster, Pool
from rollart.domain.errors import CapacityError, InputError

QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Environment of every process: nothing asks a hub, nothing tells anyone, warnings stay out of the way, workers are
no nicer than their driver, and what an actor started dies with it."""

KNOCK_S = 10.0
"""Time in which the host of an address must answer."""
OBJECT_STORE_BYTES = 2 * 2**30
"""Shared memory of a cluster of one; a few versions of a small model and what travels between processes."""


def connect(cluster: Cluster | None, address: str | None) -> None:
    """Connect to Ray, or start it here; InputError for an address where nobody answers."""
    os.environ.update(QUIET)
    if address is not None:
        check_address(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise InputError(f"--address {address}: no Ray cluster answers: {_line(error)}") from error
        return
    # Ray resolves 127.0.0.1 to an address that others can reach, unless it is told that there will be no cluster.
    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    pools = () if cluster is None else cluster.pools.values()
    ray.init(
        num_cpus=os.cpu_count(),
        object_store_memory=OBJECT_STORE_BYTES,
        resources={resource_name(pool): float(pool.count) for pool in pools},
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )


def check_address(address: str) -> None:
    """InputError where nobody listens: Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or "//" in address:
        return
    try:
        with socket.create_connection((host, int(port)), timeout=KNOCK_S):
            pass
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"--address {address}: no Ray cluster answers: {_line(error)}") from error


def disconnect() -> None:
    """Leave Ray; a cluster that was started here ends."""
    if ray.is_initialized():
        ray.shutdown()


def resource_name(pool: Pool) -> str:
    """Name of the custom resource of a pool."""
    return f"pool:{pool.name}"


def demand(pool: Pool, devices: int, available: Mapping[str, float]) -> dict[str, Any]:
    """Ray options of a worker on `devices` of a pool. Raises CapacityError where the cluster has no such pool."""
    options: dict[str, Any] = {"num_cpus": 0}
    if pool.device.kind == "gpu":
        options["num_gpus"] = devices
    if resource_name(pool) in available:
        options["resources"] = {resource_name(pool): devices}
        return options
    accelerator = f"accelerator_type:{pool.device.name}"
    if accelerator not in available:
        raise CapacityError(
            f"pool {pool.name!r}: the cluster has neither the resource {resource_name(pool)!r} nor {accelerator!r}; "
            f"start its nodes with --resources='{{\"{resource_name(pool)}\": DEVICES}}'"
        )
    options["resources"] = {accelerator: 0.001}
    return options


def bundle(options: Mapping[str, Any]) -> dict[str, float]:
    """What a worker with these options takes, as a bundle of a placement group."""
    gpus = float(options.get("num_gpus", 0))
    return {**options["resources"], **({"GPU": gpus} if gpus else {})}


def lacking(cluster: Cluster, needed: Mapping[str, int]) -> dict[str, str | None]:
    """What the connected cluster lacks of the devices that are needed, by pool; None: nothing."""
    available = ray.cluster_resources()
    return {name: _lack(cluster.pools[name], devices, available) for name, devices in needed.items()}


def _lack(pool: Pool, devices: int, available: Mapping[str, float]) -> str | None:
    try:
        options = demand(pool, devices, available)
    except CapacityError as error:
        return str(error)
    units, gpus = available.get(resource_name(pool), float(devices)), available.get("GPU", 0.0)
    if units < devices or options.get("num_gpus", 0) > gpus:
        return f"pool {pool.name!r}: {devices} devices are needed; the cluster has {units:g}, and {gpus:g} GPUs"
    return None


def resources() -> dict[str, float]:
    """What the connected cluster has, without Ray's own marks of nodes."""
    found = ray.cluster_resources()
    return {name: amount for name, amount in found.items() if not name.startswith("node:")}


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
