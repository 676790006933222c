"""Versions of weights, from the driver's side."""

import asyncio

import pytest

pytest.importorskip("ray")

from rollart.domain.commands import PushWeights
from rollart.domain.events import WeightsPushed
from rollart.exec.real.weights.carrier import RayObjects
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


def push(publisher, versions):
    events, carrier = [], Carrier()
    store = WeightStore(publisher, carrier, asyncio.run, Clock(), events.append)
    for version in versions:
        store.push(PushWeights(id=version, version=version, broadcast=False))
    return store, events, carrier


def test_the_last_three_versions_are_kept_and_the_others_are_dropped_from_the_carrier():
    store, events, carrier = push(Trainer(), range(1, 6))
    assert events == [WeightsPushed(command_id=version, version=version) for version in range(1, 6)]
    assert [store.buckets(version) for version in (3, 4, 5)] == [["push 3"], ["push 4"], ["push 5"]]
    assert store.probes == {3: [[-3.0]], 4: [[-4.0]], 5: [[-5.0]]}
    assert carrier.dropped == ["push 1", "push 2"]


def test_a_push_that_the_trainer_did_not_outlive_is_not_reported():
    store, events, carrier = push(Dead(), [1])
    assert (events, carrier.dropped, store.probes) == ([], [], {})


def test_a_ray_object_is_the_bucket_itself(tmp_path):
    carrier = RayObjects()
    carrier.fetch(carrier.put(b"weights"), tmp_path / "bucket")
    assert (tmp_path / "bucket").read_bytes() == b"weights"
