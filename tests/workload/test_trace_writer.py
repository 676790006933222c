"""Writing traces."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollart.domain.errors import OutputError, TraceError
from rollart.workload.trace import TraceTrajectory, TraceTurn
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_writer import write_trace

seconds = st.none() | st.floats(0, 1e9)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
turns = st.builds(TraceTurn, prompt_tokens=st.integers(0, 10**6), output_tokens=st.integers(0, 10**6), env_s=seconds)
trajectories = st.builds(
    TraceTrajectory,
    task=names,
    group=names,
    member=st.integers(0, 10**9),
    prompt_tokens=st.integers(1, 10**6),
    reset_s=seconds,
    turns=st.lists(turns, min_size=1, max_size=5).map(tuple),
    reward_s=seconds,
    reward=st.none() | st.floats(-1e9, 1e9),
    outcome=st.sampled_from(["ok", "failed", "truncated"]),
    provenance=st.dictionaries(st.sampled_from(["env_s", "turns"]), st.sampled_from(["drawn", "counted"])),
)
ONE = TraceTrajectory(task="maze", group="g", prompt_tokens=5, turns=(TraceTurn(output_tokens=3),))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(trajectories, min_size=1, max_size=4), st.sampled_from(["t.jsonl", "t.jsonl.gz"]))
def test_a_trace_reads_back_exactly(tmp_path: Path, given_ones: list[TraceTrajectory], name: str) -> None:
    assert write_trace(tmp_path / name, given_ones) == len(given_ones)
    assert list(TraceReader(tmp_path / name, strict=True)) == given_ones


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_trace(tmp_path / name, [ONE, ONE])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).count(b"\n") == 2


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (msgspec.structs.replace(ONE, reward=float("nan")), "trajectory 2 cannot be written: holds a value that JSON"),
        (msgspec.structs.replace(ONE, reset_s=-1.0), "trajectory 2 cannot be written: reset_s is -1.0; must be"),
    ],
)
def test_a_wrong_value_is_refused_and_the_old_file_stays(tmp_path: Path, broken: TraceTrajectory, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"old")
    with pytest.raises(OutputError) as caught:
        write_trace(path, [ONE, broken])
    assert message in str(caught.value)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_an_error_of_the_source_leaves_nothing_behind(tmp_path: Path) -> None:
    def source() -> Iterator[TraceTrajectory]:
        yield ONE
        raise TraceError("the source is broken")

    with pytest.raises(TraceError, match="the source is broken"):
        write_trace(tmp_path / "t.jsonl", source())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"t\.jsonl: cannot be written: No such file or directory"):
        write_trace(tmp_path / "none" / "t.jsonl", [ONE])
