"""Reward functions that Ray Serve scales."""

import asyncio
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

from rollart.domain.cluster import Serverless
from rollart.domain.errors import ScenarioError
from rollart.domain.execution import TaskExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.episodes import Episode, Generated
from rollart.exec.real.rewards.function import RemoteReward
from rollart.exec.real.rewards.replica import RewardReplica, imported
from rollart.exec.real.rewards.scoring import RewardFailure
from rollart.exec.real.tokens import Characters

GRADING = "tests.exec.real.grading"
WORDS = Characters(64)
LIMITS = Serverless(max_concurrency=2, cold_start_s=1.0, keep_alive_s=1.0, scale_out_per_s=1.0)


def episode(answer, earned=0.0):
    made = Episode(task="t", group=0, start_version=0, reward=earned)
    made.observe(WORDS.observation("#", first=True))
    said = WORDS.observation(answer, first=False)
    made.generated(Generated(tokens=said, logprobs=[0.0] * len(said), versions=[0] * len(said)))
    return made


@pytest.mark.parametrize(
    ("path", "answer", "reward"),
    [("digits", "1ab2", 0.5), ("earned", "a", 0.25), ("Counter", "a", 1.0)],
    ids=["function", "coroutine", "class"],
)
def test_functions_of_all_kinds_are_called_with_the_request(path, answer, reward):
    async def ask():
        replica = RewardReplica(f"{GRADING}:{path}")
        return [await replica({"answer": answer, "earned": 0.25}) for _ in range(2)]

    (first, seconds, was_first), (_, _, is_first) = asyncio.run(ask())
    assert (first, was_first, is_first) == (reward, True, False)
    assert 0.0 <= seconds < 1.0


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere:f", "reward 'nowhere:f' cannot be imported: No module named 'nowhere'"),
        (f"{GRADING}:missing", "has no attribute 'missing'"),
        (f"{GRADING}:Broken", "does not start: no data"),
        (f"{GRADING}:NUMBER", "is no function, and no class whose instances can be called"),
    ],
)
def test_what_cannot_be_called_is_said_before_anything_starts(path, message):
    with pytest.raises(ScenarioError) as raised:
        imported(path)
    assert message in str(raised.value)


def test_a_process_with_a_call_that_hangs_is_unhealthy_until_it_ends():
    async def ask():
        replica = RewardReplica(f"{GRADING}:digits")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(replica({"answer": "LATE"}), 0.05)
        with pytest.raises(RuntimeError, match="1 calls hang"):
            await replica.check_health()
        await asyncio.wrap_future(replica._left[0])
        await replica.check_health()

    asyncio.run(ask())


class Handle:
    """Of a deployment whose answers the test knows."""

    def __init__(self, answers):
        self.answers, self.cancelled = answers, 0

    def remote(self, request):
        return Response(self, self.answers[request["answer"]])


class Response:
    def __init__(self, handle, answer):
        self.handle, self.answer = handle, answer

    def __await__(self):
        return self._tell().__await__()

    async def _tell(self):
        if self.answer is None:
            await asyncio.sleep(10.0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancel(self):
        self.handle.cancelled += 1


def service_with(handle):
    serve = pytest.importorskip("rollart.exec.real.rewards.serve")
    service = serve.ServeService(
        TaskExecution(task="t", environment="e"), f"{GRADING}:digits", LIMITS, "run", shared=False
    )
    service._handle = handle
    return service


def score(service, answer, timeout_s=0.1):
    return RemoteReward(service, WORDS, 2).score(episode(answer), timeout_s)


def test_work_and_cold_starts_are_counted():
    service = service_with(Handle({"1": (1.0, 0.25, True), "2": (0.5, 0.5, False)}))

    async def ask():
        return [await score(service, "1"), await score(service, "2")]

    assert asyncio.run(ask()) == [1.0, 0.5]
    assert (service.billed_s, service.cold_starts) == (0.75, 1)


@pytest.mark.parametrize(
    ("answer", "cause", "cancelled"),
    [
        (("garbage", 0.1, False), Cause.ERROR, 0),
        ((float("nan"), 0.1, False), Cause.ERROR, 0),
        ("a dead process", Cause.ERROR, 0),
        (None, Cause.TIMEOUT, 1),
    ],
    ids=["text", "not finite", "dead", "late"],
)
def test_each_attempt_is_one_request_and_what_fails_is_reported(answer, cause, cancelled):
    import ray

    handle = Handle({"1": ray.exceptions.RayActorError() if answer == "a dead process" else answer})
    with pytest.raises(RewardFailure) as raised:
        asyncio.run(score(service_with(handle), "1"))
    assert raised.value.cause is cause
    assert handle.cancelled == cancelled


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_processes_come_with_the_work_and_go_without_it():
    from ray import serve

    from rollart.exec.real.cluster import connect, disconnect
    from rollart.exec.real.rewards.serve import ServeService

    def processes():
        states = serve.status().applications["run-t"].deployments["reward"].replica_states
        return sum(states.values())

    async def until(count):
        begin_s = time.monotonic()
        while processes() != count:
            assert time.monotonic() - begin_s < 60.0
            await asyncio.sleep(0.1)

    async def ask():
        task = TaskExecution(task="t", environment="e")
        service = ServeService(task, f"{GRADING}:digits", LIMITS, "run", shared=False)
        await service.start()
        try:
            assert processes() == 0
            assert await score(service, "1ab2", 60.0) == 0.5
            assert service.cold_starts == 1
            for answer in ("ERROR", "GARBAGE"):
                with pytest.raises(RewardFailure) as raised:
                    await score(service, answer, 60.0)
                assert raised.value.cause is Cause.ERROR
            with pytest.raises(RewardFailure) as raised:
                await score(service, "LATE", 0.5)
            assert raised.value.cause is Cause.TIMEOUT
            await until(0)
            assert await score(service, "12", 60.0) == 1.0
            assert service.cold_starts == 2
        finally:
            await service.close()

    connect(None, None)
    try:
        asyncio.run(ask())
    finally:
        disconnect()


def test_the_class_in_the_documentation_is_a_reward(tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[3] / "docs/real-workers.md").read_text(encoding="utf-8")
    code = page.partition("## Rewards")[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / "reward_of_the_page.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert imported("reward_of_the_page:Words")({"answer": "ice and goal"}) == pytest.approx(2 / 3)
