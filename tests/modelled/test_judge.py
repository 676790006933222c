import pytest

from rollart.domain.commands import ScoreTrajectory
from rollart.domain.events import RewardFailed, TrajectoryScored
from rollart.domain.task import RewardKind, RewardNeeds
from rollart.domain.trajectory import Cause
from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.judge import EngineJudge
from rollart.serving.config import EngineConfig
from tests.modelled.toys import ToyCosts, spec, task
from tests.sim.runs import Bench

TASK = task("maze", reward=RewardNeeds(kind=RewardKind.ENGINE, engine_group="judges", judge_tokens=3))


class Court(Bench):
    """Judge engines; an iteration takes 1 s, a prompt token 1/64 s."""

    def __init__(self, engines=1, kv_blocks=64):
        super().__init__()
        config = EngineConfig(max_num_seqs=8, max_num_batched_tokens=8192, kv_blocks=kv_blocks)
        costs = ToyCosts(overhead_s=1.0, token_s=1 / 64)
        self.workers = [EngineWorker(index, config, costs, self.clock, self.report) for index in range(engines)]
        self.judge = EngineJudge({"judges": self.workers}, self.clock, self.report)

    def score(self, time_s, number, *, timeout_s=1e6, **fields):
        order = ScoreTrajectory(id=number, trajectory=number, attempt=0, timeout_s=timeout_s)
        made = spec(key=("maze", number, 0, 0), reward=number / 4, **fields)
        self.at(time_s, lambda: self.judge.judge(order, TASK, made))


def test_a_judgement_reads_the_trajectory_and_writes_its_tokens():
    court = Court()
    # 32 + 8 + 16 + 8 = 64 tokens to read take 1 + 1 s and make the first token, two more take 1 s each.
    court.score(0.0, 2, prompt_tokens=32, outputs=(8, 8), observations=16)
    assert court.run() == [(4.0, TrajectoryScored(command_id=2, reward=0.5))]
    assert court.workers[0].usage()[-1].decode_tokens == 2


def test_the_engine_with_the_least_requests_judges_the_lowest_number_first():
    court = Court(engines=2)
    for number in range(4):
        court.score(0.0, number, prompt_tokens=56)
    court.run()
    assert [worker.usage()[-1].completions for worker in court.workers] == [2, 2]


def test_what_is_longer_than_the_cache_is_cut():
    court = Court(kv_blocks=2)
    court.score(0.0, 0, prompt_tokens=10_000)
    court.run()
    assert court.workers[0].usage()[-1].prefill_tokens == 2 * 16 - 3


def test_without_an_engine_the_score_fails():
    court = Court()
    court.at(0.0, court.workers[0].kill)
    court.score(1.0, 7)
    assert court.run() == [(1.0, RewardFailed(command_id=7, cause=Cause.ERROR))]


def test_judgements_that_are_lost_fail():
    court = Court()
    court.score(0.0, 4)
    court.score(0.0, 5)
    court.at(0.5, lambda: court.judge.lost(list(court.workers[0].kill())))
    assert court.run() == [
        (0.5, RewardFailed(command_id=4, cause=Cause.ERROR)),
        (0.5, RewardFailed(command_id=5, cause=Cause.ERROR)),
    ]


@pytest.mark.parametrize("timeout_s", [2.5, 3.5])
def test_a_judgement_that_takes_too_long_is_stopped(timeout_s):
    court = Court()
    court.score(0.0, 1, prompt_tokens=56, timeout_s=timeout_s)
    assert court.run() == [(timeout_s, RewardFailed(command_id=1, cause=Cause.TIMEOUT))]
    assert court.workers[0].engine.running == 0
    assert court.workers[0].usage()[-1].completions == 0


def test_a_judgement_may_end_at_its_timeout():
    court = Court()
    court.score(0.0, 1, prompt_tokens=56, timeout_s=4.0)
    assert court.run() == [(4.0, TrajectoryScored(command_id=1, reward=0.25))]
