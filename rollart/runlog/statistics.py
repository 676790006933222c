"""What a run log says about its run, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass

from rollart.domain.trajectory import End
from rollart.runlog.critical_path import Segment
from rollart.runlog.header import RunHeader
from rollart.runlog.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a step took from the hardware, by the samples at its two ends."""

    pool_busy_device_s: Mapping[str, float]
    """Busy device seconds of engines and trainer, by pool."""
    kv_block_s: float
    kv_capacity_block_s: float
    cost: float
    """All devices and environment cores for the time of the step, and the reward seconds billed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatistics:
    """One training step: from the end of the training before it (or RunStarted) to the end of its own."""

    step: int
    begin_s: float
    end_s: float
    trajectories: int
    tokens: int
    """Prompt and response tokens of the trajectories trained on."""
    staleness: tuple[int, ...]
    """Of each trajectory: version installed at get_batch less its start version."""
    lag: tuple[int, ...]
    """Of each trajectory: version that the trainer held less its start version."""
    busy_s: Mapping[Stage, float]
    """Seconds with at least one worker of the stage at work; stages overlap."""
    path: tuple[Segment, ...]
    """The critical path, in order of time."""
    task_of: Mapping[int, str]
    """Tasks of the trajectories on the path."""
    usage: Usage | None
    """None where the log has no samples at the step's ends."""

    @property
    def duration_s(self) -> float:
        """Time of the step."""
        return self.end_s - self.begin_s

    @property
    def stages_s(self) -> dict[Stage, float]:
        """Seconds of the critical path in each stage; they add up to the time of the step."""
        seconds = dict.fromkeys(Stage, 0.0)
        for segment in self.path:
            seconds[segment.stage] += segment.duration_s
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatistics:
    """The trajectories of one task, over the whole run."""

    task: str
    started: int
    ends: Mapping[End, int]
    mean_reward: float | None
    """Of the trained ones."""
    mean_turns: float | None
    """Of the trained ones, turns of given-up attempts among them."""
    truncated_share: float | None
    """Of the trained ones: cut off by the context or the turn limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """Device seconds of engines that no training step used, over the whole run.

    A trajectory's share of an engine group's busy device seconds is its share of the group's residency (seconds
    between GenerateTurn and its end). `failed` has the attempts that were given up too. Recomputation takes its
    share of prefill tokens out of the part of the busy time that the turns' prefill has in prefill and decode;
    it happens within trajectories of every end, so it overlaps the other three.
    """

    stale: float
    surplus: float
    failed: float
    recomputed: float
    """After weight updates and lost caches."""
    preempted: float
    """After preemptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatistics:
    """Everything that reports are made of."""

    header: RunHeader
    begin_s: float
    end_s: float
    """Time of the last record."""
    steps: tuple[StepStatistics, ...]
    ends: Mapping[End, int]
    """Of the trajectories that were begun."""
    open_trajectories: int
    """Begun and not ended: 0 in a complete log."""
    never_begun: int
    """Ended while they waited for their first environment."""
    tasks: tuple[TaskStatistics, ...]
    waste: Waste | None
    """None where the log has no samples."""
    events: int
    turns: int
    """Turns generated."""

    @property
    def counted_steps(self) -> tuple[StepStatistics, ...]:
        """The steps behind the warm-up."""
        return self.steps[self.header.warmup_steps :]

    def staleness_histogram(self) -> dict[int, int]:
        """Trained trajectories by staleness, in all steps."""
        histogram: dict[int, int] = {}
        for step in self.steps:
            for staleness in step.staleness:
                histogram[staleness] = histogram.get(staleness, 0) + 1
        return dict(sorted(histogram.items()))
