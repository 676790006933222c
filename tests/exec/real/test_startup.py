"""What is told of processes that cannot start."""

import asyncio
import pickle

import pytest

pytest.importorskip("ray")

from ray.exceptions import RayError, RayTaskError

from rollart.domain.errors import StartError
from rollart.exec.real import startup
from rollart.exec.real.startup import started, telling_why

VLLM = """Loading weights: 100%
Traceback (most recent call last):
  File "kv_cache_utils.py", line 1010, in _check
    raise ValueError(
ValueError: No available memory for the cache blocks.
(EngineCore pid=7) torch.OutOfMemoryError: this one is within a line
"""


@pytest.fixture(autouse=True)
def node(monkeypatch):
    monkeypatch.setattr(startup.ray.util, "get_node_ip_address", lambda: "127.0.0.1")


def failing(log):
    with telling_why(log):
        raise RuntimeError("Engine core\n   initialization failed.")


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        (VLLM, "; the last error in its log: ValueError: No available memory for the cache blocks"),
        (
            "KeyError: 'a'\ntorch.OutOfMemoryError: 80 GiB\n",
            "; the last error in its log: torch.OutOfMemoryError: 80 GiB",
        ),
        ("RuntimeError: Engine core initialization failed.\n", ""),
        ("nothing of interest\n", ""),
        ("", ""),
    ],
    ids=["a child's", "the last of several", "its own", "none in the log", "an empty log"],
)
def test_what_was_raised_is_told_and_behind_it_the_last_error_of_the_log(tmp_path, text, logged):
    log = tmp_path / "worker.err"
    log.write_text(text)
    with pytest.raises(StartError) as told:
        failing(log)
    own = "RuntimeError: Engine core initialization failed"
    assert str(told.value) == f"{own}{logged}; its log is {log} on 127.0.0.1"


def test_without_a_log_it_is_what_was_raised(tmp_path):
    with pytest.raises(StartError) as told:
        failing(tmp_path / "none")
    assert str(told.value) == "RuntimeError: Engine core initialization failed"


def test_who_starts_well_tells_nothing(tmp_path):
    with telling_why(tmp_path / "none"):
        pass


def test_what_it_says_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(StartError("a; b")))
    assert (type(error), str(error)) == (StartError, "a; b")


async def answers(result):
    if isinstance(result, Exception):
        raise result
    return result


def test_the_answer_of_who_starts_is_handed_on():
    assert asyncio.run(started("engine 0", answers(5))) == 5


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RayTaskError("start", "trace", StartError("no\nmemory.")), "engine 0 of 'a' could not start: no memory"),
        (RayError("The actor died."), "engine 0 of 'a' died while it started: The actor died"),
    ],
    ids=["it says why", "it is gone"],
)
def test_who_does_not_start_is_named(error, told):
    with pytest.raises(StartError) as raised:
        asyncio.run(started("engine 0 of 'a'", answers(error)))
    assert str(raised.value) == told


def test_a_bug_of_the_driver_is_no_start_error():
    with pytest.raises(KeyError):
        asyncio.run(started("engine 0", answers(KeyError("a"))))
