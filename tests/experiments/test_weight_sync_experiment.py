import pytest

pytest.importorskip("ray")

from experiments.weight_sync import figures, seconds, updates_of
from rollart.domain.commands import PullWeights, PushWeights, ResumeEngine, SuspendEngine, UpdateEngine, WeightSource
from rollart.domain.events import EngineResumed, EngineSuspended, EngineUpdated, WeightsPulled, WeightsPushed


def test_time_that_is_shared_counts_once():
    assert seconds([(0.0, 2.0), (1.0, 3.0), (1.5, 1.6), (5.0, 6.0)]) == 4.0
    assert seconds([]) == 0.0


def test_an_update_is_followed_from_its_push_to_the_last_engine_that_goes_on():
    def to(kind, number, **more):
        return kind(id=number, engine=number % 2, incarnation=0, **more)

    log = [
        (0.0, to(ResumeEngine, 90)),
        (0.5, EngineResumed(command_id=90)),
        (1.0, PushWeights(id=1, version=1, broadcast=False)),
        (2.0, WeightsPushed(command_id=1, version=1)),
        (2.0, to(PullWeights, 2, version=1)),
        (3.0, WeightsPulled(command_id=2, version=1)),
        (5.0, to(SuspendEngine, 4, release_memory=False)),
        (5.0, to(SuspendEngine, 5, release_memory=False)),
        (5.25, EngineSuspended(command_id=4)),
        (5.5, EngineSuspended(command_id=5)),
        (5.5, to(UpdateEngine, 6, version=1, source=WeightSource.HOST)),
        (6.0, EngineUpdated(command_id=6, version=1)),
        (6.0, to(ResumeEngine, 8)),
        (6.0, to(ResumeEngine, 9)),
        (6.25, EngineResumed(command_id=8)),
        (6.5, EngineResumed(command_id=9)),
        (9.0, PushWeights(id=10, version=2, broadcast=False)),
    ]
    updates = updates_of((number, time_s, record) for number, (time_s, record) in enumerate(log))
    assert len(updates) == 1
    assert figures(updates) == {
        "push_s": 1.0,
        "pull_s": 1.0,
        "suspend_s": 0.5,
        "install_s": 0.5,
        "resume_s": 0.5,
        "total_s": 3.5,
        "stopped_s": 1.0,
    }
