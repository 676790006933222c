"""What a user watches of the learning: a line a step in a file, TensorBoard, and the figures of the summary."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rollart.exec.real.trainer.group import StepReport

AT_AN_END = 5
"""Steps that the first and the last reward of a summary are means of."""


class Progress:
    """Writes `learning.jsonl` and TensorBoard's events below a folder, as the steps come."""

    def __init__(self, folder: Path, predicted_step_s: float | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "learning.jsonl").open("w", encoding="utf-8")
        self._board = SummaryWriter(str(folder / "tensorboard"))
        self._predicted_step_s = predicted_step_s
        self._began_s = self._first_s = self._last_s = time.perf_counter()
        self._steps: list[StepReport] = []

    def step(self, report: StepReport) -> None:
        """A training step has ended."""
        self._steps.append(report)
        self._last_s = time.perf_counter()
        if len(self._steps) == 1:
            self._first_s = self._last_s
        line = {
            "step": report.step,
            "time_s": self._last_s - self._began_s,
            "rewards": report.rewards,
            "staleness": fmean(report.staleness),
            **report.figures,
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        for task, reward in report.rewards.items():
            self._scalar(f"reward/{task}", reward, report.step)
        for name, value in report.figures.items():
            self._scalar(f"trainer/{name}", value, report.step)
        self._scalar("staleness", fmean(report.staleness), report.step)

    def _scalar(self, name: str, value: float, step: int) -> None:
        self._board.add_scalar(name, value, step)

    def figures(self) -> dict[str, Any]:
        """Rewards by task, tokens trained on a second behind the first step, and the step time that was predicted."""
        passed_s = self._last_s - self._first_s
        tokens = sum(report.figures["tokens"] for report in self._steps[1:])
        return {
            "reward": rewards_of([report.rewards for report in self._steps]),
            "tokens_per_s": tokens / passed_s if passed_s else None,
            "predicted_step_time_s": self._predicted_step_s,
        }

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._board.close()


def rewards_of(steps: list[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """By task: mean reward of the first and of the last steps, and the best mean of as many in a row."""
    found = {}
    for task in steps[0] if steps else ():
        rewards = [step[task] for step in steps]
        width = min(AT_AN_END, len(rewards))
        means = [fmean(rewards[start : start + width]) for start in range(len(rewards) - width + 1)]
        found[task] = {"first": means[0], "last": means[-1], "best": max(means)}
    return found
