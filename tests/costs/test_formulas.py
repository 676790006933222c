import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.catalog.load import devices
from rollart.costs.operators import formulas
from rollart.costs.operators.chip import Chip
from rollart.costs.operators.formulas import AllReduceFit, CollectiveFit, DecodeFit, ExpertFit, GemmFit, PrefillFit
from rollart.domain.errors import InputError

H100 = Chip(device=devices()["H100"], l2_bytes=50e6, multiprocessors=132)
A100 = Chip(device=devices()["A100"], l2_bytes=40e6, multiprocessors=108)
SHARP = 1e3
"""A blend that leaves only the slower of two times."""
GEMM = GemmFit(
    floor_s=2e-6,
    compute=0.8,
    bandwidth=0.9,
    blend=SHARP,
    wave=1e-12,
    strain=1e-12,
    pad_rows=1e-12,
    quantise=0.5,
    row_s=1e-9,
)


def test_a_product_of_few_rows_takes_the_reading_of_its_weights():
    seconds = formulas.gemm_s(GEMM, H100, "bf16", 1.0, 4096, 16384)
    moved = 2 * (4096 * 16384 + 4096 + 16384)
    assert seconds == pytest.approx(2e-6 + moved / (0.9 * 3.35e12))
    assert formulas.gemm_s(GEMM, H100, "fp8", 1.0, 4096, 16384) < 0.55 * seconds


def test_a_product_of_many_rows_takes_its_arithmetic():
    seconds = formulas.gemm_s(GEMM, H100, "bf16", 8192.0, 8192, 8192)
    assert seconds == pytest.approx(2e-6 + 2 * 8192**3 / (0.8 * 989e12), rel=1e-3)


def test_a_device_without_eight_bit_units_widens():
    assert A100.peak("fp8") == A100.peak("bf16") == 312e12
    assert H100.peak("fp8") == 1978e12
    with pytest.raises(InputError, match="precision 'fp2' is not known to the operators; one of: bf16"):
        H100.peak("fp2")


def test_an_idle_part_of_the_last_wave_of_tiles_is_paid_for():
    lossy = GEMM._replace(wave=1.0)
    whole, half = (formulas.gemm_s(lossy, H100, "bf16", rows, 8192, 66 * 128) - 2e-6 for rows in (1024.0, 1025.0))
    assert half == pytest.approx(whole * 1025 / 1024 * 5 / 4.5, rel=1e-3)


def test_inputs_of_fewer_bits_are_made_by_a_kernel_before_the_product():
    """Read in 16 bits, written in 8; in bf16 there is nothing to make."""
    rows, inputs = 8192.0, 4096
    arithmetic = 2 * rows * inputs * 8192 / 0.8
    assert formulas.gemm_s(GEMM, H100, "bf16", rows, inputs, 8192) == pytest.approx(
        2e-6 + arithmetic / 989e12, rel=1e-3
    )
    made = rows * (1e-9 + 3 * inputs / (0.5 * 3.35e12))
    assert formulas.gemm_s(GEMM, H100, "fp8", rows, inputs, 8192) == pytest.approx(
        2e-6 + made + arithmetic / 1978e12, rel=1e-3
    )


def test_blend_of_two_times():
    assert formulas.blended(3.0, 4.0, 1.0) == pytest.approx(5.0)
    assert formulas.blended(3.0, 4.0, 0.0) == pytest.approx(7.0)
    assert formulas.blended(3.0, 4.0, SHARP) == pytest.approx(4.0)
    assert formulas.blended(0.0, 0.0, 1.0) == 0.0


def test_decode_reads_the_kv_faster_from_a_warm_cache_but_only_up_to_its_size():
    fit = DecodeFit(floor_s=1e-5, bandwidth=0.9, blend=SHARP, warm=1.0, request_s=1e-12, pad_tokens=1e-9)
    for context, gain in ((2048, 2.0), (200_000, 1.0)):
        cold, warm = (formulas.decode_s(fit, H100, 4, context, 32, 4096, warm=way) - 1e-5 for way in (False, True))
        assert cold == pytest.approx(4 * context * 4096 / (0.9 * 3.35e12))
        assert cold / warm == pytest.approx(gain, rel=0.01)


def test_pairs_under_a_window_by_counting():
    for tokens, window in [(1, 5), (7, 3), (100, 8), (6, np.inf)]:
        counted = sum(min(i, window) for i in range(1, tokens + 1))
        assert formulas.prefill_pairs(float(tokens), window) == counted


def test_prefill_of_a_long_prompt_takes_its_arithmetic():
    fit = PrefillFit(floor_s=1e-5, compute=0.6, bandwidth=0.9, blend=SHARP, wave=1e-12)
    seconds = formulas.prefill_s(fit, H100, 1, 32768.0, 32, 4 * 32 * 128, 2e4)
    assert seconds == pytest.approx(1e-5 + 32768 * 32769 / 2 * 4 * 32 * 128 / (0.6 * 989e12))


