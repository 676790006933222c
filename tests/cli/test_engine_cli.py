"""`rollart engine`: what it prints, what it leaves, and one line for bad input."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollart.cli.main import app

SHARED = Path(__file__).resolve().parents[2] / "../shared"
H100 = ["--device", "H100"]
LLAMA = ["--model", "Llama-3.1-8B"]
LOAD = ["engine", "load", "--concurrency", "4", "--input-tokens", "100", "--output-tokens", "10"]
LINE = {"request_id": "a", "input_toks": 50, "output_toks": 5, "arrival_time": 1e9}
LINE |= {"queued_ts": 1.0, "scheduled_ts": 1.0, "first_token_ts": 1.1, "last_token_ts": 1.3}
CONFIG = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "vocab_size": 1000}
CONFIG |= {"num_attention_heads": 8, "intermediate_size": 2048}


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text(json.dumps(LINE) + "\n")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def found(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_replay_says_how_far_off_it_is(invoke, tmp_path):
    figures = found(invoke("engine", "replay", "log.jsonl", *LLAMA, *H100, "--json", "-o", "out"))
    errors = figures["error_pct"]
    assert set(errors["ttft"]) == {"mean", "p50", "p90", "mape"} == set(errors["e2e"])
    assert errors["duration"] == pytest.approx(100 * (figures["simulated"]["duration_s"] / 0.3 - 1))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"replay.json", "requests.csv", "replay.png"}
    assert json.loads((tmp_path / "out/replay.json").read_text()) == figures


def test_a_replay_is_shown_in_tables(invoke):
    shown = invoke("engine", "replay", "log.jsonl", *LLAMA, *H100).stdout
    assert "measured" in shown
    assert "error (%)" in shown


def test_a_load_shows_both_latencies(invoke):
    figures = found(invoke(*LOAD, *LLAMA, *H100, "--json"))
    assert figures["requests"] == 40
    assert 0 < figures["tpot_ms"]["p50"] < figures["ttft_ms"]["p90"]
    assert "output tokens per s" in invoke(*LOAD, *LLAMA, *H100).stdout


def test_a_load_is_the_same_each_time_and_follows_its_options(invoke):
    words = [*LOAD, *LLAMA, *H100, "--json", "--length-range", "0.5"]
    first = found(invoke(*words))
    assert found(invoke(*words)) == first
    assert found(invoke(*words, "--precision", "fp8"))["tpot_ms"]["mean"] < first["tpot_ms"]["mean"]
    assert found(invoke(*words, "--scheduler", "sglang", "--max-num-batched-tokens", "100")) != first


def test_a_model_comes_from_its_config(invoke):
    assert found(invoke(*LOAD, "--model", "config.json", *H100, "--json"))["duration_s"] > 0


def test_a_device_without_the_units_says_so(invoke):
    result = invoke(*LOAD, *LLAMA, "--device", "A100", "--precision", "fp8", "--json")
    assert "A100 does not multiply in fp8: fp8 weights are widened to bf16 first" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*LOAD, "--model", "Llama-9", *H100], "error: model 'Llama-9' is not known; did you mean"),
        ([*LOAD, "--model", "no/config.json", *H100], "error: no/config.json: cannot be read"),
        ([*LOAD, "--model", "log.jsonl", *H100], "error: model "),
        ([*LOAD, *LLAMA, "--device", "H9"], "error: device 'H9' is not known"),
        ([*LOAD, "--model", "Llama-3.1-70B", *H100], "error: Llama-3.1-70B in bf16 needs 141.1 GB"),
        ([*LOAD, *LLAMA, *H100, "--precision", "fp7"], "error: precision 'fp7' is not known; one of: bf16"),
        ([*LOAD, *LLAMA, *H100, "--kv-dtype", "int2"], "error: KV cache dtype 'int2' is not known"),
        ([*LOAD, *LLAMA, *H100, "--scheduler", "orca"], "error: engine scheduler 'orca' is not known"),
        ([*LOAD, *LLAMA, *H100, "--length-range", "2"], "error: load length_range is 2.0"),
        (["engine", "replay", "none.jsonl", *LLAMA, *H100], "error: none.jsonl: cannot be read"),
        (["engine", "replay", "config.json", *LLAMA, *H100], "error: config.json: the first line fits no known format"),
    ],
)
def test_bad_input_is_one_line(invoke, words, message):
    result = invoke(*words)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_the_engine_of_the_log_says_how_it_was_set(invoke, tmp_path):
    (tmp_path / "log.jsonl").rename(tmp_path / "a_requests.jsonl")
    settings = {"engine_kwargs": {"max_num_seqs": 128, "kv_cache_dtype": "fp8", "data_parallel_size": 2}}
    (tmp_path / "a_meta.json").write_text(json.dumps(settings))
    words = ["engine", "replay", "a_requests.jsonl", "--model", "Qwen3-30B-A3B", "--device", "RTX PRO 6000"]
    result = invoke(*words, "--max-num-seqs", "64", "--json")
    figures = found(result)
    assert (figures["kv_dtype"], figures["dp"]) == ("fp8", 2)
    assert result.stderr == "note: max_num_seqs is 64, the engine of the log had 128\n"


@pytest.mark.parametrize(("name", "most_pct"), [("Llama-3.1-8B", 5), ("Qwen3-30B-A3B", 25)])
def test_real_logs_are_met_end_to_end(invoke, name, most_pct):
    path = next((SHARED / "hardware/engine-logs").glob(f"{name}*_requests.jsonl"), None)
    if path is None:
        pytest.skip("engine logs are not beside this checkout")
    words = ["--model", name, "--device", "RTX PRO 6000", "--max-num-seqs", "128", "--max-num-batched-tokens", "2048"]
    errors = found(invoke("engine", "replay", path, *words, "--json"))["error_pct"]
    assert abs(errors["e2e"]["mean"]) < most_pct
    assert abs(errors["duration"]) < most_pct
