"""Loading, overrides, and the messages about what is wrong."""

import copy
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollart.domain.errors import ScenarioError
from rollart.domain.job import Job
from rollart.domain.plan import Role
from rollart.domain.task import RewardKind
from rollart.scenario.problems import check_form
from rollart.scenario.scenario import Scenario
from rollart.scenario.sections.document import ScenarioFile

Load = Callable[..., Scenario]
ROOT = Path(__file__).resolve().parents[2]


def test_units_become_si(raw: dict[str, Any], load: Load) -> None:
    raw["tasks"][0]["environment"] = {"cores": 2, "image_gb": 3.5}
    job = load(raw).job()
    link = job.cluster.link("h20", "h800")
    assert (link.bandwidth_bytes_per_s, link.latency_s) == (100e9 / 8, 5e-6)
    assert job.cluster.link("h800", "h800").bandwidth_bytes_per_s == 50e9
    assert job.cluster.environments.cores == 128
    assert job.tasks[0].environment.image_bytes == 3.5e9


def test_defaults_and_placement(raw: dict[str, Any], load: Load) -> None:
    job = load(raw).job()
    assert [task.share for task in job.tasks] == [0.5, 0.5]
    assert job.tasks[0].reward.kind is RewardKind.SERVERLESS
    assert job.cluster.pools["h800"].price_per_hour == 2.85
    placement = job.plan.placement
    assert [(group.name, group.devices, group.role) for group in placement.engine_groups] == [
        ("fast", 8, Role.BOTH),
        ("cheap", 8, Role.BOTH),
    ]
    assert placement.trainer.data_parallel == 2
    assert placement.affinity == {"math": ("cheap",), "default": ("fast", "cheap")}
    assert (job.plan.policy.name, job.steps, job.warmup_steps, job.seed) == ("rollart", 6, 1, 0)


def test_devices_per_node_of_a_pool_reaches_its_device(raw: dict[str, Any], load: Load) -> None:
    pool = load(raw, "cluster.pools.h800.devices_per_node=4").job().cluster.pools["h800"]
    assert (pool.devices_per_node, pool.device.devices_per_node) == (4, 4)


def test_a_task_may_have_another_name_than_in_its_profile(raw: dict[str, Any], load: Load) -> None:
    scenario = load(raw)
    drawn = scenario.workload(3).trajectory("math", 5, 1, 0)
    assert drawn.task == "math"
    assert drawn == scenario.workload(3).trajectory("math", 5, 1, 0)
    assert 1 <= drawn.turns <= 4


def test_overrides_reach_mappings_lists_and_new_keys(raw: dict[str, Any], load: Load) -> None:
    scenario = load(
        raw,
        "cluster.pools.h800.count=32",
        "tasks.math.share=0.25",
        "tasks.1.share=0.75",
        "cluster.serverless.cold_start_s=2",
        "policy.staleness.bound=3",
        "placement.engines.cheap.engines=4",
    )
    job = scenario.job()
    assert job.cluster.pools["h800"].count == 32
    assert [task.share for task in job.tasks] == [0.25, 0.75]
    assert job.cluster.serverless.cold_start_s == 2.0
    assert job.plan.policy.parts["staleness"]["bound"] == 3
    assert job.plan.placement.engine_groups[1].engines == 4


def test_changes_of_policy_seed_and_steps(raw: dict[str, Any], load: Load) -> None:
    scenario = load(raw, "policy.staleness.bound=3")
    job = scenario.job(policy="sync+", seed=7, steps=1)
    assert (job.plan.policy.name, job.seed, job.steps, job.warmup_steps) == ("sync+", 7, 1, 0)
    assert scenario.job(policy="rollart").plan.policy.parts["staleness"]["bound"] == 3


def test_a_model_may_be_given_inline_by_file_or_by_name(raw: dict[str, Any], load: Load, tmp_path: Path) -> None:
    fields = {
        "model_type": "qwen3",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "intermediate_size": 128,
        "vocab_size": 64,
    }
    raw["model"] = {"name": "tiny", **fields}
    assert (load(raw).job().model.name, load(raw).job().model.layers) == ("tiny", 2)
    raw["model"], raw["models"] = "mine", {"mine": fields}
    assert load(raw).job().model.hidden == 64
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(str(fields).replace("'", '"'))
    raw["model"] = "tiny/config.json"
    assert load(raw).job().model.name == "tiny"
    (tmp_path / "tiny" / "config.json").write_text("[1]")
    with pytest.raises(ScenarioError, match=r"is not a config\.json"):
        load(raw)


def test_plan_files_replace_placement_and_policy(raw: dict[str, Any], load: Load, tmp_path: Path) -> None:
    scenario = load(raw)
    plan = tmp_path / "plan.yaml"
    plan.write_text("policy: areal\n")
    changed = scenario.with_plan(str(plan)).job()
    assert changed.plan.policy.name == "areal"
    assert changed.plan.placement == scenario.job().plan.placement
    for text, message in (
        ("schema_version: 1\n", "plan.yaml: has neither placement nor policy"),
        ("placement: {trainer: {pool: h800, devices: 0}}\n", "plan.yaml: placement.trainer.devices: 0 is not allowed"),
        ("steps: 3\n", "plan.yaml: steps: unknown key"),
    ):
        plan.write_text(text)
        with pytest.raises(ScenarioError, match=message):
            scenario.with_plan(plan)


