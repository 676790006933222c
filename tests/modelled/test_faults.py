import pytest

from rollart.domain.commands import RestartEngine
from rollart.domain.events import EngineStarted
from rollart.domain.job import Faults, Preemption
from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.faults import EngineFaults
from rollart.serving.config import EngineConfig
from tests.modelled.toys import ToyCosts
from tests.sim.runs import Bench


class Stand(Bench):
    """Engines that die; with `restart`, each is started again at once."""

    def __init__(self, faults, *, seed=0, engines=2, restart=False):
        super().__init__()
        config = EngineConfig(max_num_seqs=1, max_num_batched_tokens=1, kv_blocks=1)
        self.workers = [EngineWorker(i, config, ToyCosts(), self.clock, self.report) for i in range(engines)]
        self.losses = []
        self.restart = restart
        self.faults = EngineFaults(faults, seed, self.workers, self.clock, self.lose, self.report)

    def lose(self, index):
        worker = self.workers[index]
        self.losses.append((self.clock.now, index, worker.incarnation))
        worker.kill()
        if self.restart:
            self.order_restart(index, worker.incarnation + 1)

    def order_restart(self, engine, incarnation):
        self.faults.restart(RestartEngine(id=incarnation, engine=engine, incarnation=incarnation))


def times_of(losses, engine):
    return [time_s for time_s, index, _ in losses if index == engine]


def test_without_a_rate_nothing_fails():
    stand = Stand(Faults())
    stand.run()
    assert stand.losses == []


def test_failures_have_their_mean_time():
    stand = Stand(Faults(engine_mtbf_s=100.0, engine_restart_s=0.0), engines=3, restart=True)
    stand.run(20_000.0)
    # 600 are expected; the standard deviation of a Poisson count is 24.5.
    assert 527 < len(stand.losses) < 673


def test_the_times_of_an_engine_do_not_depend_on_the_others():
    faults = Faults(engine_mtbf_s=100.0, engine_restart_s=7.0)
    few, many = Stand(faults, engines=1, restart=True), Stand(faults, engines=4, restart=True)
    few.run(2_000.0)
    many.run(2_000.0)
    assert len(few.losses) > 5
    assert times_of(few.losses, 0) == times_of(many.losses, 0)
    assert times_of(many.losses, 0) != times_of(many.losses, 1)


def test_the_life_of_an_incarnation_does_not_depend_on_when_it_started():
    lives = []
    for restart_s in (1.0, 30.0):
        stand = Stand(Faults(engine_mtbf_s=100.0, engine_restart_s=restart_s), engines=1, restart=True)
        stand.run(1_000.0)
        times = times_of(stand.losses, 0)
        lives.append([times[0], times[1] - times[0] - restart_s, times[2] - times[1] - restart_s])
    assert lives[0] == pytest.approx(lives[1])


def test_seeds_differ():
    first, second = (Stand(Faults(engine_mtbf_s=100.0), seed=seed, engines=1) for seed in (0, 1))
    first.run()
    second.run()
    assert first.losses != second.losses


def test_a_recorded_preemption_takes_its_engine_at_its_time():
    stand = Stand(Faults(preemptions=(Preemption(time_s=5.0, engine=1, away_s=10.0),)))
    stand.run()
    assert stand.losses == [(5.0, 1, 0)]


def test_a_restart_takes_its_time_and_waits_for_its_devices():
    faults = Faults(engine_restart_s=2.0, preemptions=(Preemption(time_s=5.0, engine=0, away_s=10.0),))
    stand = Stand(faults, restart=True)
    assert stand.run() == [(5.0 + 10.0 + 2.0, EngineStarted(command_id=1))]
    assert (stand.workers[0].up, stand.workers[0].incarnation) == (True, 1)


def test_a_restart_after_a_failure_has_its_devices():
    stand = Stand(Faults(engine_restart_s=2.0))
    stand.at(1.0, stand.workers[0].kill)
    stand.at(4.0, lambda: stand.order_restart(0, 1))
    assert stand.run() == [(6.0, EngineStarted(command_id=1))]


def test_devices_that_are_taken_while_an_engine_starts_delay_it():
    preemption = Preemption(time_s=5.0, engine=0, away_s=10.0)
    stand = Stand(Faults(engine_restart_s=2.0, preemptions=(preemption,)))
    stand.at(3.5, stand.workers[0].kill)
    stand.at(4.0, lambda: stand.order_restart(0, 1))
    # It would be up at 6 s; its devices are away until 15 s, then it starts from the beginning.
    assert stand.run() == [(17.0, EngineStarted(command_id=1))]
    assert stand.losses == []


def test_a_second_preemption_does_not_shorten_the_first():
    faults = Faults(
        engine_restart_s=2.0,
        preemptions=(Preemption(time_s=5.0, engine=0, away_s=20.0), Preemption(time_s=6.0, engine=0, away_s=1.0)),
    )
    assert Stand(faults, restart=True).run() == [(27.0, EngineStarted(command_id=1))]


def test_preemptions_of_engines_that_the_plan_lacks_are_left_out():
    stand = Stand(Faults(preemptions=(Preemption(time_s=5.0, engine=9, away_s=1.0),)))
    stand.run()
    assert stand.losses == []
