"""Measurements in pieces: what is there is kept, and no file mixes two configurations."""

import json

import pytest

from rollart.domain.errors import OutputError
from rollart.planning.pieces import Pieces


def test_a_run_that_is_begun_again_goes_on(tmp_path):
    path = tmp_path / "found.json"
    first = Pieces(path, {"seed": 0}, version="a")
    assert first.wanted("one")
    first.put("one", {"step_s": 2.0})
    again = Pieces(path, {"seed": 0}, version="b")
    assert not again.wanted("one")
    assert again.wanted("two")
    again.put("two", {"step_s": 3.0})
    again.write({"mean": 2.5})
    assert json.loads(path.read_text()) == {
        "config": {"seed": 0},
        "summary": {"mean": 2.5},
        "results": {"one": {"step_s": 2.0, "code_version": "a"}, "two": {"step_s": 3.0, "code_version": "b"}},
    }


def test_another_configuration_is_refused(tmp_path):
    path = tmp_path / "found.json"
    Pieces(path, {"seed": 0}, version="a").put("one", {})
    with pytest.raises(OutputError, match="made with"):
        Pieces(path, {"seed": 1}, version="a")


def test_nothing_is_begun_when_time_is_up(tmp_path):
    assert not Pieces(tmp_path / "found.json", {}, version="a", minutes=0.0).wanted("one")
