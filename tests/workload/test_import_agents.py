"""Importers of agents' own logs: SWE-agent, mini-swe-agent, OpenHands, Claude Code, Codex."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollart.domain.errors import TraceError
from rollart.workload.importers import import_trace
from rollart.workload.trace import TraceTrajectory
from tests.workload.turn_rows import turns

Read = Callable[..., list[TraceTrajectory]]
SYSTEM = {"role": "system", "content": "s" * 40}
USER = {"role": "user", "content": "u" * 20}
TOOL = {"role": "tool", "content": "t" * 21}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes one document, or lines, and imports them."""

    def read_one(format_name: str, content: Any, name: str = "log.json", lines: bool = False) -> list[TraceTrajectory]:
        path = tmp_path / name
        text = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
        path.write_text(text, encoding="utf-8")
        found = list(import_trace(format_name, path))
        assert list(import_trace("auto", path)) == found
        return found

    return read_one


def swe_agent_call(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "agent": "main", "message_type": "action"}


def test_swe_agent_version_1_has_step_times(read: Read) -> None:
    document = {
        "trajectory": [
            {"action": "ls", "observation": "x", "response": "r", "execution_time": 0.5, "state": {}},
            {"action": "submit", "observation": "", "response": "r", "execution_time": 1.25, "state": {}},
        ],
        "history": [SYSTEM, USER, swe_agent_call("a" * 8), TOOL, swe_agent_call("b" * 4)],
        "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 0, "api_calls": 2}},
        "replay_config": "{}",
    }
    (found,) = read("swe-agent", document, "astropy-1.traj")
    assert (found.task, found.group, found.prompt_tokens, found.outcome) == ("swe-agent", "astropy-1", 13 + 8, "ok")
    assert turns(found) == [(0, None, 5, 0.5), (9, None, 4, 1.25)]
    assert found.provenance["env_s"] == "measured" and found.provenance["output_tokens"] == "estimated"


def test_swe_agent_version_0_counts_demonstrations_as_prompt_and_meets_the_sums(read: Read) -> None:
    demo = {"role": "user", "content": "d" * 400, "is_demo": True, "agent": "primary"}
    document = {
        "environment": "swe_main",
        "trajectory": [{"action": "ls", "observation": "x", "response": "r", "state": "{}"}] * 2,
        "history": [SYSTEM, demo, USER, swe_agent_call("a" * 8), USER, swe_agent_call("b" * 8)],
        "info": {
            "exit_status": "submitted (exit_cost)",
            "model_stats": {"tokens_sent": 500, "tokens_received": 20, "api_calls": 2},
        },
    }
    (found,) = read("swe-agent", document, "x.traj")
    assert found.outcome == "truncated"
    assert [turn.output_tokens for turn in found.turns] == [10, 10]
    # Estimates of 124 and 8 tokens, scaled by (500 - 10) / (2 * 124 + 8).
    assert (found.prompt_tokens, found.turns[1].prompt_tokens) == (237, 16)
    assert sum(found.contexts()) == 500
    assert found.turns[0].env_s is None and "env_s" not in found.provenance


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(None, "ok"), ("submitted", "ok"), ("exit_context", "truncated"), ("exit_error", "failed")],
)
def test_swe_agent_outcomes(read: Read, status: str | None, outcome: str) -> None:
    document = {"trajectory": [], "history": [USER, swe_agent_call("a")], "info": {"exit_status": status}}
    assert read("swe-agent", document, "x.traj")[0].outcome == outcome


def test_mini_swe_agent_version_1_is_a_list_of_messages(read: Read) -> None:
    chat = [SYSTEM, USER, {"role": "assistant", "content": "a" * 8}, USER, {"role": "assistant", "content": "b"}, USER]
    (found,) = read("mini-swe-agent", chat, "local.traj.json")
    assert (found.group, found.prompt_tokens) == ("local", 21)
    assert turns(found) == [(0, None, 5, None), (8, None, 4, None)]
    (same,) = read("mini-swe-agent", {"info": {"exit_status": "LimitsExceeded"}, "messages": chat}, "local.traj.json")
    assert (same.turns, same.outcome) == (found.turns, "truncated")