def test_preemption_traces(raw: dict[str, Any], load: Load, tmp_path: Path) -> None:
    raw["faults"] = {"preemption_trace": "spot.csv"}
    trace = tmp_path / "spot.csv"
    trace.write_text("time_s,engine,away_s\n20,1,5\n10.5,3,60\n")
    found = load(raw).job().faults.preemptions
    assert [(each.time_s, each.engine, each.away_s) for each in found] == [(10.5, 3, 60.0), (20.0, 1, 5.0)]
    for text, message in (
        ("20,1,5\n", "spot.csv:1: must be the header"),
        ("time_s,engine,away_s\n20,1\n", "spot.csv:2: '20,1' must be three numbers"),
        ("time_s,engine,away_s\n20,-1,5\n", "spot.csv:2: must have time_s >= 0"),
        ("time_s,engine,away_s\nnan,1,5\n", "spot.csv:2: must have time_s >= 0"),
        ("time_s,engine,away_s\n20,12,5\n", "faults.preemption_trace: names engine 12; the placement has engines 0"),
    ):
        trace.write_text(text)
        with pytest.raises(ScenarioError, match=message):
            load(raw)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.batch_size=-4", "training.batch_size: -4 is not allowed; must be a whole number >= 1"),
        ("training.batch_size=20000000", "20000000 is not allowed; must be a whole number >= 1 and <= 1e+07"),
        ("training.batch_size=1e2", "training.batch_size: 100.0 is not allowed; must be a whole number >= 1"),
        ("training.batch_size=60", "training.batch_size: 60 is not a multiple of the group size 8; 64 would be"),
        ("training.batch_size=8", "training.batch_size: 8 leaves task WebShop (share 0.5, groups of 8) without"),
        ("training.context_limit=64 GB", "'64 GB' is not allowed; must be a whole number >= 2 in tokens, written with"),
        ("tasks.math.environment.image_gb=64 GB", "must be a number >= 0 in GB of 10^9 bytes, written without quotes"),
        ("cluster.nonsense=3", "cluster.nonsense: unknown key; known: pools, links, default_link, environments"),
        ("cluster.enviroments={}", "cluster.enviroments: unknown key; did you mean environments?"),
        ("cluster.pools.h800.count=.nan", "cluster.pools.h800.count: nan is not allowed; must be a whole number >= 1"),
        ("cluster.pools.h800.count=4", "placement: engines take 8 and the trainer 8 devices of h800, which has 4"),
        ("cluster.pools.h800.device=H8000", "cluster.pools.h800.device: device 'H8000' is not known; did you mean"),
        ("cluster.links.0.between=[h800, h21]", "cluster.links.0.between: there is no pool 'h21'; did you mean h20?"),
        ("cluster.links.0.between=[h20, h20]", "cluster.links.0.between: must name two different pools"),
        ("tasks.math.share=0.3", "tasks.WebShop.share: is missing; either all tasks have a share or none"),
        ("tasks.math.name=WebShop", "tasks: 'WebShop' is given 2 times; names must differ"),
        ("tasks.math.workload.task=nope", "tasks.math.workload.task: 'nope' is not in paper-five-tasks.yaml; it has"),
        ("tasks.math.workload.profile=no.yaml", "tasks.math.workload.profile: there is no file 'no.yaml' in"),
        ("tasks.math.workload.trace=a.jsonl", "tasks.math.workload: must have either profile or trace, and not both"),
        ("tasks.math.reward={kind: engine}", "tasks.math.reward: must name engine_group where kind is engine"),
        ("tasks.math.reward={kind: engine, engine_group: fast}", "there is no judge 'fast'; no engine group has role"),
        ("tasks.nope.share=1", "--set tasks.nope.share: there is no entry 'nope'; known: math, WebShop"),
        ("model=Qwen3-9B", "model: model 'Qwen3-9B' is not known; did you mean Qwen3-8B"),
        ("model=Qwen3-235B-A22B", "placement.trainer: training Qwen3-235B-A22B on 8 H800"),
        ("model=3", "model: must be a model's name, the path of a config.json, or a mapping with its fields"),
        ("policy=magic", "policy: 'magic' is unknown"),
        ("policy.stalenes={bound: 1}", "policy.stalenes: unknown key; did you mean staleness?"),
        ("policy.staleness.kind=[1]", "policy.staleness: kind must be the name of a rule"),
        ("placement.trainer.pool=h9", "placement.trainer.pool: there is no pool 'h9'"),
        (
            "placement.trainer.tensor_parallel=3",
            "placement.trainer.tensor_parallel: 3 does not divide the 8 devices of a node of h800",
        ),
        ("placement.engines.fast.tensor_parallel=16", "engine of Qwen3-8B: TP 16 needs 16 devices in one node"),
        ("placement.engines.fast.role=prefill", "there are engines with role prefill and none with role decode"),
        ("placement.engines.cheap.name=fast", "placement.engines: 'fast' is given twice; names must differ"),
        ("placement.engines.cheap.time_shared=true", "a time-shared group must be on the trainer's pool 'h800'"),
        ("placement.affinity.shop=[fast]", "placement.affinity.shop: there is no task 'shop'"),
        ("placement.affinity.math=[slow]", "placement.affinity.math: there is no engine group 'slow'"),
        ("warmup_steps=6", "warmup_steps: 6 is not allowed; must be below steps, which is 6"),
        ("schema_version=2", "schema_version: 2 is not allowed; must be 1"),
        ("precision.weights=fp4", "precision.weights: 'fp4' is not allowed; must be one of bf16, fp16, fp8"),
        ("cluster.pools={}", "cluster.pools: has 0 entries; must have at least 1"),
        ("devices={X: {kind: gpu}}", "devices: "),
        ("models={X: {}}", "models: model X: config key"),
        ("a b", "--set 'a b': must be KEY=VALUE"),
        ("a..b=1", "--set 'a..b': must be keys with single dots between them"),
        ("name.x=3", "--set name.x: name is 'small', which has no keys"),
        ("name=[1,", "--set name: line 2: "),
    ],
)
def test_wrong_values_are_named(raw: dict[str, Any], load: Load, override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(raw, override)
    lines = str(caught.value).splitlines()
    assert message in lines[0]
    assert all(line.startswith("small.yaml: ") for line in lines)


def test_a_missing_section_says_what_it_must_be(raw: dict[str, Any], load: Load) -> None:
    del raw["training"]["batch_size"]
    with pytest.raises(
        ScenarioError, match=r"^small\.yaml: training\.batch_size: is missing; must be a whole number >= 1$"
    ):
        load(raw)


def test_at_most_five_problems_are_listed(raw: dict[str, Any], load: Load) -> None:
    raw["training"] = dict.fromkeys("abcdefgh", 1)
    with pytest.raises(ScenarioError) as caught:
        load(raw)
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "... and 5 more"


def test_shares_must_add_up(raw: dict[str, Any], load: Load) -> None:
    with pytest.raises(ScenarioError, match=r"tasks: the shares add up to 0\.9; must be 1"):
        load(raw, "tasks.math.share=0.5", "tasks.WebShop.share=0.4")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "experiments" / "scenarios").glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_scenarios_are_whole(path: Path) -> None:
    from rollart.scenario.load import load_scenario

    scenario = load_scenario(path)
    job = scenario.job()
    workload = scenario.workload()
    assert job.name == path.stem
    for task in job.tasks:
        assert workload.trajectory(task.name, 0, 0, 0).turns >= 1
    used = sum(group.devices for group in job.plan.placement.engine_groups) + job.plan.placement.trainer.devices
    assert used == sum(pool.count for pool in job.cluster.pools.values())


