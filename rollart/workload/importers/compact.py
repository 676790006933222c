"""The compact form: one trajectory a line, token counts and times without any text.

`turns[]` has `new_in` (tokens since the last call), `prompt` (the whole prompt), `cached`, `out`, `env_s`;
absent means not recorded. Where every turn has `prompt`, contexts follow from it, else from `new_in`. `gap_s`
(model and environment together) and `llm_s` have no place in a trace and are left out.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from rollart.workload.importers.episode import Call, Episode, turns_of_calls
from rollart.workload.importers.format_reader import EachRecord, FormatReader, RecordReader
from rollart.workload.importers.sample import Sample
from rollart.workload.trace import Name, Seconds, Tokens, TraceTurn


class _Turn(msgspec.Struct, frozen=True):
    out: Tokens
    new_in: Tokens = 0
    prompt: Tokens | None = None
    cached: Tokens | None = None
    env_s: Seconds | None = None


class _Line(msgspec.Struct, frozen=True):
    src: Name
    id: Annotated[str, Meta(min_length=1)]
    tok: str
    turns: Annotated[list[_Turn], Meta(min_length=1)]
    file: str = ""
    group: str | None = None
    reward: float | None = None
    setup_s: Seconds | None = None
    agent_setup_s: Seconds | None = None
    verify_s: Seconds | None = None
    exit: str | None = None


class CompactReader(FormatReader):
    """Reads `*.compact.jsonl`; `src` is the task, `group` (or the id) the group, both within `file`."""

    format: ClassVar[str] = "compact"
    about: ClassVar[str] = "compact JSONL (src, id, tok, turns[] a line)"

    @staticmethod
    def recognises(sample: Sample) -> bool:
        """The keys that every line has."""
        return not sample.is_list and sample.has("src", "id", "tok", "turns")

    def open(self, path: Path) -> RecordReader:  # noqa: ARG002
        """Every line is a trajectory."""
        return EachRecord(_episodes)


_decode = msgspec.json.Decoder(_Line).decode


def _episodes(record: bytes) -> Iterable[Episode]:
    line = _decode(record)
    prompt_tokens, turns = _turns(line.turns)
    reset_s = None if line.setup_s is None else line.setup_s + (line.agent_setup_s or 0.0)
    group = line.group if line.group is not None else line.id
    yield Episode(
        task=line.src,
        group=f"{line.file}#{group}"[-1000:] if line.file else group or line.id,
        identity=f"{line.file}#{line.id}",
        prompt_tokens=prompt_tokens,
        turns=turns,
        reset_s=reset_s,
        reward_s=line.verify_s,
        reward=line.reward,
        tokens="counted" if line.tok == "provider" else "estimated",
    )


def _turns(turns: list[_Turn]) -> tuple[int, tuple[TraceTurn, ...]]:
    if all(turn.prompt for turn in turns):
        return turns_of_calls(
            [
                Call(
                    context_tokens=turn.prompt or 0,
                    output_tokens=turn.out,
                    cached_tokens=turn.cached,
                    env_s=turn.env_s,
                )
                for turn in turns
            ]
        )
    first = turns[0]
    rest = [TraceTurn(prompt_tokens=turn.new_in, output_tokens=turn.out, env_s=turn.env_s) for turn in turns[1:]]
    return first.new_in, (TraceTurn(output_tokens=first.out, env_s=first.env_s), *rest)
