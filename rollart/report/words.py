"""What a critical path says, in a sentence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rollart.runlog.critical_path import Segment
from rollart.runlog.stages import Stage
from rollart.runlog.statistics import StepStatistics

_NAMES = {
    Stage.WEIGHT_SYNC_EXPOSED: "weight sync",
    Stage.WAITING_FOR_BATCH: "waiting for a batch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The trajectory that a step waited for longest."""

    trajectory: int
    seconds: float
    stages_s: Mapping[Stage, float]
    engine: int | None
    """Engine that it spent most of that time on."""


def culprit(path: Iterable[Segment]) -> Culprit | None:
    """The trajectory with the most seconds on the path; None if none is on it."""
    own: dict[int, list[Segment]] = {}
    for segment in path:
        if segment.trajectory is not None:
            own.setdefault(segment.trajectory, []).append(segment)
    if not own:
        return None
    trajectory = max(own, key=lambda number: (sum(each.duration_s for each in own[number]), -number))
    stages_s: dict[Stage, float] = {}
    engines_s: dict[int, float] = {}
    for segment in own[trajectory]:
        stages_s[segment.stage] = stages_s.get(segment.stage, 0.0) + segment.duration_s
        if segment.engine is not None:
            engines_s[segment.engine] = engines_s.get(segment.engine, 0.0) + segment.duration_s
    return Culprit(
        trajectory=trajectory,
        seconds=sum(stages_s.values()),
        stages_s=stages_s,
        engine=max(engines_s, key=lambda engine: (engines_s[engine], -engine)) if engines_s else None,
    )


def stage_name(stage: Stage) -> str:
    """For people."""
    return _NAMES.get(stage, stage.value)


def describe_path(step: StepStatistics) -> str:
    """Such as `step 7 (83.2 s) waited 61.0 s for trajectory 1234 of SWE-bench: 61 % environment, 30 % generation`."""
    begin = f"step {step.step} ({_seconds(step.duration_s)})"
    found = culprit(step.path)
    if found is None:
        return f"{begin}: {_shares(step.stages_s, step.duration_s)}"
    task = step.task_of.get(found.trajectory)
    about = f"trajectory {found.trajectory}" + (f" of {task}" if task else "")
    where = "" if found.engine is None else f" on engine {found.engine}"
    stages = _shares(found.stages_s, found.seconds)
    return f"{begin} waited {_seconds(found.seconds)} for {about}{where}: {stages}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.3g} s"


def _shares(stages_s: Mapping[Stage, float], total_s: float) -> str:
    largest = sorted(stages_s.items(), key=lambda item: -item[1])
    shares = [(stage, 100 * seconds / total_s if total_s else 0.0) for stage, seconds in largest]
    return ", ".join(f"{share:.0f} % {stage_name(stage)}" for stage, share in shares if share >= 0.5)