def test_mini_swe_agent_version_2_has_counts_and_time_stamps(read: Read) -> None:
    def answer(prompt: int, output: int, at: float) -> dict[str, Any]:
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": 64}}
        extra = {"actions": [], "cost": 0.01, "timestamp": at, "response": {"usage": usage}}
        return {"role": "assistant", "content": "x", "extra": extra}

    def result(at: float) -> dict[str, Any]:
        return {"role": "user", "content": "y", "extra": {"timestamp": at, "returncode": 0}}

    messages = [SYSTEM, USER, answer(100, 20, 1000.0), result(1002.5), answer(150, 30, 1010.0), result(1009.5)]
    document = {"info": {"exit_status": "Submitted"}, "messages": messages, "instance_id": "django-7"}
    (found,) = read("mini-swe-agent", document, "run.traj.json")
    assert (found.group, found.prompt_tokens) == ("django-7", 100)
    # The second result is 0.5 s before its call: clocks that disagree.
    assert turns(found) == [(0, None, 20, 2.5), (30, None, 30, 0.0)]
    assert found.provenance["output_tokens"] == "counted"
    messages[3] = result(900.0)
    with pytest.raises(TraceError, match="time runs backwards: the step of turn 0 ends 100 s before it starts"):
        read("mini-swe-agent", document, "run.traj.json")


def openhands_event(kind: str, answer: str, at: str) -> dict[str, Any]:
    event = {"timestamp": f"2025-04-30T16:00:{at}", "source": "agent", kind: "run"}
    return event | {"tool_call_metadata": {"model_response": {"id": answer}, "total_calls_in_response": 2}}


def test_openhands_takes_the_providers_counts_and_parallel_tools_once(read: Read) -> None:
    line = {
        "instance_id": "pony-1",
        "test_result": {"git_patch": "", "report": {"resolved": True}},
        "history": [
            {"timestamp": "2025-04-30T16:00:00", "source": "agent", "action": "system"},
            openhands_event("action", "a", "01.0"),
            openhands_event("action", "a", "01.5"),
            openhands_event("observation", "a", "03.0"),
            openhands_event("observation", "a", "04.25"),
            openhands_event("action", "b", "06.0"),
        ],
        "metrics": {
            "token_usages": [
                {"prompt_tokens": 900, "completion_tokens": 50, "cache_read_tokens": 0, "response_id": "a"},
                {"prompt_tokens": 400, "completion_tokens": 60, "cache_read_tokens": 300, "response_id": "b"},
            ],
            "response_latencies": [{"latency": 1.0, "response_id": name} for name in ("a", "retried", "b")],
        },
        "error": "RuntimeError: Agent reached maximum iteration in headless mode.",
    }
    (found,) = read("openhands", [line], "output.jsonl", lines=True)
    assert (found.group, found.prompt_tokens, found.reward, found.outcome) == ("pony-1", 900, 1.0, "truncated")
    # The prompt shrank from 950 to 400, of which 300 were in the cache: a condensed history.
    assert turns(found) == [(0, None, 50, 3.25), (100, 300, 60, None)]


def test_openhands_version_1_ties_observations_to_actions_by_their_call(read: Read) -> None:
    def event(kind: str, at: str, **keys: Any) -> dict[str, Any]:
        return {"kind": kind, "id": at, "timestamp": f"2026-02-03T10:00:{at}", "source": "agent", **keys}

    def action(at: str, answer: str, call: str) -> dict[str, Any]:
        about = {"action": {"kind": "TerminalAction", "command": "ls"}, "tool_name": "terminal", "thought": []}
        return event("ActionEvent", at, llm_response_id=answer, tool_call_id=call, **about)

    def usage(answer: str, prompt: int, output: int) -> dict[str, Any]:
        return {"prompt_tokens": prompt, "completion_tokens": output, "cache_read_tokens": 0, "response_id": answer}

    seen = {"observation": {"kind": "TerminalObservation"}, "tool_name": "terminal"}
    line = {
        "instance_id": "django-1",
        "attempt": 1,
        "test_result": {"git_patch": ""},
        "history": [
            event("SystemPromptEvent", "00.0", system_prompt={"text": "x"}, tools=[]),
            action("01.0", "a", "t1"),
            action("01.0", "a", "t2"),
            event("ObservationEvent", "02.5", action_id="01.0", tool_call_id="t2", **seen),
            event("AgentErrorEvent", "03.0", tool_call_id="t1", tool_name="terminal", error="no such tool"),
            event("Condensation", "04.0", llm_response_id="c", forgotten_event_ids=[]),
            event("MessageEvent", "05.0", llm_response_id="b", llm_message={"role": "assistant", "content": []}),
        ],
        "metrics": {"token_usages": [usage("a", 900, 50), usage("b", 1000, 60), usage("c", 5000, 400)]},
        "error": None,
    }
    (found,) = read("openhands", [line], "output.jsonl", lines=True)
    assert (found.group, found.prompt_tokens, found.outcome) == ("django-1", 900, "ok")
    assert turns(found) == [(0, None, 50, 2.0), (50, None, 60, None)]


