import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.errors import InputError
from rollart.domain.hf_config import model_from_hf_config

TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
}
LATENT = {"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}


def tiny(**changes):
    return model_from_hf_config({**TINY, **changes}, "tiny")


def test_a_dense_config_is_counted_by_hand():
    layer = 64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 128 + 2 * 64
    assert tiny().parameters == 2 * layer + 64 + 2 * 100 * 64
    assert tiny(tie_word_embeddings=True).parameters == 2 * layer + 64 + 100 * 64


def test_defaults_of_absent_keys():
    without = {key: value for key, value in TINY.items() if key != "num_key_value_heads"}
    model = model_from_hf_config(without, "tiny")
    assert (model.attention.heads, model.attention.kv_heads, model.attention.head_dim) == (4, 4, 16)
    assert model.max_context_tokens is None


def test_text_config_of_a_multimodal_model_is_used():
    assert model_from_hf_config({"model_type": "vl", "text_config": TINY}, "tiny").parameters == tiny().parameters


def test_biases_follow_the_model_type():
    qkv = 2 * (4 + 2 * 2) * 16
    assert tiny(model_type="qwen2").parameters - tiny().parameters == qkv
    assert tiny(attention_bias=True).parameters - tiny().parameters == qkv + 2 * 64
    assert tiny(model_type="qwen3").parameters - tiny().parameters == 2 * 2 * 16


def test_shared_experts_and_first_dense_layers():
    model = tiny(n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1,
                 first_k_dense_replace=1)  # fmt: skip
    assert (model.dense_layers, model.expert_layers, model.experts.shared_width) == (1, 1, 32)
    assert model.parameters - model.active_parameters == 6 * 3 * 64 * 32


def test_sparse_step_and_mlp_only_layers():
    moe = {"num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 32, "num_hidden_layers": 6}
    assert tiny(**moe, decoder_sparse_step=2).expert_layers == 3
    assert tiny(**moe, mlp_only_layers=[0, 5]).expert_layers == 4


def test_latent_attention_without_a_query_rank():
    model = tiny(**LATENT)
    assert model.attention.query_rank is None
    assert model.kv_bytes_per_token() == 2 * (16 + 4) * 2


def test_sliding_windows():
    assert tiny(sliding_window=32).windowed_layers == 2
    assert tiny(sliding_window=32, use_sliding_window=False).windowed_layers == 0
    kinds = ["sliding_attention", "full_attention"]
    assert tiny(sliding_window=32, layer_types=kinds).windowed_layers == 1


def test_native_precision_is_read_from_the_quantisation():
    assert tiny().native_precision == "bf16"
    assert tiny(quantization_config={"quant_method": "fp8"}).native_precision == "fp8"
    assert tiny(quantization_config={"quant_method": "awq"}).native_precision == "int4"


@pytest.mark.parametrize("key", [key for key in TINY if key not in ("model_type", "num_key_value_heads")])
def test_a_missing_key_is_named(key):
    without = {other: value for other, value in TINY.items() if other != key}
    with pytest.raises(InputError, match=f"model tiny: config key {key} is missing"):
        model_from_hf_config(without, "tiny")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads = 3: must divide num_attention_heads = 4"),
        ({"hidden_size": 66}, "num_attention_heads = 4: must divide hidden_size = 66"),
        ({"hidden_size": -64}, "hidden_size = -64: must be a whole number of 1 or more"),
        ({"vocab_size": 10.5}, "vocab_size = 10.5: must be a whole number"),
        ({"vocab_size": float("inf")}, "vocab_size = inf: must be a whole number"),
        ({"num_hidden_layers": "two"}, "num_hidden_layers = 'two': must be a whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers = True: must be a whole number"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers = 1000000000: must not exceed"),
        ({"num_experts": 4}, "num_experts_per_tok is missing"),
        (
            {"num_experts": 4, "num_experts_per_tok": 5},
            "num_experts_per_tok = 5: must not exceed num_experts = 4",
        ),
        ({"layer_types": ["full_attention"]}, "must be a list of num_hidden_layers = 2 names"),
        (
            {"layer_types": ["full_attention", "linear_attention"]},
            "layer_types = 'linear_attention': only full",
        ),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window is missing"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder = True: only decoder-only"),
        ({"kv_lora_rank": 16}, "qk_nope_head_dim is missing"),
        (
            {"num_experts": 4, "num_experts_per_tok": 1, "first_k_dense_replace": 3},
            "must not exceed num_hidden_layers",
        ),
        (
            {"num_experts": 4, "num_experts_per_tok": 1, "mlp_only_layers": 3},
            "must be a list of layer numbers",
        ),
    ],
)
def test_an_impossible_config_names_the_key(changes, message):
    with pytest.raises(InputError, match=message):
        tiny(**changes)


def test_a_config_that_is_no_mapping_is_refused():
    with pytest.raises(InputError, match="config must be a mapping, not list"):
        model_from_hf_config([], "tiny")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*TINY, "num_experts", "sliding_window", "layer_types", "head_dim"]),
        st.none() | st.integers(-3, 40) | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    )
)
def test_any_config_is_read_or_refused_with_one_line(changes):  # fmt: skip
    try:
        model = tiny(**changes)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert model.parameters >= model.active_parameters > 0
