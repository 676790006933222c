import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import OutputError, RunLogError
from rollart.domain.trajectory import Cause
from rollart.runlog.header import SCHEMA_VERSION
from rollart.runlog.parquet import VERSION_KEY
from rollart.runlog.reader import read_header, records, windows
from rollart.runlog.schema import KINDS, Form, Kind, Record
from rollart.runlog.window import window_of
from rollart.runlog.writer import RunLogWriter
from tests.runlog.scripts import Collector, log_records, one_step_run, write
from tests.runlog.toyrun import ToyRun, header


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "runlog.parquet"


def toy_log(path: Path, *, window_records: int = 200, seed: int = 0) -> None:
    with RunLogWriter(path, header(seed=seed), window_records=window_records) as writer:
        ToyRun(writer, seed=seed, steps=2).play()


def test_records_come_back_exactly_and_in_order(path: Path) -> None:
    script = one_step_run()
    with RunLogWriter(path, header()) as writer:
        write(writer, script)
    expected = [(time_s, record) for time_s, said, ordered in script for record in (said, *ordered)]
    assert [(time_s, record) for _, time_s, record in records(path)] == expected
    assert [seq for seq, _, _ in records(path)] == list(range(len(expected)))


def test_the_window_size_does_not_change_the_records(path: Path, tmp_path: Path) -> None:
    toy_log(path, window_records=70)
    toy_log(tmp_path / "other.parquet", window_records=10_000)
    assert log_records(path) == log_records(tmp_path / "other.parquet")


def test_windows_keep_an_event_and_its_commands_together(path: Path) -> None:
    toy_log(path, window_records=40)
    for window in windows(path):
        for batch in window.batches.values():
            caused = batch.cause_seq[batch.cause_seq >= 0]
            assert (caused >= window.first_seq).all()


def test_commands_name_the_event_that_caused_them(path: Path) -> None:
    with RunLogWriter(path, header()) as writer:
        write(writer, one_step_run())
    (window,) = windows(path)
    turn = window.get(c.GenerateTurn)
    assert turn is not None
    assert turn.cause_seq.tolist() == [2] and turn.seq.tolist() == [3]
    started = window.get(e.RunStarted)
    assert started is not None and started.cause_seq.tolist() == [-1]


def test_equal_runs_are_equal_files(path: Path, tmp_path: Path) -> None:
    toy_log(path)
    toy_log(tmp_path / "again.parquet")
    assert path.read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_the_header_comes_back(path: Path) -> None:
    toy_log(path)
    assert read_header(path) == header()


def test_other_tools_can_read_the_columns(path: Path) -> None:
    toy_log(path)
    table = pq.read_table(path, columns=["seq", "record", "kind", "output_tokens", "cause_seq"])
    turns = table.filter(pa.compute.equal(table.column("kind").cast("string"), "TurnGenerated"))
    assert turns.num_rows > 0 and turns.column("output_tokens").null_count == 0
    others = table.filter(pa.compute.equal(table.column("kind").cast("string"), "RunStarted"))
    assert others.column("output_tokens").null_count == others.num_rows == 1


def test_sinks_see_every_record_without_a_file() -> None:
    sink = Collector()
    with RunLogWriter(None, header(), [sink], window_records=50) as writer:
        ToyRun(writer).play()
    seqs = [seq for window in sink.windows for seq, _, _ in window.in_order()]
    assert len(sink.windows) > 5 and seqs == list(range(len(seqs)))


def test_an_exception_leaves_nothing(path: Path) -> None:
    with pytest.raises(KeyError), RunLogWriter(path, header()) as writer:
        write(writer, one_step_run())
        raise KeyError
    assert list(path.parent.iterdir()) == []


def test_an_earlier_log_survives_until_the_new_one_is_complete(path: Path) -> None:
    toy_log(path)
    before = path.read_bytes()
    writer = RunLogWriter(path, header(seed=5), window_records=10)
    ToyRun(writer, seed=5).play()
    assert path.read_bytes() == before
    writer.discard()
    assert path.read_bytes() == before
    toy_log(path, seed=5)
    assert path.read_bytes() != before


