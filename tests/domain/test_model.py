import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.catalog.load import models
from rollart.domain.errors import InputError

CATALOG = models()

# Billions in all and active. For gpt-oss the published 5.1 leaves the input embedding out; see below.
PUBLISHED = {
    "Qwen3-8B": (8.19, 8.19),
    "Qwen3-14B": (14.77, 14.77),
    "Qwen3-32B": (32.76, 32.76),
    "Qwen3-30B-A3B": (30.53, 3.35),
    "Qwen3-235B-A22B": (235.09, 22.19),
    "Llama-3.1-8B": (8.03, 8.03),
    "Llama-3.1-70B": (70.55, 70.55),
    "DeepSeek-R1": (671.03, 37.55),
    "gpt-oss-120b": (116.83, 5.71),
    "SmolLM2-135M": (0.1345, 0.1345),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_are_the_published_ones(name):
    total, active = PUBLISHED[name]
    assert CATALOG[name].parameters / 1e9 == pytest.approx(total, rel=0.001)
    assert CATALOG[name].active_parameters / 1e9 == pytest.approx(active, rel=0.002)


def test_parameter_counts_are_exact_where_the_exact_number_is_published():
    assert CATALOG["Llama-3.1-8B"].parameters == 8_030_261_248
    assert CATALOG["Qwen3-30B-A3B"].parameters == 30_532_122_624
    assert CATALOG["SmolLM2-135M"].parameters == 134_515_008


def test_gpt_oss_active_parameters_without_the_input_embedding():
    model = CATALOG["gpt-oss-120b"]
    assert (model.active_parameters - model.embedding_parameters) / 1e9 == pytest.approx(5.13, abs=0.005)


def test_bf16_weights_are_the_sizes_the_paper_moves():
    for name, gib in {"Qwen3-8B": 15.26, "Qwen3-14B": 27.51, "Qwen3-32B": 61.02}.items():
        assert CATALOG[name].weight_bytes("bf16") / 2**30 == pytest.approx(gib, abs=0.005)


def test_mxfp4_narrows_only_the_experts():
    assert CATALOG["gpt-oss-120b"].weight_bytes("mxfp4") / 2**30 == pytest.approx(60.8, abs=0.1)
    dense = CATALOG["Qwen3-8B"]
    assert dense.weight_bytes("mxfp4") == dense.weight_bytes("bf16")


def test_narrow_precisions_leave_the_embeddings_wide():
    model = CATALOG["Qwen3-8B"]
    wide = 2 * 2 * model.embedding_parameters
    assert model.weight_bytes("fp8") - wide == pytest.approx((model.weight_bytes("bf16") - wide) / 2, rel=0.001)


def test_kv_bytes_of_grouped_and_latent_attention():
    assert CATALOG["Llama-3.1-8B"].kv_bytes_per_token("bf16") == 2 * 2 * 8 * 128 * 32
    assert CATALOG["Llama-3.1-8B"].kv_bytes_per_token("fp8") == 2 * 8 * 128 * 32
    assert CATALOG["DeepSeek-R1"].kv_bytes_per_token("bf16") == (512 + 64) * 2 * 61


def test_windowed_layers_keep_at_most_their_window():
    model = CATALOG["gpt-oss-120b"]
    layer = 2 * 8 * 64 * 2
    assert (model.full_layers, model.windowed_layers, model.window_tokens) == (18, 18, 128)
    assert model.kv_bytes(100) == 100 * layer * 36
    assert model.kv_bytes(1000) == (1000 * 18 + 128 * 18) * layer
    assert model.kv_bytes_per_token() == 18 * layer


def test_linear_flops_are_two_per_active_weight_without_the_input_embedding():
    for name in ("Qwen3-8B", "Qwen3-235B-A22B", "DeepSeek-R1", "SmolLM2-135M"):
        model = CATALOG[name]
        table = 0 if model.tied_embeddings else model.embedding_parameters
        assert model.linear_flops_per_token == pytest.approx(2 * (model.active_parameters - table), rel=0.001)


def test_attention_flops_per_pair():
    assert CATALOG["Qwen3-8B"].attention_flops_per_pair() == 36 * 4 * 32 * 128
    latent = CATALOG["DeepSeek-R1"]
    assert latent.layer_flops_per_pair() == 2 * 128 * (128 + 64 + 128)
    assert latent.layer_flops_per_pair(decode=True) == 2 * 128 * (512 + 512 + 64)


def test_unknown_precisions_are_refused():
    with pytest.raises(InputError, match="precision 'fp2' is not known"):
        CATALOG["Qwen3-8B"].weight_bytes("fp2")
    with pytest.raises(InputError, match="KV cache dtype 'int1' is not known"):
        CATALOG["Qwen3-8B"].kv_bytes_per_token("int1")


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(PUBLISHED)), st.integers(0, 100_000), st.integers(0, 1000))
def test_kv_bytes_grow_with_the_context_and_never_faster_than_all_layers(name, context, more):
    model = CATALOG[name]
    growth = model.kv_bytes(context + more) - model.kv_bytes(context)
    assert more * model.kv_bytes_per_token() <= growth <= more * model.layers * model.layer_kv_bytes_per_token()


@pytest.mark.parametrize("name", PUBLISHED)
def test_narrower_precisions_never_take_more_bytes(name):
    model = CATALOG[name]
    sizes = [model.weight_bytes(precision) for precision in ("bf16", "fp8", "int4")]
    assert sizes == sorted(sizes, reverse=True)
