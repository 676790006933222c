"""Latent normals."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rollart.workload.by_turn import TurnFactors
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
    values = TurnLatents([figure(law) for law in LAWS]).values(0.3, 0.0, (0.1, 0.2, 0.3), np.array([scores] * 3))
    for row, law in zip(values, LAWS, strict=True):
        assert row == pytest.approx(law.at_all(scores), rel=1e-9, abs=1e-12)


def test_shares_are_shares_of_variance() -> None:
    law = QuantileFunction({p: math.exp(score) for p, score in ((0.5, 0.0), (0.975, 1.959964))})
    latents = TurnLatents([figure(law, prompt_share=0.36, member_share=0.25)])
    value = latents.values(1.0, 0.0, (0.5,), np.array([[2.0]]))[0, 0]
    assert math.log(value) == pytest.approx(min(0.6 * 1.0 + 0.5 * 0.5 + math.sqrt(0.39) * 2.0, 1.959964))


def test_what_is_not_the_prompts_is_the_members() -> None:
    law = QuantileFunction({0.025: math.exp(-1.959964), 0.975: math.exp(1.959964)})
    value = TrajectoryLatent(figure(law, prompt_share=0.36)).value(1.0, 0.5)
    assert math.log(value) == pytest.approx(0.6 + 0.8 * 0.5)


def test_a_member_goes_with_the_number_of_turns_by_its_correlation() -> None:
    law = QuantileFunction({0.025: math.exp(-1.959964), 0.975: math.exp(1.959964)})
    own = replace(figure(law, member_share=0.25), turns_correlation=0.6)
    value = TurnLatents([own]).values(0.0, 1.5, (0.2,), np.array([[0.0]]))[0, 0]
    assert math.log(value) == pytest.approx(0.5 * (0.6 * 1.5 + 0.8 * 0.2))


def test_factors_of_the_turn_multiply_what_is_drawn() -> None:
    law = QuantileFunction({0.1: 1.0, 0.9: 9.0})
    flat, shaped = figure(law), replace(figure(law), by_turn=TurnFactors({0: 4.0, 2: 1.0}))
    noise = np.zeros((2, 5))
    without, multiplied = TurnLatents([flat, shaped]).values(0.0, 0.0, (0.0, 0.0), noise)
    assert (multiplied / without).tolist() == pytest.approx([4.0, 2.0, 1.0, 1.0, 1.0])


def test_long_trajectories_may_have_a_law_of_their_own() -> None:
    short, middle, long = (QuantileFunction({0.5: value}) for value in (5.0, 70.0, 900.0))
    own = replace(figure(short), from_turns={3: middle, 8: long})
    latents = TurnLatents([figure(short), own])
    for turns, value in ((1, 5.0), (2, 5.0), (3, 70.0), (7, 70.0), (8, 900.0), (50, 900.0)):
        drawn = latents.values(0.0, 0.0, (0.0, 0.0), np.zeros((2, turns)))
        assert np.all(drawn[0] == pytest.approx(5.0)) and np.all(drawn[1] == pytest.approx(value))
        assert own.law_at(turns).quantile(0.5) == pytest.approx(value)


def test_factors_go_on_level_beyond_any_number_of_turns() -> None:
    factors = TurnFactors({1: 2.0, 3: 0.5})
    assert factors.upto(3).tolist() == pytest.approx([2.0, 2.0, 1.0])
    assert factors.upto(1000)[[3, 999]].tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("factors", "message"),
    [({}, "by_turn is empty"), ({-1: 1.0}, "names turn -1"), ({0: 0.0}, r"by_turn\[0\] is 0; a factor must be > 0")],
)
def test_wrong_factors_are_named(factors: dict[int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TurnFactors(factors)
