import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.catalog.load import devices, models
from rollart.costs.assumptions import assumptions_for
from rollart.costs.attention import Attention, windowed_pairs
from rollart.costs.breakdown import terms
from rollart.costs.engine_shape import EngineShape
from rollart.costs.host import HostTime, host_time
from rollart.costs.operators.coefficients import coefficients_for
from rollart.costs.operators.compact import CompactOperators
from rollart.costs.parts import token_parts
from rollart.costs.select import engine_costs, operators_for
from rollart.domain.errors import CapacityError, InputError

DEVICES, MODELS = devices(), models()


def shape(model, device, tensor_parallel=1, **options):
    return EngineShape(model=MODELS[model], device=DEVICES[device], tensor_parallel=tensor_parallel, **options)


def engine(*args, **options):
    return engine_costs(shape(*args, **options), "compact")


QWEN = engine("Qwen3-8B", "H800")
WINDOWED = engine("gpt-oss-120b", "H100", 2, precision="mxfp4")
LATENT = engine("DeepSeek-R1", "H200", 8, precision="fp8")
SPREAD = engine("Qwen3-30B-A3B", "H20", 2, expert_parallel=2)
NARROW = engine("Qwen3-8B", "A100", precision="int4", kv_dtype="fp8")
ENGINES = [QWEN, WINDOWED, LATENT, SPREAD, NARROW]


def decode_s(costs, batch, context):
    piece = costs.decode(batch, context)
    assert context < piece.limit_tokens
    return piece.base_s + piece.per_token_s * context


@pytest.mark.parametrize("costs", ENGINES)
def test_an_iteration_without_chunks_is_the_decode_iteration(costs):
    for batch, context in [(1, 1), (4, 100), (4, 512), (4, 513), (64, 200_000), (256, 40_000_000)]:
        assert costs.mixed_s(batch, context, []) == pytest.approx(decode_s(costs, batch, context))


@pytest.mark.parametrize("costs", ENGINES)
@pytest.mark.parametrize("batch", [1, 7, 64])
def test_the_lines_of_decode_meet_at_their_ends(costs, batch):
    context = 0
    piece = costs.decode(batch, context)
    while piece.limit_tokens < math.inf:
        here = piece.base_s + piece.per_token_s * piece.limit_tokens
        piece = costs.decode(batch, int(piece.limit_tokens))
        assert piece.base_s + piece.per_token_s * context >= 0
        assert decode_s(costs, batch, int(costs.decode(batch, context).limit_tokens)) == pytest.approx(here)
        context = int(costs.decode(batch, context).limit_tokens)


def test_decode_of_one_request_takes_at_least_the_reading_of_the_weights():
    model = MODELS["Qwen3-8B"]
    read_s = 2 * (model.active_parameters - model.embedding_parameters) / 3.35e12
    assert read_s < decode_s(QWEN, 1, 1000) < 1.6 * read_s


def test_decode_pays_for_each_token_of_kv_from_a_cold_cache():
    slope = QWEN.decode(64, 200_000).per_token_s
    assert 147456 / 3.35e12 < slope < 1.4 * 147456 / 3.35e12


def test_windowed_layers_stop_reading_at_their_window():
    inside = WINDOWED.decode(64, 64 * 100).per_token_s
    beyond = WINDOWED.decode(64, 64 * 8000).per_token_s
    assert inside == pytest.approx(2 * beyond, rel=0.1)


def test_a_chunk_takes_its_part_of_the_whole_prompt():
    attention = QWEN.attention
    whole, late = attention.chunk_s(8192, 0), attention.chunk_s(4096, 4096)
    assert late == pytest.approx(0.75 * whole)
    assert attention.chunk_s(4096, 0) + late > 0.95 * whole
    read_s = MODELS["Qwen3-8B"].kv_bytes_per_token() / 3.35e12
    assert attention.chunk_s(1, 100_000) == pytest.approx(100_001 * read_s)


def test_latent_attention_expands_what_is_cached_for_every_chunk():
    attention = LATENT.attention
    expanded = 2 * 512 * 128 * 256 / 8 * 61 * 4096
    extra = attention.chunk_s(4096, 4096) - 0.75 * attention.chunk_s(8192, 0)
    # Short sums: most of it is the kernel that quantises the latents.
    assert 0.15 * 1978e12 < expanded / extra < 1978e12


def test_chunks_beyond_the_longest_prompt_are_answered():
    assert QWEN.mixed_s(0, 0, [(8, 300_000)]) > QWEN.mixed_s(0, 0, [(8, 100_000)])


def test_more_tokens_than_a_server_allows_are_answered():
    assert QWEN.mixed_s(0, 0, [(20_000, 0)]) > 1.9 * QWEN.mixed_s(0, 0, [(10_000, 0)])
    assert decode_s(QWEN, 700, 700) > decode_s(QWEN, 350, 350)


@pytest.mark.parametrize("costs", ENGINES)
@pytest.mark.parametrize("chunk", [0, 2048])
def test_the_terms_add_up_to_the_iteration(costs, chunk):
    found = terms(costs, 32, 2048, chunk)
    total = costs.mixed_s(32, 32 * 2048, [(chunk, 0)] if chunk else [])
    assert sum(term.seconds for term in found) == pytest.approx(total, rel=0.02)
    assert all(term.seconds >= 0 and term.source for term in found)


