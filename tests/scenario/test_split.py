"""The simple split, and the cut of a batch into groups."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollart.domain.batch import groups_per_batch
from rollart.domain.errors import ScenarioError
from rollart.domain.task import Task
from rollart.scenario.scenario import Scenario

Load = Callable[..., Scenario]


def placed(raw: dict[str, Any], load: Load, *overrides: str) -> Any:
    raw.pop("placement", None)
    return load(raw, *overrides).job().plan.placement


def test_training_takes_a_third_of_the_compute_where_it_is_cheapest(raw: dict[str, Any], load: Load) -> None:
    placement = placed(raw, load, "cluster.pools.h800.count=64", "cluster.pools.h20.count=64")
    # (64 * 989.5 + 64 * 148) / 3 / 989.5 = 24.5 devices, which is three nodes.
    assert (placement.trainer.pool, placement.trainer.devices) == ("h800", 24)
    assert [(group.pool, group.devices) for group in placement.engine_groups] == [("h800", 40), ("h20", 64)]
    assert placement.environment_slots == 128
    assert placement.affinity == {}


def test_engines_take_the_least_tensor_parallelism_with_room_for_four(raw: dict[str, Any], load: Load) -> None:
    # Qwen3-32B: 65.5 GB of weights, and 4 x 16,384 tokens of 262 kB. An H20 has 0.9 x 103 GB, an H800 0.9 x 86 GB.
    placement = placed(raw, load, "model=Qwen3-32B", "cluster.pools.h800.count=64")
    assert [group.tensor_parallel for group in placement.engine_groups] == [2, 1]
    small = placed(raw, load, "model=Qwen3-8B", "cluster.pools.h800.count=64")
    assert [group.tensor_parallel for group in small.engine_groups] == [1, 1]


def test_one_small_pool_is_time_shared(raw: dict[str, Any], load: Load) -> None:
    raw["cluster"]["pools"], raw["cluster"]["links"] = {"h800": {"device": "H800", "count": 1}}, []
    placement = placed(raw, load, "model=SmolLM2-135M")
    (group,) = placement.engine_groups
    assert (placement.trainer.devices, group.devices, group.time_shared) == (1, 1, True)


def test_a_model_that_fits_nowhere_is_refused_with_numbers(raw: dict[str, Any], load: Load) -> None:
    with pytest.raises(
        ScenarioError, match=r"no simple split, no cut of DeepSeek-R1 over up to 16 H800 can train; .* GB per device"
    ):
        placed(raw, load, "model=DeepSeek-R1")


def task(name: str, share: float, size: int) -> Task:
    return Task(name=name, share=share, group_size=size, max_turns=1)


def test_largest_remainder() -> None:
    tasks = [task(name, 0.2, 8) for name in "abcde"]
    assert groups_per_batch(tasks, 512) == {"a": 13, "b": 13, "c": 13, "d": 13, "e": 12}
    assert groups_per_batch([task("a", 0.7, 2), task("b", 0.3, 2)], 10) == {"a": 4, "b": 1}


def test_different_group_sizes_need_whole_groups() -> None:
    tasks = [task("a", 0.5, 8), task("b", 0.5, 4)]
    assert groups_per_batch(tasks, 64) == {"a": 4, "b": 8}
    with pytest.raises(ScenarioError, match=r"gives task a 4\.500 groups of 8"):
        groups_per_batch(tasks, 72)


@given(
    weights=st.lists(st.integers(1, 100), min_size=1, max_size=12), size=st.integers(1, 16), groups=st.integers(1, 500)
)
def test_groups_add_up_to_the_batch(weights: list[int], size: int, groups: int) -> None:
    tasks = [task(str(index), weight / sum(weights), size) for index, weight in enumerate(weights)]
    try:
        found = groups_per_batch(tasks, groups * size)
    except ScenarioError as error:
        assert "without a group" in str(error)
    else:
        assert sum(found.values()) == groups
        assert all(abs(found[each.name] - each.share * groups) < 1 + 1e-6 for each in tasks)
