"""Importers of what RL and evaluation frameworks dump: verifiers, ROLL, AReaL, verl, Harbor, NeMo Gym, Inspect."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollart.domain.errors import TraceError
from rollart.workload.importers import ImportOptions, TraceImport, import_trace
from rollart.workload.trace import TraceTrajectory
from tests.workload.turn_rows import turns

Read = Callable[..., list[TraceTrajectory]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes objects, one a line, and imports them; `auto` must do the same."""

    def read_lines(format_name: str, *objects: Any, name: str = "rollouts.jsonl") -> list[TraceTrajectory]:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
        found = list(import_trace(format_name, path))
        assert list(import_trace("auto", path)) == found
        return found

    return read_lines


def node(parent: int | None, tokens: int, sampled: int = 0) -> dict[str, Any]:
    mask = [False] * (tokens - sampled) + [True] * sampled
    ids = list(range(tokens))
    return {"parent": parent, "message": {}, "sampled": sampled > 0, "timestamp": 1.0, "token_ids": ids, "mask": mask}


def call(at: int, prompt: int, output: int, start: float, end: float) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "cached_input_tokens": 0}
    return {"node": at, "usage": usage, "time": {"start": start, "end": end}, "finish_reason": "stop"}


def verifiers_trace(**more: Any) -> dict[str, Any]:
    trace = {
        "version": 1,
        "id": "t1",
        "task": {"type": "Wiki", "data": {"idx": 4}, "key": "wiki-4", "hash": "x"},
        "agent": {"name": "solver", "config": {}},
        "nodes": [node(None, 30), node(0, 12, 10), node(1, 5), node(2, 22, 20), node(0, 6, 4)],
        "calls": [
            call(1, 32, 10, 100.0, 102.0),
            {"node": None, "error": {"type": "Timeout", "message": ""}, "time": {"start": 103.0, "end": 103.5}},
            call(4, 32, 4, 103.0, 104.0),
            call(3, 49, 20, 105.5, 107.0),
        ],
        "rewards": {"correct": {"score": 1.0, "weight": 0.5}, "style": {"score": 0.2, "weight": 1.0}, "late": None},
        "timing": {
            "start": 90.0,
            "boot": {"start": 90.0, "end": 92.0},
            "setup": {"start": 92.0, "end": 92.5},
            "agent": {"start": 93.0, "end": 108.0, "model": {"duration": 5.5}, "harness": {"duration": 9.5}},
            "finalize": {"start": 0.0, "end": 0.0},
            "scoring": {"start": 108.0, "end": 109.25},
        },
        "ok": True,
        "stop_condition": "max_turns",
    }
    return trace | more


def test_verifiers_episode_has_a_trajectory_for_each_branch(read: Read) -> None:
    trace = verifiers_trace(nodes=verifiers_trace()["nodes"][:4])
    episode = {"id": "e", "env": {"id": "wiki", "name": "wiki-race"}, "task": trace["task"], "group": {"id": "g9"}}
    (found,) = read("verifiers", episode | {"ok": True, "errors": [], "traces": [trace]})
    assert (found.task, found.group, found.prompt_tokens) == ("wiki-race", "g9", 32)
    assert turns(found) == [(0, None, 10, 3.5), (7, None, 20, None)]
    assert (found.reset_s, found.reward_s, found.reward, found.outcome) == (2.5, 1.25, 0.7, "truncated")
    assert found.provenance["output_tokens"] == "counted"
    # A second leaf: a compaction that was tried, or a sub-agent.
    main, branch = read("verifiers", verifiers_trace(id="t2"))
    assert (main.task, main.group, branch.task) == ("Wiki/branch", "wiki-4", "Wiki")
    assert [len(main.turns), len(branch.turns)] == [2, 1] and main.reward is None and branch.reward == 0.7


def test_verifiers_without_usage_counts_token_ids(read: Read) -> None:
    nodes = [node(None, 30), node(0, 12, 10), node(1, 5), node(2, 22, 20)]
    (found,) = read("verifiers", verifiers_trace(calls=[], nodes=nodes, stop_condition=None, rewards={}))
    assert (found.prompt_tokens, found.outcome, found.reward) == (32, "ok", None)
    assert turns(found) == [(0, None, 10, None), (7, None, 20, None)]
    with pytest.raises(TraceError, match=r"nodes\[1\] has neither usage nor token_ids"):
        read("verifiers", verifiers_trace(calls=[], nodes=[node(None, 3), {"parent": 0, "sampled": True}]))
    with pytest.raises(TraceError, match=r"nodes\[0\].parent is 0; must be an earlier node"):
        read("verifiers", verifiers_trace(nodes=[node(0, 3, 1)]))


