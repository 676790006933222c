"""Versions of weights, from the driver's side."""

import asyncio

import pytest

pytest.importorskip("ray")

from rollart.domain.commands import PushWeights, UpdateEngine, WeightSource
from rollart.domain.events import WeightsPushed
from rollart.exec.real.weights.carrier import RayObjects
from rollart.exec.real.weights.members import Broadcast, Member
from rollart.exec.real.weights.store import WeightStore


class Trainer:
    """Publishes parcels that are named after the push."""

    def __init__(self):
        self.pushes = 0

    async def publish(self):
        self.pushes += 1
        return [f"push {self.pushes}"], [[-float(self.pushes)]]


class Dead:
    """A trainer that dies over every push."""

    async def publish(self):
        return None


class Carrier:
    """Notes what nobody needs any more."""

    def __init__(self):
        self.dropped = []

    def drop(self, parcels):
        self.dropped += parcels


class Clock:
    now = 0.0


class Sender:
    """A trainer that broadcasts, and notes what it is asked for."""

    def __init__(self, sent, published):
        self.sent, self.published, self.asked = sent, published, []

    async def broadcast(self, members):
        self.asked.append("broadcast")
        assert members == MEMBERS
        await asyncio.sleep(0)
        return self.sent

    async def publish(self):
        self.asked.append("publish")
        return self.published


async def pushed_by(trainer, commands, receivers=None):
    """A store after some pushes, and what it reported."""
    events, tasks, loop = [], [], asyncio.get_running_loop()
    store = WeightStore(
        trainer, Carrier(), lambda work: tasks.append(loop.create_task(work)), Clock(), events.append, receivers
    )
    for command in commands:
        store.push(command)
        for task in tasks:
            await task
    return store, events


def push(version, *, broadcast=False):
    return PushWeights(id=version, version=version, broadcast=broadcast)


def test_the_last_three_versions_are_kept_and_the_others_are_dropped_from_the_carrier():
    async def check():
        store, events = await pushed_by(Trainer(), [push(version) for version in range(1, 6)])
        assert events == [WeightsPushed(command_id=version, version=version) for version in range(1, 6)]
        assert [await store.pushed(version) for version in (3, 4, 5)] == [["push 3"], ["push 4"], ["push 5"]]
        assert store.probes == {3: [[-3.0]], 4: [[-4.0]], 5: [[-5.0]]}
        assert store._carrier.dropped == ["push 1", "push 2"]

    asyncio.run(check())


def test_a_push_that_the_trainer_did_not_outlive_is_not_reported():
    async def check():
        store, events = await pushed_by(Dead(), [push(1)])
        assert (events, store._carrier.dropped, store.probes) == ([], [], {})

    asyncio.run(check())


MEMBERS = [Member(engine=engine, incarnation=2, workers=1, process=None) for engine in (0, 3)]
PROBES = [[-0.5]]


def update(engine, incarnation=2):
    return UpdateEngine(id=8, engine=engine, incarnation=incarnation, version=1, source=WeightSource.BROADCAST)


def test_a_broadcast_reaches_its_members_and_the_store_has_the_version_for_others():
    async def check():
        trainer = Sender(Broadcast(bytes_each=10, probes=PROBES), (["parcel"], PROBES))
        store, events = await pushed_by(trainer, [push(1, broadcast=True)], lambda: MEMBERS)
        assert trainer.asked == ["broadcast", "publish"]
        assert events == [WeightsPushed(command_id=1, version=1)]
        assert [store.has_arrived(update(0)), store.has_arrived(update(0, 3)), store.has_arrived(update(1))] == [
            True,
            False,
            False,
        ]
        assert (await store.pushed(1), store.probes, store.broadcast_bytes) == (["parcel"], {1: PROBES}, 20)

    asyncio.run(check())


def test_after_a_broadcast_that_failed_everyone_fetches():
    async def check():
        store, events = await pushed_by(
            Sender(Broadcast(bytes_each=None, probes=PROBES), (["parcel"], PROBES)),
            [push(1, broadcast=True)],
            lambda: MEMBERS,
        )
        assert events == [WeightsPushed(command_id=1, version=1)]
        assert (store.has_arrived(update(0)), await store.pushed(1)) == (False, ["parcel"])
        assert store.failed_broadcasts == 1

    asyncio.run(check())


def test_a_version_that_the_trainer_did_not_live_to_store_is_lost():
    async def check():
        store, events = await pushed_by(Sender(None, None), [push(1, broadcast=True)], lambda: MEMBERS)
        assert (events, await store.pushed(1)) == ([], None)

    asyncio.run(check())


def test_without_receivers_a_broadcast_goes_through_the_store():
    async def check():
        trainer = Sender(None, (["parcel"], PROBES))
        store, _ = await pushed_by(trainer, [push(1, broadcast=True)], list)
        assert (trainer.asked, await store.pushed(1)) == (["publish"], ["parcel"])

    asyncio.run(check())


def test_a_ray_object_is_the_bucket_itself(tmp_path):
    carrier = RayObjects()
    carrier.fetch(carrier.put(b"weights"), tmp_path / "bucket")
    assert (tmp_path / "bucket").read_bytes() == b"weights"
