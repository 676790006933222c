"""verifiers' traces (version 1), as `vf-eval` and prime-rl write them: `traces.jsonl`.

A line is an Episode with the traces of all its agents, or a bare Trace. Every branch of a trace's graph of
messages, root to leaf, is a trajectory: a branch that leaves the graph early is a sub-agent, a compaction or an
attempt that was given up. A call without a node, or with an error, was retried and is left out. Tokens come from
the provider's `usage` of a call, else from the `token_ids` of the nodes. The step after a call lasts until the
next call of the branch begins.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.clock import span_s
from rollart.workload.importers.episode import Call, Episode, Outcome, turns_of_calls
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import Tokens

_LIMITS = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed")


class _Span(msgspec.Struct, frozen=True):
    start: float = 0.0
    end: float = 0.0
    """0 where the span never ended."""


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    cached_input_tokens: Tokens | None = None


class _Error(msgspec.Struct, frozen=True):
    type: str = ""


class _Call(msgspec.Struct, frozen=True):
    node: int | None = None
    usage: _Usage | None = None
    time: _Span = _Span()
    error: _Error | None = None
    finish_reason: str | None = None


class _Node(msgspec.Struct, frozen=True):
    parent: int | None = None
    sampled: bool = False
    token_ids: list[int] = []
    mask: list[bool] = []


class _Reward(msgspec.Struct, frozen=True):
    score: float
    weight: float = 1.0


class _Timing(msgspec.Struct, frozen=True):
    boot: _Span = _Span()
    setup: _Span = _Span()
    scoring: _Span = _Span()


class _TaskData(msgspec.Struct, frozen=True):
    idx: int | None = None


class _Task(msgspec.Struct, frozen=True):
    type: str = ""
    key: str | None = None
    hash: str | None = None
    data: _TaskData = _TaskData()


class _Agent(msgspec.Struct, frozen=True):
    name: str = "agent"


class _Trace(msgspec.Struct, frozen=True):
    nodes: list[_Node]
    calls: list[_Call] = []
    id: str = ""
    task: _Task = _Task()
    agent: _Agent = _Agent()
    rewards: dict[str, _Reward | float | None] = {}
    timing: _Timing = _Timing()
    ok: bool = True
    errors: list[_Error] = []
    stop_condition: str | None = None


class _Env(msgspec.Struct, frozen=True):
    id: str = ""
    name: str | None = None


class _Group(msgspec.Struct, frozen=True):
    id: str


class _Episode(msgspec.Struct, frozen=True):
    traces: list[_Trace]
    id: str = ""
    env: _Env = _Env()
    task: _Task = _Task()
    group: _Group | None = None


class VerifiersReader(FormatReader):
    """Reads Episodes and Traces; the group is prime-rl's, else the task's key or hash."""

    format: ClassVar[str] = "verifiers"
    about: ClassVar[str] = "verifiers traces.jsonl (an Episode with traces[], or a Trace with nodes[], a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The keys of an episode or a trace."""
        return not sample.is_list and (sample.has("traces", "task") or sample.has("nodes", "task"))

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every line is an episode or a trace."""
        return EachRecord(_episodes)


_decode_episode = msgspec.json.Decoder(_Episode).decode
_decode_trace = msgspec.json.Decoder(_Trace).decode


def _episodes(line: bytes) -> Iterable[Episode]:
    try:
        whole = _decode_episode(line)
    except msgspec.ValidationError as error:
        if "missing required field `traces`" not in str(error):
            raise
        trace = _decode_trace(line)
        whole = _Episode(traces=[trace], task=trace.task)
    if not whole.traces:
        raise ValueError("traces is empty; must hold at least one trace")
    task = whole.env.name or whole.env.id or whole.task.type or "verifiers"
    group = whole.group.id if whole.group else _group(whole.task) or whole.id or whole.traces[0].id
    for trace in whole.traces:
        several = len(whole.traces) > 1
        yield from _branches(trace, f"{task}/{trace.agent.name}" if several else task, group)


def _group(task: _Task) -> str | None:
    named = task.key or task.hash
    return named if named or task.data.idx is None else str(task.data.idx)


def _branches(trace: _Trace, task: str, group: str) -> Iterable[Episode]:
    """One episode for each branch; the rewards and times of the trace go to its last branch, where it ended."""
    answered = {call.node: call for call in trace.calls if call.node is not None and call.error is None}
    leaves = _leaves(trace.nodes)
    for number, leaf in enumerate(leaves):
        path = _path(trace.nodes, leaf)
        if not any(trace.nodes[node].sampled for node in path):
            continue
        prompt_tokens, turns = turns_of_calls(_calls(trace.nodes, path, answered))
        last = number == len(leaves) - 1
        yield Episode(
            task=task if last else f"{task}/branch",
            group=group,
            identity=f"{trace.id}/{number}" if trace.id else None,
            prompt_tokens=prompt_tokens,
            turns=turns,
            reset_s=_took(trace.timing.boot, trace.timing.setup) if last else None,
            reward_s=_took(trace.timing.scoring) if last else None,
            reward=_reward(trace) if last else None,
            outcome=_outcome(trace, answered.get(path[-1])) if last else "ok",
            tokens="counted",
        )


def _calls(nodes: list[_Node], path: list[int], answered: dict[int, _Call]) -> list[Call]:
    calls: list[Call] = []
    before: _Call | None = None
    tokens = 0
    for node in path:
        tokens += len(nodes[node].token_ids)
        if not nodes[node].sampled:
            continue
        call = answered.get(node)
        if before is not None and call is not None and before.time.end and call.time.start:
            env_s = span_s(before.time.end, call.time.start, f"the step of turn {len(calls) - 1}")
            calls[-1] = replace(calls[-1], env_s=env_s)
        calls.append(_call(nodes[node], call, tokens, node))
        before = call
    return calls


def _call(node: _Node, call: _Call | None, tokens: int, number: int) -> Call:
    """Of the provider's counts, else of the token ids up to and with this node."""
    usage = None if call is None else call.usage
    if usage is not None and usage.prompt_tokens:
        # A provider that counts cached tokens apart reports more of them than prompt tokens, sooner or later.
        cached = usage.cached_input_tokens
        apart = cached if cached is not None and cached > usage.prompt_tokens else 0
        return Call(
            context_tokens=usage.prompt_tokens + apart,
            output_tokens=usage.completion_tokens,
            cached_tokens=cached,
        )
    if not node.token_ids:
        raise ValueError(f"nodes[{number}] has neither usage nor token_ids; must have one of them")
    output_tokens = sum(node.mask) if node.mask else len(node.token_ids)
    return Call(context_tokens=tokens - output_tokens, output_tokens=output_tokens)


def _leaves(nodes: list[_Node]) -> list[int]:
    for number, node in enumerate(nodes):
        if node.parent is not None and not 0 <= node.parent < number:
            raise ValueError(f"nodes[{number}].parent is {node.parent}; must be an earlier node")
    parents = {node.parent for node in nodes}
    return [number for number in range(len(nodes)) if number not in parents]


def _path(nodes: list[_Node], leaf: int) -> list[int]:
    path = []
    node: int | None = leaf
    while node is not None:
        path.append(node)
        node = nodes[node].parent
    return path[::-1]


def _took(*spans: _Span) -> float | None:
    found = [span_s(span.start, span.end, "a span of timing") for span in spans if span.end]
    return sum(found) if found else None


def _reward(trace: _Trace) -> float | None:
    known = [reward for reward in trace.rewards.values() if reward is not None]
    if not known:
        return None
    return sum(reward.score * reward.weight if isinstance(reward, _Reward) else reward for reward in known)


def _outcome(trace: _Trace, last: _Call | None) -> Outcome:
    if trace.stop_condition in _LIMITS or (last is not None and last.finish_reason == "length"):
        return "truncated"
    return "failed" if trace.errors and not trace.ok else "ok"
