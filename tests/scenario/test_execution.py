"""The execution sections of a scenario."""

from pathlib import Path

import pytest

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import AdvantageScale, MooncakeAddresses, Proximal, Reduction, WeightTransfer
from rollart.scenario.load import load_scenario

LAPTOP = Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml"
PAPER = LAPTOP.with_name("paper-128.yaml")


def test_the_sections_become_settings():
    settings = load_scenario(
        LAPTOP,
        [
            "execution.learning.proximal=recomputed",
            "execution.learning.advantage_scale=task",
            "tasks.counting.execution.stop=['#']",
        ],
    ).execution()
    lake, counting = settings.tasks
    assert (lake.task, lake.environment, lake.turn_tokens, lake.allowed) == (
        "FrozenLake",
        "frozenlake",
        1,
        tuple("LDRU"),
    )
    assert (counting.stop, counting.arguments) == (("#",), {"length": 32})
    assert settings.cores == {"turns": "0", "answers": "1"}
    assert settings.model_fields["hidden_size"] == 64
    learning = settings.learning
    assert (learning.proximal, learning.advantage_scale) == (Proximal.RECOMPUTED, AdvantageScale.TASK)
    assert learning.reduction is Reduction.TASK
    assert (learning.entropy_bonus_of("FrozenLake"), learning.entropy_bonus_of("counting")) == (0.01, 0.03)


def test_a_scenario_for_simulations_alone_says_so():
    with pytest.raises(ScenarioError, match=r"paper-128\.yaml: execution: is missing; a real run needs it"):
        load_scenario(PAPER).execution()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("execution.cores={nowhere: '0'}", "execution.cores.nowhere: no such pool; known: turns, answers, training"),
        ("tasks.counting.execution=null", "tasks.counting.execution: is missing; a real run needs an environment"),
        ("tasks.counting.execution.reward=ftp://x", "tasks.counting.execution.reward: 'ftp://x' must be `environment`"),
        ("tasks.counting.execution.reward=serve:grading", "'serve:grading' must be"),
        ("tasks.counting.execution.reward=judge", "'judge' while tasks.counting.reward.kind is 'local'"),
        ("tasks.counting.execution.judge={prompt: '{text}'}", "tasks.counting.execution.judge: is given"),
        ("execution.weight_transfer=mooncake", "execution.mooncake: is missing"),
        ("execution.mooncake={master: 'a:1'}", "execution.mooncake: is given, and weight_transfer is 'ray'"),
    ],
    ids=["cores", "task", "reward", "function", "judge", "needless judge", "no store", "needless store"],
)
def test_what_is_wrong_is_named(setting, message):
    with pytest.raises(ScenarioError, match=r"laptop\.yaml: ") as raised:
        load_scenario(LAPTOP, [setting]).execution()
    assert message in str(raised.value)


def test_unknown_keys_and_wrong_values_are_refused():
    with pytest.raises(ScenarioError, match=r"execution\.learning\.reduction"):
        load_scenario(LAPTOP, ["execution.learning.reduction=batch"])
    with pytest.raises(ScenarioError, match=r"execution\.warp: unknown key"):
        load_scenario(LAPTOP, ["execution.warp=9"])


def test_a_mooncake_store_is_named_where_weights_go_through_it():
    settings = load_scenario(
        LAPTOP, ["execution.weight_transfer=mooncake", "execution.mooncake={master: 'host:50051', protocol: rdma}"]
    ).execution()
    assert settings.weight_transfer is WeightTransfer.MOONCAKE
    assert settings.mooncake == MooncakeAddresses(
        master="host:50051", metadata="P2PHANDSHAKE", protocol="rdma", devices=""
    )
