"""`simulate` as a whole: the same in, the same out; and common luck between plans."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from rollart.catalog.load import models
from rollart.domain.errors import CapacityError
from rollart.domain.events import TrainingEnded, TurnGenerated
from rollart.domain.trajectory import End
from rollart.runlog.invariants import check_invariants
from rollart.runlog.reader import read_header, records
from rollart.sched.replay import replay
from rollart.sim import simulate
from tests.modelled.toys import ToyWorkload, engines
from tests.sim.real_jobs import CHECKOUT, profiled, real_job


def test_a_run_writes_a_log_that_holds_and_replays(tmp_path):
    path = tmp_path / "runlog.parquet"
    result = simulate(real_job(), profiled(), log_path=path, code_version="test")
    header = read_header(path)
    assert (header.policy, header.seed, header.code_version) == ("rollart", 0, "test")
    assert header.engines == result.header.engines
    assert check_invariants(records(path), header, staleness_bound=1).violation is None
    assert replay(header, records(path)).difference is None
    assert result.statistics.ends[End.TRAINED] == 3 * 16
    assert result.use.turns == sum(isinstance(record, TurnGenerated) for _, _, record in records(path))
    assert result.use.events == result.statistics.events


def test_the_log_changes_nothing(tmp_path):
    with_log = simulate(real_job(), profiled(), log_path=tmp_path / "log.parquet").statistics
    assert simulate(real_job(), profiled()).statistics == with_log


def test_steps_are_told_while_the_run_goes_on():
    told = []
    result = simulate(real_job(), profiled(), on_step=lambda *step: told.append(step))
    assert [version for version, _ in told] == [1, 2, 3]
    assert [time_s for _, time_s in told] == [step.end_s for step in result.statistics.steps]


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    for path in (first, second):
        simulate(real_job(), profiled(), log_path=path)
    assert first.read_bytes() == second.read_bytes()


def test_another_seed_gives_another_run():
    first, second = (simulate(real_job(seed=seed), profiled(seed)).statistics for seed in (0, 1))
    assert [step.duration_s for step in first.steps] != [step.duration_s for step in second.steps]


HASHED = """
import hashlib, sys
from pathlib import Path
from tests.sim.real_jobs import profiled, real_job
from rollart.sim import simulate
path = Path(sys.argv[1])
simulate(real_job(steps=2), profiled(), log_path=path)
print(hashlib.sha256(path.read_bytes()).hexdigest())
"""


def test_hash_randomisation_changes_nothing(tmp_path):
    path = tmp_path / "here.parquet"
    simulate(real_job(steps=2), profiled(), log_path=path)
    command = [sys.executable, "-c", HASHED, str(tmp_path / "there.parquet")]
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=CHECKOUT)
    assert done.stdout.strip() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_plan_that_does_not_fit_leaves_no_log(tmp_path):
    path = tmp_path / "log.parquet"
    too_large = replace(real_job(), model=models()["Qwen3-235B-A22B"])
    with pytest.raises(CapacityError):
        simulate(too_large, profiled(), log_path=path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_breaks_leaves_no_log(tmp_path):
    def broken(*_):
        raise RuntimeError("no such trajectory")

    with pytest.raises(RuntimeError, match="no such trajectory"):
        simulate(real_job(), ToyWorkload(broken), log_path=tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []


class Remembering:
    """A workload that keeps what it gave, by key."""

    def __init__(self, seed=0):
        self.inner = profiled(seed)
        self.given = {}

    def trajectory(self, *key):
        spec = self.inner.trajectory(*key)
        assert self.given.setdefault(key, spec) == spec
        return spec


def test_two_plans_meet_the_same_luck():
    sync, asynchronous = Remembering(), Remembering()
    simulate(real_job("sync"), sync)
    simulate(real_job("areal", gpus="H800", groups=(engines(engines=3),)), asynchronous)
    common = sync.given.keys() & asynchronous.given.keys()
    assert len(common) >= 48
    assert all(sync.given[key] == asynchronous.given[key] for key in common)


def test_a_workload_does_not_depend_on_what_was_asked_before():
    keys = [
        (name, prompt, member, 0) for name in ("FrozenLake", "counting") for prompt in range(5) for member in (0, 1)
    ]
    forwards, backwards = profiled(), profiled()
    there = {key: forwards.trajectory(*key) for key in keys}
    back = {key: backwards.trajectory(*key) for key in reversed(keys)}
    assert there == back


def test_every_preset_trains_all_its_batches():
    for policy in ("sync", "sync+", "one-off", "areal", "rollart"):
        statistics = simulate(real_job(policy, steps=4), profiled()).statistics
        assert [step.trajectories for step in statistics.steps] == [16, 16, 16, 16], policy


def test_time_passes_in_the_order_of_the_log(tmp_path):
    path = tmp_path / "log.parquet"
    simulate(real_job(steps=4), profiled(), log_path=path)
    ends = [time_s for _, time_s, record in records(path) if isinstance(record, TrainingEnded)]
    assert ends == sorted(ends)
    assert len(ends) == 4