def test_terms_of_a_prompt_alone():
    found = {term.name: term for term in terms(QWEN, 0, 0, 2048)}
    assert "decode attention" not in found
    assert sum(term.seconds for term in found.values()) == pytest.approx(QWEN.mixed_s(0, 0, [(2048, 0)]), rel=0.02)
    up = found["MLP up"]
    assert up.flops == 2 * 2048 * 4096 * 2 * 12288 * 36
    assert up.flops / up.seconds < 989e12


def test_what_a_relative_lends_has_no_expected_error():
    own = engine("Qwen3-8B", "H100").operators.standing("gemm", "bf16")
    lent = QWEN.operators.standing("gemm", "bf16")
    assert own.error_pct is not None
    assert lent.error_pct is None
    assert lent.source.endswith("H100 stands in for H800 (assumed)")
    assert NARROW.operators.standing("gemm", "int4").source == (
        "formula fitted to A100 vllm-0.14.0, bf16 efficiencies for int4 (assumed)"
    )


def test_products_of_a_device_are_its_share():
    parts = {part.name: part.matrix for part in WINDOWED.token_parts}
    assert parts["QKV projection"] == (2880, (32 + 2 * 4) * 64)
    assert parts["output projection"] == (32 * 64, 2880)
    assert parts["router"] == (2880, 128)
    latent = [part.matrix for part in LATENT.token_parts if part.name.startswith("latent")]
    assert latent == [(7168, 1536), (1536, 128 * 192 // 8), (7168, 576), (512, 128 * 256 // 8)]


def test_weights_of_eight_bit_experts_are_scaled_by_blocks():
    taken = assumptions_for(DEVICES["H100"])
    eight = shape("Qwen3-30B-A3B", "H100", precision="fp8")
    parts = token_parts(eight, operators_for(eight, "compact"), taken)
    assert {part.name: part.precision for part in parts} == {
        "QKV projection": "fp8",
        "output projection": "fp8",
        "router": "bf16",
        "experts": "fp8_block",
        "norms, rotary, activation": "bf16",
    }


def test_host_time_is_a_parameter():
    here = shape("Qwen3-8B", "H100")
    none = engine_costs(here, "compact", host=HostTime(0.0, 0.0))
    old = engine_costs(here, "compact", engine_version="vllm-v0")
    assert decode_s(old, 10, 1000) - decode_s(none, 10, 1000) == pytest.approx(1.5e-3 + 10 * 30e-6)
    with pytest.raises(InputError, match="engine version 'vllm-9' has no host time; one of: vllm-v1"):
        host_time("vllm-9")


def test_the_source_is_chosen_by_name():
    here = shape("Qwen3-8B", "H100")
    assert type(engine_costs(here, "roofline")).__name__ == "RooflineEngine"
    assert type(engine_costs(here)).__name__ == "OperatorEngine"
    with pytest.raises(InputError, match="costs 'guess' are not known; one of: roofline, compact, tables"):
        engine_costs(here, "guess")


def test_what_has_no_coefficients_is_refused_in_one_line():
    with pytest.raises(InputError, match="device B200 has no operator coefficients, costs: roofline needs none; there"):
        engine("Qwen3-8B", "B200")
    with pytest.raises(InputError, match="device CPU core has no operator coefficients"):
        engine("SmolLM2-135M", "CPU core", max_num_batched_tokens=512)
    with pytest.raises(InputError, match="no operator coefficients for gemm in fp2; there are: bf16"):
        coefficients_for(DEVICES["H100"]).fitted("gemm", "fp2")
    with pytest.raises(CapacityError, match="needs at least TP"):
        engine("Llama-3.1-70B", "H100")


def test_a_number_of_ranks_between_those_measured_takes_the_next():
    operators = CompactOperators(coefficients_for(DEVICES["H100"]))
    message = np.array([1e3])
    assert operators.collective_s("all_reduce", message, 3) == pytest.approx(
        operators.collective_s("all_reduce", message, 4), rel=0.05
    )


def test_windowed_pairs_by_counting():
    for new, cached, window in [(5, 0, 3), (5, 2, 3), (5, 9, 3), (2, 0, 100), (7, 3, 6)]:
        counted = sum(min(cached + i, window) for i in range(1, new + 1))
        assert windowed_pairs(new, cached, window) == counted


def test_lines_keep_within_one_percent_of_the_operator():
    here = shape("Qwen3-8B", "H100")
    operators = operators_for(here, "compact")
    attention = Attention(here, operators)
    contexts = np.arange(0, 100_000, 997)
    exact = 36 * operators.decode_s(8, contexts.astype(float), attention.heads)
    pieces = attention.decode_pieces(8)
    for context, seconds in zip(contexts, exact, strict=True):
        piece = next(piece for piece in pieces if 8 * context < piece.limit_tokens)
        assert piece.base_s + piece.per_token_s * 8 * context == pytest.approx(seconds, rel=0.015)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ENGINES),
    st.integers(1, 256),
    st.integers(0, 100_000),
    st.lists(st.tuples(st.integers(1, 4096), st.integers(0, 30_000)), max_size=3),
)
def test_more_work_never_takes_less_time(costs, batch, context, chunks):
    here = costs.mixed_s(batch, context, chunks)
    assert here > 0
    assert here <= costs.mixed_s(batch, context + 100, chunks) * (1 + 1e-12)
    assert here <= costs.mixed_s(batch, context, [*chunks, (16, 0)])
    assert here <= 1.01 * costs.mixed_s(batch + 1, context, chunks)
