"""A run goes on after its driver is gone: nothing is lost, nothing is trained twice."""

import random
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.commands import EndTrajectory, RestartTrainer, TrainBatch
from rollart.domain.errors import RunLogError
from rollart.domain.events import RunResumed, RunStarted
from rollart.domain.trajectory import End
from rollart.exec import journal
from rollart.exec.execute import execute
from rollart.exec.saved_run import SavedRun
from rollart.runlog.samples import TrainerSample
from rollart.sched.presets import PRESETS
from tests.exec.killing import dying_crew, run_through_deaths, tear
from tests.exec.test_one_brain import assert_sound, models_of
from tests.sim.random_jobs import random_case


def surviving_batches(finished):
    """Version -> trajectories of the step that made it, of the steps that are not void."""
    made = {}
    for _, _, record in finished.records:
        if isinstance(record, RestartTrainer):
            made = {version: batch for version, batch in made.items() if version <= record.version}
        elif isinstance(record, TrainBatch):
            made[record.version] = record.trajectories
    return made


def assert_whole(case, finished):
    """The surviving history trains every batch once, and every trajectory has ended once."""
    assert_sound(finished)
    job = case.job
    batches = surviving_batches(finished)
    assert sorted(batches) == list(range(1, job.steps + 1))
    trained = [number for batch in batches.values() for number in batch]
    assert len(trained) == len(set(trained)) == job.steps * job.training.batch_size
    ends = [record for _, record in finished.of(EndTrajectory)]
    assert len({end.trajectory for end in ends}) == len(ends)
    assert Counter(end.end for end in ends)[End.TRAINED] == len(trained)
    assert {end.trajectory for end in ends if end.end is End.TRAINED} == set(trained)
    assert len(finished.statistics.steps) == job.steps


def check(case, lives, luck):
    with TemporaryDirectory() as folder:
        _, finished = run_through_deaths(models_of(case), Path(folder) / "kept", lives, partial(tear, luck=luck))
    assert_whole(case, finished)
    return finished


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(journal, "RECORDS_AT_MOST", 20)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_run_survives_deaths_at_any_event(preset):
    for seed in range(6):
        luck = random.Random(seed)
        finished = check(random_case(seed, preset), [luck.randint(1, 300) for _ in range(3)], luck)
        assert len(finished.of(RunStarted)) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 150), min_size=1, max_size=4))
def test_a_random_run_survives_random_deaths(seed, lives):
    check(random_case(seed), lives, random.Random(seed))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(sorted(PRESETS)), st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_many_random_runs_survive_random_deaths(seed, preset, lives):
    check(random_case(seed, preset), lives, random.Random(seed))


def test_a_run_that_was_over_but_for_its_last_commands_is_completed():
    finished = check(random_case(3789, "areal"), [194], random.Random(3789))
    assert finished.of(RunResumed) == []


def test_a_resumed_run_is_marked_and_its_counters_go_on(tmp_path):
    case = random_case(3, "rollart")
    _, finished = run_through_deaths(models_of(case), tmp_path / "kept", [150, 150])
    assert len(finished.of(RunResumed)) == 2
    busy_s = [sample.busy_s for _, sample in finished.of(TrainerSample)]
    assert busy_s == sorted(busy_s)


def test_a_run_that_was_never_interrupted_is_the_same_with_a_journal(tmp_path):
    case = random_case(5, "areal")
    _, kept = run_through_deaths(models_of(case), tmp_path / "kept", [])
    _, finished = run_through_deaths(models_of(case), tmp_path / "again", [])
    assert kept.records == finished.records
    assert [record for _, record in journal.read_journal(tmp_path / "kept/journal.bin")] == [
        record for _, _, record in kept.records
    ]


def test_what_was_never_begun_cannot_be_resumed(tmp_path):
    case = random_case(5, "areal")
    saved = SavedRun(tmp_path / "kept")
    with pytest.raises(RunLogError, match="there is no interrupted run to resume"):
        execute(case.job, dying_crew(models_of(case), None), saved=saved, resume=True)
