"""The arguments of the engine that wrote a log, where they lie beside it: `X_meta.json` for `X_requests.jsonl`."""

from pathlib import Path

import msgspec

from rollart.domain.errors import TraceError
from rollart.workload.trace_reader import read_lines

_LOG_ENDING = "_requests.jsonl"
_META_ENDING = "_meta.json"


class EngineArguments(msgspec.Struct, frozen=True):
    """Those of vLLM that change what a replay means; None where the file does not say."""

    tensor_parallel_size: int | None = None
    data_parallel_size: int | None = None
    enable_expert_parallel: bool | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None

    def contradictions(self, **chosen: int | str | None) -> list[str]:
        """What was chosen otherwise than the engine of the log was set; None was not chosen, "auto" is any."""
        return [
            f"{name} is {value}, the engine of the log had {getattr(self, name)}"
            for name, value in chosen.items()
            if value is not None and getattr(self, name) not in (None, "auto", value)
        ]


class _Meta(msgspec.Struct):
    engine_kwargs: EngineArguments


def arguments_beside(log: Path) -> EngineArguments | None:
    """The arguments, or None where there is no such file. Raises TraceError where it cannot be understood."""
    if not log.name.endswith(_LOG_ENDING):
        return None
    path = log.with_name(log.name.removesuffix(_LOG_ENDING) + _META_ENDING)
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(b"".join(read_lines(path)), type=_Meta).engine_kwargs
    except msgspec.DecodeError as error:
        raise TraceError(f"{path}: {error}") from error
