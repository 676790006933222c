"""The samples' counters, summed up over the engines of each group, as they stood when they were sampled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollart.runlog.header import EngineEntry
from rollart.runlog.ledger import Array
from rollart.runlog.samples import EngineSample, EnvironmentSample, RewardSample, TrainerSample
from rollart.runlog.schema import Record
from rollart.runlog.window import Batch, Window

ENGINE_COUNTERS = (
    "busy_s",
    "prefill_tokens",
    "decode_tokens",
    "recomputed_tokens",
    "recompute_preempted_tokens",
    "kv_block_s",
    "kv_capacity_blocks",
)
"""Fields of EngineSample that are kept; the last is a level, the others are sums over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All counters at one time."""

    time_s: float
    groups: Array
    """One row an engine group in order of first appearance in the header, one column each of ENGINE_COUNTERS.
    `busy_s` is multiplied by the engine's devices."""
    trainer_busy_s: float
    environment_core_s: float
    reward_billed_s: float


class Counters:
    """Turns samples into readings."""

    def __init__(self, engines: Sequence[EngineEntry]) -> None:
        """Engines of the header."""
        self._place = {entry.engine: place for place, entry in enumerate(engines)}
        groups = tuple(dict.fromkeys(entry.group for entry in engines))
        self._member = np.array([[entry.group == group for entry in engines] for group in groups], dtype=np.float64)
        self._devices = np.array([entry.devices for entry in engines], dtype=np.float64)
        self._engines = np.zeros((len(engines), len(ENGINE_COUNTERS)))
        self._values: dict[type[Record], float] = dict.fromkeys(_COUNTER_OF, 0.0)
        self.readings: list[Reading] = []
        """In order of time, one for each time at which something was sampled."""

    def start(self, time_s: float) -> None:
        """All counters are 0."""
        self.readings.append(self._reading(time_s))

    def consume(self, window: Window) -> None:
        """Take a window."""
        batches = list(window.of((EngineSample, *self._values)))
        if not batches:
            return
        for time_s in np.unique(np.concatenate([batch.time_s for batch in batches])).tolist():
            for batch in batches:
                self._take(batch, np.flatnonzero(batch.time_s == time_s))
            if self.readings and self.readings[-1].time_s == time_s:
                self.readings.pop()
            self.readings.append(self._reading(time_s))

    def at(self, time_s: float, before_s: float) -> Reading | None:
        """The first reading in [time_s, before_s); None if there is none."""
        times = [reading.time_s for reading in self.readings]
        place = int(np.searchsorted(np.array(times), time_s))
        if place == len(times) or (times[place] >= before_s and times[place] > time_s):
            return None
        return self.readings[place]

    def _take(self, batch: Batch, rows: Array) -> None:
        if not len(rows):
            return
        if batch.kind.type is EngineSample:
            places = [self._place[engine] for engine in batch.ints("engine")[rows].tolist()]
            for column, name in enumerate(ENGINE_COUNTERS):
                self._engines[places, column] = np.asarray(batch.column(name))[rows]
        else:
            self._values[batch.kind.type] = float(batch.floats(_COUNTER_OF[batch.kind.type])[rows[-1]])

    def _reading(self, time_s: float) -> Reading:
        weighted = self._engines.copy()
        weighted[:, ENGINE_COUNTERS.index("busy_s")] *= self._devices
        return Reading(
            time_s=time_s,
            groups=self._member @ weighted,
            trainer_busy_s=self._values[TrainerSample],
            environment_core_s=self._values[EnvironmentSample],
            reward_billed_s=self._values[RewardSample],
        )


_COUNTER_OF: dict[type[Record], str] = {
    TrainerSample: "busy_s",
    EnvironmentSample: "busy_s",
    RewardSample: "billed_s",
}
