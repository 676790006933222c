"""The header of a run log: what a reader must know that no record says."""

from typing import Any

import msgspec

SCHEMA_VERSION = 2
"""Of the columns and of the header; a file of another version is refused."""


class PoolEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of one kind that the run holds and pays for."""

    name: str
    device: str
    devices: int
    price_per_hour: float
    """Price of one device."""


class EngineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One engine of the plan."""

    engine: int
    group: str
    pool: str
    devices: int
    """Devices of this engine alone."""
    role: str


class TrainerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Where training runs."""

    pool: str
    devices: int


class EnvironmentEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of the environments, as a whole."""

    slots: int
    cores: float
    price_per_core_hour: float


class RewardEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The service that computes rewards."""

    price_per_second: float


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a run that hold from its first record to its last."""

    driver: str
    """`sim` or `exec`."""
    policy: str
    seed: int
    steps: int
    warmup_steps: int
    """Leading steps that a summary leaves out."""
    scenario: str
    code_version: str
    controller: dict[str, Any]
    """The controller's configuration as its owner wrote it; the run log does not look inside."""
    pools: tuple[PoolEntry, ...]
    engines: tuple[EngineEntry, ...]
    trainer: TrainerEntry
    tasks: tuple[str, ...]
    environment: EnvironmentEntry
    reward: RewardEntry
    schema_version: int = SCHEMA_VERSION
