"""What all importers share: records, growing contexts, sums, the clock, and what is done with bad input."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollart.domain.errors import InputError, RunLogError, TraceError
from rollart.workload.importers import IMPORTERS, ImportOptions, TraceImport, import_trace, records, sample
from rollart.workload.importers.clock import instant, span_s
from rollart.workload.importers.episode import Call, turns_of_calls
from rollart.workload.importers.format_reader import ImportJob
from rollart.workload.importers.json_elements import ElementSplitter
from rollart.workload.importers.totals import scaled_to
from rollart.workload.trace import TraceTurn, contexts
from rollart.workload.trace_reader import decode_line
from rollart.workload.trace_writer import encode_line, write_trace

CHAT = {"messages": [{"role": "user", "content": "abcd"}, {"role": "assistant", "content": "x"}]}
GOOD = json.dumps(CHAT)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[],:é\n', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\[{', max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["a", "samples"]), VALUES)), st.integers(1, 40), st.booleans())
def test_a_list_falls_into_its_elements_whatever_the_pieces(elements: list[Any], size: int, keyed: bool) -> None:
    document = {"x": [{"samples": [1]}], "samples": elements, "y": [{}]} if keyed else elements
    text = json.dumps(document, ensure_ascii=False).encode()
    splitter = ElementSplitter("samples" if keyed else None, 1 << 20)
    found = [
        json.loads(part or b"") for at in range(0, len(text), size) for part in splitter.feed(text[at : at + size])
    ]
    assert found == elements and splitter.complete


def test_an_element_over_the_limit_is_not_held() -> None:
    splitter = ElementSplitter(None, 10)
    text = json.dumps([{"a": "x" * 50}, {"b": 1}]).encode()
    assert [part for at in range(0, len(text), 7) for part in splitter.feed(text[at : at + 7])] == [None, b'{"b": 1}']


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 50), st.none() | st.integers(0, 600)), min_size=1))
def test_turns_of_calls_have_the_contexts_of_the_calls(calls: list[tuple[int, int, int | None]]) -> None:
    given_calls = [Call(context_tokens=a, output_tokens=b, cached_tokens=c) for a, b, c in calls]
    prompt_tokens, turns = turns_of_calls(given_calls)
    assert contexts(prompt_tokens, turns) == [call.context_tokens for call in given_calls]


def test_what_survives_of_a_context_that_shrank() -> None:
    def kept(*calls: tuple[int, int, int | None]) -> list[int | None]:
        _, turns = turns_of_calls([Call(context_tokens=a, output_tokens=b, cached_tokens=c) for a, b, c in calls])
        return [turn.kept_tokens for turn in turns]

    assert kept((100, 20, None), (120, 5, None)) == [None, None]
    assert kept((100, 20, None), (110, 5, None)) == [None, 100]
    assert kept((100, 20, None), (300, 5, None), (150, 5, 80)) == [None, None, 80]
    assert kept((100, 20, None), (300, 5, None), (150, 5, None)) == [None, None, 100]
    assert kept((100, 20, None), (60, 5, 0)) == [None, 60]


def test_sums_that_are_of_something_else_are_left_alone() -> None:
    turns = (TraceTurn(output_tokens=10), TraceTurn(prompt_tokens=5, output_tokens=10))
    assert scaled_to(100, turns, 215, 20) == (100, turns)
    prompt, scaled = scaled_to(100, turns, 430, 40)
    assert (sum(contexts(prompt, scaled)), [turn.output_tokens for turn in scaled]) == (430, [20, 20])
    for sums in ((0, 20), (215, 0), (5000, 20), (215, 900), (10, 20)):
        assert scaled_to(100, turns, *sums) == (100, turns)


def test_time_stamps_and_spans() -> None:
    assert instant("2026-02-26T06:45:03.5Z") == instant("2026-02-26T07:45:03.5+01:00") == 1772088303.5
    assert instant("2026-02-26T06:45:03.5") == 1772088303.5 and instant(5) == 5.0
    assert span_s(3.0, 2.5, "x") == 0.0 and span_s(1.0, 2.5, "x") == 1.5
    with pytest.raises(ValueError, match="time runs backwards: x ends 2 s before it starts"):
        span_s(3.0, 1.0, "x")
    with pytest.raises(ValueError, match="'soon' is not a time; must be ISO 8601"):
        instant("soon")


KEY_WORDS = """
    trajectory history info messages instance_id test_result metrics role content task_id traj trial reward traces
    nodes task calls trajectory_data seqlen prompt_len submit_ts timestamp input output session_id score step
    trial_name task_name responses_create_params response version status eval samples type sessionId message payload
    input_length output_length hash_ids resourceSpans attributes start_time end_time src id tok turns
    input_prompt output_response usage input_tokens output_tokens events timing boot parent sampled
