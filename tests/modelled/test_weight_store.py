"""2 GB of weights per engine over links of 1 GB/s; a host link moves 1 GB/s per device."""

import pytest

from rollart.costs.weights import gather_convert_s, transfer_s
from rollart.domain.calibration import WeightDelays
from rollart.domain.cluster import Link
from rollart.domain.commands import PullWeights, PushWeights, UpdateEngine, WeightSource
from rollart.domain.events import WeightsPulled, WeightsPushed
from rollart.modelled.weight_store import EngineSite, WeightStore
from rollart.sim.clock import SimulatedClock
from tests.modelled.toys import DEVICE, LINK
from tests.sim.runs import Bench

NO_DELAYS = WeightDelays()
GATHER_S = gather_convert_s(2e9)


def site(**fields):
    settings = {"device": DEVICE, "devices": 1, "weight_bytes": 2e9, "pull_link": LINK, "time_shared": False}
    return EngineSite(**{**settings, **fields})


class Stand(Bench):
    def __init__(self, *sites, delays=NO_DELAYS):
        super().__init__()
        self.store = WeightStore(sites or (site(),), 2e9, LINK, 1, delays, self.clock, self.report)

    def push(self, time_s, command, *, broadcast=False):
        order = PushWeights(id=command, version=1, broadcast=broadcast)
        self.at(time_s, lambda: self.store.push(order))

    def pull(self, time_s, command, engine=0):
        order = PullWeights(id=command, engine=engine, incarnation=0, version=1)
        self.at(time_s, lambda: self.store.pull(order))


def update_s(source, **fields):
    order = UpdateEngine(id=0, engine=0, incarnation=0, version=1, source=source)
    return Stand(site(**fields)).store.update_s(order)


def test_a_push_gathers_and_then_sends():
    stand = Stand()
    stand.push(1.0, 0)
    assert stand.run() == [(pytest.approx(1.0 + GATHER_S + 2.0), WeightsPushed(command_id=0, version=1))]
    assert (stand.store.bytes, stand.store.busy_s) == (2e9, pytest.approx(GATHER_S + 2.0))


def test_what_software_adds_comes_on_top_of_every_movement():
    delays = WeightDelays(push_s=0.5, pull_s=0.25, update_s=0.125)
    stand = Stand(delays=delays)
    stand.push(0.0, 0)
    stand.pull(100.0, 1)
    pushed, pulled = stand.run()
    assert (pushed[0], pulled[0]) == (pytest.approx(GATHER_S + 2.5), 102.25)
    order = UpdateEngine(id=0, engine=0, incarnation=0, version=1, source=WeightSource.HOST)
    assert stand.store.update_s(order) == update_s(WeightSource.HOST) + 0.125


def test_a_pull_of_what_is_there_takes_its_transfer():
    stand = Stand()
    stand.push(0.0, 0)
    stand.pull(100.0, 1)
    assert stand.run()[1] == (102.0, WeightsPulled(command_id=1, version=1))


def test_a_pull_beside_the_push_ends_one_bucket_after_it():
    stand = Stand()
    stand.push(0.0, 0)
    stand.pull(0.0, 1)
    stand.run()
    # Half of 2 GB is a bucket of 1 GB: one second.
    assert stand.answers()[1] == (pytest.approx(GATHER_S + 2.0 + 1.0), "WeightsPulled", 1)


def test_a_slow_pull_is_not_hurried_by_an_early_push():
    stand = Stand(site(pull_link=Link(bandwidth_bytes_per_s=1e8)))
    stand.push(0.0, 0)
    stand.pull(0.0, 1)
    stand.run()
    # The last bucket of 1 GB takes 10 s behind the push; the whole pull would take 20 s from now.
    assert stand.answers()[1][0] == pytest.approx(max(20.0, GATHER_S + 2.0 + 10.0))


def test_pulls_of_engines_do_not_share():
    stand = Stand(site(), site())
    stand.push(0.0, 0)
    stand.pull(50.0, 1, 0)
    stand.pull(50.0, 2, 1)
    stand.run()
    assert [time_s for time_s, _, _ in stand.answers()[1:]] == [52.0, 52.0]


def test_a_broadcast_takes_as_long_as_a_push():
    stand = Stand()
    stand.push(0.0, 0, broadcast=True)
    stand.run()
    assert stand.answers()[0][0] == pytest.approx(GATHER_S + 2.0)


def test_engines_on_the_trainers_devices_need_no_broadcast():
    stand = Stand(site(time_shared=True))
    stand.push(3.0, 0, broadcast=True)
    stand.run()
    assert stand.answers() == [(3.0, "WeightsPushed", 0)]
    assert stand.store.bytes == 0.0


@pytest.mark.parametrize(
    ("source", "devices", "expected_s"),
    [
        (WeightSource.HOST, 1, 2.0),
        (WeightSource.HOST, 4, 0.5),
        (WeightSource.STORE, 1, 4.0),
        (WeightSource.STORE, 4, 2.5),
        (WeightSource.BROADCAST, 1, 2e9 / 1e12),
        (WeightSource.BROADCAST, 2, 1e9 / 1e12),
    ],
)
def test_an_update_loads_over_each_devices_own_link(source, devices, expected_s):
    assert update_s(source, devices=devices) == pytest.approx(expected_s)


def test_a_time_shared_engine_reshards_and_wakes():
    # 2 GB over a device link of 100 GB/s, and back from the host at 1 GB/s.
    assert update_s(WeightSource.BROADCAST, time_shared=True) == pytest.approx(0.02 + 2.0)
    assert update_s(WeightSource.BROADCAST, time_shared=True, devices=2) == pytest.approx(0.01 + 1.0)


def test_a_time_shared_engine_that_was_restarted_pulls_from_the_store():
    assert update_s(WeightSource.STORE, time_shared=True) == pytest.approx(4.0)


def test_releasing_memory_moves_the_weights_to_the_host():
    assert Stand(site(devices=2)).store.release_s(0) == 1.0


def test_publishers_share_the_gathering():
    clock = SimulatedClock()
    sent_s = []
    store = WeightStore((site(),), 2e9, LINK, 4, NO_DELAYS, clock, lambda _: sent_s.append(clock.now))
    store.push(PushWeights(id=0, version=1, broadcast=False))
    clock.after(1e3, lambda _: clock.stop(), None)
    clock.run()
    assert sent_s == [pytest.approx(GATHER_S / 4 + transfer_s(2e9, LINK))]
