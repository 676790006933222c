"""Readers of request logs: each format, and one line for what is wrong."""

import gzip
import json
from pathlib import Path

import pytest

from rollart.domain.errors import TraceError
from rollart.loadtest.engine_meta import arguments_beside
from rollart.loadtest.reader import read_requests
from rollart.loadtest.requests import Latency

SHARED = Path(__file__).resolve().parents[2] / "../shared"
MOMENTS = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")


def logged(number=0, at_s=0.0, *, skew_s=0.0, **changes):
    line = {"request_id": f"r{number}", "input_toks": 10, "output_toks": 5, "arrival_time": 1.7e9 + at_s + skew_s}
    line |= {name: 400.0 + at_s + after for name, after in zip(MOMENTS, (0.0, 0.5, 1.0, 3.0), strict=True)}
    return line | changes


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_an_engine_log_counts_from_the_first_arrival_and_has_what_was_measured(tmp_path):
    log = read_requests(written(tmp_path / "x.jsonl", [logged(1, 2.0), logged(0, 0.0)]))
    assert [request.arrival_s for request in log.requests] == [0.0, 2.0]
    assert log.measured == [Latency(1.0, 3.0, 5)] * 2
    assert log.measured[0].per_token_s == 0.5


def test_a_request_of_one_token_has_no_time_per_token():
    assert Latency(1.0, 1.0, 1).per_token_s is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([logged(first_token_ts=400.1)], "x.jsonl:1: the clocks disagree: first_token_ts 400.1 is before scheduled_ts"),
        ([logged(), logged(1, 1.0, skew_s=7.0)], "x.jsonl:2: the clocks disagree: arrival_time less queued_ts is"),
        ([logged(input_toks=0)], r"x.jsonl:1: Expected `int` >= 1 - at `\$.input_toks`"),
        ([{k: v for k, v in logged().items() if k != "queued_ts"}], "missing required field `queued_ts`"),
        ([], "x.jsonl: is empty; must be an engine's log"),
        ([{"a": 1}], "the first line fits no known format; must be an engine's log"),
    ],
)
def test_a_bad_engine_log_is_one_line(tmp_path, lines, message):
    with pytest.raises(TraceError, match=message) as caught:
        read_requests(written(tmp_path / "x.jsonl", lines))
    assert "\n" not in str(caught.value)


AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,9\n"
)


@pytest.mark.parametrize("pack", [False, True])
def test_an_azure_trace_plain_or_packed(tmp_path, pack):
    path = tmp_path / "azure.csv"
    path.write_bytes(gzip.compress(AZURE.encode()) if pack else AZURE.encode())
    log = read_requests(path)
    assert [request[1:3] for request in log.requests] == [(374, 44), (396, 9)]
    assert log.requests[1].arrival_s == pytest.approx(4.314579, abs=1e-6)
    assert log.measured == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2023-11-16 18:15:46,374\n", "must be TIMESTAMP,ContextTokens,GeneratedTokens"),
        ("noon,374,5\n", "azure.csv:2: 'noon,374,5' must be"),
        ("2023-11-16 18:15:46,0,5\n", "azure.csv:2: .* has no tokens in or out"),
        ("", "holds no request"),
    ],
)
def test_a_bad_azure_trace_is_one_line(tmp_path, row, message):
    path = tmp_path / "azure.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + row)
    with pytest.raises(TraceError, match=message):
        read_requests(path)


def mooncake(at_ms, tokens, ids):
    return {"timestamp": at_ms, "input_length": tokens, "output_length": 3, "hash_ids": ids}


def test_a_mooncake_trace_keeps_its_prefixes(tmp_path):
    log = read_requests(written(tmp_path / "m.jsonl", [mooncake(0, 600, [1, 2]), mooncake(1500, 1024, [1, 3])]))
    assert log.prefix_tokens == 512
    assert log.requests[1] == (1.5, 1024, 3, (1, 3), None)


def test_more_names_than_blocks_are_refused(tmp_path):
    with pytest.raises(TraceError, match=r"m.jsonl:1: 3 hash_ids for 600 tokens; must be 2 at most"):
        read_requests(written(tmp_path / "m.jsonl", [mooncake(0, 600, [1, 2, 3])]))


def test_a_limit_takes_the_first_lines(tmp_path):
    path = written(tmp_path / "x.jsonl", [logged(number, float(number)) for number in range(5)])
    assert len(read_requests(path, limit=2).requests) == 2


def test_the_arguments_beside_a_log(tmp_path):
    log = written(tmp_path / "x_requests.jsonl", [logged()])
    assert arguments_beside(log) is None
    settings = {"max_num_seqs": 128, "data_parallel_size": 2, "kv_cache_dtype": "auto"}
    (tmp_path / "x_meta.json").write_text(json.dumps({"engine_kwargs": settings}))
    found = arguments_beside(log)
    assert (found.max_num_seqs, found.data_parallel_size, found.kv_cache_dtype) == (128, 2, "auto")
    assert found.contradictions(max_num_seqs=64, data_parallel_size=None, max_num_batched_tokens=1) == [
        "max_num_seqs is 64, the engine of the log had 128"
    ]


@pytest.mark.parametrize(
    ("name", "count", "measured"),
    [
        ("hardware/engine-logs/Llama-3.1-8B_requests.jsonl", 300, 300),
        ("hardware/engine-logs/Qwen3-30B-A3B-Instruct-2507_requests.jsonl", 300, 300),
        ("traces/azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz", 8819, 0),
        ("traces/mooncake/synthetic_trace.jsonl.gz", 3993, 0),
    ],
)
def test_real_logs_are_read_whole(name, count, measured):
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside this checkout")
    log = read_requests(path)
    assert (len(log.requests), len(log.measured)) == (count, measured)
