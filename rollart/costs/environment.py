"""What an environment call takes beyond its own duration: contended cores, and images on their way.

The duration itself comes from a workload; these are the factors that depend on the cluster.
"""


def contention_stretch(demand_cores: float, cores: float) -> float:
    """Factor on the duration of CPU work where more cores are asked for than there are (fair sharing)."""
    return max(1.0, demand_cores / cores)


def step_s(uncontended_s: float, demand_cores: float, cores: float) -> float:
    """An environment step while all environments together ask for `demand_cores`."""
    return uncontended_s * contention_stretch(demand_cores, cores)


def image_pull_s(image_bytes: float, registry_bytes_per_s: float, pulls: int = 1) -> float:
    """One of `pulls` equal image pulls that share the registry's bandwidth."""
    return image_bytes * pulls / registry_bytes_per_s


def reset_s(
    uncontended_s: float,
    demand_cores: float,
    cores: float,
    *,
    image_bytes: float = 0.0,
    registry_bytes_per_s: float = float("inf"),
    pulls: int = 1,
) -> float:
    """An environment reset; `image_bytes` is 0 where the host has the image already."""
    pulled_s = image_pull_s(image_bytes, registry_bytes_per_s, pulls)
    return step_s(uncontended_s, demand_cores, cores) + pulled_s
