"""NeMo Gym's rollouts: a line with the request, the response's items, and the reward.

Items of the model between two observations (outputs of tools, messages of a user) are one generation, so
parallel calls of tools are one turn. All of the request's `input` is the prompt, answers in it too. Tokens are
estimated from texts and scaled to the sums over all calls in `usage`, where they are there; those of a rollout of
one generation are its counts. Rows of the Harbor agent also carry the times of its phases.
"""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.episode import Episode, Outcome
from rollart.workload.importers.format_reader import EachRecord, FormatReader, ImportJob, RecordReader
from rollart.workload.importers.harbor_phases import Phases
from rollart.workload.importers.response_items import ResponseItem, item_turns, items_tokens
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.tokens import TokenCounter
from rollart.workload.importers.totals import scaled_to
from rollart.workload.trace import Tokens, TraceTurn


class _Request(msgspec.Struct, frozen=True):
    input: str | list[ResponseItem]
    instructions: str | None = None
    tools: msgspec.Raw = msgspec.Raw()


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0


class _Incomplete(msgspec.Struct, frozen=True):
    reason: str | None = None


class _Response(msgspec.Struct, frozen=True):
    output: list[ResponseItem]
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None


class _AgentRef(msgspec.Struct, frozen=True):
    name: str | None = None


class _Row(msgspec.Struct, frozen=True):
    responses_create_params: _Request
    response: _Response
    reward: float | None = None
    instance_id: str | None = None
    agent_ref: _AgentRef | None = None
    task_index: int | str | None = msgspec.field(name="_ng_task_index", default=None)
    rollout_index: int | None = msgspec.field(name="_ng_rollout_index", default=None)
    metadata: msgspec.Raw = msgspec.Raw()


class NemoGymReader(FormatReader):
    """Reads rollout JSONL; the agent's name, or the file's, is the task."""

    format: ClassVar[str] = "nemo-gym"
    about: ClassVar[str] = "NeMo Gym rollouts (responses_create_params, response, reward a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The request of a rollout."""
        return not sample.is_list and sample.has("responses_create_params")

    def __init__(self, job: ImportJob) -> None:
        super().__init__(job)
        self._numbers = count()

    def open(self, path: Path) -> RecordReader:
        """Every line is a trajectory."""
        file_task = path.name.partition(".")[0] or "nemo-gym"

        def episodes(line: bytes) -> Iterable[Episode]:
            row = _decode(line)
            number = next(self._numbers)
            task = row.agent_ref.name if row.agent_ref and row.agent_ref.name else file_task
            group = row.instance_id or (f"row-{number}" if row.task_index is None else str(row.task_index))
            yield self._episode(row, task, group)

        return EachRecord(episodes)

    def _episode(self, row: _Row, task: str, group: str) -> Episode:
        request, tokens = row.responses_create_params, self.job.count
        prompt_tokens = tokens(request.instructions or "") + _input_tokens(request, tokens)
        if bytes(request.tools) not in (b"", b"null", b"[]"):
            prompt_tokens += tokens(bytes(request.tools).decode())
        turns = item_turns(row.response.output, tokens)
        usage = row.response.usage
        counted = usage is not None and usage.input_tokens > 0 and len(turns) == 1
        if counted and usage is not None:
            prompt_tokens = usage.input_tokens
            turns = (TraceTurn(output_tokens=usage.output_tokens),)
        elif usage is not None:
            prompt_tokens, turns = scaled_to(prompt_tokens, turns, usage.input_tokens, usage.output_tokens)
        phases = Phases.of(bytes(row.metadata))
        return Episode(
            task=task,
            group=group,
            prompt_tokens=max(1, prompt_tokens),
            turns=phases.spread(turns),
            reset_s=phases.reset_s,
            reward_s=phases.reward_s,
            reward=row.reward,
            outcome=_outcome(row.response, phases),
            tokens="counted" if counted else "estimated",
            env="estimated",
        )


_decode = msgspec.json.Decoder(_Row).decode


def _input_tokens(request: _Request, tokens: TokenCounter) -> int:
    if isinstance(request.input, str):
        return tokens(request.input)
    return items_tokens(request.input, tokens)


def _outcome(response: _Response, phases: Phases) -> Outcome:
    if phases.failed:
        return "failed"
    return "truncated" if response.incomplete_details and response.incomplete_details.reason else "ok"
