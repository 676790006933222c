"""Counters of a run that goes on: workers count from 0 again, the run's counters never fall."""

from collections.abc import Iterable

import msgspec

from rollart.runlog.samples import EngineSample, LinkSample, Sample

_NAMES: dict[type[Sample], str] = {EngineSample: "engine", LinkSample: "link"}
"""The field that says whose counters they are, where a kind of sample has several owners."""
_LEVELS = frozenset({"engine", "link", "kv_capacity_blocks", "running", "waiting"})
"""Fields that do not count up."""

Owner = tuple[type[Sample], object]


class CarriedCounters:
    """What was counted before the run was interrupted, by owner."""

    def __init__(self) -> None:
        self._before: dict[Owner, Sample] = {}

    def remember(self, samples: Iterable[Sample]) -> None:
        """Take the latest readings of before."""
        for sample in samples:
            self._before[_owner(sample)] = sample

    def plus(self, sample: Sample) -> Sample:
        """A new reading on top of what was counted before."""
        before = self._before.get(_owner(sample))
        if before is None:
            return sample
        counted = {
            name: getattr(sample, name) + getattr(before, name)
            for name in sample.__struct_fields__
            if name not in _LEVELS
        }
        return msgspec.structs.replace(sample, **counted)


def _owner(sample: Sample) -> Owner:
    kind = type(sample)
    return kind, getattr(sample, _NAMES[kind]) if kind in _NAMES else None