def claude_line(kind: str, at: str, **more: Any) -> dict[str, Any]:
    line = {"type": kind, "sessionId": "s1", "uuid": at, "timestamp": f"2026-06-01T05:{at}Z", "isSidechain": False}
    return line | more


def claude_answer(at: str, name: str, new: int, read_tokens: int, output: int, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": new,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": read_tokens,
        "output_tokens": output,
    }
    message = {"id": name, "role": "assistant", "model": "m", "content": [{"type": "text", "text": ""}], "usage": usage}
    return claude_line("assistant", at, message=message, **more)


def claude_result(at: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": "t"}]
    return claude_line("user", at, message={"role": "user", "content": content}, **more)


def test_claude_code_joins_the_lines_of_an_answer_and_sets_sub_agents_apart(read: Read) -> None:
    side: dict[str, Any] = {"isSidechain": True}
    lines = [
        {"type": "mode", "mode": "normal", "sessionId": "s1"},
        claude_line("user", "40:00.0", message={"role": "user", "content": "do it"}),
        claude_answer("40:10.0", "m1", 10, 0, 40),
        claude_answer("40:11.0", "m1", 10, 0, 50),
        claude_line("user", "40:12.0", message={"role": "user", "content": "sub"}, parentUuid=None, **side),
        claude_answer("40:13.0", "m2", 5, 0, 7, parentUuid="40:12.0", **side),
        claude_result("40:13.5", parentUuid="40:13.0", **side),
        claude_answer("40:14.0", "m3", 5, 107, 9, parentUuid="40:13.5", **side),
        claude_result("40:15.0"),
        claude_result("40:20.5"),
        claude_line("assistant", "40:21.0", isApiErrorMessage=True, message={"role": "assistant", "usage": {}}),
        claude_answer("40:30.0", "m4", 60, 110, 5),
        claude_line("user", "50:00.0", message={"role": "user", "content": "thanks"}),
    ]
    main, sub = read("claude-code", lines, "s1.jsonl", lines=True)
    assert (main.task, main.group, main.prompt_tokens) == ("claude-code", "s1", 110)
    assert turns(main) == [(0, None, 50, 9.5), (110, None, 5, None)]
    assert (sub.task, sub.prompt_tokens) == ("claude-code/sub-agent", 105)
    assert turns(sub) == [(0, None, 7, 0.5), (100, None, 9, None)]


def codex_line(at: str, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-03-21T10:06:{at}Z", "type": kind, "payload": payload}


def codex_count(at: str, total: int, prompt: int, output: int) -> dict[str, Any]:
    last = {"input_tokens": prompt, "cached_input_tokens": 0, "output_tokens": output, "reasoning_output_tokens": 3}
    info = {"total_token_usage": {"input_tokens": total, "output_tokens": 0}, "last_token_usage": last}
    return codex_line(at, "event_msg", type="token_count", info=info)


def test_codex_counts_a_call_for_each_new_total(read: Read) -> None:
    lines = [
        codex_line("00.0", "session_meta", id="c1", cwd="/"),
        codex_line("01.0", "event_msg", type="token_count", info=None),
        codex_line("02.0", "response_item", type="function_call", call_id="a"),
        codex_count("02.5", 100, 100, 20),
        codex_line("02.4", "response_item", type="function_call_output", call_id="a", output="x"),
        codex_line("04.0", "response_item", type="function_call_output", call_id="b", output="x"),
        codex_count("05.0", 100, 100, 20),
        codex_count("09.0", 260, 160, 30),
    ]
    (found,) = read("codex", lines, "rollout.jsonl", lines=True)
    assert (found.task, found.group, found.prompt_tokens) == ("codex", "c1", 100)
    assert turns(found) == [(0, None, 20, 1.5), (40, None, 30, None)]


def test_a_session_without_any_answer_is_an_error(read: Read) -> None:
    with pytest.raises(TraceError, match="holds no call of a model"):
        read("codex", [codex_line("00.0", "session_meta", id="c1")], "rollout.jsonl", lines=True)