def test_a_measurement_that_starts_kernels_one_by_one_is_never_faster_than_that():
    """An engine's captured graph has no such floor; above it the two agree."""
    fit = GEMM._replace(launch_s=1e-4)
    few, many = (formulas.gemm_s(fit, H100, "fp8_block", rows, 4096, 4096, launched=True) for rows in (1.0, 16384.0))
    assert few == 1e-4
    assert formulas.gemm_s(fit, H100, "fp8_block", 1.0, 4096, 4096) < 1e-5
    assert many == formulas.gemm_s(fit, H100, "fp8_block", 16384.0, 4096, 4096) > 1e-4


EXPERTS = ExpertFit(floor_s=0, compute=0.5, bandwidth=0.8, blend=SHARP, pad_rows=1e-9, skew=1.0, hot=0.5)


def expert_s(tokens, fit=EXPERTS, **changes):
    spread = {"hidden": 2048, "width": 768, "active": 8, "count": 128, "tp": 1, "ep": 1} | changes
    spread["experts"] = spread.pop("count")
    return float(formulas.experts_s(fit, H100, "bf16", np.array([float(tokens)]), **spread)[0])


def test_experts_read_those_that_are_visited():
    one, all_of_them = 8 * (1 - np.exp(-8 / 128)) / (8 / 128), 128
    numbers = 3 * 2048 * 768
    few = expert_s(1)
    assert few == pytest.approx(2 * numbers * one / (0.8 * 3.35e12), rel=0.05)
    assert expert_s(512) == pytest.approx(2 * numbers * all_of_them / (0.8 * 3.35e12), rel=0.1)


def test_uneven_experts_are_visited_less_often():
    """Visits under gamma-distributed chances are negative binomial: a share of 1 - (1 + v * c) ** (-1 / c) gets any."""
    visits = np.array([1e-3, 0.5, 1.0, 4.0, 50.0])
    assert formulas.visited_share(visits, 1.0) == pytest.approx(visits / (1 + visits))
    assert formulas.visited_share(visits, 1e-6) == pytest.approx(formulas.visited_share(visits, 0.0), rel=1e-4)
    chance = np.random.default_rng(3).gamma(1 / 2.5, 2.5, size=200_000)
    for mean in visits:
        assert formulas.visited_share(mean, 2.5) == pytest.approx(-np.expm1(-mean * chance).mean(), rel=0.02)
    assert expert_s(32, EXPERTS._replace(uneven=2.0)) < 0.8 * expert_s(32)


def test_spread_experts_pay_for_kernels_that_map_them():
    mapped = EXPERTS._replace(spread_s=3e-5)
    assert expert_s(64, mapped) == expert_s(64)
    assert expert_s(64, mapped, ep=4) == pytest.approx(expert_s(64, ep=4) + 3e-5)


def test_the_fullest_rank_is_above_the_mean():
    together, spread = expert_s(16384), expert_s(16384, ep=4)
    assert spread == pytest.approx(together / 4 * 2, rel=0.05)
    assert expert_s(16384, tp=4) == pytest.approx(together / 4, rel=0.3)


def test_a_collective_is_latency_then_the_link():
    fit = CollectiveFit(latency_s=1e-5, link=0.8, blend=SHARP)
    assert formulas.collective_s(fit, H100, "all_gather", 1e3, 8) == pytest.approx(1e-5)
    sent = 7 / 8 * 1e9
    assert formulas.collective_s(fit, H100, "all_gather", 1e9, 8) == pytest.approx(sent / (0.8 * 450e9))


def test_an_all_reduce_goes_the_fastest_way():
    """At once each device reads 7 whole messages, else 2 * 7/8 of one; a library starts late and is faster then."""
    fit = AllReduceFit(once_s=4e-6, once_link=0.6, twice_s=1e-5, twice_link=0.7, large_s=1e-4, large_link=0.9)
    few, more, most = (float(formulas.all_reduce_s(fit, H100, size, 8)) for size in (1e4, 4e6, 1e9))
    assert few == pytest.approx(4e-6 + 7e4 / (0.6 * 450e9))
    assert more == pytest.approx(1e-5 + 1.75 * 4e6 / (0.7 * 450e9))
    assert most == pytest.approx(1e-4 + 1.75e9 / (0.9 * 450e9))
    sizes = np.geomspace(1, 1e9, 400)
    assert (np.diff(formulas.all_reduce_s(fit, H100, sizes, 8)) > 0).all()


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1, 1e5),
    st.integers(64, 65536),
    st.integers(64, 65536),
    st.floats(1e-12, 1e2),
    st.floats(1e-12, 10),
)
def test_a_product_is_never_faster_than_its_peaks(rows, inputs, outputs, blend, wave):
    fit = GEMM._replace(blend=blend, wave=wave)
    for precision in ("bf16", "fp8", "int4"):
        seconds = formulas.gemm_s(fit, H100, precision, rows, inputs, outputs)
        assert seconds > 2 * rows * inputs * outputs / H100.peak(precision)
        assert seconds > 0.5 * inputs * outputs / H100.bandwidth
