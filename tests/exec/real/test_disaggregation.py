"""Prefill on one real engine, decode on another, on this machine."""

import asyncio
import gc
import random
from collections import deque
from dataclasses import replace

import pytest

from rollart import api
from rollart.domain.commands import GenerateTurn
from rollart.exec.real.engines.connectors import KvTransfer
from rollart.exec.real.engines.handover import Handover
from rollart.exec.real.engines.spec import EngineSpec, Sampling
from rollart.exec.real.engines.turn import Turn
from rollart.exec.real.weights.carrier import RayObjects
from rollart.exec.real.wire import Exchange
from rollart.runlog.reader import records
from rollart.runlog.samples import EngineSample
from tests.exec.real.test_connectors import pair

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.filterwarnings("default")]

ANSWER_S = 300
"""Time in which an engine must say something, on a machine that does other work too."""
MODEL = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 128,
    "vocab_size": 64,
    "tie_word_embeddings": False,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}


def spec(folder, kv, *, prefills):
    return EngineSpec(
        folder=str(folder),
        host_folder=str(kv / "weights"),
        carrier=RayObjects(),
        dtype="float32",
        context_limit=512,
        max_num_seqs=8,
        max_num_batched_tokens=64,
        block_size=32,
        prefix_caching=True,
        tensor_parallel=1,
        gpu_memory_utilization=0.5,
        cores=None,
        kv_cache_bytes=2**26,
        seed=0,
        sampling={"t": Sampling(temperature=0.0, allowed=(), stop=())},
        kv_transfer=KvTransfer(connector="folder", prefills=prefills, folder=str(kv / "kv")),
    )


class Engine:
    """One engine's process, in this one, at the other end of a wire."""

    def __init__(self, process):
        self.process = process
        self.reading = None
        self.told = deque()

    async def start(self, exchange):
        connected = asyncio.get_running_loop().create_future()
        await self.process.start(0, suspended=False)
        self.serving = asyncio.create_task(self.process.serve(exchange.line(connected.set_result)))
        self.wire = await connected

    async def stop(self):
        self.wire.close()
        await self.serving
        self.process._engine.shutdown()

    def send(self, *message):
        self.wire.post(message)

    async def answer(self, kind):
        """What it says next of a kind."""
        while True:
            while self.told:
                name, *told = self.told.popleft()
                assert name != "broken", told
                if name == kind:
                    return told
            *told, (_, self.reading) = await asyncio.wait_for(self.wire.receive(), ANSWER_S)
            self.told = deque(told)

    async def turn(self, command, *request):
        """What it makes of a turn."""
        _, made = await self.ask("turn", "turn", command, "t", *request)
        return Turn(*made)

    async def prefill(self, command, prompt):
        """What it hands over."""
        _, handover = await self.ask("prefill", "prefilled", command, "t", prompt)
        return Handover.of(handover)

    async def ask(self, kind, answer, *message):
        self.send(kind, *message)
        return await self.answer(answer)


async def until(condition):
    """Wait for something that an engine does without saying so."""
    async with asyncio.timeout(ANSWER_S):
        while not condition():
            await asyncio.sleep(0.02)


def files(folder):
    """KV that is on its way."""
    return list((folder / "kv").glob("*.safetensors"))


async def _both(prefill, decode, folder):
    """What two engines make together is what one makes alone."""
    luck = random.Random(0)
    for command, length in enumerate((5, 32, 33, 100, 200)):
        prompt = [luck.randrange(64) for _ in range(length)]
        handover = await prefill.prefill(command, prompt)
        before = 0 if decode.reading is None else decode.reading[2]
        together = await decode.turn(command, prompt, 12, handover)
        alone = await prefill.turn(100 + command, prompt, 12)
        assert together.tokens == alone.tokens
        assert together.logprobs == pytest.approx(alone.logprobs, abs=1e-5)
        assert together.versions == [0] * 12
        assert decode.reading[2] - before == 1, "the decode engine computes the last token of a prompt alone"
    assert files(folder) == []


async def _updated(prefill, decode, folder):
    """KV of weights that are about to be old is given up, and what was cut off goes on."""
    prompt = list(range(40))
    alone = await prefill.turn(200, prompt, 400)
    first = await prefill.prefill(201, prompt)
    second = await prefill.prefill(202, prompt)
    decode.send("turn", 201, "t", prompt, 400, first)
    meter = decode.process._meters[0]
    began = meter.decode_tokens
    await until(lambda: meter.decode_tokens > began + 4)
    await decode.ask("suspend", "suspended", 301, False)
    decode.send("turn", 202, "t", prompt, 400, second)
    await decode.ask("update", "updated", 302, 1, False)
    await until(lambda: files(folder) == [])
    decode.send("resume", 303)
    turns = {command: Turn(*made) for command, made in [await decode.answer("turn"), await decode.answer("turn")]}
    for turn in turns.values():
        assert turn.tokens == alone.tokens
        assert turn.logprobs == pytest.approx(alone.logprobs, abs=1e-5)
    assert set(turns[201].versions) == {0, 1}
    assert set(turns[202].versions) == {1}


async def _old_and_aborted(prefill, decode, folder):
    """KV of other weights than the engine has is not used, nor is that of a turn that was aborted."""
    prompt = list(range(40))
    old = await prefill.prefill(401, prompt)
    assert (old.version, len(files(folder))) == (0, 1)
    turn = await decode.turn(401, prompt, 4, old)
    assert set(turn.versions) == {1}
    decode.send("release", 402, await prefill.prefill(402, prompt))
    _, target, none = await prefill.ask("abort", "aborted", 403, 404)
    assert (target, none) == (404, None)
    await until(lambda: files(folder) == [])


def test_two_engines_make_the_tokens_and_logprobs_of_one(tmp_path, monkeypatch):
    from rollart.exec.real.cluster import connect, disconnect
    from rollart.exec.real.engines.actor import EngineProcess
    from rollart.exec.real.model_folder import model_folder

    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    settings = replace(pair().execution(), model_fields=MODEL)
    folder = model_folder(settings, tmp_path, 0)

    async def work():
        prefill = Engine(EngineProcess(spec(folder, tmp_path, prefills=True)))
        decode = Engine(EngineProcess(spec(folder, tmp_path, prefills=False)))
        exchange = await Exchange.opened("127.0.0.1")
        for engine in (prefill, decode):
            await engine.start(exchange)
        for part in (_both, _updated, _old_and_aborted):
            await part(prefill, decode, tmp_path)
        for engine in (prefill, decode):
            await engine.stop()
        exchange.close()

    connect(None, None)
    try:
        asyncio.run(work())
        # What vLLM leaves open is complained of here, where warnings are no errors.
        gc.collect()
    finally:
        disconnect()


def test_a_run_with_a_pair_of_engines(tmp_path):
    scenario = pair("training.batch_size=32", "steps=4")
    summary = api.run(scenario, out=tmp_path / "run").summary
    assert summary["trajectories"]["trained"] == 4 * 32
    assert summary["trajectories"]["failed"] == 0
    assert summary["logprob_gap"]["max"] < 1e-4
    assert api.check(tmp_path / "run").ok
    told = [record for _, _, record in records(tmp_path / "run/runlog.parquet")]
    assert {turn.prefill_engine for turn in told if isinstance(turn, GenerateTurn)} == {0}
    prefill, decode = (
        max(sample.prefill_tokens for sample in told if isinstance(sample, EngineSample) and sample.engine == engine)
        for engine in (0, 1)
    )
    assert decode < prefill / 2
