"""SkyRL's dump of evaluations (`trainer.dump_eval_results`): a sample a line, as text.

Samples of one data source with the same `input_prompt` are one group. Turns are told apart as in verl's dump, by the
marks of a chat template, else there is one. Tokens are estimated from texts. There are no times.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import msgspec

from rollart.workload.importers.episode import Episode
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.importers.verl import text_turns


class _Sample(msgspec.Struct, frozen=True):
    input_prompt: str
    output_response: str
    score: float | list[float] | None = None
    """One for each token, or their sum."""
    stop_reason: str | None = None
    env_class: str | None = None
    data_source: str | None = None


class SkyRLReader(FormatReader):
    """Reads `<data source>.jsonl`; the environment's class is the task."""

    format: ClassVar[str] = "skyrl"
    about: ClassVar[str] = "a SkyRL evaluation dump (input_prompt, output_response, score a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The two texts."""
        return not sample.is_list and sample.has("input_prompt", "output_response")

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every line is a trajectory."""
        return EachRecord(self._episodes)

    def _episodes(self, line: bytes) -> Iterable[Episode]:
        found = _decode(line)
        prompt = blake2b(found.input_prompt.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        yield Episode(
            task=found.env_class or "skyrl",
            group=f"{found.data_source}-{prompt}" if found.data_source else prompt,
            prompt_tokens=max(1, self.job.count(found.input_prompt)),
            turns=text_turns(found.output_response, self.job.count),
            reward=sum(found.score) if isinstance(found.score, list) else found.score,
            outcome="truncated" if found.stop_reason == "length" else "ok",
            tokens="estimated",
            turns_known="estimated",
        )


_decode = msgspec.json.Decoder(_Sample).decode
