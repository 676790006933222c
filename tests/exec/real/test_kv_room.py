"""Which KV caches are too small before an engine starts."""

from pathlib import Path

import pytest

from rollart import api
from rollart.domain.errors import CapacityError
from rollart.exec.real.engines.kv_room import check_kv_room

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"
BLOCK = 32 * (2 * 2 * 2 * 32) * 4 / 2**30
"""Tokens x (layers x key and value x heads x dimension) x bytes."""


def check(*settings):
    scenario = api.load_scenario(LAPTOP, settings)
    check_kv_room(scenario.job(), scenario.execution())


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ([], 17 * BLOCK),
        (["execution.dtype=bfloat16"], 17 * BLOCK / 2),
        (["training.context_limit=256"], 9 * BLOCK),
        (["training.context_limit=257"], 10 * BLOCK),
    ],
    ids=["as it is", "half the bytes", "half the context", "a token more"],
)
def test_a_cache_must_hold_a_context(settings, needed):
    check(*settings, f"execution.kv_cache_gb={1.01 * needed:.12f}")
    with pytest.raises(CapacityError, match=r"execution\.kv_cache_gb: is .* of an engine of 'turns'; must be at least"):
        check(*settings, f"execution.kv_cache_gb={0.99 * needed:.12f}")


def test_gpus_have_no_such_setting():
    pools = ("turns", "answers")
    check(*(f"cluster.pools.{pool}.device=H20" for pool in pools), "execution.kv_cache_gb=0.000001")
