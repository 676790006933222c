"""Importers of requests and calls: LMCache, Mooncake, Azure, OpenTelemetry, the compact form, chats."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollart.domain.errors import InputError, TraceError
from rollart.workload.importers import ImportOptions, TraceImport, import_trace, mooncake
from rollart.workload.trace import TraceTrajectory
from tests.workload.turn_rows import turns

Read = Callable[..., list[TraceTrajectory]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes lines, packed, and imports them; `auto` must do the same."""

    def read_lines(format_name: str, *lines: Any, name: str = "log.jsonl.gz") -> list[TraceTrajectory]:
        path = tmp_path / name
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_bytes(gzip.compress("\n".join(texts).encode()))
        found = list(import_trace(format_name, path))
        assert list(import_trace("auto", path)) == found
        return found

    return read_lines


def test_lmcache_sorts_calls_and_keeps_common_prefixes(read: Read) -> None:
    start = "".join(f"{number:04d}" for number in range(64))
    other = start[:128] + "z" * 192

    def line(at: int, text: str, output: str, session: str = "s") -> dict[str, Any]:
        return {"timestamp": at, "input": text, "output": output, "session_id": session}

    first, second = read(
        "lmcache",
        line(1_000_000, start, "a" * 40),
        line(3_000_000, other, "c" * 8),
        line(2_000_000, start + "b" * 80, "b" * 12),
        line(9, "x", "y", "t"),
        name="miniswe.1.jsonl.gz",
    )
    assert (first.task, first.group, first.prompt_tokens) == ("lmcache-miniswe", "s", 64)
    assert turns(first) == [(0, None, 10, None), (20, 64, 3, None), (48, 32, 2, None)]
    assert (second.group, second.prompt_tokens, turns(second)) == ("t", 1, [(0, None, 1, None)])


def request(at: int, prompt: int, output: int, *blocks: int) -> dict[str, Any]:
    return {"timestamp": at, "input_length": prompt, "output_length": output, "hash_ids": list(blocks)}


def test_mooncake_requests_that_go_on_are_turns_of_one_conversation(read: Read) -> None:
    found = read(
        "mooncake",
        request(0, 1100, 50, 0, 1, 2),
        request(0, 700, 10, 0, 9),
        request(5, 1300, 60, 0, 1, 4),
        request(6, 900, 5, 0, 9, 10)["hash_ids"] and request(6, 690, 5, 0, 11),
        request(9, 1340, 7, 0, 1, 5),
        request(9, 100, 1, 77),
    )
    by_group = {one.group: one for one in found}
    assert len(found) == 4 and sum(len(one.turns) for one in found) == 6
    chat = by_group["conversation-0"]
    assert (chat.task, chat.prompt_tokens) == ("mooncake-log", 1100)
    # The third prompt is shorter than what the second call left behind: only the whole blocks survived.
    assert turns(chat) == [(0, None, 50, None), (150, None, 60, None), (316, 1024, 7, None)]
    assert chat.contexts() == [1100, 1300, 1340]
    assert turns(by_group["conversation-3"]) == [(0, None, 1, None)]
    assert chat.provenance["turns"] == "estimated" and chat.provenance["output_tokens"] == "counted"


def test_mooncake_closes_what_was_not_continued(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mooncake, "OPEN_CONVERSATIONS", 2)
    found = read("mooncake", *(request(at, 600, 1, at) for at in range(5)), request(9, 700, 1, 0))
    assert [one.group for one in found] == [f"conversation-{number}" for number in range(6)]


def test_azure_requests_stand_alone(read: Read) -> None:
    header = "TIMESTAMP,ContextTokens,GeneratedTokens"
    rows = ("2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:50.9951690,396,109")
    first, second = read("azure", header, *rows, name="AzureLLMInferenceTrace_conv.csv.gz")
    assert (first.task, first.prompt_tokens, turns(first)) == ("azure-conv", 374, [(0, None, 44, None)])
    assert (second.group, second.prompt_tokens) == ("request-1", 396)
    with pytest.raises(TraceError, match=r":3: GeneratedTokens is '-1'; must be an integer >= 0"):
        read("azure", header, rows[0], "x,1,-1", name="x.csv.gz")
    with pytest.raises(TraceError, match=r":2: has 2 cells; must have 3, as the header"):
        read("azure", header, "x,1", name="x.csv.gz")


def otlp_span(start: float, end: float, operation: str, **attributes: Any) -> dict[str, Any]:
    named = {"gen_ai.operation.name": operation} | {key.replace("__", "."): value for key, value in attributes.items()}
    listed = [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in named.items()
    ]
    times = {"startTimeUnixNano": str(int(start * 1e9)), "endTimeUnixNano": str(int(end * 1e9))}
    return {"traceId": "t", "spanId": "s", "name": operation, "attributes": listed, "status": {}} | times


def chat_span(start: float, end: float, prompt: int, output: int, conversation: str = "c", **more: Any) -> Any:
    usage = {"gen_ai__usage__input_tokens": prompt, "gen_ai__usage__output_tokens": output}
    return otlp_span(start, end, "chat", gen_ai__conversation__id=conversation, **usage, **more)


