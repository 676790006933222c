from collections import Counter
from typing import Any

import pytest

from rollart.domain import commands as c
from rollart.domain import events as e
from rollart.domain.errors import ScenarioError
from rollart.sched import PRESETS, Controller, resolve
from tests.sched.setups import Overrides, engines, setup, task
from tests.sched.toydriver import Luck, ToyDriver

TASKS = (task("maze", size=2, groups=2), task("math", size=3, groups=1, max_turns=1))


def run(preset: str, overrides: Overrides | None = None, *, seed: int = 0, steps: int = 6) -> ToyDriver:
    """A run without trouble."""
    config = setup(preset, overrides, tasks=TASKS, classes=(engines(count=3),), steps=steps)
    return ToyDriver(config, Luck(seed=seed)).run()


def batches(driver: ToyDriver) -> list[c.TrainBatch]:
    """Everything that was trained on."""
    return [record for _, _, record in driver.records if isinstance(record, c.TrainBatch)]


def staleness(driver: ToyDriver) -> Counter[int]:
    """How many trajectories were consumed with which staleness."""
    return Counter(batch.installed - start for batch in batches(driver) for start in batch.start_versions)


def lag(driver: ToyDriver) -> Counter[int]:
    """Versions that the trainer was ahead of what each trajectory started with."""
    return Counter(batch.version - 1 - start for batch in batches(driver) for start in batch.start_versions)


@pytest.mark.parametrize("preset", ["sync", "sync+"])
def test_synchronous_presets_train_on_what_the_trainers_own_version_made(preset: str) -> None:
    driver = run(preset)
    assert staleness(driver) == {0: 6 * 7}
    assert lag(driver) == {0: 6 * 7}


def test_one_off_is_one_version_behind_the_trainer_but_for_the_first_batch() -> None:
    driver = run("one-off")
    assert staleness(driver) == {0: 6 * 7}
    assert lag(driver) == {0: 7, 1: 5 * 7}


@pytest.mark.parametrize("seed", range(3))
def test_rollart_keeps_its_bound_of_one(seed: int) -> None:
    driver = run("rollart", seed=seed)
    assert set(staleness(driver)) == {0, 1}
    assert max(lag(driver)) == 2


@pytest.mark.parametrize("eta", [0, 1, 3])
def test_areal_never_has_more_than_its_aggregate_bound(eta: int) -> None:
    batch = 7
    begun: set[int] = set()
    broken: list[str] = []

    def watch(controller: Controller, event: e.Event, commands: list[c.Command]) -> None:
        for command in commands:
            if isinstance(command, c.ResetEnvironment):
                begun.add(command.trajectory)
            elif isinstance(command, c.EndTrajectory) and command.end not in ("trained", "unfinished"):
                begun.discard(command.trajectory)
        allowed = (eta + controller.state.installed + 1) * batch
        if len(begun) > allowed:
            broken.append(f"{len(begun)} running or accepted after {event}, allowed are {allowed}")

    overrides = {"admission": {"lookahead": eta}}
    config = setup("areal", overrides, tasks=TASKS, classes=(engines(count=3),), steps=5)
    luck = Luck(seed=eta, environment_fails=0.1, losses=((9, 0), (30, 2)))
    ToyDriver(config, luck, watch).run()
    assert broken == []
    assert len(begun) >= 5 * batch


def test_areal_without_lookahead_decides_as_sync_plus_does() -> None:
    router = {"router": {"kind": "round_robin"}}
    areal = run("areal", {"admission": {"lookahead": 0}}, seed=5)
    assert areal.records == run("sync+", router, seed=5).records


def test_rollart_without_staleness_and_redundancy_trains_as_sync_plus_does() -> None:
    alone: dict[str, dict[str, Any]] = {
        "staleness": {"bound": 0},
        "group": {"redundant_members": 0},
        "admission": {"redundant_groups": 0.0},
    }

    def trained(driver: ToyDriver) -> list[tuple[int, int, int, list[int], tuple[int, ...]]]:
        return [(b.step, b.version, b.installed, sorted(b.trajectories), b.start_versions) for b in batches(driver)]

    assert trained(run("rollart", alone)) == trained(run("sync+"))


def test_without_staleness_the_weights_are_out_before_the_next_rollout_starts() -> None:
    driver = run("rollart", {"staleness": {"bound": 0}})
    trained, engine_of, versions = 0, {}, [0, 0, 0]
    for _, _, record in driver.records:
        if isinstance(record, e.TrainingEnded):
            trained = record.version
        elif isinstance(record, c.UpdateEngine):
            engine_of[record.id] = record.engine
        elif isinstance(record, e.EngineUpdated):
            versions[engine_of[record.command_id]] = record.version
        elif isinstance(record, c.ResetEnvironment):
            assert versions == [trained] * 3
            assert record.version == trained
    assert trained == 6


# Names and overrides


def test_every_preset_is_complete_and_named() -> None:
    assert list(PRESETS) == ["sync", "sync+", "one-off", "areal", "rollart"]
    for name in PRESETS:
        spec = resolve(name)
        assert (spec.name, spec.parts) == (name, PRESETS[name])


def test_an_override_of_the_same_kind_keeps_the_other_parameters() -> None:
    sync = resolve("rollart", {"sync": {"transport": "store", "in_flight": "interrupt"}}).parts["sync"]
    assert sync == {**PRESETS["rollart"]["sync"], "in_flight": "interrupt"}


def test_an_override_of_another_kind_replaces_the_part() -> None:
    assert resolve("rollart", {"staleness": {"kind": "at_start"}}).parts["staleness"] == {"kind": "at_start"}


def test_a_bound_that_is_set_alone_sets_the_lookahead() -> None:
    assert resolve("rollart", {"staleness": {"bound": 3}}).parts["admission"]["lookahead"] == 3
    both = resolve("rollart", {"staleness": {"bound": 3}, "admission": {"lookahead": 1}})
    assert both.parts["admission"]["lookahead"] == 1


def test_no_bound_at_all_changes_base_and_order() -> None:
    parts = resolve("rollart", {"staleness": {"bound": 0}}).parts
    assert (parts["admission"]["base"], parts["sync"]["order"]) == ("installed", "update_first")


def test_resolving_leaves_the_presets_as_they_are() -> None:
    resolve("rollart", {"staleness": {"bound": 0}, "sync": {"in_flight": "interrupt"}})
    assert PRESETS["rollart"]["sync"]["order"] == "batch_first"
    assert PRESETS["rollart"]["admission"]["lookahead"] == 1


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        (
            "rolart",
            {},
            "policy: 'rolart' is unknown; known: sync, sync+, one-off, areal, rollart; did you mean 'rollart'?",
        ),
        ("xyz", {}, "policy: 'xyz' is unknown; known: sync, sync+, one-off, areal, rollart"),
        (
            "sync",
            {"rooter": {}},
            "policy.rooter: unknown; known: preset, admission, group, staleness, router, sync, interaction, recovery",
        ),
        (
            "one-off",
            {"admission": {"base": "installed"}},
            "policy.admission: base 'installed' with lookahead 0 never admits the batch that sync order 'batch_first' "
            "takes before an update; must be lookahead 1 or more, base 'taken' or order 'update_first'",
        ),
    ],
)
def test_a_wrong_name_is_named(name: str, overrides: Overrides, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        resolve(name, overrides)
    assert str(caught.value) == message
