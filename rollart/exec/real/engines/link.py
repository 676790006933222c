"""One engine from the driver's side: its process, its incarnation, and what is open on it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.mailbox import Mailbox
from rollart.exec.real.wire import Message
from rollart.runlog.samples import EngineSample


class Reading(NamedTuple):
    """Counters of one incarnation, as its process tells them."""

    busy_s: float = 0.0
    iterations: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    kv_block_s: float = 0.0
    kv_capacity_blocks: int = 0
    running: int = 0
    waiting: int = 0


@dataclass(slots=True, eq=False)
class EngineLink:
    """An engine of the plan, through all its incarnations."""

    index: int
    incarnation: int = 0
    mailbox: Mailbox | None = None
    """None while it is down."""
    open: dict[int, int] = field(default_factory=dict)
    """GenerateTurn command -> its trajectory."""
    aborts: dict[int, int] = field(default_factory=dict)
    """AbortGeneration command -> the trajectory it stops."""
    asked: dict[int, asyncio.Future[Turn | None]] = field(default_factory=dict)
    """Requests beside the rollout, by numbers below those of commands."""
    readings: list[Reading] = field(default_factory=list)
    """Last counters of every incarnation."""
    recomputed_tokens: int = 0
    fresh: int | None = None
    """Version that was installed since it generated last."""

    def post(self, message: Message) -> None:
        """Send a message, unless the engine is down."""
        if self.mailbox is not None:
            self.mailbox.post(message)

    def offer(self, command: int, buckets: Sequence[Any]) -> None:
        """Give a command the weights that it needs, unless the engine is down."""
        if self.mailbox is not None:
            self.mailbox.actor.offer.remote(command, list(buckets))

    def attach(self, incarnation: int, mailbox: Mailbox) -> None:
        """An incarnation is up."""
        self.incarnation = incarnation
        self.mailbox = mailbox
        self.readings.append(Reading())

    def detach(self) -> tuple[int, ...]:
        """It is down: the turns that were open."""
        self.mailbox = None
        lost = tuple(self.open)
        self.open.clear()
        self.aborts.clear()
        for number in list(self.asked):
            self.answered(number, None)
        return lost

    def answered(self, number: int, turn: Turn | None) -> bool:
        """Hand a turn to who asked for it beside the rollout; False where nobody did under this number."""
        answer = self.asked.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_result(turn)
        return answer is not None

    def takes(self, incarnation: int) -> bool:
        """Whether an order to this incarnation reaches anyone."""
        return self.mailbox is not None and incarnation == self.incarnation

    def sample(self) -> EngineSample:
        """Counters over all incarnations."""
        readings = self.readings or [Reading()]
        last = readings[-1]
        up = self.mailbox is not None
        return EngineSample(
            engine=self.index,
            busy_s=sum(r.busy_s for r in readings),
            iterations=sum(r.iterations for r in readings),
            prefill_tokens=sum(r.prefill_tokens for r in readings),
            decode_tokens=sum(r.decode_tokens for r in readings),
            cached_tokens=sum(r.cached_tokens for r in readings),
            recomputed_tokens=self.recomputed_tokens,
            recompute_preempted_tokens=0,
            preemptions=sum(r.preemptions for r in readings),
            kv_block_s=sum(r.kv_block_s for r in readings),
            kv_capacity_blocks=last.kv_capacity_blocks,
            running=last.running if up else 0,
            waiting=last.waiting if up else 0,
        )
