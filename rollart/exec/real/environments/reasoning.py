"""Tasks of reasoning-gym (arithmetic, logic, games): one question, one answer, graded by the task's own verifier."""

from collections.abc import Mapping
from typing import Any

import reasoning_gym

from rollart.exec.real.environments.protocol import Action, Observation

KEPT_QUESTIONS = 100_000
"""Size of the procedural data set; the seed of an episode picks a question out of it."""


class Reasoning:
    """One question of a data set; the last word of the answer, or what stands in <answer> tags, is graded."""

    def __init__(
        self, *, dataset: str, seed: int = 0, arguments: Mapping[str, Any] | None = None, instruction: str = ""
    ) -> None:
        """`instruction` follows every question."""
        self._instruction = instruction
        self._data = reasoning_gym.create_dataset(dataset, seed=seed, size=KEPT_QUESTIONS, **(arguments or {}))
        self._entry: Mapping[str, Any] = {}

    def reset(self, seed: int, member: int) -> Observation:
        """The question."""
        del member
        self._entry = self._data[seed % KEPT_QUESTIONS]
        return Observation(text=str(self._entry["question"]) + self._instruction)

    def step(self, action: Action) -> Observation:
        """Grade the answer, from 0 to 1."""
        score = self._data.score_answer(answer=answer_in(action.text), entry=self._entry)
        return Observation(text="", reward=float(score), done=True)

    def close(self) -> None:
        """Nothing is held."""


def answer_in(text: str) -> str:
    """What stands between <answer> and </answer>, or else the last word without its full stop."""
    _, tag, rest = text.rpartition("<answer>")
    if tag:
        return rest.partition("</answer>")[0].strip()
    words = text.split()
    return words[-1].rstrip(".") if words else ""
