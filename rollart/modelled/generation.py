"""Generation commands on the engines: one engine for both phases, or prefill here and decode there.

Disaggregated, a turn is prefilled on one engine, its KV moves over the link between the two pools, and it is decoded
on the other. The prefill engine lacks the tokens that were decoded elsewhere: it computes them again with the next
prompt (`KvReturn.RECOMPUTE`), or they are sent back after every turn (`TRANSFER`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rollart.domain.commands import AbortGeneration, GenerateTurn
from rollart.domain.events import EngineLost, Event, GenerationAborted, TurnGenerated
from rollart.domain.plan import KvReturn
from rollart.modelled.clock import Clock
from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.episodes import Episodes
from rollart.modelled.network import SharedLink
from rollart.serving.request import Completion, Request, Role


@dataclass(slots=True)
class Handoff:
    """A turn on its way from a prefill engine to a decode engine."""

    command: GenerateTurn
    output_tokens: int
    truncated: bool
    prefill_incarnation: int
    prefilled: Completion | None = None
    decoded: Completion | None = None
    transfer_s: float = 0.0
    return_s: float = 0.0

    @property
    def kv_tokens(self) -> int:
        """Tokens with KV once it is decoded: the one made last has none yet."""
        return self.command.context_tokens + self.output_tokens - 1

    @property
    def made_tokens(self) -> int:
        """Tokens made by phases that are over."""
        if self.prefilled is None:
            return 0
        return 1 if self.decoded is None else self.output_tokens


class Generation:
    """Carries out GenerateTurn and AbortGeneration."""

    __slots__ = (
        "_clock",
        "_cut_short",
        "_episodes",
        "_handoffs",
        "_held",
        "_kv_bytes",
        "_kv_return",
        "_links",
        "_report",
        "_whole",
        "workers",
    )

    def __init__(
        self,
        workers: list[EngineWorker],
        episodes: Episodes,
        links: Callable[[int, int], SharedLink],
        kv_bytes_per_token: float,
        kv_return: KvReturn,
        clock: Clock,
        report: Callable[[Event], None],
    ) -> None:
        self.workers = workers
        self._episodes = episodes
        self._links = links
        self._kv_bytes = kv_bytes_per_token
        self._kv_return = kv_return
        self._clock = clock
        self._report = report
        self._whole = partial(self._generated, False)
        self._cut_short = partial(self._generated, True)
        """One call each for all turns."""
        self._handoffs: dict[int, Handoff] = {}
        self._held: dict[int, tuple[tuple[int, int, int], int]] = {}
        """Trajectory -> decode engine, its incarnation and weight updates, and the tokens whose KV it has."""

    def generate(self, command: GenerateTurn) -> None:
        """Start a turn, or report the loss again where it reaches a dead engine."""
        worker = self.workers[command.engine]
        if not worker.up or worker.incarnation != command.incarnation:
            self._missed(command, command.engine, command.incarnation)
            return
        wanted = self._episodes.tokens_to_make(command)
        truncated = wanted > command.max_tokens
        tokens = command.max_tokens if truncated else wanted
        if command.prefill_engine is not None:
            self._disaggregate(command, command.prefill_engine, tokens, truncated)
            return
        request = Request(
            request_id=command.id,
            chain=command.trajectory,
            context_tokens=command.context_tokens,
            output_tokens=tokens,
            group=command.group,
            shared_tokens=command.shared_tokens,
            reusable_tokens=command.reusable_tokens,
        )
        worker.submit(request, self._cut_short if truncated else self._whole)

    def _missed(self, command: GenerateTurn, engine: int, incarnation: int) -> None:
        self._report(EngineLost(engine=engine, incarnation=incarnation, commands=(command.id,), saved_tokens=(0,)))

    def _disaggregate(self, command: GenerateTurn, prefill: int, tokens: int, truncated: bool) -> None:
        worker = self.workers[prefill]
        if worker.up:
            self._prefill(Handoff(command, tokens, truncated, worker.incarnation))
        else:
            self._missed(command, prefill, worker.incarnation)

    def _generated(self, truncated: bool, completion: Completion) -> None:
        self._report(
            TurnGenerated(
                command_id=completion.request_id,
                output_tokens=completion.output_tokens,
                cached_tokens=completion.cached_tokens,
                recomputed_tokens=completion.recomputed_tokens,
                preemptions=completion.preemptions,
                truncated=truncated,
                queue_s=completion.queue_s,
                prefill_s=completion.prefill_s,
                decode_s=completion.decode_s,
            )
        )

    def abort(self, command: AbortGeneration) -> None:
        """Stop a turn, in whichever phase it is."""
        made = self.workers[command.engine].abort(command.target)
        handoff = self._handoffs.pop(command.target, None)
        if handoff is not None:
            made += self._drop(handoff)
        self._report(GenerationAborted(command_id=command.id, output_tokens=made))

    def lose(self, index: int) -> None:
        """An engine dies, and with it its requests and what was on its way to or from it."""
        worker = self.workers[index]
        saved = worker.kill()
        for command_id, handoff in list(self._handoffs.items()):
            command = handoff.command
            needed = (command.engine,) if self._has_left(handoff) else (command.engine, command.prefill_engine)
            if index in needed:
                del self._handoffs[command_id]
                saved[command_id] = saved.get(command_id, 0) + self._drop(handoff)
        self._report(
            EngineLost(
                engine=index,
                incarnation=worker.incarnation,
                commands=tuple(saved),
                saved_tokens=tuple(saved.values()),
            )
        )

    def _drop(self, handoff: Handoff) -> int:
        """Give up the prefill, if it runs; the tokens made by phases that are over."""
        command = handoff.command
        assert command.prefill_engine is not None
        self.workers[command.prefill_engine].abort(command.id)
        return handoff.made_tokens

    def _has_left(self, handoff: Handoff) -> bool:
        """Whether the decode engine has what it needs from the prefill engine."""
        command = handoff.command
        return handoff.decoded is not None or command.id in self.workers[command.engine]

    # Prefill here, decode there

    def _prefill(self, handoff: Handoff) -> None:
        command = handoff.command
        assert command.prefill_engine is not None
        self._handoffs[command.id] = handoff
        request = Request(
            request_id=command.id,
            chain=command.trajectory,
            context_tokens=command.context_tokens,
            output_tokens=1,
            group=command.group,
            shared_tokens=command.shared_tokens,
            reusable_tokens=command.reusable_tokens,
            role=Role.PREFILL,
        )
        self.workers[command.prefill_engine].submit(request, partial(self._prefilled, handoff))

    def _prefilled(self, handoff: Handoff, completion: Completion) -> None:
        command = handoff.command
        handoff.prefilled = completion
        age = (command.engine, command.incarnation, self.workers[command.engine].updates)
        held_by, held = self._held.get(command.trajectory, (age, 0))
        if held_by != age:
            held = 0
        moved = command.context_tokens - min(held, command.reusable_tokens)
        assert command.prefill_engine is not None
        link = self._links(command.prefill_engine, command.engine)
        link.transfer(moved * self._kv_bytes, partial(self._moved, handoff, self._clock.now))

    def _moved(self, handoff: Handoff, since_s: float) -> None:
        command = handoff.command
        if self._handoffs.get(command.id) is not handoff:
            return
        handoff.transfer_s = self._clock.now - since_s
        if handoff.output_tokens == 1:
            self._finish(handoff)
            return
        request = Request(
            request_id=command.id,
            chain=command.trajectory,
            context_tokens=command.context_tokens + 1,
            output_tokens=handoff.output_tokens - 1,
            role=Role.DECODE,
        )
        self.workers[command.engine].submit(request, partial(self._decoded, handoff))

    def _decoded(self, handoff: Handoff, completion: Completion) -> None:
        handoff.decoded = completion
        if self._kv_return is KvReturn.TRANSFER:
            command = handoff.command
            assert command.prefill_engine is not None
            link = self._links(command.engine, command.prefill_engine)
            size_bytes = completion.output_tokens * self._kv_bytes
            link.transfer(size_bytes, partial(self._returned, handoff, self._clock.now))
        else:
            self._finish(handoff)

    def _returned(self, handoff: Handoff, since_s: float) -> None:
        command = handoff.command
        if self._handoffs.get(command.id) is not handoff:
            return
        handoff.return_s = self._clock.now - since_s
        assert command.prefill_engine is not None
        prefill = self.workers[command.prefill_engine]
        if prefill.up and prefill.incarnation == handoff.prefill_incarnation:
            prefill.import_kv(command.trajectory, handoff.kv_tokens)
        self._finish(handoff)

    def _finish(self, handoff: Handoff) -> None:
        command, prefilled, decoded = handoff.command, handoff.prefilled, handoff.decoded
        assert prefilled is not None
        self._handoffs.pop(command.id, None)
        age = (command.engine, command.incarnation, self.workers[command.engine].updates)
        self._held[command.trajectory] = (age, handoff.kv_tokens)
        self._report(
            TurnGenerated(
                command_id=command.id,
                output_tokens=handoff.output_tokens,
                cached_tokens=prefilled.cached_tokens,
                recomputed_tokens=prefilled.recomputed_tokens + (decoded.recomputed_tokens if decoded else 0),
                preemptions=prefilled.preemptions + (decoded.preemptions if decoded else 0),
                truncated=handoff.truncated,
                queue_s=prefilled.queue_s + (decoded.queue_s if decoded else 0.0),
                prefill_s=prefilled.prefill_s + prefilled.decode_s + handoff.transfer_s,
                decode_s=(decoded.decode_s if decoded else 0.0) + handoff.return_s,
            )
        )

    def forget(self, trajectory: int) -> None:
        """A trajectory has ended."""
        self._held.pop(trajectory, None)
