"""An engine's process: a Ray actor around vLLM's AsyncLLM.

Messages in, carried out in order, turns beside each other:
("turn", command, task, prompt ids, max_tokens[, Handover or None]), ("prefill", command, task, prompt ids),
("release", command, Handover), ("abort", command, target), ("pull", command, version),
("update", command, version, fetch), ("suspend", command, release memory), ("resume", command),
("probe", version, ids).
Messages out: ("turn", command, Turn), ("prefilled", command, Handover or None),
("aborted", command, target, Turn or None), ("pulled", command, version), ("moved", bytes),
("updated", command, version, seconds), ("suspended", command), ("resumed", command), ("probe", version, log-probs),
("reading", counters), with every batch. Where an order needs weights, a call of Ray brings references to its buckets.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from rollart.exec.real.engines.handover import Handover
from rollart.exec.real.engines.remains import Remains, descendants
from rollart.exec.real.engines.spec import EngineSpec
from rollart.exec.real.engines.turn import Turn, turn_of
from rollart.exec.real.mailbox import Outbox
from rollart.exec.real.startup import telling_why
from rollart.exec.real.weights.members import BROADCAST_LIMIT_S
from rollart.exec.real.wire import Line, Message

ORDERED = ("suspend", "resume", "pull", "update", "probe")
"""Messages that wait for the ones of their kind before them."""


@contextmanager
def _bound_to(cores: frozenset[int] | None) -> Iterator[None]:
    """Processes that are started meanwhile run on these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if cores is None else cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class EngineProcess:
    """One incarnation of an engine."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._outbox = Outbox(self._counters)
        self._sampling: Any = None
        self._prompt: Any = None
        self._turns: dict[int, str | None] = {}
        """Open turns by command, and the name of vLLM's request; None until vLLM has it."""
        self._behind: set[int] = set()
        """Open turns that another engine's KV is used for."""
        self._aborts: dict[int, int] = {}
        """Turn -> abort command."""
        self._offers: dict[int, asyncio.Future[list[Any]]] = {}
        """References to weights, by the command that needs them."""
        self._pulled: dict[int, list[Path]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._orders: asyncio.Queue[Message] = asyncio.Queue()
        self._engine: Any = None
        self._meters: list[Any] = []
        self._broken = False
        self._suspended = False
        self._asleep = False
        self._version = 0

    async def start(self, version: int, *, suspended: bool) -> Remains:
        """Load the model; the weights in its folder are called `version`. What would be left if this process died.

        Raises StartError.
        """
        with telling_why():
            await self._start(version, suspended)
        self._begin(self._work())
        return Remains(node=ray.get_runtime_context().get_node_id(), processes=descendants(os.getpid()))

    async def _start(self, version: int, suspended: bool) -> None:
        # Here, since the driver's process has this module too and takes half a minute less without vLLM.
        from rollart.exec.real.engines import backend

        self._sampling = backend.SamplingTable(dict(self._spec.sampling))
        self._prompt = backend.prompt
        self._probe_parameters = backend.probe_parameters()
        with _bound_to(self._spec.cores):
            self._engine, self._meters = backend.make_engine(self._spec)
        if self._spec.cores is not None:
            await self._engine.collective_rpc("let_others_first")
        await self._now_at(version)
        self._suspended = suspended
        if suspended:
            await self._engine.pause_generation(mode="keep", clear_cache=False)
        if suspended and self._spec.time_shared:
            # Light sleep: the weights of the model's folder may be wanted as they are.
            await self._sleep(level=1)

    async def serve(self, line: Line) -> None:
        """Do what the driver says, until it hangs up."""
        await self._outbox.serve(line, self.take)

    async def offer(self, command: int, buckets: list[Any]) -> None:
        """References to the buckets of weights that a command needs: what the carrier has made of each."""
        self._offered(command).set_result(buckets)

    def _offered(self, command: int) -> asyncio.Future[list[Any]]:
        return self._offers.setdefault(command, asyncio.get_running_loop().create_future())

    def _counters(self) -> list[Message]:
        self._count_work()
        return [("reading", self._meters[0].reading())] if self._meters else []

    def take(self, message: Message) -> None:
        """Begin with what is asked."""
        kind, *rest = message
        if kind in ("turn", "prefill"):
            self._turns[rest[0]] = None
            self._count_work()
            self._begin(self._turn(*rest) if kind == "turn" else self._prefill(*rest))
        elif kind == "abort":
            self._begin(self._abort(*rest))
        elif kind == "release":
            self._begin(self._release(*rest))
        else:
            self._orders.put_nowait(message)

    def _count_work(self) -> None:
        if self._meters:
            self._meters[0].work(bool(self._turns) and not self._suspended)

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._break(error)

    def _break(self, error: BaseException) -> None:
        """A broken engine must die, so that the driver learns of it: nothing here can mend it."""
        if not self._broken:
            self._broken = True
            self._outbox.post(("broken", repr(error)[:1000]))

    async def transfer(self, call: str, info: dict[str, Any] | None = None) -> None:
        """A call of vLLM's weight transfer, by the trainer; who fails in it has neither the old weights nor the new."""
        from rollart.exec.real.engines import backend

        try:
            await asyncio.wait_for(backend.transfer(self._engine, call, info), BROADCAST_LIMIT_S)
        except Exception as error:
            self._break(error)
            raise

    # Turns

    async def _turn(
        self, command: int, task: str, prompt: list[int], max_tokens: int, handover: Sequence[Any] | None = None
    ) -> None:
        if handover is None:
            turn, _ = await self._request(command, prompt, self._sampling.turn(task, max_tokens))
        else:
            turn = await self._turn_behind(command, task, prompt, max_tokens, Handover.of(handover))
        if (abort := self._closed(command)) is None:
            self._outbox.post(("turn", command, turn))
        else:
            self._outbox.post(("aborted", abort, command, turn))

    async def _request(self, command: int, prompt: list[int], parameters: Any, part: str = "") -> tuple[Turn, Any]:
        """Have vLLM carry out a turn, or a part of it: what it made, and vLLM's last output."""
        began_s = time.perf_counter()
        name = f"{command}{part}"
        behind = command in self._behind
        queue = await self._engine.add_request(name, self._prompt(prompt), parameters)
        self._turns[command] = name
        if command in self._aborts or (behind and command not in self._behind):
            await self._engine.abort(name)
        output = queue.get_nowait() or await queue.get()
        while not output.finished:
            output = queue.get_nowait() or await queue.get()
        self._turns[command] = None
        return turn_of(output, time.perf_counter() - began_s), output

    def _closed(self, command: int) -> int | None:
        """A turn is over: the command that aborted it, if one did."""
        del self._turns[command]
        self._count_work()
        return self._aborts.pop(command, None)

    async def _abort(self, command: int, target: int) -> None:
        if target not in self._turns:
            self._outbox.post(("aborted", command, target, None))
            return
        self._aborts[target] = command
        if (name := self._turns[target]) is not None:
            await self._engine.abort(name)

    # Prefill here, decode there

    async def _prefill(self, command: int, task: str, prompt: list[int]) -> None:
        """Compute a prompt for another engine."""
        turn, output = await self._request(command, prompt, self._sampling.prefill(task))
        if (abort := self._closed(command)) is not None:
            self._outbox.post(("aborted", abort, command, None))
            return
        parameters = output.kv_transfer_params
        handover = Handover(parameters=parameters, prefilled=turn) if parameters and turn.versions else None
        self._outbox.post(("prefilled", command, handover))

    async def _turn_behind(
        self, command: int, task: str, prompt: list[int], max_tokens: int, handover: Handover
    ) -> Turn:
        """A turn behind another engine's prefill; what an update cuts off goes on with KV that is computed here."""
        if self._suspended or handover.version != self._version:
            await self._give_up(command, handover)
            turn, _ = await self._request(command, prompt, self._sampling.turn(task, max_tokens))
            return turn.behind(handover.prefilled)
        self._behind.add(command)
        parameters = self._sampling.behind(task, max_tokens, handover.parameters)
        turn, output = await self._request(command, prompt, parameters)
        self._behind.discard(command)
        if output.outputs[0].finish_reason == "abort" and command not in self._aborts:
            context = prompt + turn.tokens
            left = self._sampling.turn(task, max_tokens - len(turn.tokens))
            rest, _ = await self._request(command, context, left, "-rest")
            turn = turn.followed_by(rest, len(context))
        return turn.behind(handover.prefilled)

    async def _release(self, command: int, handover: Sequence[Any]) -> None:
        """Let the KV go that another engine keeps for this one."""
        await self._give_up(command, Handover.of(handover))

    async def _give_up(self, command: int, handover: Handover) -> None:
        await self._engine.notify_kv_transfer_request_rejected(f"{command}-released", dict(handover.parameters))

    async def _take_back(self) -> None:
        """Cut off the turns behind other engines: KV on its way is of weights that are about to be old."""
        cut, self._behind = self._behind, set()
        for name in [self._turns[command] for command in cut]:
            if name is not None:
                await self._engine.abort(name)

    # Orders, one after the other

    async def _work(self) -> None:
        carry_out: dict[str, Callable[..., Awaitable[None]]] = {
            "suspend": self._suspend,
            "resume": self._resume,
            "pull": self._pull,
            "update": self._update,
            "probe": self._probe,
        }
        while True:
            message = await self._orders.get()
            await carry_out[message[0]](*message[1:])

    async def _suspend(self, command: int, release_memory: bool) -> None:
        self._suspended = True
        await self._take_back()
        await self._engine.pause_generation(mode="keep", clear_cache=False)
        if release_memory:
            await self._sleep(level=2)
        self._count_work()
        self._outbox.post(("suspended", command))

    async def _sleep(self, level: int) -> None:
        """Give the device's memory back, with what is in it; on CPUs vLLM keeps it. An update must come before work."""
        await self._engine.sleep(level=level, mode="keep")
        self._asleep = True

    async def _resume(self, command: int) -> None:
        if self._asleep:
            await self._engine.wake_up(tags=["kv_cache"])
            self._asleep = False
        await self._engine.resume_generation()
        self._suspended = False
        self._count_work()
        self._outbox.post(("resumed", command))

    async def _pull(self, command: int, version: int) -> None:
        await self._fetch(command, version)
        self._outbox.post(("pulled", command, version))

    async def _fetch(self, command: int, version: int) -> None:
        """Bring a version to this host's memory, where vLLM's workers can read it."""
        folder = Path(self._spec.host_folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        buckets = await self._offered(command)
        del self._offers[command]
        for number, bucket in enumerate(buckets):
            path = folder / f"{version}-{number}.safetensors"
            await asyncio.to_thread(self._spec.carrier.fetch, await bucket, path)
            paths.append(path)
        self._pulled[version] = paths
        self._outbox.post(("moved", sum(path.stat().st_size for path in paths)))

    async def _update(self, command: int, version: int, fetch: bool) -> None:
        """Install a version; KV of older weights is dropped, also that of the requests that wait in the engine."""
        began_s = time.perf_counter()
        await self._take_back()
        if self._asleep:
            await self._engine.wake_up(tags=["weights"])
        if fetch:
            await self._fetch(command, version)
        if version in self._pulled:
            paths = self._pulled.pop(version)
            await self._engine.collective_rpc("install_weights", args=([str(path) for path in paths],))
            for path in paths:
                path.unlink()
        await self._engine.reset_prefix_cache(reset_running_requests=True)
        await self._now_at(version)
        self._outbox.post(("updated", command, version, time.perf_counter() - began_s))

    async def _now_at(self, version: int) -> None:
        """Tokens that are sampled from now on are of these weights."""
        await self._engine.update_weight_version(str(version))
        self._version = version

    async def _probe(self, version: int, prompts: list[list[int]]) -> None:
        """Log-probs of prompts' own tokens under the weights that are installed."""
        logprobs: list[list[float]] = []
        for number, prompt in enumerate(prompts):
            name = f"probe-{version}-{number}"
            async for output in self._engine.generate(self._prompt(prompt), self._probe_parameters, name):
                last = output
            told = last.prompt_logprobs[1:]
            logprobs.append([entry[token].logprob for entry, token in zip(told, prompt[1:], strict=True)])
        self._outbox.post(("probe", version, logprobs))