def roll_row(**lengths: Any) -> dict[str, Any]:
    data = {
        "trajectory_id": f"FrozenLake_1_2_3_4_5_6_{len(lengths)}",
        "env_info": {"tag": "FrozenLake", "group_id": 3, "episode_id": 5, "seed": 6},
        "timing_info": {"traj_time_env_total": 30.0, "traj_time_reset": 1.5, "traj_time_step": 0.25},
        "length_info": {
            "num_actions": 3,
            "truncated": False,
            "response_length": 100.0,
            "step_prompt_length": 200.0,
            "step_prompt_length_min": 100.0,
            "step_prompt_length_max": 300.0,
            "step_response_length": 33.33,
        }
        | lengths,
        "reward_info": {"episode_reward": 0.5, "step_rewards": [0, 0, 0.5]},
        "failure_info": {"failure_mode": "", "has_failure": False},
    }
    return {"trajectory_data": json.dumps(data), "messages": "[]", "tools": "null", "exp_name": "x"}


def test_roll_means_become_even_turns(read: Read) -> None:
    first, second = read("roll", roll_row(), roll_row(truncated=True, num_actions=1), {"trajectory_data": None})
    assert (first.task, first.group, first.member, second.member) == ("FrozenLake", "3-5-6", 0, 1)
    assert turns(first) == [(0, None, 33, 0.25), (67, None, 34, 0.25), (66, None, 33, 0.25)]
    assert (first.reset_s, first.reward, first.outcome, second.outcome) == (1.5, 0.5, "ok", "truncated")
    assert first.provenance["env_s"] == first.provenance["output_tokens"] == "estimated"
    (bare,) = read("roll", json.loads(roll_row()["trajectory_data"]) and roll_row(step_prompt_length_max=None))
    assert bare.contexts() == [100, 150, 200]
    with pytest.raises(TraceError, match=r"length_info.step_response_length is -1; must be a finite number >= 0"):
        read("roll", {"trajectory_data": {"length_info": {"step_response_length": -1, "step_prompt_length": 1}}})


def areal_line(task: str, sample: int, seqlen: int) -> dict[str, Any]:
    return {
        "task_id": task,
        "sample_idx": sample,
        "seqlen": seqlen,
        "prompt_len": 100,
        "head_version": 1,
        "tail_version": 2,
        "reward": 1.0,
        "prompt": "p",
        "completion": "c",
    }


def test_areal_dump_takes_the_times_of_its_sessions(read: Read, tmp_path: Path) -> None:
    plain = read("areal", areal_line("7", 0, 150), areal_line("7", 1, 180), name="7.jsonl")
    assert [turns(one) for one in plain] == [[(0, None, 50, None)], [(0, None, 80, None)]]
    sessions = [
        {"task_id": 7, "session_id": 1, "status": "accepted", "submit_ts": 1.0, "reward_s": 0.5, "toolcall_s": 3.0},
        {"task_id": 7, "session_id": 2, "status": "rejected", "submit_ts": 1.0, "reward_s": 9.0},
        {"task_id": 7, "session_id": 3, "status": "accepted", "submit_ts": 1.0, "reward_calc_s": 0.75},
    ]
    timed = tmp_path / "sessions.jsonl"
    timed.write_text("\n".join(map(json.dumps, sessions)))
    both = list(TraceImport([timed, tmp_path / "7.jsonl"], ImportOptions(format="areal", strict=True)))
    assert [(one.group, one.member, one.reward_s, one.turns[0].env_s) for one in both] == [
        ("7", 0, 0.5, 3.0),
        ("7", 1, 0.75, None),
    ]
    with pytest.raises(TraceError, match=r"sessions.jsonl: has the times of sessions but no tokens"):
        list(import_trace("areal", timed))
    with pytest.raises(TraceError, match="seqlen is 50; must be >= 100"):
        read("areal", areal_line("7", 0, 50), name="7.jsonl")


def test_verl_samples_of_one_prompt_and_step_are_a_group(read: Read) -> None:
    def line(prompt: str, output: str, step: int) -> dict[str, Any]:
        return {"input": prompt, "output": output, "gts": "4", "score": 0.5, "step": step, "acc": True}

    tools = "a" * 40 + "<|im_start|>tool\n" + "t" * 20 + "<|im_start|>assistant\n" + "b" * 8
    found = read("verl", line("p" * 40, "x" * 9, 1), line("p" * 40, tools, 1), line("p" * 40, "y", 2), name="1.jsonl")
    assert [one.member for one in found] == [0, 1, 0] and found[0].group == found[1].group != found[2].group
    assert (found[0].prompt_tokens, turns(found[0]), found[0].reward) == (10, [(0, None, 3, None)], 0.5)
    assert turns(found[1]) == [(0, None, 10, None), (5, None, 2, None)]


