"""Latent normals."""

import math

import numpy as np
import pytest

from rollart.workload.latent import TrajectoryLatent, TurnLatents
from rollart.workload.profile import Figure
from rollart.workload.quantiles import QuantileFunction, Tail, TailFamily


def figure(law: QuantileFunction, prompt_share: float = 0.0, member_share: float = 0.0) -> Figure:
    return Figure(law=law, prompt_share=prompt_share, member_share=member_share, source="test")


LAWS = (
    QuantileFunction({0.1: 1.0, 0.9: 9.0}, tail=Tail(family=TailFamily.PARETO, parameter=1.2)),
    QuantileFunction({0.5: 0.0, 0.9: 9.0}),
    QuantileFunction({0.5: 7.0}),
)


def test_laws_side_by_side_give_what_each_gives_alone() -> None:
    scores = np.linspace(-9.0, 9.0, 73)
    values = TurnLatents([figure(law) for law in LAWS]).values(0.3, (0.1, 0.2, 0.3), np.array([scores] * 3))
    for row, law in zip(values, LAWS, strict=True):
        assert row == pytest.approx(law.at_all(scores), rel=1e-9, abs=1e-12)


def test_shares_are_shares_of_variance() -> None:
    law = QuantileFunction({p: math.exp(score) for p, score in ((0.5, 0.0), (0.975, 1.959964))})
    latents = TurnLatents([figure(law, prompt_share=0.36, member_share=0.25)])
    value = latents.values(1.0, (0.5,), np.array([[2.0]]))[0, 0]
    assert math.log(value) == pytest.approx(min(0.6 * 1.0 + 0.5 * 0.5 + math.sqrt(0.39) * 2.0, 1.959964))


def test_what_is_not_the_prompts_is_the_members() -> None:
    law = QuantileFunction({0.025: math.exp(-1.959964), 0.975: math.exp(1.959964)})
    value = TrajectoryLatent(figure(law, prompt_share=0.36)).value(1.0, 0.5)
    assert math.log(value) == pytest.approx(0.6 + 0.8 * 0.5)
