"""What a user watches of the learning: a line a step in a file, TensorBoard, and the figures of the summary."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rollart.exec.real.trainer.group import StepReport

Busy = Mapping[str, tuple[float, int]]
"""By name: busy seconds so far, and how many workers they are summed over."""

AT_AN_END = 5
"""Steps that the first and the last reward of a summary are means of."""


class Progress:
    """Writes `learning.jsonl` and TensorBoard's events below a folder, and tells a line, as the steps come."""

    def __init__(
        self, folder: Path, steps: int, predicted_step_s: float | None, tell: Callable[[str], None] | None = None
    ) -> None:
        """`steps`: of the whole run."""
        from torch.utils.tensorboard import SummaryWriter

        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "learning.jsonl").open("w", encoding="utf-8")
        self._board = SummaryWriter(str(folder / "tensorboard"))
        self._all_steps = steps
        self._predicted_step_s = predicted_step_s
        self._tell = tell
        self._busy: Callable[[], Busy] = dict
        self._busy_before: Busy = {}
        self._began_s = self._first_s = self._last_s = time.perf_counter()
        self._steps: list[StepReport] = []

    def begin(self, busy: Callable[[], Busy]) -> None:
        """The workers are up, and the first step begins; `busy` will be asked after every step."""
        self._busy = busy
        self._busy_before = busy()
        self._last_s = time.perf_counter()

    def step(self, report: StepReport) -> None:
        """A training step has ended."""
        self._steps.append(report)
        before_s, self._last_s = self._last_s, time.perf_counter()
        passed_s = self._last_s - before_s
        before, self._busy_before = self._busy_before, self._busy()
        utilization = shares(before, self._busy_before, passed_s)
        if len(self._steps) == 1:
            self._first_s = self._last_s
        line = {
            "step": report.step,
            "time_s": self._last_s - self._began_s,
            "rewards": report.rewards,
            "staleness": fmean(report.staleness),
            "utilization": utilization,
            **report.figures,
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        for task, reward in report.rewards.items():
            self._scalar(f"reward/{task}", reward, report.step)
        for name, value in report.figures.items():
            self._scalar(f"trainer/{name}", value, report.step)
        for name, share in utilization.items():
            self._scalar(f"utilization/{name}", share, report.step)
        self._scalar("staleness", fmean(report.staleness), report.step)
        if self._tell is not None:
            self._tell(line_of(report, self._all_steps, passed_s, utilization))

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


def shares(before: Busy, now: Busy, passed_s: float) -> dict[str, float]:
    """Share of the time between that the workers of each name were busy, from 0 to 1.

    Counters come with messages and work is counted when it ends, so one step may be credited with the work of another.
    """
    return {
        name: min(1.0, (busy_s - before.get(name, (0.0, 0))[0]) / (count * passed_s)) if passed_s else 0.0
        for name, (busy_s, count) in now.items()
    }


def line_of(report: StepReport, steps: int, passed_s: float, utilization: Mapping[str, float]) -> str:
    """What a step was like, in a line."""
    rewards = ", ".join(f"{task} {reward:.2f}" for task, reward in report.rewards.items())
    busy = ", ".join(f"{name} {share:.0%}" for name, share in utilization.items())
    rate = report.figures["tokens"] / passed_s if passed_s else 0.0
    return (
        f"step {report.step + 1}/{steps}: {passed_s:.1f} s, reward {rewards}, staleness {fmean(report.staleness):.2f},"
        f" {rate:,.0f} tokens/s trained on, busy {busy}"
    )


def rewards_of(steps: list[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """By task: mean reward of the first and of the last steps, and the best mean of as many in a row."""
    found = {}
    for task in steps[0] if steps else ():
        rewards = [step[task] for step in steps]
        width = min(AT_AN_END, len(rewards))
        means = [fmean(rewards[start : start + width]) for start in range(len(rewards) - width + 1)]
        found[task] = {"first": means[0], "last": means[-1], "best": max(means)}
    return found
