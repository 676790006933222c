"""The profiles in traces/ say what their sources say."""

from pathlib import Path

import numpy as np
import pytest

from rollart.workload.info import trace_info
from rollart.workload.profile_file import load_document, load_profile
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.synth import synthesize
from rollart.workload.task_info import TaskInfo

TURN_RANGES = {
    "SWE-bench": (30, 50),
    "WebShop": (5, 30),
    "FrozenLake": (20, 100),
    "GEM-math": (1, 4),
    "GEM-game": (1, 1),
}


def tasks_of(path: Path, groups: int, group_size: int = 1) -> dict[str, TaskInfo]:
    profile = load_profile(path)
    return {
        task.task: task for task in trace_info(synthesize(profile, groups=groups, group_size=group_size, seed=9)).tasks
    }


def test_every_shipped_profile_loads(profiles_folder: Path) -> None:
    names = {path.stem: load_profile(path).name for path in profiles_folder.glob("*.yaml")}
    assert names == {
        name: name
        for name in (
            "paper-five-tasks",
            "production",
            "tau-bench-times",
            "laptop",
            "smollm2",
            "tau-bench",
            "swe-agents",
            "coding-agents",
            "long-reasoning",
            "mix",
        )
    }


def test_turns_of_the_five_tasks_stay_in_their_ranges(profiles_folder: Path) -> None:
    profile = load_profile(profiles_folder / "paper-five-tasks.yaml")
    found = {name: (task.turns.law.at(-9), task.turns.law.at(9)) for name, task in profile.tasks.items()}
    assert found == {name: pytest.approx(bounds) for name, bounds in TURN_RANGES.items()}


def test_contexts_of_the_five_tasks_fit_and_few_are_truncated(profiles_folder: Path) -> None:
    tasks = tasks_of(profiles_folder / "paper-five-tasks.yaml", 250)
    for name, task in tasks.items():
        context = task.quantities["context_tokens"]
        assert context is not None and context.max <= 32768
        assert task.truncated_share < 0.15, name


def test_the_slowest_of_128_swe_resets_takes_53_s_in_the_middle(profiles_folder: Path) -> None:
    law = load_profile(profiles_folder / "paper-five-tasks.yaml").tasks["SWE-bench"].reset_s.law
    assert law.quantile(0.5 ** (1 / 128)) == pytest.approx(53.4, rel=0.15)


def test_resets_fail_in_7_of_60_steps_of_128(profiles_folder: Path) -> None:
    rates = load_profile(profiles_folder / "paper-five-tasks.yaml").tasks["SWE-bench"].reset_failures
    assert 1 - (1 - rates.failed - rates.timeout) ** 128 == pytest.approx(7 / 60, abs=0.02)


def test_the_five_tasks_are_prefill_heavy_or_decode_heavy_as_published(profiles_folder: Path) -> None:
    tasks = tasks_of(profiles_folder / "paper-five-tasks.yaml", 60)
    sent = {name: task.context_tokens_sent / task.decode_tokens for name, task in tasks.items()}
    assert min(sent["SWE-bench"], sent["WebShop"], sent["FrozenLake"]) > 10
    assert max(sent["GEM-math"], sent["GEM-game"]) < 2


def test_production_means_and_tails(profiles_folder: Path) -> None:
    profile = load_profile(profiles_folder / "production.yaml")
    means = [task.turns.law.mean() for task in profile.tasks.values()]
    assert (len(means), min(means), max(means)) == (8, pytest.approx(1.0), pytest.approx(48, abs=1))
    assert all(mean < 5 or mean > 10 for mean in means)
    assert max(task.prompt_tokens.law.at(9) for task in profile.tasks.values()) == pytest.approx(12000)


