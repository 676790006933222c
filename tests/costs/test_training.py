import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.catalog.load import devices, models
from rollart.costs.trainer_shape import TrainerShape, local_parameters
from rollart.costs.training import RooflineTrainer, causal_pairs
from rollart.domain.cluster import Link
from rollart.domain.errors import CapacityError, InputError
from rollart.domain.training import Training

DEVICES, MODELS = devices(), models()
FABRIC = Link(bandwidth_bytes_per_s=400e9, latency_s=5e-6)


def trainer(shape, *, model="Qwen3-8B", device="H800", **training):
    settings_ = {"batch_size": 128, "context_limit": 32768, "micro_batch_tokens": 32768, **training}
    return RooflineTrainer(
        model=MODELS[model], device=DEVICES[device], shape=shape, training=Training(**settings_), fabric=FABRIC
    )


TP4_DP8 = trainer(TrainerShape(devices=32, tp=4, dp=8))


def test_forward_is_the_flops_of_the_batch_over_the_reached_rate():
    step = TP4_DP8.step([8192] * 128)
    model = MODELS["Qwen3-8B"]
    products_s = 128 * 8192 * model.linear_flops_per_token / (32 * 989.5e12 * 0.55)
    attention_s = 128 * 8192 * 8193 / 2 * model.attention_flops_per_pair() / (32 * 989.5e12 * 0.35)
    assert step.forward_s == pytest.approx(products_s + attention_s)
    assert step.backward_s == pytest.approx(3 * step.forward_s)
    assert step.behaviour_s == step.forward_s
    weights_s = 2 * model.parameters / 4 / 64e9
    assert step.reference_s == pytest.approx(step.forward_s + weights_s)


def test_the_parts_add_up():
    step = TP4_DP8.step([1000, 30000, 5000])
    assert step.total_s == pytest.approx(sum(step))
    assert step.bubble_s == 0.0


def test_passes_can_be_switched_off():
    bare = trainer(
        TrainerShape(devices=32, tp=4, dp=8),
        reference_pass=False,
        behaviour_pass=False,
        recompute_activations=True,
    ).step([8192] * 128)
    full = TP4_DP8.step([8192] * 128)
    assert (bare.reference_s, bare.behaviour_s) == (0.0, 0.0)
    assert bare.forward_s == full.forward_s
    assert bare.communication_s < full.communication_s


def test_one_long_trajectory_holds_up_all_ranks():
    even = TP4_DP8.step([4096] * 8)
    uneven = TP4_DP8.step([4096] * 7 + [32768])
    alone = TP4_DP8.step([32768])
    assert uneven.forward_s == pytest.approx(alone.forward_s)
    assert uneven.forward_s > 8 * even.forward_s


def test_the_bubble_is_the_share_of_stages_over_micro_steps():
    step = trainer(TrainerShape(devices=32, tp=4, pp=4, dp=2)).step([32768] * 16)
    passes = step.forward_s + step.backward_s + step.behaviour_s + step.forward_s
    assert step.bubble_s == pytest.approx(3 / 8 * passes)


def test_windowed_layers_pay_only_for_their_window():
    model = MODELS["gpt-oss-120b"]
    tokens = np.array([100.0, 1000.0])
    counted = [
        18 * sum(range(1, length + 1)) + 18 * sum(min(i, 128) for i in range(1, length + 1)) for length in (100, 1000)
    ]
    assert causal_pairs(model, tokens).tolist() == counted


def test_local_parameters_add_up_over_the_devices():
    model = MODELS["Qwen3-235B-A22B"]
    dense, routed = local_parameters(model, TrainerShape(devices=64, tp=4, dp=16, ep=16))
    assert 4 * dense + 16 * routed == pytest.approx(model.parameters)


