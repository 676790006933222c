"""Reading traces: good lines, bad lines, broken files."""

import gzip
from pathlib import Path

import pytest

from rollart.domain.errors import TraceError
from rollart.workload.trace import TraceTrajectory, TraceTurn
from rollart.workload.trace_reader import MAX_LINE_BYTES, TraceReader, decode_line

GOOD = b'{"task":"maze","group":"g","prompt_tokens":5,"turns":[{"output_tokens":3}]}'


def line(turn: str = "", top: str = "", output: str = "3") -> bytes:
    return f'{{"task":"maze","group":"g","prompt_tokens":5,"turns":[{{"output_tokens":{output}{turn}}}]{top}}}'.encode()


def file_with(tmp_path: Path, content: bytes, name: str = "trace.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_a_line_becomes_a_trajectory() -> None:
    found = decode_line(
        b'{"schema":1,"task":"maze","group":"g","member":2,"prompt_tokens":50,"reset_s":1.5,"turns":['
        b'{"output_tokens":7,"env_s":0.25},{"prompt_tokens":9,"kept_tokens":40,"output_tokens":8,"outcome":"timeout"}],'
        b'"reward_s":2,"reward":-1,"outcome":"failed","provenance":{"output_tokens":"measured"}}'
    )
    assert found == TraceTrajectory(
        task="maze",
        group="g",
        member=2,
        prompt_tokens=50,
        reset_s=1.5,
        turns=(
            TraceTurn(output_tokens=7, env_s=0.25),
            TraceTurn(prompt_tokens=9, kept_tokens=40, output_tokens=8, outcome="timeout"),
        ),
        reward_s=2.0,
        reward=-1.0,
        outcome="failed",
        provenance={"output_tokens": "measured"},
    )
    assert found.contexts() == [50, 49]


def test_what_was_not_recorded_is_none_and_not_zero() -> None:
    found = decode_line(GOOD)
    assert (found.reset_s, found.reward_s, found.reward, found.turns[0].env_s) == (None, None, None, None)


def test_the_short_form_carries_the_prompt_in_the_first_turn() -> None:
    found = decode_line(
        b'{"task":"maze","group":"g","turns":['
        b'{"prompt_tokens":5,"output_tokens":3},{"prompt_tokens":2,"output_tokens":1}]}'
    )
    assert (found.prompt_tokens, found.turns[0].prompt_tokens, found.turns[1].prompt_tokens) == (5, 0, 2)
    assert found.contexts() == [5, 10]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (line(output="-3"), "turns[0].output_tokens is -3; must be an integer >= 0"),
        (line(output="NaN"), "turns[0].output_tokens is NaN; must be a finite number >= 0"),
        (line(top=',"reset_s":Infinity'), "reset_s is +inf; must be a finite number >= 0"),
        (line(output="2.5"), "turns[0].output_tokens is 2.5; must be an integer"),
        (line(output='"x"'), 'turns[0].output_tokens is "x"; must be an integer'),
        (line(output="1e30"), "turns[0].output_tokens is 1e+30; must be an integer"),
        (line(turn=',"env_s":-1'), "turns[0].env_s is -1; must be a finite number >= 0.0"),
        (line(turn=',"foo":1'), "turns[0].foo is not a key of the trace schema"),
        (line(top=',"foo":1'), "foo is not a key of the trace schema"),
        (line(top=',"schema":2'), "schema is 2; must be 1"),
        (line(top=',"outcome":"bad"'), 'outcome is "bad"; must be ok, failed or truncated'),
        (line(top=',"provenance":{"x":"measured"}'), 'provenance is {"x": "measured"}; must be fields that are'),
        (line(turn=',"kept_tokens":9'), "turns[0].kept_tokens is 9; must be <= 5, the context before it"),
        (line(turn=',"outcome":"failed"'), "outcome is 'ok'; must be 'failed', as the last turn is 'failed'"),
        (line(top=',"reset_outcome":"failed"'), "turns has 1 turns after a failed reset; must be empty"),
        (b"{}", "task is missing"),
        (b'{"task":"a","group":"g","turns":[]}', "prompt_tokens is missing, at the top and in turns[0]"),
        (b'{"task":"a","group":"g","prompt_tokens":1,"turns":[]}', "turns is empty though the reset was ok"),
        (b'{"task":"a","group":"g","prompt_tokens":0,"turns":[{"output_tokens":1}]}', "prompt_tokens is 0"),
        (b"[1]", "the line is [1]; must be an object"),
        (b'{"task":', "is not JSON ("),
        (b"[" * 100_000, "the line is not valid; must be an object"),
    ],
)
def test_a_bad_line_says_what_would_be_right(content: bytes, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        decode_line(content)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_bad_lines_are_counted_and_named_by_number(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"\n".join([GOOD, b"", line(output="NaN"), GOOD, b"{", b"\xff\xfe", GOOD[:30]]))
    reader = TraceReader(path)
    assert len(list(reader)) == 2
    assert (reader.good_lines, reader.bad_lines) == (2, 4)
    assert reader.errors[0] == f"{path}:3: turns[0].output_tokens is NaN; must be a finite number >= 0"
    assert [error.removeprefix(f"{path}:").split(":")[0] for error in reader.errors] == ["3", "5", "6", "7"]


def test_a_strict_reader_stops_at_the_first_bad_line(tmp_path: Path) -> None:
    path = file_with(tmp_path, GOOD + b"\n" + line(output="-1") + b"\n" + GOOD)
    with pytest.raises(TraceError, match=r":2: turns\[0\]\.output_tokens is -1"):
        list(TraceReader(path, strict=True))


def test_gzip_is_recognised_whatever_the_name(tmp_path: Path) -> None:
    for name in ("trace.jsonl.gz", "trace.jsonl"):
        path = file_with(tmp_path, gzip.compress(GOOD + b"\n" + GOOD + b"\n"), name)
        assert list(TraceReader(path)) == [decode_line(GOOD)] * 2


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"\xef\xbb\xbf" + GOOD + b"\r\n" + GOOD + b"\r\n")
    assert len(list(TraceReader(path, strict=True))) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; a trace has one JSON object a line"),
        (b"\n \n", "is empty"),
        (b"ab" + bytes(range(128, 256)) * 20, "is not UTF-8 text (byte 0x80 at 2)"),
        ((GOOD.decode() + "\n").encode("utf-16"), "is not UTF-8 text (byte 0xff at 0)"),
        ((GOOD.decode() + "\n").encode("utf-16-le"), "is binary or UTF-16"),
        (gzip.compress(b"\n".join([GOOD] * 9), mtime=0)[:-12], "gzip stream is cut off; copy the file again"),
        (gzip.compress(GOOD, mtime=0)[:12] + b"\x00" * 40, "gzip stream is "),
        (b'"' + b"x" * MAX_LINE_BYTES, "line is longer than 16 MiB; must be one trajectory"),
        (line(output="-1") + b"\n{}", "turns[0].output_tokens is -1; must be an integer >= 0 (none of 2 lines"),
    ],
    ids=["empty", "blank", "noise", "utf-16", "utf-16-le", "cut gzip", "damaged gzip", "endless line", "all bad"],
)
def test_a_broken_file_is_one_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = file_with(tmp_path, content)
    with pytest.raises(TraceError) as caught:
        list(TraceReader(path))
    assert str(caught.value).startswith(str(path)) and message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none: cannot be read: No such file or directory"):
        list(TraceReader(tmp_path / "none"))
    with pytest.raises(TraceError, match=r"cannot be read: Is a directory"):
        list(TraceReader(tmp_path))


def test_a_character_cut_by_the_sample_is_no_error(tmp_path: Path) -> None:
    start = b'{"task":"maze","group":"'
    name = "x" * (4095 - len(start)) + "\u00e9"
    with pytest.raises(TraceError, match=r"group is .*; must be a text <= 1000|length <= 1000"):
        list(TraceReader(file_with(tmp_path, start + name.encode() + GOOD[24:])))
