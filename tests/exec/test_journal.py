import random

import pytest

from rollart.domain.commands import EndTrajectory, GenerateTurn
from rollart.domain.errors import OutputError, RunLogError
from rollart.domain.events import RunStarted, TrainingEnded
from rollart.domain.trajectory import End
from rollart.exec import journal as journal_module
from rollart.exec.journal import MAGIC, Journal, read_journal
from rollart.exec.journaled_log import JournaledLog
from rollart.runlog.samples import TrainerSample
from rollart.runlog.writer import RunLogWriter
from tests.sched.setups import header, setup

RECORDS = [
    (0.0, RunStarted()),
    (0.5, EndTrajectory(id=3, trajectory=1, end=End.STALE)),
    (
        1.5,
        GenerateTurn(
            id=4,
            trajectory=1,
            group=0,
            turn=0,
            engine=0,
            incarnation=0,
            prefill_engine=None,
            context_tokens=9,
            reusable_tokens=0,
            shared_tokens=0,
            partial_tokens=0,
            max_tokens=5,
        ),
    ),
    (2.0, TrainerSample(busy_s=1.25)),
]


def write(path, records):
    journal = Journal(path)
    for time_s, record in records:
        journal.add(time_s, record)
    journal.close()
    return journal


def test_what_is_written_is_read(tmp_path):
    journal = write(tmp_path / "new/journal.bin", RECORDS)
    assert journal.records == 4
    assert list(read_journal(tmp_path / "new/journal.bin")) == RECORDS


def test_a_journal_goes_on_behind_what_is_there(tmp_path):
    path = tmp_path / "journal.bin"
    write(path, RECORDS[:2])
    assert write(path, RECORDS[2:]).records == 4
    assert list(read_journal(path)) == RECORDS


@pytest.mark.parametrize("cut", [1, 5, 9, 30])
def test_a_torn_last_block_is_left_out_and_written_over(tmp_path, cut):
    path = tmp_path / "journal.bin"
    write(path, RECORDS[:2])
    whole = path.stat().st_size
    write(path, RECORDS[2:])
    torn = path.read_bytes()[: whole + cut]
    path.write_bytes(torn)
    assert list(read_journal(path)) == RECORDS[:2]
    assert write(path, RECORDS[3:]).records == 3
    assert list(read_journal(path)) == [*RECORDS[:2], RECORDS[3]]


def test_a_flipped_bit_ends_the_journal(tmp_path):
    path = tmp_path / "journal.bin"
    write(path, RECORDS[:2])
    whole = path.stat().st_size
    write(path, RECORDS[2:])
    content = bytearray(path.read_bytes())
    content[random.Random(1).randrange(whole + 8, len(content))] ^= 4
    path.write_bytes(content)
    assert list(read_journal(path)) == RECORDS[:2]


def test_another_file_is_no_journal(tmp_path):
    path = tmp_path / "journal.bin"
    path.write_bytes(b"something else")
    with pytest.raises(RunLogError, match="is not the journal of a run"):
        list(read_journal(path))


def test_a_journal_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"journal .*/file/journal.bin: "):
        Journal(tmp_path / "file/journal.bin")


def test_records_wait_for_the_disk_for_a_while_only(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "RECORDS_AT_MOST", 3)
    now = [0.0]
    path = tmp_path / "journal.bin"
    journal = Journal(path, wall=lambda: now[0])
    journal.add(*RECORDS[0])
    assert path.stat().st_size <= len(MAGIC)
    journal.add(*RECORDS[1])
    journal.add(*RECORDS[2])
    assert list(read_journal(path)) == RECORDS[:3]
    now[0] = 1.5
    journal.add(*RECORDS[3])
    assert list(read_journal(path)) == RECORDS
    journal.close()


def test_the_end_of_a_step_is_on_the_disk_before_anything_follows(tmp_path):
    path = tmp_path / "journal.bin"
    journal = Journal(path)
    ended = TrainingEnded(command_id=0, version=1)
    with RunLogWriter(None, header(setup())) as log:
        journaled = JournaledLog(log, journal)
        journaled.event(0.0, RunStarted())
        journaled.event(3.0, ended)
    assert list(read_journal(path)) == [(0.0, RunStarted()), (3.0, ended)]
    journal.close()
