import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.catalog.load import devices, models
from rollart.costs.engine_shape import EngineShape
from rollart.costs.roofline import RooflineEngine, windowed_pairs
from rollart.domain.errors import CapacityError, InputError

DEVICES, MODELS = devices(), models()


def engine(model, device, tensor_parallel=1, **options):
    shape = EngineShape(model=MODELS[model], device=DEVICES[device], tensor_parallel=tensor_parallel, **options)
    return RooflineEngine(shape)


QWEN = engine("Qwen3-8B", "H800")
WINDOWED = engine("gpt-oss-120b", "H100", 2, precision="mxfp4")
LATENT = engine("DeepSeek-R1", "H200", 8, precision="fp8")
SPARSE = engine("Qwen3-30B-A3B", "H20", 2)
ENGINES = [QWEN, WINDOWED, LATENT, SPARSE]


def test_decode_of_a_small_batch_is_bound_by_reading_the_weights():
    read_s = 2 * MODELS["Qwen3-8B"].active_parameters / 3.35e12
    piece = QWEN.decode(1, 1000)
    assert read_s < piece.base_s < 1.6 * read_s
    assert piece.per_token_s == pytest.approx(147456 / (0.8 * 3.35e12))
    assert piece.limit_tokens == math.inf


def test_prefill_is_bound_by_the_peak_of_the_device():
    products = 8192 * 2 * (MODELS["Qwen3-8B"].active_parameters - 2 * MODELS["Qwen3-8B"].embedding_parameters)
    attention = 8192 * 8193 / 2 * MODELS["Qwen3-8B"].attention_flops_per_pair()
    floor_s = (products + attention) / 989.5e12
    assert floor_s < QWEN.mixed_s(0, 0, [(8192, 0)]) < 1.8 * floor_s


def test_h20_decodes_faster_and_prefills_slower_than_h800():
    h20 = engine("Qwen3-8B", "H20")
    assert h20.decode(32, 32_000).base_s < QWEN.decode(32, 32_000).base_s
    assert h20.mixed_s(0, 0, [(8192, 0)]) > 5 * QWEN.mixed_s(0, 0, [(8192, 0)])


@pytest.mark.parametrize("costs", ENGINES)
def test_an_iteration_without_chunks_is_the_decode_iteration(costs):
    for batch, context in [(1, 1), (4, 100), (4, 512), (4, 513), (64, 200_000)]:
        piece = costs.decode(batch, context)
        assert costs.mixed_s(batch, context, []) == pytest.approx(piece.base_s + piece.per_token_s * context)


def test_windowed_layers_bend_the_line_where_their_windows_are_full():
    below, beyond = WINDOWED.decode(4, 100), WINDOWED.decode(4, 512)
    assert (below.limit_tokens, beyond.limit_tokens) == (4 * 128, math.inf)
    assert below.per_token_s == pytest.approx(2 * beyond.per_token_s)
    bend = below.base_s + below.per_token_s * 512
    assert bend == pytest.approx(beyond.base_s + beyond.per_token_s * 512)


def test_windowed_pairs_by_counting():
    for new, cached, window in [(5, 0, 3), (5, 2, 3), (5, 9, 3), (2, 0, 100), (7, 3, 6)]:
        counted = sum(min(cached + i, window) for i in range(1, new + 1))
        assert windowed_pairs(new, cached, window) == counted


def test_latent_attention_is_held_whole_by_every_device():
    half = engine("DeepSeek-R1", "B200", 4, precision="fp8")
    assert LATENT.kv_bytes_per_token == 576 * 2 * 61
    free = 151.398e9 * 0.9 - MODELS["DeepSeek-R1"].weight_bytes("fp8") / 8
    assert LATENT.kv_capacity_tokens == pytest.approx(free / (576 * 2 * 61), rel=0.1)
    assert half.shape.kv_share == 1.0


def test_kv_heads_are_copied_where_there_are_fewer_than_devices():
    four, eight = engine("Qwen3-30B-A3B", "H100", 4), engine("Qwen3-30B-A3B", "H100", 8)
    assert four.shape.kv_share == eight.shape.kv_share == 0.25
    assert four.decode(8, 8).per_token_s == pytest.approx(eight.decode(8, 8).per_token_s)