def test_skyrl_samples_of_one_prompt_are_a_group(read: Read) -> None:
    def line(score: Any, stop: str) -> dict[str, Any]:
        texts = {"input_prompt": "p" * 40, "output_response": "x" * 9}
        return texts | {"score": score, "stop_reason": stop, "env_class": "gsm8k", "data_source": "d"}

    first, second = read("skyrl", line([0.0, 0.5, 0.25], "stop"), line(1.0, "length"))
    assert (first.task, first.prompt_tokens, second.member) == ("gsm8k", 10, 1) and first.group == second.group
    assert (first.reward, second.reward, first.outcome, second.outcome) == (0.75, 1.0, "ok", "truncated")
    assert turns(first) == [(0, None, 3, None)]


def phase(start: str, end: str) -> dict[str, str]:
    return {"started_at": f"2026-02-26T06:{start}Z", "finished_at": f"2026-02-26T06:{end}Z"}


def trial(**more: Any) -> dict[str, Any]:
    result = {
        "id": "c2",
        "task_name": "fix-git",
        "trial_name": "fix-git__1",
        "source": "terminal-bench",
        "environment_setup": phase("00:00.5", "00:10.5"),
        "agent_setup": phase("00:10.5", "00:12.0"),
        "agent_execution": phase("00:12.0", "01:12.0"),
        "verifier": phase("01:12.0", "01:20.0"),
        "agent_result": {
            "n_input_tokens": 300,
            "n_cache_tokens": 0,
            "n_output_tokens": 40,
            "metadata": {"n_episodes": 1, "api_request_times_msec": [10_000.0]},
        },
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
    }
    return result | more


def test_harbor_trial_of_one_call(read: Read) -> None:
    (found,) = read("harbor", trial(), name="result.json")
    assert (found.task, found.group, found.reward, found.outcome) == ("terminal-bench", "fix-git", 1.0, "ok")
    assert (found.reset_s, found.reward_s, found.prompt_tokens) == (11.5, 8.0, 300)
    assert turns(found) == [(0, None, 40, 50.0)] and found.provenance["env_s"] == "estimated"
    (failed,) = read("harbor", trial(exception_info={"type": "AgentTimeoutError"}), name="result.json")
    assert failed.outcome == "failed"


def test_harbor_trial_of_several_calls_needs_its_trajectory(read: Read, tmp_path: Path) -> None:
    sums = {"n_input_tokens": 300, "n_output_tokens": 40, "metadata": {"n_episodes": 2}}
    with pytest.raises(TraceError, match="has sums over 2 calls and no agent"):
        read("harbor", trial(agent_result=sums), name="result.json")
    steps = [
        {"step_id": 1, "source": "user", "message": "m"},
        {"step_id": 2, "source": "agent", "metrics": {"prompt_tokens": 100, "completion_tokens": 10}},
        {"step_id": 3, "source": "agent", "metrics": {"prompt_tokens": 200, "completion_tokens": 30}},
    ]
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/trajectory.json").write_text(json.dumps({"schema_version": "ATIF-v1.4", "steps": steps}))
    (found,) = read("harbor", trial(agent_result=sums), name="result.json")
    assert turns(found) == [(0, None, 10, None), (90, None, 30, None)] and found.provenance["turns"] == "counted"


def item(kind: str, text: str) -> dict[str, Any]:
    if kind == "call":
        return {"type": "function_call", "name": "f", "arguments": text, "call_id": "c"}
    if kind == "result":
        return {"type": "function_call_output", "output": text, "call_id": "c"}
    return {"type": "message", "role": kind, "content": [{"type": "output_text", "text": text}]}


