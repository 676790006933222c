"""A run directory changes as a whole or not at all."""

import pytest

from rollart.domain.errors import OutputError
from rollart.report.staging import staged


def write(folder, **files):
    for name, text in files.items():
        (folder / name).write_text(text)


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_results_replace_those_that_were_there(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder, summary="old", notes="mine")
    with staged(folder) as stage:
        write(stage, summary="new", log="x")
    assert content(folder) == {"summary": "new", "log": "x", "notes": "mine"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_failure_changes_nothing(tmp_path, error):
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder, summary="old")
    with pytest.raises(error), staged(folder) as stage:
        write(stage, summary="half")
        raise error
    assert content(folder) == {"summary": "old"}


def test_a_failure_leaves_no_folder_that_was_not_there(tmp_path):
    with pytest.raises(ValueError), staged(tmp_path / "a" / "run") as stage:
        write(stage, summary="half")
        raise ValueError
    assert not (tmp_path / "a" / "run").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(OutputError, match=r"file/run: .*; give a folder that is writable"),
        staged(tmp_path / "file/run"),
    ):
        pass
