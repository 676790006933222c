import pytest

from rollart.domain.device import Device
from rollart.domain.errors import InputError

FIGURES = {
    "name": "X1",
    "kind": "gpu",
    "memory_bytes": 80e9,
    "memory_bandwidth_bytes_per_s": 2e12,
    "flops_per_s": {"bf16": 300e12},
    "device_link_bytes_per_s": 300e9,
    "host_link_bytes_per_s": 32e9,
    "price_per_hour": 1.0,
}


def test_weights_compute_at_the_peak_of_their_widened_precision():
    with_fp8 = Device(**{**FIGURES, "flops_per_s": {"bf16": 300e12, "fp8": 600e12}})
    assert with_fp8.peak_flops_per_s("fp8") == 600e12
    assert with_fp8.peak_flops_per_s("int4") == 300e12
    assert with_fp8.peak_flops_per_s("mxfp4") == 300e12
    assert Device(**FIGURES).peak_flops_per_s("fp8") == 300e12


def test_an_unknown_precision_lists_the_known_ones():
    with pytest.raises(InputError, match="precision 'fp3' is not known; one of: bf16"):
        Device(**FIGURES).peak_flops_per_s("fp3")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("memory_bytes", 0.0, "device X1: memory_bytes must be above 0, not 0.0"),
        (
            "memory_bandwidth_bytes_per_s",
            float("nan"),
            "memory_bandwidth_bytes_per_s must be above 0, not nan",
        ),
        ("price_per_hour", -1.0, "price_per_hour must be 0 or more, not -1.0"),
        ("kind", "tpu", 'kind must be "gpu" or "cpu", not \'tpu\''),
        ("devices_per_node", 0, "devices_per_node must be 1 or more, not 0"),
        ("flops_per_s", {"fp8": 1e12}, "flops_per_s must name a bf16 peak"),
        ("flops_per_s", {"bf16": -1e12}, r"flops_per_s.bf16 must be above 0"),
    ],
)
def test_an_impossible_figure_is_named(key, value, message):
    with pytest.raises(InputError, match=message):
        Device(**{**FIGURES, key: value})


def test_a_device_can_be_a_dictionary_key():
    assert {Device(**FIGURES): 1}[Device(**FIGURES)] == 1
