"""Outcomes on disk."""

import pytest

from rollart.domain.errors import OutputError
from rollart.planning.memory import Memory, default_path
from rollart.sched.placement.trial import Outcome

OUTCOME = Outcome(step_s=(1.5, 2.5), cost=(0.1, 0.2), trajectories=32)


def test_what_was_put_is_there_for_the_next_process(tmp_path):
    first = Memory(tmp_path / "deep/outcomes.sqlite")
    assert first.get("a") is None
    first.put("a", OUTCOME)
    first.close()
    second = Memory(tmp_path / "deep/outcomes.sqlite")
    assert second.get("a") == OUTCOME
    assert second.get("b") is None
    second.close()


def test_two_may_use_one_file(tmp_path):
    first, second = Memory(tmp_path / "outcomes.sqlite"), Memory(tmp_path / "outcomes.sqlite")
    first.put("a", OUTCOME)
    failed = Outcome(step_s=(), cost=(), trajectories=0, failure="stuck")
    second.put("a", failed)
    assert first.get("a") == failed
    first.close()
    second.close()


def test_a_file_that_is_none_of_ours_is_named(tmp_path):
    path = tmp_path / "outcomes.sqlite"
    path.write_text("something else, and long enough to be looked at as the header of a database" * 20)
    memory = Memory(path)
    with pytest.raises(OutputError, match=r"outcomes.sqlite: cannot remember simulations: .* delete it"):
        memory.get("a")
    memory.close()


def test_the_folder_is_the_users_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("ROLLART_CACHE", str(tmp_path))
    assert default_path() == tmp_path / "simulations.sqlite"
    monkeypatch.delenv("ROLLART_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "rollart/simulations.sqlite"