def test_an_unwritable_folder_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="give a folder that is writable"):
        RunLogWriter(tmp_path / "file" / "runlog.parquet", header())


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 8 KiB, as on a disk that is full."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_an_output_error_and_leaves_nothing(path: Path) -> None:
    with pytest.raises(OutputError) as raised:
        toy_log(path)
    assert "\n" not in str(raised.value)
    assert list(path.parent.iterdir()) == []


def test_a_missing_log_is_named(path: Path) -> None:
    with pytest.raises(RunLogError, match="there is no run log"):
        read_header(path)


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(RunLogError, match="is a folder"):
        read_header(tmp_path)


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_a_truncated_log_is_refused(path: Path, kept: float) -> None:
    toy_log(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(RunLogError, match="truncated") as raised:
        log_records(path)
    assert "\n" not in str(raised.value)


def test_damaged_pages_are_refused(path: Path) -> None:
    toy_log(path)
    content = bytearray(path.read_bytes())
    content[100:3000] = bytes(2900)
    path.write_bytes(content)
    with pytest.raises(RunLogError) as raised:
        log_records(path)
    assert "\n" not in str(raised.value)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    text, table = tmp_path / "a.txt", tmp_path / "b.parquet"
    text.write_text("step,time\n" * 10)
    pq.write_table(pa.table({"x": [1]}), table)
    with pytest.raises(RunLogError, match="is not a Parquet file"):
        read_header(text)
    with pytest.raises(RunLogError, match="but not a run log"):
        read_header(table)


def test_another_version_is_refused_with_both_numbers(path: Path) -> None:
    with RunLogWriter(path, msgspec.structs.replace(header(), schema_version=99)) as writer:
        write(writer, one_step_run())
    with pytest.raises(RunLogError, match="schema version 99, this RollArt reads 2"):
        read_header(path)


def test_a_broken_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    schema = pa.schema([("seq", pa.int64())]).with_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})
    pq.write_table(pa.table({"seq": [0]}, schema=schema), path)
    with pytest.raises(RunLogError, match="the header is broken"):
        read_header(path)


def _values(form: Form, enum: type | None) -> st.SearchStrategy[object]:
    numbers = st.integers(0, 2**40)
    return {
        Form.INT: numbers,
        Form.OPTIONAL_INT: st.none() | numbers,
        Form.FLOAT: st.floats(allow_nan=False),
        Form.FLAG: st.booleans(),
        Form.TEXT: st.sampled_from(list(enum)) if enum else st.text(max_size=5),
        Form.INT_LIST: st.lists(numbers, max_size=3).map(tuple),
    }[form]


def _any_record(kind: Kind) -> st.SearchStrategy[Record]:
    return st.builds(kind.type, **{field.name: _values(field.form, field.enum) for field in kind.fields})


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of([_any_record(kind) for kind in KINDS]), min_size=1, max_size=30))
def test_any_record_survives_the_columns(said: list[Record]) -> None:
    window = window_of(3, [0.5] * len(said), [-1] * len(said), said)
    for batch in window.batches.values():
        for field in batch.kind.fields:
            batch.column(field.name)
        batch._records = None
    assert [record for _, _, record in window.in_order()] == said


def test_the_cause_of_a_failure_is_no_plain_text(path: Path) -> None:
    with RunLogWriter(path, header()) as writer:
        writer.event(0.0, e.EnvironmentFailed(command_id=0, cause=Cause.TIMEOUT))
    ((_, _, record),) = records(path)
    assert isinstance(record, e.EnvironmentFailed) and record.cause is Cause.TIMEOUT


def test_columns_have_the_types_of_the_schema() -> None:
    sink = Collector()
    with RunLogWriter(None, header(), [sink]) as writer:
        write(writer, one_step_run())
    turn = sink.windows[0].get(c.GenerateTurn)
    assert turn is not None
    assert turn.ints("prefill_engine").tolist() == [-1]
    assert turn.ints("context_tokens").dtype == np.int64
    batch = sink.windows[0].get(c.TrainBatch)
    assert batch is not None and batch.int_lists("trajectories") == [(0,)]