def test_kv_capacity_is_what_weights_and_workspace_leave():
    free = 85.899e9 * 0.9 - QWEN.weight_bytes - 2e9
    assert QWEN.weight_bytes == MODELS["Qwen3-8B"].weight_bytes("bf16")
    assert 0.97 * free / 147456 < QWEN.kv_capacity_tokens < free / 147456
    eight_bit = engine("Qwen3-8B", "H800", kv_dtype="fp8")
    assert eight_bit.kv_capacity_tokens == pytest.approx(2 * QWEN.kv_capacity_tokens, abs=2)


def test_what_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(CapacityError, match=r"needs 470\.2 GB of weights .* 48\.3 GB x 0\.90: does not fit in a node"):
        engine("Qwen3-235B-A22B", "L40S")
    with pytest.raises(CapacityError, match="needs at least TP 8"):
        engine("Qwen3-235B-A22B", "H100", 2)
    assert engine("Qwen3-235B-A22B", "H100", 8).kv_capacity_tokens > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tensor_parallel": 16}, CapacityError, "TP 16 needs 16 devices in one node, a node of H800 has 8"),
        ({"tensor_parallel": 3}, InputError, "TP 3 must divide its 32 attention heads"),
        ({"tensor_parallel": 0}, InputError, "tensor_parallel = 0 must be 1 or more"),
        ({"expert_parallel": 2}, InputError, "EP 2 must be 1 or equal to its TP 1"),
        ({"tensor_parallel": 2, "expert_parallel": 2}, InputError, "EP 2 must divide its 0 experts"),
        ({"gpu_memory_utilization": 1.5}, InputError, "gpu_memory_utilization = 1.5"),
        ({"kv_dtype": "int1"}, InputError, "KV cache dtype 'int1' is not known"),
        ({"precision": "fp2"}, InputError, "precision 'fp2' is not known"),
    ],
)
def test_an_impossible_engine_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        engine("Qwen3-8B", "H800", **options)


def test_tensor_parallelism_shortens_prefill_but_less_than_in_proportion():
    one, four = (engine("Qwen3-32B", "H200", tp).mixed_s(0, 0, [(8192, 0)]) for tp in (1, 4))
    assert one / 4 < four < one / 2


def test_more_tokens_touch_more_experts_up_to_all():
    base = [SPARSE.decode(batch, batch).base_s for batch in (1, 8, 64, 256)]
    assert base == sorted(base)
    assert base[1] > 1.8 * base[0]


def test_spreading_experts_costs_their_imbalance():
    split = engine("Qwen3-30B-A3B", "H100", 2).decode(32, 32).base_s
    spread = engine("Qwen3-30B-A3B", "H100", 2, expert_parallel=2).decode(32, 32).base_s
    assert split < spread < 1.3 * split


def test_eight_bit_weights_speed_up_decode_by_up_to_two():
    eight_bit = engine("Qwen3-8B", "H800", precision="fp8").decode(8, 8).base_s
    assert 1.4 < QWEN.decode(8, 8).base_s / eight_bit < 2


def test_a_cpu_core_serves_a_small_model_at_the_order_seen_in_vllm():
    cpu = engine("SmolLM2-135M", "CPU core", max_num_seqs=32, max_num_batched_tokens=512)
    seen = {1: 31, 8: 180, 32: 273}
    for batch, tokens_per_s in seen.items():
        piece = cpu.decode(batch, 100 * batch)
        predicted = batch / (piece.base_s + piece.per_token_s * 100 * batch)
        assert predicted == pytest.approx(tokens_per_s, rel=0.25)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ENGINES),
    st.integers(1, 256),
    st.integers(0, 100_000),
    st.lists(st.tuples(st.integers(1, 4096), st.integers(0, 30_000)), max_size=3),
)
def test_more_work_never_takes_less_time(costs, batch, context, chunks):
    here = costs.mixed_s(batch, context, chunks)
    assert 0 < here < costs.mixed_s(batch + 1, context, chunks) + 1e-12
    assert here < costs.mixed_s(batch, context + 100, chunks)
    assert here < costs.mixed_s(batch, context, [*chunks, (16, 0)])