def test_otel_spans_of_a_conversation_in_the_order_of_their_start(read: Read) -> None:
    spans = [
        chat_span(20, 21, 150, 30),
        chat_span(10, 12, 100, 20),
        otlp_span(12, 15, "execute_tool", gen_ai__conversation__id="c"),
        otlp_span(13, 17, "execute_tool", gen_ai__conversation__id="c"),
        chat_span(17, 18, 100, 20, error__type="timeout"),
        chat_span(13, 14, 40, 4, gen_ai__agent__name="helper"),
        chat_span(1, 2, 10, 1, "d"),
        chat_span(5, 6, 30, 1, "d"),
        otlp_span(0, 99, "invoke_agent"),
    ]
    export = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}
    main, helper, other = read("otel", export, name="agents.json.gz")
    assert (main.task, main.group, main.prompt_tokens) == ("otel-agents", "c", 100)
    assert turns(main) == [(0, None, 20, 5.0), (30, None, 30, None)]
    assert (helper.task, turns(helper)) == ("otel-agents/helper", [(0, None, 4, 4.0)])
    assert turns(other) == [(0, None, 1, 3.0), (19, None, 1, None)]


def test_otel_lines_of_the_console_exporter(read: Read) -> None:
    def line(start: str, end: str, prompt: int) -> dict[str, Any]:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": prompt}
        return {
            "name": "chat",
            "context": {"trace_id": "0x1", "span_id": "0x2"},
            "start_time": f"2026-01-01T00:00:{start}Z",
            "end_time": f"2026-01-01T00:00:{end}Z",
            "status": {"status_code": "UNSET"},
            "attributes": attributes | {"gen_ai.usage.output_tokens": 5},
        }

    (found,) = read("otel", line("01", "02", 50), line("03.5", "04", 60))
    assert (found.group, turns(found)) == ("0x1", [(0, None, 5, 1.5), (5, None, 5, None)])
    with pytest.raises(TraceError, match="span 'chat' ends 7 s before it starts"):
        read("otel", line("09", "02", 50))
    with pytest.raises(TraceError, match=r"gen_ai.usage.input_tokens is -4; must be an integer >= 0"):
        read("otel", line("01", "02", -4))


def test_compact_lines(read: Read) -> None:
    line = {
        "src": "x/y",
        "file": "f",
        "id": "0",
        "group": "g",
        "reward": 0.5,
        "tok": "provider",
        "setup_s": 2.0,
        "agent_setup_s": 1.0,
        "verify_s": 4.0,
        "turns": [
            {"new_in": 100, "prompt": 100, "out": 20, "env_s": 1.5, "cached": 0, "tools": [{"n": "run", "s": 1.5}]},
            {"new_in": 5, "prompt": 130, "out": 30},
        ],
    }
    bare = {"src": "x/y", "id": "9", "tok": "chars4", "turns": [{"new_in": 8, "out": 3}, {"new_in": 4, "out": 0}]}
    found, short = read("compact", line, bare)
    assert (found.task, found.group, found.reset_s, found.reward_s, found.reward) == ("x/y", "f#g", 3.0, 4.0, 0.5)
    assert turns(found) == [(0, None, 20, 1.5), (10, None, 30, None)] and found.provenance["output_tokens"] == "counted"
    assert (short.group, short.prompt_tokens, turns(short)) == ("9", 8, [(0, None, 3, None), (4, None, 0, None)])


@pytest.mark.parametrize(
    ("tokens", "prompt", "output"),
    [("chars4", 3 + 3, 2 + 3), ("words", 4 + 3, 2 + 3), ("bytes", 11 + 3, 7 + 3), ("bytes4", 3 + 3, 2 + 3)],
)
def test_texts_are_counted_by_the_named_estimate(tmp_path: Path, tokens: str, prompt: int, output: int) -> None:
    path = tmp_path / "chat.jsonl"
    chat = [{"role": "user", "content": "one two thr"}, {"role": "assistant", "content": "größe"}]
    path.write_text(json.dumps({"messages": chat}))
    (found,) = TraceImport([path], ImportOptions(format="openai-chat", tokens=tokens, task="mine"))
    assert (found.task, found.prompt_tokens, found.turns[0].output_tokens) == ("mine", prompt, output)
    assert found.provenance["output_tokens"] == "estimated"


def test_texts_are_counted_by_a_models_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"one": 0, "two": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    path = tmp_path / "chat.jsonl"
    chat = [{"role": "user", "content": "one two two, one"}, {"role": "assistant", "content": "größe"}]
    path.write_text(json.dumps({"messages": chat}))
    for named in (tmp_path, tmp_path / "tokenizer.json"):
        (found,) = TraceImport([path], ImportOptions(format="openai-chat", tokens=str(named)))
        assert (found.prompt_tokens, found.turns[0].output_tokens) == (5 + 3, 1 + 3)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match=r"other.json: is no tokenizer \(.*\); must be a tokenizer.json"):
        TraceImport([path], ImportOptions(format="openai-chat", tokens=str(tmp_path / "other.json")))


def test_tools_of_a_chat_are_part_of_its_prompt(read: Read) -> None:
    chat = {"messages": [{"role": "user", "content": "abcd"}, {"role": "assistant", "content": "x"}]}
    bare, armed = read("openai-chat", chat, chat | {"tools": [{"type": "function"}]})
    assert (bare.prompt_tokens, armed.prompt_tokens) == (4, 4 + 6) and bare.group != armed.group
