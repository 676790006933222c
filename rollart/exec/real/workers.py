"""All real workers of a run: made from its job, started on Ray, wired to the driver's desk."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from statistics import fmean
from typing import Any

from rollart.domain.commands import (
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    EndTrajectory,
    GenerateTurn,
    PullWeights,
    PushWeights,
    ResetEnvironment,
    RestartEngine,
    RestartTrainer,
    ResumeEngine,
    ScoreTrajectory,
    SetTimer,
    StepEnvironment,
    SuspendEngine,
    TrainBatch,
    UpdateEngine,
)
from rollart.domain.execution import ExecutionSettings, WeightTransfer
from rollart.domain.job import Job
from rollart.exec.ports import Desk, Orders, ResumePoint
from rollart.exec.real.archive import EpisodeArchive
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.environments.fleet import EnvironmentFleet
from rollart.exec.real.episodes import Episodes
from rollart.exec.real.failures import Why
from rollart.exec.real.launch import Launcher
from rollart.exec.real.probes import Probes
from rollart.exec.real.progress import Progress
from rollart.exec.real.rewards.scoring import Scoring
from rollart.exec.real.rewards.select import RewardFunctions
from rollart.exec.real.trainer.group import TrainerGroup
from rollart.exec.real.weights.members import Member
from rollart.exec.real.weights.store import WeightStore
from rollart.modelled.timers import Timers
from rollart.runlog.samples import EnvironmentSample, LinkSample, Sample, TrainerSample

TRAINER = "trainer"
CHECKPOINTS = "checkpoints"
"""Folder of the trainer's checkpoints."""


class RealWorkers:
    """Engines, environments, rewards, trainer and weights of one run."""

    def __init__(
        self,
        job: Job,
        settings: ExecutionSettings,
        desk: Desk,
        launcher: Launcher,
        progress: Progress,
        rewards: RewardFunctions,
        why: Why,
    ) -> None:
        """`why` is told the reason of every failure."""
        self._desk = desk
        self._launcher = launcher
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        report, clock = desk.report, desk.clock
        self._kept = desk.folder or launcher.folder
        self._archive = EpisodeArchive(None if desk.folder is None else desk.folder / "episodes")
        self.episodes = episodes = Episodes(self._archive.drop)
        self.timers = Timers(clock, report)
        self.probes = Probes(launcher.tokenizer, settings)
        self.trainer = TrainerGroup(
            launcher.trainer_ranks,
            settings.learning,
            self.probes.prompts,
            episodes,
            self._spawn,
            report,
            why,
            progress.step,
            self._kept / CHECKPOINTS,
            job.seed,
            launcher.shared_devices,
        )
        receivers = self._receivers if settings.weight_transfer is WeightTransfer.NCCL else None
        self.store = WeightStore(self.trainer, launcher.carrier, self._spawn, clock, report, receivers)
        turn_tokens = {task.task: task.turn_tokens for task in settings.tasks}
        self.engines = EngineFleet(
            launcher.engine_count, launcher.engine, turn_tokens, episodes, self.store, self._spawn, report, why
        )
        self.probes.attach(self.engines, self.store)
        tasks = {task.task: task for task in settings.tasks}
        self.environments = EnvironmentFleet(tasks, launcher.environment_host, episodes, clock, report, why)
        self.scoring = Scoring(
            rewards.made(self.engines), episodes, self._spawn, clock, report, why, self._archive.keep
        )

    def _receivers(self) -> list[Member]:
        return self.engines.members(self._launcher.receivers)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the loop; an error that nobody handles ends the run."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._desk.fail(error)

    # The driver's side (WorkerSet)

    async def start(self) -> None:
        """Bring up the trainer and the engines beside each other; environments start when they are needed."""
        await self._launcher.listen(self._desk.fail)
        await asyncio.gather(self.trainer.start(), self.engines.start(), self.scoring.start())
        self._progress.begin(self._busy)

    def orders(self) -> Orders:
        """Who carries out each kind of command."""
        engines, environments = self.engines, self.environments
        return {
            ResetEnvironment: environments.reset,
            StepEnvironment: environments.step,
            CloseEnvironment: environments.close,
            GenerateTurn: engines.generate,
            AbortGeneration: engines.abort,
            ScoreTrajectory: self.scoring.score,
            EndTrajectory: self.episodes.end,
            TrainBatch: self.trainer.train,
            RestartTrainer: self.trainer.restart,
            PushWeights: self.store.push,
            PullWeights: engines.pull,
            SuspendEngine: engines.suspend,
            UpdateEngine: engines.update,
            ResumeEngine: engines.resume,
            RestartEngine: engines.restart,
            SetTimer: self.timers.set,
            CancelTimer: self.timers.cancel,
        }

    def samples(self) -> Iterator[Sample]:
        """A reading of every counter."""
        for link in self.engines.links:
            yield link.sample()
        yield TrainerSample(busy_s=self.trainer.busy_s)
        moved_bytes = self.engines.moved_bytes + self.store.broadcast_bytes
        yield LinkSample(link="weights", bytes=moved_bytes, busy_s=self.store.busy_s)
        yield EnvironmentSample(busy_s=self.environments.busy_s, slots_s=self.environments.slots_s)
        yield self.scoring.sample()

    def figures(self) -> Mapping[str, Any]:
        """Rewards, gaps and rates, by the keys of the summary."""
        return self._progress.figures() | {
            "logprob_gap": {"mean": self.probes.gaps.mean, "max": self.probes.gaps.largest},
            "failed_broadcasts": self.store.failed_broadcasts,
            "weight_update_s": fmean(self.engines.update_s) if self.engines.update_s else None,
        }

    def _busy(self) -> dict[str, tuple[float, int]]:
        """Busy seconds of each group of engines and of the trainer, and how many share in them."""
        found: dict[str, tuple[float, int]] = {}
        for link, group in zip(self.engines.links, self._launcher.engine_groups, strict=True):
            busy_s, count = found.get(group, (0.0, 0))
            found[group] = busy_s + link.sample().busy_s, count + 1
        return found | {TRAINER: (self.trainer.busy_s, 1)}

    async def resume(self, point: ResumePoint) -> None:
        """Take scored trajectories in again; engines and trainer are down until a command starts them."""
        await self._launcher.listen(self._desk.fail)
        self.trainer.resume(point.checkpoint)
        for survivor in point.survivors:
            self.episodes.adopt(survivor.trajectory, self._archive.load(survivor.trajectory))
        await self.scoring.start()
        self._progress.begin(self._busy)

    async def stop(self) -> None:
        """Take everything down."""
        for task in list(self._tasks):
            task.cancel()
        self.environments.stop()
        self.engines.stop()
        await self.scoring.stop()
        self._launcher.close()
