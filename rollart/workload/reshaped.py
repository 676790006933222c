"""A workload with other lengths: all outputs longer or shorter, or the tails of outputs and environments heavier.

The reshaping works on any workload, recorded or drawn. A tail begins at a task's 0.9 quantile over turns, as in
`rollart.workload.knobs`, estimated on a sample of its trajectories.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rollart.workload.trajectory import TrajectorySpec, Workload

_TAIL_FROM = 0.9
_PROMPTS, _MEMBERS = 32, 4
"""Size of the sample that a knee is estimated on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """What is changed; 1 leaves everything as it is."""

    output_scale: float = 1.0
    """Output tokens of every turn are multiplied by it."""
    tail_scale: float = 1.0
    """What output tokens, environment steps and resets exceed their 0.9 quantile by is multiplied by it."""


AS_IT_IS = Reshape()


class ReshapedWorkload:
    """A workload under a reshape; contexts stay within `limit_tokens`, what would follow beyond it is cut off."""

    def __init__(self, workload: Workload, reshape: Reshape, limit_tokens: int) -> None:
        self._workload = workload
        self._reshape = reshape
        self._limit_tokens = limit_tokens
        self._knees: dict[str, tuple[float, float, float]] = {}

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        """The reshaped trajectory of this key."""
        spec = self._workload.trajectory(task, prompt, member, attempt)
        if task not in self._knees:
            self._knees[task] = self._sampled_knees(task)
        output_knee, env_knee_s, reset_knee_s = self._knees[task]
        scale = self._reshape.output_scale
        wanted = [max(1, round(scale * self._stretched(tokens, output_knee))) for tokens in spec.output_tokens]
        reshaped = replace(
            spec,
            output_tokens=wanted,
            env_s=[self._stretched(seconds, env_knee_s) for seconds in spec.env_s],
            reset_s=self._stretched(spec.reset_s, reset_knee_s),
        )
        return _within(reshaped, self._limit_tokens)

    def _stretched(self, value: float, knee: float) -> float:
        return knee + self._reshape.tail_scale * (value - knee) if value > knee else value

    def _sampled_knees(self, task: str) -> tuple[float, float, float]:
        specs = [
            self._workload.trajectory(task, prompt, member, 0)
            for prompt in range(_PROMPTS)
            for member in range(_MEMBERS)
        ]
        outputs = [tokens for spec in specs for tokens in spec.output_tokens]
        steps_s = [seconds for spec in specs for seconds in spec.env_s]
        return _quantile(outputs), _quantile(steps_s), _quantile([spec.reset_s for spec in specs])


def _quantile(values: Sequence[float]) -> float:
    return float(np.quantile(np.asarray(values, dtype=float), _TAIL_FROM)) if values else float("inf")


def _within(spec: TrajectorySpec, limit_tokens: int) -> TrajectorySpec:
    """Cut the turn that passes the limit at it, and drop those behind; one turn of one token is left at least."""
    for turn, context in enumerate(spec.contexts()):
        room = limit_tokens - context
        if spec.output_tokens[turn] <= room:
            continue
        keep = turn + 1 if room >= 1 or turn == 0 else turn
        outputs = spec.output_tokens[:keep]
        if keep == turn + 1:
            outputs[-1] = max(1, room)
        return replace(
            spec,
            new_tokens=spec.new_tokens[:keep],
            kept_tokens=None if spec.kept_tokens is None else spec.kept_tokens[:keep],
            output_tokens=outputs,
            env_s=spec.env_s[:keep],
            env_outcome=None if spec.env_outcome is None else spec.env_outcome[:keep],
            truncated=True,
        )
    return spec
