"""All engines of a run, from the driver's side: turns, aborts, weight updates, deaths and restarts."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from rollart.domain.commands import (
    AbortGeneration,
    GenerateTurn,
    PullWeights,
    RestartEngine,
    ResumeEngine,
    SuspendEngine,
    UpdateEngine,
    WeightSource,
)
from rollart.domain.errors import StartError
from rollart.domain.events import (
    EngineLost,
    EngineResumed,
    EngineStarted,
    EngineSuspended,
    EngineUpdated,
    Event,
    GenerationAborted,
    TurnGenerated,
    WeightsPulled,
)
from rollart.exec.real.engines.link import EngineLink, Reading
from rollart.exec.real.engines.prefills import Prefills
from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.episodes import Episodes, Generated
from rollart.exec.real.failures import Why
from rollart.exec.real.mailbox import Mailbox
from rollart.exec.real.weights.members import Member
from rollart.exec.real.wire import Message

Received = Callable[[Message], None]
Lost = Callable[[str], None]


class Starter(Protocol):
    """Starts processes of engines."""

    async def __call__(
        self, index: int, incarnation: int, received: Received, lost: Lost, *, suspended: bool
    ) -> Mailbox:
        """The process of an engine, once its model is loaded. Raises StartError."""
        ...


class Buckets(Protocol):
    """Where the weights of versions are."""

    def has_arrived(self, command: UpdateEngine) -> bool:
        """Whether the engine has the version by a broadcast."""
        ...

    async def pushed(self, version: int) -> Sequence[Any] | None:
        """References to a version as soon as it is in the store; None where the trainer died before it was."""
        ...


class EngineFleet:
    """Carries out the commands that are addressed to engines."""

    def __init__(
        self,
        count: int,
        start: Starter,
        turn_tokens: Mapping[str, int],
        episodes: Episodes,
        store: Buckets,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        report: Callable[[Event], None],
        why: Why,
    ) -> None:
        """`turn_tokens`: most tokens of a turn, by task.

        `spawn` runs something beside the driver's loop and fails the run where that raises. `why` is told the reason of
        every loss.
        """
        self.links = [EngineLink(index) for index in range(count)]
        self._start = start
        self._turn_tokens = turn_tokens
        self._episodes = episodes
        self._store = store
        self._spawn = spawn
        self._report = report
        self._why = why
        self._prefills = Prefills()
        self._handlers: dict[str, Callable[..., None]] = {
            "turn": self._turn,
            "prefilled": lambda _, command, handover: self._prefills.prefilled(command, handover),
            "aborted": self._aborted,
            "suspended": lambda _, command: report(EngineSuspended(command_id=command)),
            "resumed": self._resumed,
            "pulled": lambda _, command, version: report(WeightsPulled(command_id=command, version=version)),
            "updated": self._updated,
            "probe": lambda link, version, logprobs: self.probed(link.index, version, logprobs),
            "reading": lambda link, counters: link.readings.__setitem__(-1, Reading(*counters)),
            "moved": self._moved,
            "broken": self._broken,
        }
        self.probed: Callable[[int, int, list[list[float]]], None] = _nobody
        """Told the log-probs of the probe prompts."""
        self.resumed: Callable[[int, int], None] = _nobody
        """Told that an engine generates under a version that it did not have before."""
        self._asked = 0
        self.moved_bytes = 0
        self.update_s: list[float] = []
        """Seconds of every update, in the engine's process."""

    async def start(self) -> None:
        """Bring all engines up with version 0. Raises StartError."""
        await asyncio.gather(*(self._bring_up(link, 0, suspended=False) for link in self.links))

    async def _bring_up(self, link: EngineLink, incarnation: int, *, suspended: bool) -> None:
        received, lost = partial(self._received, link, incarnation), partial(self._lost, link, incarnation)
        mailbox = await self._start(link.index, incarnation, received, lost, suspended=suspended)
        if mailbox.closed:
            # Nobody has been told of its loss: the engine was still down for `_lost`.
            raise StartError(f"engine {link.index} died when it had just started")
        link.attach(incarnation, mailbox)

    # Commands

    def generate(self, command: GenerateTurn) -> None:
        """Generate a turn, or what is missing of it; report the loss again where it reaches a dead engine."""
        link = self.links[command.engine]
        if not link.takes(command.incarnation):
            self._missed(command, command.engine, command.incarnation)
            return
        prefill = None if command.prefill_engine is None else self.links[command.prefill_engine]
        if prefill is not None and prefill.mailbox is None:
            self._missed(command, prefill.index, prefill.incarnation)
            return
        episode = self._episodes[command.trajectory]
        limit = self._turn_tokens[episode.task] - command.partial_tokens
        link.open[command.id] = command.trajectory
        turn = ("turn", command.id, episode.task, list(episode.tokens), max(1, min(limit, command.max_tokens)))
        if prefill is None:
            link.post(turn)
        else:
            self._prefills.begin(prefill, link, turn)

    def _missed(self, command: GenerateTurn, engine: int, incarnation: int) -> None:
        self._report(EngineLost(engine=engine, incarnation=incarnation, commands=(command.id,), saved_tokens=(0,)))

    def abort(self, command: AbortGeneration) -> None:
        """Stop a turn."""
        link = self.links[command.engine]
        if link.takes(command.incarnation):
            link.open.pop(command.target, None)
            if self._prefills.abort(command.target):
                self._report(GenerationAborted(command_id=command.id, output_tokens=0))
                return
            link.aborts[command.id] = command.trajectory
            link.post(("abort", command.id, command.target))

    def pull(self, command: PullWeights) -> None:
        """Fetch a version to the engine's host."""
        if self.links[command.engine].takes(command.incarnation):
            self._spawn(self._pull(command))

    async def _pull(self, command: PullWeights) -> None:
        buckets = await self._store.pushed(command.version)
        link = self.links[command.engine]
        if buckets is not None and link.takes(command.incarnation):
            link.offer(command.id, buckets)
            link.post(("pull", command.id, command.version))

    def suspend(self, command: SuspendEngine) -> None:
        """Start no further iteration; where the trainer shares the devices, also give their memory back."""
        self._order(command, ("suspend", command.id, command.release_memory))

    def resume(self, command: ResumeEngine) -> None:
        """Go on."""
        self._order(command, ("resume", command.id))

    def update(self, command: UpdateEngine) -> None:
        """Install a version from the host or the store, unless it has come with a broadcast or the model's folder."""
        if command.version == 0 or command.source is WeightSource.HOST or self._store.has_arrived(command):
            self._order(command, ("update", command.id, command.version, False))
        else:
            self._spawn(self._update(command))

    async def _update(self, command: UpdateEngine) -> None:
        buckets = await self._store.pushed(command.version)
        link = self.links[command.engine]
        if buckets is not None:
            link.offer(command.id, buckets)
            self._order(command, ("update", command.id, command.version, True))
        elif link.takes(command.incarnation):
            # Nobody can give it the version any more; another incarnation finds a newer one.
            self._broken(link, "no weights")

    def _order(self, command: SuspendEngine | ResumeEngine | UpdateEngine, message: Message) -> None:
        link = self.links[command.engine]
        if link.takes(command.incarnation):
            link.post(message)

    def restart(self, command: RestartEngine) -> None:
        """Start another incarnation, suspended."""
        self._spawn(self._restart(command))

    async def _restart(self, command: RestartEngine) -> None:
        link, incarnation = self.links[command.engine], command.incarnation
        try:
            await self._bring_up(link, incarnation, suspended=True)
        except StartError as error:
            self._why(f"engine {link.index}", str(error))
            self._report(EngineLost(engine=link.index, incarnation=incarnation, commands=(), saved_tokens=()))
            return
        self._report(EngineStarted(command_id=command.id))

    def probe(self, engine: int, version: int, prompts: Sequence[list[int]]) -> None:
        """Ask an engine for the log-probs of prompts under the version that it has."""
        self.links[engine].post(("probe", version, list(prompts)))

    def members(self, workers: Mapping[int, int]) -> list[Member]:
        """Engines that are up, of those whose number of vLLM's workers is given."""
        return [
            Member(
                engine=link.index, incarnation=link.incarnation, workers=workers[link.index], process=link.mailbox.actor
            )
            for link in self.links
            if link.index in workers and link.mailbox is not None
        ]

    async def ask(self, engine: int, sampling: str, prompt: list[int], max_tokens: int) -> Turn | None:
        """Generate beside the rollout, as a judge does, until cancelled; None where the engine dies over it."""
        link = self.links[engine]
        self._asked -= 1
        number = self._asked
        answer = link.asked[number] = asyncio.get_running_loop().create_future()
        link.post(("turn", number, sampling, prompt, max_tokens))
        try:
            return await answer
        except asyncio.CancelledError:
            link.post(("abort", number, number))
            raise
        finally:
            link.asked.pop(number, None)

    def stop(self) -> None:
        """End all processes."""
        for link in self.links:
            if link.mailbox is not None:
                link.mailbox.kill()
                link.detach()

    # Answers

    def _received(self, link: EngineLink, incarnation: int, message: Message) -> None:
        if incarnation == link.incarnation:
            self._handlers[message[0]](link, *message[1:])

    def _turn(self, link: EngineLink, command_id: int, fields: Sequence[Any]) -> None:
        turn = Turn(*fields)
        if link.answered(command_id, turn):
            return
        trajectory = link.open.pop(command_id, None)
        if trajectory is None:
            return
        link.recomputed_tokens += turn.recomputed_tokens
        episode = self._episodes[trajectory]
        episode.generated(_generated(turn))
        limit = self._turn_tokens[episode.task]
        self._report(
            TurnGenerated(
                command_id=command_id,
                output_tokens=len(turn.tokens),
                cached_tokens=turn.cached_tokens,
                recomputed_tokens=turn.recomputed_tokens,
                preemptions=turn.preemptions,
                # The turn's own limit is a way to end it; the context's limit cuts the trajectory.
                truncated=not turn.finished and len(episode.turn) < limit,
                queue_s=turn.queue_s,
                prefill_s=turn.prefill_s,
                decode_s=turn.decode_s,
            )
        )

    def _aborted(self, link: EngineLink, command_id: int, target: int, fields: Sequence[Any] | None) -> None:
        self._prefills.stopped(target)
        trajectory = link.aborts.pop(command_id, None)
        if trajectory is None:
            return
        turn = None if fields is None else Turn(*fields)
        episode = self._episodes.get(trajectory)
        if turn is not None and episode is not None:
            episode.generated(_generated(turn))
        self._report(GenerationAborted(command_id=command_id, output_tokens=len(turn.tokens) if turn else 0))

    def _updated(self, link: EngineLink, command_id: int, version: int, seconds: float) -> None:
        self.update_s.append(seconds)
        link.fresh = version
        self._report(EngineUpdated(command_id=command_id, version=version))

    def _resumed(self, link: EngineLink, command_id: int) -> None:
        fresh, link.fresh = link.fresh, None
        if fresh is not None:
            self.resumed(link.index, fresh)
        self._report(EngineResumed(command_id=command_id))

    def _moved(self, link: EngineLink, size: int) -> None:
        del link
        self.moved_bytes += size

    def _broken(self, link: EngineLink, reason: str) -> None:
        if link.mailbox is not None:
            link.mailbox.kill()
        self._lost(link, link.incarnation, reason)

    def _lost(self, link: EngineLink, incarnation: int, reason: str) -> None:
        """The process is gone, with what it held: nothing is streamed, so no token of an open turn is saved."""
        if link.mailbox is None or incarnation != link.incarnation:
            return
        self._why(f"engine {link.index}", reason)
        lost = link.detach()
        for command in lost:
            self._prefills.abort(command)
        lost += self._prefills.lost(link)
        self._report(
            EngineLost(engine=link.index, incarnation=incarnation, commands=lost, saved_tokens=(0,) * len(lost))
        )


def _nobody(*_: object) -> None:
    """Nobody is told."""


def _generated(turn: Turn) -> Generated:
    return Generated(tokens=turn.tokens, logprobs=turn.logprobs, versions=turn.versions)
