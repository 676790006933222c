"""Foreign trace formats."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rollart.domain.errors import TraceError
from rollart.workload.importers import IMPORTERS, import_trace
from rollart.workload.info import trace_info
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_writer import write_trace

SYSTEM = {"role": "system", "content": "s" * 40}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"a":1}'}}],
}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def record(trial: int, first: str, task_id: int = 7) -> dict[str, Any]:
    chat = [SYSTEM, user(first), CALL, {"role": "tool", "content": "t" * 21}, answer("done"), user("bye")]
    return {"task_id": task_id, "trial": trial, "reward": 1.0, "info": {}, "traj": chat}


def saved(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "gpt-4o-airline.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_tau_bench_turns_are_counted_from_characters(tmp_path: Path) -> None:
    (found,) = import_trace("tau-bench", saved(tmp_path, json.dumps([record(0, "hello")])))
    assert (found.task, found.group, found.member, found.reward) == ("tau-bench-airline", "7", 0, 1.0)
    assert found.prompt_tokens == (10 + 3) + (2 + 3)
    call_characters = len('{"name": "find", "arguments": {"a":1}}')
    assert [turn.output_tokens for turn in found.turns] == [-(-call_characters // 4) + 3, 1 + 3]
    assert [turn.prompt_tokens for turn in found.turns] == [0, 6 + 3]
    assert found.provenance["output_tokens"] == "estimated" and found.reset_s is None


def test_only_what_all_trials_begin_with_is_the_shared_prompt(tmp_path: Path) -> None:
    records = [record(0, "hello"), record(1, "good morning"), record(0, "x", task_id=8)]
    first, second, other = import_trace("tau-bench", saved(tmp_path, json.dumps(records)))
    assert (first.prompt_tokens, first.turns[0].prompt_tokens) == (13, 5)
    assert (second.prompt_tokens, second.turns[0].prompt_tokens) == (13, 6)
    assert (other.prompt_tokens, other.turns[0].prompt_tokens) == (17, 0)


def test_openai_chats_with_one_prompt_are_one_group(tmp_path: Path) -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "abcd"}, {"type": "image_url"}]}
    chats = [
        {"messages": [SYSTEM, parts, answer("one")]},
        {"messages": [SYSTEM, user("other"), answer("two")]},
        {"messages": [SYSTEM, parts, answer("three"), user("more"), answer("four")], "reward": 0.5},
    ]
    found = list(import_trace("openai-chat", saved(tmp_path, "\n".join(map(json.dumps, chats)))))
    assert [(one.group == found[0].group, one.member) for one in found] == [(True, 0), (False, 0), (True, 1)]
    assert found[0].prompt_tokens == 13 + 4
    assert (found[2].reward, len(found[2].turns), found[2].turns[1].prompt_tokens) == (0.5, 2, 4)


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"format 'x' is not known; known are auto, areal, azure, .*, verifiers, verl"):
        import_trace("x", tmp_path)
    assert all(importer.format == name and importer.about for name, importer in IMPORTERS.items())
    assert len(IMPORTERS) == 21


@pytest.mark.parametrize(
    ("format_name", "content", "message"),
    [
        ("tau-bench", "", "is empty"),
        ("tau-bench", "[]", "holds no record"),
        ("tau-bench", '{"messages": []}', "this looks like openai-chat, not like tau-bench"),
        ("tau-bench", '[{"task_id": 1}]', "is not a tau-bench file (it has task_id)"),
        ("tau-bench", '[{"task_id": 1, "trial": 0, "traj": []}]', "record 0: messages has no assistant message"),
        ("tau-bench", '[{"task_id": 1, "traj": []}]', "record 0: trial is missing"),
        ("tau-bench", '[{"task_id": 1, "traj": [', "is cut off after 0 records"),
        ("tau-bench", b"\x00\x01\x02", "is binary"),
        ("tau-bench", gzip.compress(b"[" * 5000, mtime=0)[:-9], "gzip stream is cut off"),
        ("openai-chat", "", "is empty"),
        ("openai-chat", '[{"task_id": 1, "traj": []}]', "this looks like tau-bench, not like openai-chat"),
        ("openai-chat", '{"messages": []}', ":1: messages has no assistant message among 0"),
        ("openai-chat", "nonsense", "is not a openai-chat file (it has nonsense)"),
    ],
)
def test_a_file_of_another_format_is_one_line(
    tmp_path: Path, format_name: str, content: str | bytes, message: str
) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(TraceError) as caught:
        list(import_trace(format_name, path))
    assert str(caught.value).startswith(str(path)) and message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_public_tau_bench_trajectories(public_traces: Path, tmp_path: Path) -> None:
    found = list(import_trace("tau-bench", public_traces / "tau_bench/gpt-4o-airline.json.gz"))
    (info,) = trace_info(found).tasks
    assert (info.trajectories, info.groups, info.groups_without_signal) == (200, 50, 24)
    assert info.reward_mean == pytest.approx(0.42)
    turns, prompt = info.quantities["turns"], info.quantities["prompt_tokens"]
    assert turns is not None and (turns.p50, turns.p90, turns.max) == (11, 20, 30)
    assert prompt is not None and prompt.p50 == 1565
    assert {one.prompt_tokens for one in found} == {-(-6155 // 4) + 3}
    path = tmp_path / "airline.jsonl.gz"
    write_trace(path, found)
    assert list(TraceReader(path, strict=True)) == found
