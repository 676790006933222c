"""All modelled workers of a run, made from its job."""

from collections.abc import Callable
from typing import Any

from rollart.costs.interface import TrainingCosts
from rollart.costs.job_costs import rollout_pools, slowest_path
from rollart.domain.commands import (
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    Command,
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
from rollart.domain.events import EngineLost, Event
from rollart.domain.job import Job
from rollart.domain.plan import Role
from rollart.modelled.assembly import EngineKind, engine_sites, link_table
from rollart.modelled.clock import Clock
from rollart.modelled.engine_worker import EngineWorker
from rollart.modelled.environments import Environments
from rollart.modelled.episodes import Episodes
from rollart.modelled.faults import EngineFaults, RewardFaults, TrainerFaults
from rollart.modelled.generation import Generation
from rollart.modelled.judge import EngineJudge
from rollart.modelled.rewards import Rewards
from rollart.modelled.timers import Timers
from rollart.modelled.trainer import Trainer
from rollart.modelled.weight_store import WeightStore
from rollart.workload.trajectory import Workload


class Workers:
    """Engines, environments, rewards, trainer, weights, and the faults that befall them."""

    def __init__(
        self,
        job: Job,
        workload: Workload,
        kinds: list[EngineKind],
        training: TrainingCosts,
        clock: Clock,
        report: Callable[[Event], None],
    ) -> None:
        self._report = report
        placement, cluster = job.plan.placement, job.cluster
        tasks = {task.name: task for task in job.tasks}
        per_engine = [kind for kind in kinds for _ in range(kind.group.engines)]
        rollout = next(kind for kind in kinds if kind.group.role is not Role.JUDGE)
        self.episodes = Episodes(workload)
        self.engines = [
            EngineWorker(index, kind.config, kind.costs, clock, report) for index, kind in enumerate(per_engine)
        ]
        between, self.links = link_table(job, [kind.group.pool for kind in per_engine], clock)
        kv_bytes = rollout.costs.kv_bytes_per_token
        self.generation = Generation(self.engines, self.episodes, between, kv_bytes, placement.kv_return, clock, report)
        self.environments = Environments(cluster.environments, tasks, self.episodes, clock, report)
        self.rewards = Rewards(
            cluster.serverless, tasks, self.episodes, clock, report, RewardFaults(job.faults, job.seed)
        )
        groups: dict[str, list[EngineWorker]] = {}
        for worker, kind in zip(self.engines, per_engine, strict=True):
            groups.setdefault(kind.group.name, []).append(worker)
        self.judge = self.rewards.judge = EngineJudge(groups, clock, report)
        self._judges = [kind.group.role is Role.JUDGE for kind in per_engine]
        self.trainer = Trainer(training, job.training.context_limit, clock, report)
        self.store = WeightStore(
            engine_sites(job, kinds),
            rollout.costs.weight_bytes,
            slowest_path(job, placement.trainer, rollout_pools(job)),
            placement.trainer.publishers,
            job.calibration.weights,
            clock,
            report,
        )
        self.timers = Timers(clock, report)
        self.faults = EngineFaults(job.faults, job.seed, self.engines, clock, self.lose, report)
        self.trainer_faults = TrainerFaults(job.faults, job.seed, self.trainer, clock, self.lose_trainer)

    def orders(self) -> dict[type[Command], Callable[[Any], object]]:
        """Who carries out each kind of command."""
        engines, environments, store = self.engines, self.environments, self.store
        return {
            ResetEnvironment: environments.reset,
            StepEnvironment: environments.step,
            CloseEnvironment: environments.close,
            GenerateTurn: self.generation.generate,
            AbortGeneration: self.generation.abort,
            ScoreTrajectory: self.rewards.score,
            EndTrajectory: lambda c: self.forget(c.trajectory),
            TrainBatch: self.trainer.train,
            RestartTrainer: self.trainer_faults.restart,
            PushWeights: store.push,
            PullWeights: store.pull,
            SuspendEngine: lambda c: engines[c.engine].suspend(
                c, store.release_s(c.engine) if c.release_memory else 0.0
            ),
            UpdateEngine: lambda c: engines[c.engine].update(c, store.update_s(c)),
            ResumeEngine: lambda c: engines[c.engine].resume(c),
            RestartEngine: self.faults.restart,
            SetTimer: self.timers.set,
            CancelTimer: self.timers.cancel,
        }

    def lose(self, index: int) -> None:
        """An engine dies; a judge takes its judgements with it, another engine its turns."""
        if not self._judges[index]:
            self.generation.lose(index)
            return
        worker = self.engines[index]
        judgements = list(worker.kill())
        self._report(EngineLost(engine=index, incarnation=worker.incarnation, commands=(), saved_tokens=()))
        self.judge.lost(judgements)

    def lose_trainer(self) -> None:
        """The trainer dies, and what it was pushing with it."""
        self.store.cut_push()
        self.trainer.lose()

    def forget(self, trajectory: int) -> None:
        """A trajectory has ended: drop what is held for it."""
        self.episodes.end(trajectory)
        self.generation.forget(trajectory)
