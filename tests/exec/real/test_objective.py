"""The objective against numbers worked out by hand."""

import math

import pytest
import torch

from rollart.domain.execution import Learning, Proximal
from rollart.exec.real.trainer.objective import Tokens, objective


def terms(new, behaviour, advantage, *, recomputed=None, reference=None, entropy=0.0, entropy_bonus=0.0, **learning):
    made = torch.tensor([new], requires_grad=True)
    tokens = Tokens(
        behaviour=torch.tensor([behaviour]),
        advantage=torch.tensor([advantage]),
        weight=torch.tensor([1.0]),
        entropy_bonus=torch.tensor([entropy_bonus]),
        proximal=None if recomputed is None else torch.tensor([recomputed]),
        reference=None if reference is None else torch.tensor([reference]),
    )
    if recomputed is not None:
        learning = {"proximal": Proximal.RECOMPUTED, "correction_limit": 2.0, **learning}
    told = objective(made, torch.tensor([entropy]), tokens, Learning(**learning))
    told.loss.backward()
    return float(told.loss.detach()), float(made.grad[0]), float(told.clipped)


def test_on_policy_the_gradient_is_the_advantage():
    loss, gradient, clipped = terms(-1.0, -1.0, 2.0)
    assert (loss, gradient, clipped) == pytest.approx((-2.0, -2.0, 0.0))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        (1.5, 1.0, -1.28, 0.0),
        (1.5, -1.0, 1.5, 1.5),
        (2.9, -1.0, 2.9, 2.9),
        (100.0, -1.0, 3.0, 0.0),
        (0.5, 1.0, -0.5, -0.5),
        (0.5, -1.0, 0.8, 0.0),
    ],
    ids=[
        "too far up",
        "up with a bad action",
        "far up with a bad action",
        "too far up with a bad action",
        "down with a good action",
        "too far down",
    ],
)
def test_the_ratio_is_clipped_on_the_side_where_it_gains(ratio, advantage, loss, gradient):
    told = terms(math.log(ratio) - 1.0, -1.0, advantage)
    assert told[:2] == pytest.approx((loss, gradient), abs=1e-6)
    assert told[2] == float(gradient == 0.0)


def test_decoupled_the_correction_is_truncated_and_carries_no_gradient():
    loss, gradient, _ = terms(-1.0, -1.0 - math.log(1.5), 1.0, recomputed=-1.0)
    assert (loss, gradient) == pytest.approx((-1.5, -1.5))
    loss, gradient, _ = terms(-1.0, -1.0 - math.log(9.0), 1.0, recomputed=-1.0)
    assert (loss, gradient) == pytest.approx((-2.0, -2.0))


def test_entropy_is_rewarded_and_divergence_is_not():
    assert terms(-1.0, -1.0, 0.0, entropy=0.7, entropy_bonus=0.1)[0] == pytest.approx(-0.07)
    apart = 0.3
    expected = 0.5 * (math.exp(apart) - apart - 1.0)
    assert terms(-1.0, -1.0, 0.0, reference=-1.0 + apart, kl_coefficient=0.5)[0] == pytest.approx(expected)
