import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollart.catalog.load import devices
from rollart.cli.main import app
from rollart.costs.iteration import OperatorEngine
from rollart.costs.roofline import RooflineEngine
from rollart.domain.errors import InputError
from rollart.modelled.assembly import engine_kinds
from rollart.scenario.load import load_scenario
from tests.costs.tables_on_disk import gemm_columns, write

SCENARIOS = Path(__file__).resolve().parents[2] / "experiments" / "scenarios"
QWEN_ON_H100 = ("costs", "show", "--model", "Qwen3-8B", "--device", "H100")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})


def test_where_an_iteration_goes_as_a_table():
    result = invoke(*QWEN_ON_H100, "--batch", 16, "--context", 1000)
    assert result.exit_code == 0
    assert "Qwen3-8B (bf16) on 1 x H100: 16 requests of 1,000 tokens" in result.stdout
    for term in ("QKV projection", "MLP down", "decode attention", "output head", "host", "iteration"):
        assert term in result.stdout
    assert "[1] formula fitted to H100 vllm-0.24.0" in result.stdout


def test_where_an_iteration_goes_as_json():
    result = invoke(*QWEN_ON_H100, "--prompt", 2048, "--engine-version", "vllm-v0", "--json")
    found = json.loads(result.stdout)
    terms = {term["name"]: term for term in found["terms"]}
    assert found["iteration_ms"] == pytest.approx(sum(term["ms"] for term in terms.values()))
    assert terms["host"]["ms"] == pytest.approx(1.5 + 33 * 0.03)
    assert 2 < terms["MLP up"]["error_pct"] < 8
    assert terms["sampling"]["error_pct"] is None
    assert found["notes"] == []


def test_the_roofline_is_drawn(tmp_path):
    result = invoke(*QWEN_ON_H100, "--picture", tmp_path / "roofline.png", "--json")
    assert result.exit_code == 0
    assert (tmp_path / "roofline.png").read_bytes().startswith(b"\x89PNG")


def test_tables_are_named_and_say_where_they_end(tmp_path):
    write(tmp_path / "h100_sxm" / "vllm-0.24.0" / "gemm_perf.parquet", **gemm_columns())
    result = invoke(*QWEN_ON_H100, "--costs", "tables", "--tables", tmp_path)
    assert result.exit_code == 0
    assert "measured: vllm-0.24.0 of H100" in result.stdout
    assert "note: gemm bf16: 4096 x 24576 lies beyond the table; it grows as the formula" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "Qwen3-8X"), "model 'Qwen3-8X' is not known; did you mean Qwen3-8B"),
        (("--device", "H101"), "device 'H101' is not known; did you mean"),
        (("--device", "B200"), "device B200 has no operator coefficients, costs: roofline needs none"),
        (("--precision", "fp2"), "precision 'fp2' is not known; one of: bf16"),
        (("--kv-dtype", "int1"), "KV cache dtype 'int1' is not known"),
        (("--tp", 3), "TP 3 must divide its 32 attention heads"),
        (("--costs", "roofline"), "costs 'roofline' are not made of operators; one of: compact, tables"),
        (("--costs", "tables", "--tables", "nowhere"), "nowhere is not a folder"),
        (("--batch", 0), "an iteration without requests: give --batch or --prompt"),
    ],
)
def test_what_cannot_be_answered_is_one_line(arguments, message):
    result = invoke(*QWEN_ON_H100, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_scenario_chooses_its_costs():
    plain = load_scenario(SCENARIOS / "paper-128.yaml", []).job()
    fitted = load_scenario(SCENARIOS / "paper-128.yaml", ["costs=compact"]).job()
    assert {type(kind.costs) for kind in engine_kinds(plain)} == {RooflineEngine}
    assert {type(kind.costs) for kind in engine_kinds(fitted)} == {OperatorEngine}
    assert {kind.costs.shape.device.name for kind in engine_kinds(fitted)} <= set(devices())
    laptop = load_scenario(SCENARIOS / "laptop.yaml", ["costs=compact"]).job()
    with pytest.raises(InputError, match="device CPU core has no operator coefficients, costs: roofline needs none"):
        engine_kinds(laptop)
