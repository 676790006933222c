from typing import Any

import pytest

from rollart.domain.cluster import Cluster, EnvironmentHosts, Link, Pool, Serverless
from rollart.domain.device import Device
from rollart.domain.errors import ScenarioError
from rollart.domain.hf_config import model_from_hf_config
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Placement, Plan, Role, TrainerPlacement
from rollart.domain.task import Task
from rollart.domain.training import Training
from rollart.sched import resolve
from rollart.sched.setup import controller_config

MODEL = model_from_hf_config(
    {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
    },
    "tiny",
)


def pool(name: str, bandwidth_bytes_per_s: float) -> Pool:
    """Sixteen devices with this memory bandwidth."""
    device = Device(
        name=name,
        kind="gpu",
        memory_bytes=80e9,
        memory_bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        flops_per_s={"bf16": 300e12},
        device_link_bytes_per_s=300e9,
        host_link_bytes_per_s=32e9,
        price_per_hour=1.0,
    )
    return Pool(name=name, device=device, count=16)


def job(
    overrides: dict[str, dict[str, Any]] | None = None,
    affinity: dict[str, tuple[str, ...]] | None = None,
    group_sizes: tuple[int, int] = (4, 4),
) -> Job:
    """Two tasks, rollout on two kinds of devices, a judge, training on one of them."""
    link = Link(bandwidth_bytes_per_s=25e9)
    return Job(
        name="two kinds",
        cluster=Cluster(
            pools={"compute": pool("compute", 3e12), "memory": pool("memory", 4e12)},
            links={},
            default_link=link,
            environments=EnvironmentHosts(count=1, cores_per_host=64, image_bandwidth_bytes_per_s=1e9),
            serverless=Serverless(max_concurrency=8, cold_start_s=1.0, keep_alive_s=60.0, scale_out_per_s=10.0),
        ),
        model=MODEL,
        tasks=(
            Task(name="swe", share=0.5, group_size=group_sizes[0], max_turns=50),
            Task(name="math", share=0.5, group_size=group_sizes[1], max_turns=1),
        ),
        training=Training(batch_size=24, context_limit=32768),
        plan=Plan(
            placement=Placement(
                engine_groups=(
                    EngineGroup(name="fast", pool="compute", engines=2, tensor_parallel=2),
                    EngineGroup(name="judge", pool="memory", engines=1, tensor_parallel=1, role=Role.JUDGE),
                    EngineGroup(name="wide", pool="memory", engines=4, tensor_parallel=1),
                ),
                trainer=TrainerPlacement(pool="compute", devices=8),
                affinity=affinity or {},
                environment_slots=96,
            ),
            policy=resolve("rollart", overrides),
        ),
        steps=5,
    )


def test_limits_and_policy_are_taken_over() -> None:
    config = controller_config(job())
    assert (config.steps, config.context_limit, config.environment_slots) == (5, 32768, 96)
    assert (config.policy_name, config.policy) == ("rollart", resolve("rollart").parts)
    assert config.engine_classes == [0, 0, 1, 2, 2, 2, 2]


def test_an_engines_weight_is_its_memory_bandwidth() -> None:
    assert [group.weight for group in controller_config(job()).classes] == [6.0, 4.0, 4.0]


def test_without_affinity_every_rollout_group_suits_and_judges_never_do() -> None:
    assert [(task.suited, task.fallback) for task in controller_config(job()).tasks] == [((0, 2), ())] * 2


def test_affinity_names_the_suited_groups_and_the_rest_is_fallback() -> None:
    swe, math = controller_config(job(affinity={"swe": ("fast",), "default": ("wide",)})).tasks
    assert (swe.suited, swe.fallback) == ((0,), (2,))
    assert (math.suited, math.fallback) == ((2,), (0,))


def test_the_batch_is_cut_into_groups() -> None:
    swe, math = controller_config(job()).tasks
    assert [(task.name, task.group_size, task.groups_per_batch, task.max_turns) for task in (swe, math)] == [
        ("swe", 4, 3, 50),
        ("math", 4, 3, 1),
    ]


def test_a_filter_that_would_drop_every_group_is_refused() -> None:
    filtering = {"group": {"filter_equal_rewards": True}}
    assert controller_config(job(filtering)).steps == 5
    with pytest.raises(ScenarioError, match=r"task math has groups of 1, which it would all filter"):
        controller_config(job(filtering, group_sizes=(4, 1)))
