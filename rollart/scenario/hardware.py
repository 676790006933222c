"""Turns the hardware of a scenario file, and its model, into domain objects."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rollart.catalog.load import Catalog, devices_with, models_with
from rollart.domain.cluster import Cluster, EnvironmentHosts, Link, Pool, Protocol, Serverless
from rollart.domain.device import Device
from rollart.domain.errors import InputError, ScenarioError
from rollart.domain.hf_config import model_from_hf_config
from rollart.domain.model import Model
from rollart.scenario.files import find_file
from rollart.scenario.sections.cluster import ClusterSection, LinkRates, PoolSection
from rollart.scenario.sections.document import ScenarioFile

BYTES_PER_GBIT = 1e9 / 8
MAX_CONFIG_BYTES = 10_000_000


def cluster_of(document: ScenarioFile) -> Cluster:
    """The cluster; InputError for a device kind that is not known or not sound."""
    section = document.cluster
    try:
        devices = devices_with(document.devices)
    except InputError as error:
        raise ScenarioError(f"devices: {error}") from error
    return Cluster(
        pools={name: _pool(name, pool, devices) for name, pool in section.pools.items()},
        links={frozenset(link.between): _link(link) for link in section.links},
        default_link=_link(section.default_link),
        environments=_environments(section),
        serverless=Serverless(**section.serverless.model_dump()),
    )


def models_of(document: ScenarioFile) -> Catalog[Model]:
    """The packaged models and the scenario's own."""
    try:
        return models_with(document.models)
    except InputError as error:
        raise ScenarioError(f"models: {error}") from error


def model_of(document: ScenarioFile, models: Catalog[Model], folder: Path) -> Model:
    """The model that is trained: by name, from a config.json, or from fields given inline."""
    choice = document.model
    try:
        if isinstance(choice, Mapping):
            fields = {key: value for key, value in choice.items() if key != "name"}
            return model_from_hf_config(fields, str(choice.get("name", "inline"))[:64])
        if choice not in models and choice.endswith(".json"):
            path = find_file(choice, folder, "model")
            return model_from_hf_config(_read_config(path), path.parent.name or path.stem)
        return models[choice]
    except ScenarioError:
        raise
    except InputError as error:
        raise ScenarioError(f"model: {error}") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
        config = json.loads(content) if len(content) <= MAX_CONFIG_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise ScenarioError(f"model: {path} is not a config.json: {' '.join(str(error).split())[:120]}") from error
    if not isinstance(config, dict):
        raise ScenarioError(f"model: {path} is not a config.json: it must hold one mapping of at most 10 MB")
    return config


def _pool(name: str, section: PoolSection, devices: Catalog[Device]) -> Pool:
    try:
        device = devices[section.device]
    except InputError as error:
        raise ScenarioError(f"cluster.pools.{name}.device: {error}") from error
    per_node = section.devices_per_node or device.devices_per_node
    price = device.price_per_hour if section.price_per_hour is None else section.price_per_hour
    return Pool(
        name=name,
        # Costs ask the device how many of it share a node, so both must say the same.
        device=replace(device, devices_per_node=per_node),
        count=section.count,
        devices_per_node=per_node,
        price_per_hour=price,
        fabric=_link(section.fabric),
    )


def _link(rates: LinkRates) -> Link:
    return Link(
        bandwidth_bytes_per_s=rates.bandwidth_gbit_per_s * BYTES_PER_GBIT,
        latency_s=rates.latency_us / 1e6,
        protocol=Protocol(rates.protocol),
    )


def _environments(section: ClusterSection) -> EnvironmentHosts:
    hosts = section.environments
    return EnvironmentHosts(
        count=hosts.hosts,
        cores_per_host=hosts.cores_per_host,
        image_bandwidth_bytes_per_s=hosts.image_bandwidth_gbit_per_s * BYTES_PER_GBIT,
        price_per_core_hour=hosts.price_per_core_hour,
    )