def test_memory_counts_weights_gradients_optimiser_and_logits():
    memory = TP4_DP8.memory
    parameters = MODELS["Qwen3-8B"].parameters
    assert memory.weight_bytes == pytest.approx(parameters / 4 * 2)
    assert memory.gradient_bytes == pytest.approx(parameters / 4 * 4)
    assert memory.optimizer_bytes == pytest.approx(parameters / 32 * 12)
    assert memory.logit_bytes == pytest.approx(32768 * 151936 / 4 * 8)


def test_what_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(CapacityError, match=r"needs 110\.3 GB per device .*it has 85\.9 GB x 0\.92: raise TP"):
        trainer(TrainerShape(devices=32, dp=32))
    with pytest.raises(CapacityError, match=r"lower micro_batch_tokens \(now 65536\)"):
        trainer(TrainerShape(devices=32, dp=32), micro_batch_tokens=65536, context_limit=1000)
    with pytest.raises(CapacityError, match="raise EP, TP or PP"):
        trainer(TrainerShape(devices=8, dp=8), model="Qwen3-30B-A3B")


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ({"devices": 8, "tp": 4}, "TP 4 x PP 1 x DP 1 x CP 1 = 4 must equal its 8 devices"),
        ({"devices": 8, "dp": 8, "ep": 3}, "EP 3 must divide the 8 devices of a stage"),
        ({"devices": 1, "tp": 0}, "tp = 0 must be 1 or more"),
    ],
)
def test_ranks_that_do_not_multiply_are_refused(ranks, message):
    with pytest.raises(InputError, match=message):
        TrainerShape(**ranks)


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (TrainerShape(devices=3, tp=3), InputError, "TP 3 must divide the 32 heads"),
        (TrainerShape(devices=37, pp=37), InputError, "PP 37 must not exceed the 36 layers"),
        (TrainerShape(devices=2, dp=2, ep=2), InputError, "EP 2 must divide the 1 experts"),
        (TrainerShape(devices=16, tp=16), CapacityError, "TP 16 needs 16 devices in one node"),
    ],
)
def test_cuts_the_model_does_not_allow_are_refused(shape, error, message):
    with pytest.raises(error, match=message):
        trainer(shape)


@pytest.mark.parametrize("lengths", [[], [0], [-5, 10], [float("nan")]])
def test_an_empty_or_impossible_batch_is_refused(lengths):
    with pytest.raises(InputError, match="lengths must be a non-empty list"):
        TP4_DP8.step(lengths)


def test_a_trajectory_beyond_the_context_limit_is_refused():
    with pytest.raises(InputError, match="40000 tokens exceeds context_limit 32768"):
        TP4_DP8.step([40000])


def test_wider_cuts_talk_more():
    narrow = trainer(TrainerShape(devices=16, tp=4, dp=4)).step([8192] * 64)
    wide = trainer(TrainerShape(devices=16, tp=8, dp=2)).step([8192] * 64)
    assert wide.forward_s == pytest.approx(narrow.forward_s)
    assert wide.communication_s > 1.5 * narrow.communication_s


def test_spread_experts_wait_for_the_busiest_and_for_the_network():
    shape = {"devices": 64, "tp": 4, "dp": 16}
    options = {"model": "Qwen3-30B-A3B", "device": "H200"}
    split = trainer(TrainerShape(**shape), **options).step([8192] * 64)
    spread = trainer(TrainerShape(**shape, ep=8), **options).step([8192] * 64)
    assert 1.0 < spread.forward_s / split.forward_s < 1.3
    assert spread.communication_s != split.communication_s


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 32768), min_size=1, max_size=60), st.integers(1, 32768))
def test_a_step_lies_between_perfect_balance_and_one_rank(lengths, more):
    tokens = np.asarray(lengths, dtype=np.float64)
    work_s = float((tokens * TP4_DP8.token_s + causal_pairs(MODELS["Qwen3-8B"], tokens) * TP4_DP8.pair_s).sum())
    step = TP4_DP8.step(lengths)
    assert work_s / 8 * (1 - 1e-9) <= step.forward_s <= work_s * (1 + 1e-9)
    assert TP4_DP8.step([*lengths, more]).total_s > 0
