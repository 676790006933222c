"""Time of the host per engine iteration, by engine version."""

from typing import NamedTuple

from rollart.domain.errors import InputError


class HostTime(NamedTuple):
    """Seconds of the host that the device waits for, per iteration and per request in it."""

    iteration_s: float
    request_s: float


HOST_TIMES = {
    "vllm-v1": HostTime(0.5e-3, 10e-6),
    # Not asynchronous: the device waits while the host handles an iteration's tokens and composes the next.
    "vllm-v1-sync": HostTime(1.5e-3, 30e-6),
    "vllm-v0": HostTime(1.5e-3, 30e-6),
    "sglang": HostTime(0.5e-3, 10e-6),
}
"""By family of engine. Guesses of the right order, not fitted to any log: asynchronous scheduling hides most of it."""
DEFAULT_ENGINE_VERSION = "vllm-v1"


def host_time(engine_version: str) -> HostTime:
    """Host time of an engine version; InputError lists those that are known."""
    found = HOST_TIMES.get(engine_version)
    if found is None:
        raise InputError(f"engine version {engine_version!r} has no host time; one of: {', '.join(HOST_TIMES)}")
    return found
