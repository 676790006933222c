"""Turns a profile into another: heavier tails, failures, figures that drift over training steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rollart.workload.profile import FailureRates, Figure, Profile, TaskProfile
from rollart.workload.quantiles import QuantileFunction

FIGURES = ("turns", "prompt_tokens", "observation_tokens", "output_tokens", "env_s", "reset_s", "reward_s")
CALLS = ("reset", "step")
TAIL_SCORE = 1.2815515655446004
"""Normal score of p = 0.9, where a scaled tail begins."""
_TAIL_SCORES = tuple(float(score) for score in np.arange(TAIL_SCORE, 6.0, 0.05))
_LEAST = {"turns": 1.0, "prompt_tokens": 1.0, "output_tokens": 1.0}
_MOST = {"turns": 10_000.0}
_LARGEST = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What is changed, in every task; figures by their names in a profile."""

    tail_scales: Mapping[str, float] = field(default_factory=dict)
    """{figure: f}: what a value exceeds the quantile 0.9 by is multiplied by f."""
    drifts: Mapping[str, float] = field(default_factory=dict)
    """{figure: d}: values of training step s are multiplied by (1 + d)^s."""
    failure_rates: Mapping[str, float] = field(default_factory=dict)
    """{"reset" | "step": share of calls that fail}; time-outs keep their share of what is left."""

    def __post_init__(self) -> None:
        """ValueError for a figure or call that does not exist, a factor <= 0, a drift <= -1, a share outside [0, 1]."""
        for knob, values, known in (
            ("scale-tail", self.tail_scales, FIGURES),
            ("drift", self.drifts, FIGURES),
            ("failure-rate", self.failure_rates, CALLS),
        ):
            for name in values:
                if name not in known:
                    raise ValueError(f"{knob} names {name!r}; it must be one of {', '.join(known)}")
        for name, factor in self.tail_scales.items():
            if not 0.0 < factor <= 1000.0:
                raise ValueError(f"scale-tail {name} is {factor:g}; must be > 0 and <= 1000")
        for name, drift in self.drifts.items():
            if not -1.0 < drift <= 10.0:
                raise ValueError(f"drift {name} is {drift:g} a step; must be > -1 and <= 10, such as 0.02 for 2 %")
        for name, rate in self.failure_rates.items():
            if not 0.0 <= rate <= 1.0:
                raise ValueError(f"failure-rate {name} is {rate:g}; must be a share from 0 to 1")

    def turned(self, profile: Profile, step: int = 0) -> Profile:
        """The profile of a training step, counted from 0."""
        return replace(profile, tasks={name: self._task(task, step) for name, task in profile.tasks.items()})

    def _task(self, task: TaskProfile, step: int) -> TaskProfile:
        figures: dict[str, Any] = {
            name: self._figure(name, getattr(task, name), step) for name in {*self.tail_scales, *self.drifts}
        }
        return replace(
            task,
            **figures,
            reset_failures=self._rates("reset", task.reset_failures),
            step_failures=self._rates("step", task.step_failures),
        )

    def _figure(self, name: str, figure: Figure, step: int) -> Figure:
        scale, growth = self.tail_scales.get(name, 1.0), (1.0 + self.drifts.get(name, 0.0)) ** step
        least, most = _LEAST.get(name, 0.0), _MOST.get(name, _LARGEST)

        def turned(law: QuantileFunction) -> QuantileFunction:
            knee = law.at(TAIL_SCORE)

            def turn(value: float) -> float:
                stretched = knee + scale * (value - knee) if value > knee else value
                return min(max(stretched * growth, least), most)

            return law.reshaped(turn, _TAIL_SCORES if scale != 1.0 else ())

        laws = {turns: turned(law) for turns, law in figure.from_turns.items()}
        changes = [f"tail x {scale:g}"] * (scale != 1.0) + [f"x {growth:g} by drift"] * (growth != 1.0)
        return replace(figure, law=turned(figure.law), from_turns=laws, source="; ".join((figure.source, *changes)))

    def _rates(self, call: str, rates: FailureRates) -> FailureRates:
        failed = self.failure_rates.get(call)
        if failed is None:
            return rates
        timeout = rates.timeout / (1.0 - rates.failed) * (1.0 - failed) if rates.failed < 1.0 else 0.0
        return replace(rates, failed=failed, timeout=timeout, source=f"{rates.source}; failures set to {failed:g}")