def test_the_paper_cluster_is_the_paper_s() -> None:
    from rollart.scenario.load import load_scenario

    mixed = load_scenario(ROOT / "experiments/scenarios/paper-128.yaml").job()
    plain = load_scenario(ROOT / "experiments/scenarios/paper-128-h800.yaml").job()
    assert {name: pool.count for name, pool in mixed.cluster.pools.items()} == {"h800": 96, "h20": 32}
    assert {name: pool.count for name, pool in plain.cluster.pools.items()} == {"h800": 128}
    assert (mixed.tasks, mixed.training, mixed.model) == (plain.tasks, plain.training, plain.model)
    assert mixed.plan.placement.trainer == plain.plan.placement.trainer
    assert plain.plan.placement.affinity == {}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


ODD = [
    -1,
    0,
    1,
    2,
    3,
    -0.5,
    1e-300,
    1e300,
    10**30,
    10**400,
    math.nan,
    math.inf,
    -math.inf,
    None,
    True,
    "",
    "x",
    "64 GB",
]
ODD += [[], [1], ["h20"], {}, {"a": 1}, {"kind": []}, "\x00", "a/b.json", "e" * 5000]  # type: ignore[list-item]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mutated_value_is_refused_or_fits(raw: dict[str, Any], data: st.DataObject) -> None:
    changed = copy.deepcopy(raw)
    full = check_form(ScenarioFile, changed, "x").model_dump()
    full["faults"] |= {"engine_mtbf_s": 1000.0}
    full["policy"] |= {"staleness": {"bound": 1}}
    where = data.draw(st.sampled_from(sorted(_places(full), key=str)))
    here: Any = full
    for key in where[:-1]:
        here = here[key]
    here[where[-1]] = data.draw(st.sampled_from(ODD))
    try:
        document = check_form(ScenarioFile, full, "x")
        job = Scenario(document=document, origin="x", folder=ROOT).job()
    except ScenarioError as error:
        assert len(str(error).splitlines()) <= 6
    else:
        assert isinstance(job, Job)
