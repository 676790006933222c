"""The summary of a trace, made by `info` in one pass and bounded memory (it grows by groups only).

Token work is counted as a perfect prefix cache would see it: a turn finds what is kept of its own history, a
group its shared prompt once a first member has computed it, and the last token of a context is always
computed.
"""

from dataclasses import asdict, dataclass
from typing import Any

from rollart.workload.distribution import Summary

QUANTITIES = (
    "turns",
    "prompt_tokens",
    "observation_tokens",
    "output_tokens",
    "context_tokens",
    "response_tokens",
    "env_s",
    "reset_s",
    "reward_s",
    "reward",
)
"""Per turn: observation, output, env_s. Per trajectory the others: longest context, response = all output."""


PREFILL_HEAVY = 5.0
"""Prefilled tokens for one decoded, above which an engine spends more time on prefill. A rule of thumb, by arithmetic
for 8 billion weights on an H800: prefill at half of 989 TFLOP/s makes 31,000 tokens a second; an iteration that reads
16 GB at 3.35 TB/s takes 4.8 ms, so 32 sequences decode 6,700 a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """One task of a trace. Shares are in [0, 1]; None where nothing was recorded to tell it from."""

    task: str
    trajectories: int
    groups: int
    groups_without_signal: int
    """Groups of two and more scored members that all got the same reward."""
    failed_share: float
    truncated_share: float
    reward_mean: float | None
    quantities: dict[str, Summary | None]
    context_tokens_sent: int
    """Sum of the contexts of all generations: prefill without any cache."""
    prefill_tokens: int
    """Prefill with a perfect cache."""
    decode_tokens: int
    provenance: dict[str, tuple[str, ...]]
    """Per field, every provenance that its trajectories state."""

    @property
    def heavy(self) -> str:
        """Where the tokens of its generations are: "prefill", "decode", or "none" where nothing was generated.

        Prefill with a perfect cache is counted; a token costs far less to prefill than to decode, so a task is called
        prefill-heavy only above `PREFILL_HEAVY` prefilled tokens for one decoded.
        """
        ratio = self.prefill_per_decode
        return "none" if ratio is None else "prefill" if ratio > PREFILL_HEAVY else "decode"

    @property
    def prefill_per_decode(self) -> float | None:
        """Prefilled tokens, with a perfect cache, for one decoded."""
        return self.prefill_tokens / self.decode_tokens if self.decode_tokens else None

    @property
    def ideal_hit_rate(self) -> float | None:
        """Share of the sent tokens that a perfect prefix cache holds."""
        sent = self.context_tokens_sent
        return 1.0 - self.prefill_tokens / sent if sent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceInfo:
    """All tasks of a trace, in the order of their first line."""

    tasks: tuple[TaskInfo, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {task.task: _task_dict(task) for task in self.tasks}

    def as_rows(self) -> list[tuple[str, str, int, float, float, float, float, float]]:
        """(task, quantity, count, mean, p50, p90, p99, max) for a table; what was not recorded has no row."""
        return [
            (task.task, name, found.count, found.mean, found.p50, found.p90, found.p99, found.max)
            for task in self.tasks
            for name, found in task.quantities.items()
            if found is not None
        ]


def _task_dict(task: TaskInfo) -> dict[str, Any]:
    rates = {"heavy": task.heavy, "prefill_per_decode": task.prefill_per_decode, "ideal_hit_rate": task.ideal_hit_rate}
    return asdict(task) | rates