def gym_row(output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    request = {"input": [item("user", "u" * 40), item("assistant", "a" * 12)], "tools": [], "instructions": None}
    row = {"responses_create_params": request, "response": {"output": output, "usage": None}, "reward": 1.0}
    return row | {"_ng_task_index": 4, "_ng_rollout_index": 0, "agent_ref": {"name": "simple"}} | more


def test_nemo_gym_parallel_calls_are_one_turn(read: Read) -> None:
    output = [item("call", "x" * 7), item("call", "x" * 7), item("result", "r" * 8), item("assistant", "d" * 4)]
    first, second = read("nemo-gym", gym_row(output), gym_row([item("assistant", "dd")], _ng_rollout_index=1))
    assert (first.task, first.group, first.member, second.member) == ("simple", "4", 0, 1)
    assert first.prompt_tokens == (10 + 3) + (3 + 3)
    assert turns(first) == [(0, None, 10, None), (5, None, 4, None)]


def test_nemo_gym_uses_the_counts_of_one_call_and_the_sums_of_several(read: Read) -> None:
    usage = {"input_tokens": 500, "output_tokens": 60}
    one = gym_row([item("assistant", "d" * 40)], response={"output": [item("assistant", "d")], "usage": usage})
    output = [item("call", "x" * 159), item("result", "r" * 120), item("assistant", "d" * 148)]
    sums = {"output": output, "usage": {"input_tokens": 200, "output_tokens": 100}}
    counted, scaled = read("nemo-gym", one, gym_row([], response=sums, instance_id="i", metadata=trial()))
    assert (counted.prompt_tokens, turns(counted)) == (500, [(0, None, 60, None)])
    assert counted.provenance["output_tokens"] == "counted" and scaled.provenance["output_tokens"] == "estimated"
    # Whole tokens: one off.
    assert sum(scaled.contexts()) == 201 and sum(turn.output_tokens for turn in scaled.turns) == 100
    assert (scaled.group, scaled.reset_s, [turn.env_s for turn in scaled.turns]) == ("i", 11.5, [25.0, 25.0])


def model_event(start: str, end: str | None, prompt: int, output: int, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": prompt, "output_tokens": output, "total_tokens": prompt + output}
    event = {"event": "model", "timestamp": stamp(start), "output": {"model": "m", "usage": usage, "time": 1.0}}
    return event | ({"completed": stamp(end)} if end else {}) | more


def stamp(seconds: str) -> str:
    return f"2025-05-12T20:27:{seconds}-04:00"


def inspect_sample(epoch: int, score: Any, **more: Any) -> dict[str, Any]:
    events = [
        {"event": "span_begin", "timestamp": stamp("00.0"), "type": "init", "id": "i"},
        {"event": "span_end", "timestamp": stamp("01.5"), "id": "i"},
        model_event("02.0", "03.0", 100, 20),
        {"event": "tool", "timestamp": stamp("03.0"), "completed": stamp("07.0"), "function": "bash"},
        model_event("07.25", "08.0", 150, 30),
        model_event("08.0", "08.5", 50, 5, role="grader"),
        {"event": "span_begin", "timestamp": stamp("09.0"), "type": "scorer", "id": "s"},
        model_event("09.1", "09.4", 50, 5),
        {"event": "span_end", "timestamp": stamp("09.5"), "id": "s"},
    ]
    return {"id": 1, "epoch": epoch, "input": "x", "events": events, "scores": {"match": {"value": score}}} | more


def inspect_log(*samples: dict[str, Any]) -> dict[str, Any]:
    header = {"version": 2, "status": "success", "eval": {"eval_id": "e", "task": "browser", "task_id": "x"}}
    return header | {"plan": {"steps": [{"samples": [1]}]}, "samples": list(samples), "reductions": [{"samples": []}]}


def test_inspect_json_log(read: Read) -> None:
    log = inspect_log(inspect_sample(1, "C"), inspect_sample(2, {"a": 0, "b": 0.5}, limit={"type": "token"}))
    first, second = read("inspect", log, name="log.json")
    assert (first.task, first.group, first.member, first.prompt_tokens) == ("browser", "1", 0, 100)
    assert turns(first) == [(0, None, 20, 4.25), (30, None, 30, None)]
    assert (first.reset_s, first.reward_s, first.reward, first.outcome) == (1.5, 0.5, 1.0, "ok")
    assert (second.member, second.reward, second.outcome) == (1, 0.25, "truncated")


def test_inspect_log_of_2024_in_an_archive(tmp_path: Path) -> None:
    events = [
        {"event": "step", "action": "begin", "type": "solver", "timestamp": stamp("00.0")},
        model_event("01.0", None, 66, 2),
        model_event("02.0", None, 80, 3),
        {"event": "step", "action": "begin", "type": "scorer", "timestamp": stamp("03.0")},
        {"event": "step", "action": "end", "type": "scorer", "timestamp": stamp("03.5")},
    ]
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "eval": {"task": "popularity"}}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(inspect_sample(1, "I", events=events)))
        archive.writestr("samples/2_epoch_1.json", "{broken")
        archive.writestr("summaries.json", "[]")
    job = TraceImport([path], ImportOptions(format="auto"))
    (found,) = list(job)
    assert (found.task, turns(found)) == ("popularity", [(0, None, 2, None), (12, None, 3, None)])
    assert (found.reward, found.reward_s, found.reset_s) == (0.0, 0.5, None)
    assert job.bad_records == 1 and "log.eval: samples/2_epoch_1.json: is not JSON" in job.errors[0]
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TraceError, match="zip archive is damaged or cut off"):
        list(import_trace("inspect", path))
