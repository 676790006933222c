import csv
from pathlib import Path

from experiments.serving_harness import HARNESS, SERIES, Harness, composes_ahead, read_points

FIRST = {
    "id": "a",
    "backend": "vllm",
    "backend_version": "0.12.0",
    "model_path": "Qwen/Qwen3-32B",
    "system": "h100_sxm",
    "precision": "",
    "mode": "agg",
    "isl": "4096",
    "osl": "128",
    "tp_size": "8",
    "silicon_ttft_ms": "300",
    "silicon_tpot_ms": "9.5",
    "concurrency": "16",
}


def written(path: Path, **changes: str) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIRST)
        writer.writeheader()
        writer.writerows([FIRST | changes, FIRST | {"mode": "disagg"}])
    return path


def test_a_point_knows_its_group_and_what_measured_it(tmp_path: Path) -> None:
    points, apart = read_points(written(tmp_path / "a.csv"))
    (point,) = points
    assert apart == 1
    assert (point.number, point.group, point.harness) == (2, "Qwen3-32B bf16 H100 vllm 0.12.0", "Qwen3-32B vllm")
    assert HARNESS[point.harness].budget(point) == 4096 + 16 + 1500
    assert Harness().budget(point) == 8192
    assert not point.async_scheduling


def test_a_series_has_one_harness_whatever_its_models(tmp_path: Path) -> None:
    (point,), _ = read_points(written(tmp_path / "a.csv", id=f"{SERIES}04_a", backend="sglang"))
    assert point.harness == SERIES
    assert HARNESS[SERIES].budget(point) == 32768


def test_sglang_mixes_only_where_its_tool_says_so(tmp_path: Path) -> None:
    eight_b = {"model_path": "meta-llama/Llama-3.1-8B-Instruct", "backend": "sglang", "isl": "8000"}
    (mixed,), _ = read_points(written(tmp_path / "a.csv", **eight_b))
    assert HARNESS[mixed.harness].mixes
    assert HARNESS[mixed.harness].budget(mixed) == 8192
    (alone,), _ = read_points(written(tmp_path / "b.csv", backend="sglang"))
    assert not HARNESS.get(alone.harness, Harness()).mixes


def test_vllm_composes_ahead_from_0_14_on() -> None:
    assert [composes_ahead("vllm", version) for version in ("0.12.0", "0.14.1", "1.0", "")] == [False, True, True, True]
    assert composes_ahead("sglang", "0.5.1.post1")
