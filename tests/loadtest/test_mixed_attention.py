"""Mixed iterations where attention reads the KV cache more than once."""

import pytest

from rollart.catalog.load import devices, models
from rollart.loadtest.cost_source import costs_from
from rollart.loadtest.deployment import Deployment
from rollart.loadtest.mixed_attention import READ_AGAIN, MixedAttention, reads_again

LLAMA = models()["Llama-3.1-8B"]


def costs(device, source="compact"):
    deployment = Deployment(model=LLAMA, device=devices()[device], max_num_batched_tokens=2048, max_num_seqs=128)
    return costs_from(source)(deployment.shape)


@pytest.mark.parametrize(("device", "expected"), [("RTX PRO 6000", True), ("A100", True), ("H100", False)])
def test_newer_kernels_read_once(device, expected):
    assert reads_again(LLAMA, devices()[device]) is expected
    assert isinstance(costs(device), MixedAttention) is expected


def test_the_roofline_stays_as_it_is():
    assert not isinstance(costs("RTX PRO 6000", "roofline"), MixedAttention)


def test_only_mixed_iterations_are_dearer():
    inner = costs("RTX PRO 6000")
    once, again = inner._mixed_s, inner.mixed_s
    assert again(64, 64_000, []) == once(64, 64_000, [])
    assert again(0, 0, [(500, 0)]) == once(0, 0, [(500, 0)])
    extra_s = again(64, 64_000, [(500, 0)]) - once(64, 64_000, [(500, 0)])
    attention_s = inner.decode(64, 64_000).per_token_s * 64_000
    assert extra_s == pytest.approx((READ_AGAIN - 1) * attention_s)
