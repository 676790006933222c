"""verl's rollout dump (`trainer.rollout_data_dir`): a sample a line, as text.

Samples of one step with the same `input` are one group. `output` is the whole response; where it holds the
marks of a chat template (ChatML), it is split into the turns that the agent loop made of it, else it is one
turn. Tokens are estimated from texts. There are no times.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.tokens import TokenCounter
from rollart.workload.trace import TraceTurn

_TURN = re.compile(r"<\|im_start\|>(\w+)\n")


class _Sample(msgspec.Struct, frozen=True):
    input: str
    output: str
    score: float | None = None
    step: int = 0
    request_id: str | None = None


class VerlReader(FormatReader):
    """Reads `<step>.jsonl`."""

    format: ClassVar[str] = "verl"
    about: ClassVar[str] = "a verl rollout dump (input, output, score, step a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """Texts with a score or a step."""
        scored = sample.has("score") or sample.has("gts") or sample.has("step")
        return not sample.is_list and sample.has("input", "output") and scored and not sample.has("session_id")

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every line is a trajectory."""
        return EachRecord(self._episodes)

    def _episodes(self, line: bytes) -> Iterable[Episode]:
        found = _decode(line)
        prompt = blake2b(found.input.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        yield Episode(
            task="verl",
            group=f"step-{found.step}-{prompt}",
            identity=found.request_id,
            prompt_tokens=max(1, self.job.count(found.input)),
            turns=text_turns(found.output, self.job.count),
            reward=found.score,
            tokens="estimated",
            turns_known="estimated",
        )


_decode = msgspec.json.Decoder(_Sample).decode


def text_turns(output: str, count: TokenCounter) -> tuple[TraceTurn, ...]:
    """Turns of a response: its first part is generated, then what follows an assistant's mark; the rest is observed."""
    parts = _TURN.split(output)
    turns = [TraceTurn(output_tokens=count(parts[0]))]
    observed = 0
    for role, text in zip(parts[1::2], parts[2::2], strict=True):
        if role == "assistant":
            turns.append(TraceTurn(prompt_tokens=observed, output_tokens=count(text)))
            observed = 0
        else:
            observed += count(text)
    return tuple(turns)