"""
KEYS = sorted(KEY_WORDS.split())
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=4) | st.just("2025-01-01"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", sorted(IMPORTERS))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=8), min_size=1, max_size=4), st.booleans())
def test_whatever_a_file_holds_an_import_ends_well(tmp_path: Path, name: str, rows: list[Any], listed: bool) -> None:
    text = json.dumps(rows) if listed else "\n".join(map(json.dumps, rows))
    path = saved(tmp_path, text)
    reader = IMPORTERS[name](ImportJob(files=(path,), count=len))
    job = TraceImport([path], ImportOptions(format=name))
    try:
        for one in job._read_file(path, reader):
            assert decode_line(encode_line(one)) == one
    except (TraceError, RunLogError) as error:
        assert "\n" not in str(error)


def saved(tmp_path: Path, content: str | bytes, name: str = "log.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def run(path: Path, format_name: str = "openai-chat", strict: bool = False) -> TraceImport:
    job = TraceImport([path], ImportOptions(format=format_name, strict=strict))
    job.read = list(job)  # type: ignore[attr-defined]
    return job


BAD_LINES = [
    ("nonsense", "is not JSON"),
    ('{"messages": [], "reward": NaN}', "reward is NaN; must be a finite number"),
    ('{"messages": 3}', "messages is 3; must be array"),
    ('{"messages": [{"role": "user", "content": "x"}]}', "messages has no assistant message among 1"),
    (GOOD[:-1] + ', "reward": 1e12}', "reward is 1000000000000.0; must be a finite number from -1e9 to 1e9"),
    ('{"messages": ' + "[" * 2000 + "}", ""),
    (b'{"messages": [{"role": "\xff"}]}', "is not JSON"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_a_bad_line_is_counted_and_named_and_stops_a_strict_import(
    tmp_path: Path, line: str | bytes, message: str
) -> None:
    bad = line.encode() if isinstance(line, str) else line
    # Beyond the first 4 KiB: what is not text there is a file of another encoding.
    path = saved(tmp_path, GOOD.encode() + b" " * 5000 + b"\n\n" + bad + b"\n" + GOOD.encode())
    job = run(path)
    assert (job.trajectories, job.bad_records) == (2, 1)
    assert job.errors[0].startswith(f"{path}:3: {message}") and "\n" not in job.errors[0]
    with pytest.raises(TraceError) as caught:
        run(path, strict=True)
    assert str(caught.value) == job.errors[0]


def test_a_line_that_is_too_long_is_skipped_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 1 << 20)
    long = '{"messages": [{"role": "user", "content": "' + "x" * (5 << 20) + '"}]}'
    job = run(saved(tmp_path, f"{GOOD}\n{long}\n{GOOD}\n"))
    assert (job.trajectories, job.bad_records) == (2, 1)
    assert job.errors[0].endswith(":2: line is longer than 1 MiB (5 MiB); must hold one trajectory")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress((GOOD + "\n").encode() * 8_000, mtime=0)[:-12], "gzip stream is cut off"),
        (GOOD.encode("utf-16"), "is not UTF-8 text"),
        ("caf\xe9".encode("latin-1"), "is not UTF-8 text"),
        ('{"a": 1}\n' * 3, "is not a openai-chat file (it has a)"),
        ('{"schema": 1, "task": "t", "group": "g", "turns": []}', "this looks like a trace of RollArt"),
        ('{"messages": []}\n{"messages": []}', "(none of 2 records is good)"),
    ],
)
def test_a_file_that_is_broken_as_a_whole_leaves_nothing_behind(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    path = saved(tmp_path, content)
    out = tmp_path / "out.jsonl"
    with pytest.raises(TraceError) as caught:
        write_trace(out, TraceImport([path], ImportOptions(format="openai-chat")))
    assert str(caught.value).startswith(str(path)) and message in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_ids_must_not_repeat(tmp_path: Path) -> None:
    trial = {"task_id": 1, "trial": 0, "reward": 1.0, "traj": CHAT["messages"]}
    path = saved(tmp_path, json.dumps([trial, trial | {"trial": 1}, trial]), "airline.json")
    job = run(path, "tau-bench")
    assert job.trajectories == 2
    assert job.errors == [
        f"{path}: record 2: member 0 of group 1 of task tau-bench-airline was read before; ids must not repeat"
    ]
    with pytest.raises(TraceError, match=r"airline.json: is given twice; must be given once"):
        list(TraceImport([path, tmp_path], ImportOptions(format="auto")))
    path.write_text(json.dumps([trial]))
    copy = saved(tmp_path, json.dumps([trial]), "airline.2.json")
    with pytest.raises(TraceError, match=r"record 0: member 0 of group 1 of task tau-bench-airline was read before"):
        list(TraceImport([path, copy], ImportOptions(format="auto", strict=True)))


def test_members_of_a_group_share_the_shortest_first_prompt_so_far(tmp_path: Path) -> None:
    def line(name: str, prompt: int) -> str:
        turn = {"prompt": prompt, "out": 5}
        return json.dumps({"src": "s", "id": name, "group": "g", "tok": "provider", "turns": [turn]})

    found = list(import_trace("compact", saved(tmp_path, "\n".join((line("a", 100), line("b", 130), line("c", 90))))))
    assert [(one.member, one.prompt_tokens, one.turns[0].prompt_tokens) for one in found] == [
        (0, 100, 0),
        (1, 100, 30),
        (2, 90, 0),
    ]


def test_a_folder_is_read_through_and_what_is_no_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    saved(tmp_path / "a", GOOD, "2.jsonl")
    saved(tmp_path / "a", gzip.compress(GOOD.encode()), "1.jsonl.gz")
    saved(tmp_path, "x,y\n1,2\n", "other.csv")
    saved(tmp_path, "hello", "README.md")
    saved(tmp_path, b"\x00\x01", "z.log")
    for name in ("auto", "openai-chat"):
        job = TraceImport([tmp_path], ImportOptions(format=name, strict=True))
        assert [one.member for one in job] == [0, 1]
        assert job.formats == {"openai-chat": 2} and job.left_out == [tmp_path / "other.csv", tmp_path / "z.log"]
    with pytest.raises(TraceError, match=r"other.csv: is of no format that is known"):
        list(import_trace("auto", tmp_path / "other.csv"))
    with pytest.raises(TraceError, match=r"has no file of a known format"):
        list(TraceImport([tmp_path], ImportOptions(format="verl")))
    with pytest.raises(TraceError, match=r"gone: does not exist; must be a file or a folder"):
        list(import_trace("auto", tmp_path / "gone"))
    (tmp_path / "b").mkdir()
    with pytest.raises(TraceError, match=r"has no file that ends in .json"):
        list(import_trace("auto", tmp_path / "b"))


def test_an_unknown_estimate_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--tokens 'gpt' is not known; must be one of chars4, words, bytes, bytes4"):
        TraceImport([tmp_path], ImportOptions(format="auto", tokens="gpt"))


def test_keys_are_found_in_a_document_that_is_cut_off() -> None:
    text = b'{"a": {"b": [1, {"c": "\\"}{"}]}, "d": "x", "e": ["f", {"g'
    assert sample._outer_keys(text, False) == {"a", "d", "e"}
    assert sample._outer_keys(b'[{"a": {"b": 1}}, {"c', True) == {"a"}
