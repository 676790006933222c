"""Looks up devices and models by name, from the packaged catalogues and a caller's own entries.

Names are compared without case, spaces, dashes, underscores and dots. The files are data: read with a safe
YAML loader, checked, and turned into `Device` and `Model` at once. A caller's entry may say `like: NAME` and
give only the figures that differ.
"""

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import yaml

from rollart.domain.device import Device
from rollart.domain.errors import InputError
from rollart.domain.hf_config import model_from_hf_config
from rollart.domain.model import Model

Entry = TypeVar("Entry")

_DEVICE_NUMBERS = (
    "memory_bytes",
    "memory_bandwidth_bytes_per_s",
    "device_link_bytes_per_s",
    "host_link_bytes_per_s",
    "price_per_hour",
)
_DEVICE_KEYS = frozenset({*_DEVICE_NUMBERS, "kind", "flops_per_s", "devices_per_node", "sources"})


class Catalog(Generic[Entry]):
    """Entries by name; the look-up forgives case and punctuation."""

    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        self.kind = kind
        self._by_key = {_key(name): (name, entry) for name, entry in entries.items()}

    def __getitem__(self, name: str) -> Entry:
        """The entry of a name; raises InputError that lists near names."""
        found = self._by_key.get(_key(name))
        if found is None:
            raise InputError(f"{self.kind} {name!r} is not known; {self._nearest(name)}")
        return found[1]

    def __contains__(self, name: object) -> bool:
        """Whether a name is known."""
        return isinstance(name, str) and _key(name) in self._by_key

    def __iter__(self) -> Iterator[str]:
        """All names, in the order of the files."""
        return (name for name, _ in self._by_key.values())

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(_key(name), self._by_key, n=3, cutoff=0.5)
        if near:
            return f"did you mean {' or '.join(self._by_key[key][0] for key in near)}?"
        return f"known: {', '.join(self)}"


def devices() -> Catalog[Device]:
    """The packaged device kinds."""
    return devices_with({})


def devices_with(extra: Mapping[str, Any]) -> Catalog[Device]:
    """The packaged device kinds and a caller's own, which win; raises InputError on a bad entry."""
    return Catalog("device", {name: _device(name, raw) for name, raw in _merged("devices.yaml", extra).items()})


def models() -> Catalog[Model]:
    """The packaged models."""
    return models_with({})


def models_with(extra: Mapping[str, Any]) -> Catalog[Model]:
    """The packaged models and a caller's own Hugging Face configs, which win; InputError on a bad one."""
    merged = _merged("models.yaml", extra)
    return Catalog("model", {name: model_from_hf_config(raw, name) for name, raw in merged.items()})


@lru_cache
def _packaged(file: str) -> dict[str, dict[str, Any]]:
    text = files("rollart.catalog").joinpath(file).read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return entries


def _merged(file: str, extra: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Packaged entries by their names, overlaid with the caller's; `like` is resolved."""
    by_key: dict[str, tuple[str, Mapping[str, Any]]] = {
        _key(name): (name, raw) for name, raw in _packaged(file).items()
    }
    for name, raw in extra.items():
        if not isinstance(name, str) or not isinstance(raw, Mapping):
            raise InputError(f"entry {name!r} must be a name with a mapping of figures, not {raw!r:.60}")
        own = dict(raw)
        like = own.pop("like", None)
        if like is not None:
            base = by_key.get(_key(str(like)))
            if base is None:
                raise InputError(f"entry {name}: like = {like!r} is not a known name")
            own = {**base[1], **own}
        by_key[_key(name)] = (name, own)
    return dict(by_key.values())


def _device(name: str, raw: Mapping[str, Any]) -> Device:
    unknown = sorted(str(key) for key in raw if key not in _DEVICE_KEYS)
    if unknown:
        raise InputError(f"device {name}: unknown key {unknown[0]}; one of: {', '.join(sorted(_DEVICE_KEYS))}")
    flops = raw.get("flops_per_s")
    if not isinstance(flops, Mapping):
        raise InputError(f"device {name}: flops_per_s must map a precision to a rate, not {flops!r}")
    per_node = raw.get("devices_per_node", 8)
    if not isinstance(per_node, int) or isinstance(per_node, bool):
        raise InputError(f"device {name}: devices_per_node must be a whole number, not {per_node!r}")
    sources = raw.get("sources", {})
    if not isinstance(sources, Mapping):
        raise InputError(f"device {name}: sources must map a field to a text, not {sources!r}")
    return Device(
        name=name,
        kind=raw.get("kind", "gpu"),
        flops_per_s={str(key): _number(name, f"flops_per_s.{key}", rate) for key, rate in flops.items()},
        devices_per_node=per_node,
        sources=sources,
        **{key: _number(name, key, raw.get(key)) for key in _DEVICE_NUMBERS},
    )


def _number(name: str, key: str, value: object) -> float:
    """A finite number; YAML reads 1e9 without a dot as text, so text that is a number counts too."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    raise InputError(f"device {name}: {key} must be a number, not {value!r}")


def _key(name: str) -> str:
    return re.sub(r"[\s\-_.]+", "", name).casefold()
