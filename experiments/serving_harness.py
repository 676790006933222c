"""The serving points of a file, and what is taken for the harness that measured each of them."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODELS = {
    "Qwen/Qwen3-32B": "Qwen3-32B",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "meta-llama/Llama-3.1-8B-Instruct": "Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "Llama-3.1-70B",
    "deepseek-ai/DeepSeek-R1": "DeepSeek-R1",
}
SYSTEMS = {"h100_sxm": "H100", "h200_sxm": "H200"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One line of the file."""

    number: int
    group: str
    harness: str
    model: str
    device: str
    backend: str
    async_scheduling: bool
    precision: str
    tp: int
    input_tokens: int
    output_tokens: int
    concurrency: int
    ttft_ms: float
    tpot_ms: float

    @property
    def name(self) -> str:
        """The point in few words."""
        return f"{self.group} TP {self.tp} {self.input_tokens}/{self.output_tokens} x {self.concurrency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What a group's measurement did, as far as it is known or assumed."""

    length_range: float = 1.0
    kv_dtype: str = "bf16"
    budget: Callable[[Point], int] = lambda _: SERVER_BUDGET
    """Tokens of an iteration."""
    mixes: bool = False
    """Whether SGLang was started so that prompts share iterations with decoding, as vLLM's do."""


SERVER_BUDGET = 8192
SERIES = "2026_"
"""How the ids of one family of measurements begin."""
HARNESS = {
    # As the scripts of that public benchmark have it: lengths from [0.8, 1.0] of the nominal, large prefills in SGLang.
    SERIES: Harness(length_range=0.8, budget=lambda point: 32768 if point.backend == "sglang" else SERVER_BUDGET),
    # As the public rules of the tool that took these points set engines up: vLLM's budget, and SGLang's from 0.5.3 on
    # (for 0.5.1 its option to mix is misspelled).
    "Qwen3-32B vllm": Harness(budget=lambda point: point.input_tokens + point.concurrency + 1500),
    "Llama-3.1-8B sglang": Harness(budget=lambda point: min(SERVER_BUDGET, point.input_tokens + 1500), mixes=True),
}
"""By series of measurements, or model and backend; the others keep lengths fixed."""


def read_points(path: Path) -> tuple[list[Point], int]:
    """Points of engines that do both phases, and how many lines were left out because theirs do not."""
    points, apart = [], 0
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            if row["mode"] != "agg":
                apart += 1
                continue
            model = MODELS[row["model_path"]]
            precision = row["precision"] or "bf16"
            version = row["backend_version"] or "unnamed version"
            points.append(
                Point(
                    number=number,
                    group=f"{model} {precision} {SYSTEMS[row['system']]} {row['backend']} {version}",
                    harness=SERIES if row["id"].startswith(SERIES) else f"{model} {row['backend']}",
                    model=model,
                    device=SYSTEMS[row["system"]],
                    backend=row["backend"],
                    async_scheduling=composes_ahead(row["backend"], row["backend_version"]),
                    precision=precision,
                    tp=int(row["tp_size"]),
                    input_tokens=int(row["isl"]),
                    output_tokens=int(row["osl"]),
                    concurrency=int(row["concurrency"]),
                    ttft_ms=float(row["silicon_ttft_ms"]),
                    tpot_ms=float(row["silicon_tpot_ms"]),
                )
            )
    return points, apart


def composes_ahead(backend: str, version: str) -> bool:
    """Whether an engine schedules asynchronously by default: SGLang, and vLLM from 0.14 on; so do unnamed versions."""
    if backend != "vllm" or not version:
        return True
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) >= (0, 14)