def test_a_production_step_has_far_longer_ones_than_the_mean(profiles_folder: Path) -> None:
    profile = load_profile(profiles_folder / "production.yaml")
    workload = ProfileWorkload(profile, 21)
    names = list(profile.tasks)
    shares = [task.share for task in profile.tasks.values()]
    chosen = np.random.default_rng(2).choice(len(names), size=512, p=shares)
    specs = [workload.trajectory(names[k], prompt, m, 0) for prompt, k in enumerate(chosen) for m in range(8)]
    responses = np.array([sum(spec.output_tokens) for spec in specs])
    turns = np.array([spec.turns for spec in specs])
    assert 5 < responses.max() / responses.mean() < 10
    assert turns.max() / turns.mean() > 40


def test_tau_bench_figures_are_those_of_the_public_trajectories(profiles_folder: Path) -> None:
    tasks = tasks_of(profiles_folder / "tau-bench-times.yaml", 400)
    turns = tasks["tau-bench-airline"].quantities["turns"]
    assert turns is not None and (turns.p50, turns.p90) == (pytest.approx(11, abs=1), pytest.approx(20, abs=2))


def test_laptop_tasks_are_tiny(profiles_folder: Path) -> None:
    workload = ProfileWorkload(load_profile(profiles_folder / "laptop.yaml"), 1)
    counting = workload.trajectory("counting", 0, 0, 0)
    assert (counting.output_tokens, counting.new_tokens) == ([32], [0])
    lake = [workload.trajectory("FrozenLake", prompt, 0, 0) for prompt in range(200)]
    assert max(spec.turns for spec in lake) == 12
    assert {tokens for spec in lake for tokens in spec.output_tokens} == {1}


def test_the_mix_holds_the_tasks_of_four_profiles_as_they_are(profiles_folder: Path) -> None:
    mix = load_document(profiles_folder / "mix.yaml")["tasks"]
    for name in ("swe-agents", "coding-agents", "tau-bench", "long-reasoning"):
        for task, keys in load_document(profiles_folder / f"{name}.yaml")["tasks"].items():
            assert {key: value for key, value in mix[task].items() if key != "share"} == {
                key: value for key, value in keys.items() if key != "share"
            }
    assert sum(task["share"] for task in mix.values()) == pytest.approx(1.0)


def test_tau_bench_totals_are_those_of_the_public_trajectories(profiles_folder: Path) -> None:
    (task,) = tasks_of(profiles_folder / "tau-bench.yaml", 500, 4).values()
    response, context = task.quantities["response_tokens"], task.quantities["context_tokens"]
    assert response is not None and response.mean == pytest.approx(788.7, rel=0.05)
    assert context is not None and context.mean == pytest.approx(3477, rel=0.05)
    assert task.reward_mean == pytest.approx(0.42, abs=0.03)


def test_coding_agents_have_the_published_tools_and_prefixes(profiles_folder: Path) -> None:
    profile = load_profile(profiles_folder / "coding-agents.yaml")
    tools = profile.tasks["coding-agent"].env_s.law
    assert (tools.quantile(0.5), tools.quantile(0.9)) == (pytest.approx(0.3), pytest.approx(13.6))
    assert tools.mean() == pytest.approx(15.0, abs=0.1)
    slow = np.array([tools.quantile(p) for p in (np.arange(20000) + 0.5) / 20000])
    assert 0.03 < (slow > 60).mean() < 0.05
    assert 0.61 < slow[slow > 60].sum() / slow.sum() < 0.92
    workload = ProfileWorkload(profile, 1)
    prefixes = [tokens for k in range(120) for tokens in workload.trajectory("coding-agent", k, 0, 0).contexts()]
    assert np.median(prefixes) == pytest.approx(110_000, rel=0.12)


def test_long_reasoning_has_the_means_of_its_source(profiles_folder: Path) -> None:
    task = load_profile(profiles_folder / "long-reasoning.yaml").tasks["reasoning"]
    assert task.output_tokens.law.mean() == pytest.approx(1527, rel=0.02)
    assert task.prompt_tokens.law.mean() == pytest.approx(1268, rel=0.06)


def test_few_swe_agents_are_truncated(profiles_folder: Path) -> None:
    (task,) = tasks_of(profiles_folder / "swe-agents.yaml", 300).values()
    assert task.truncated_share < 0.05
