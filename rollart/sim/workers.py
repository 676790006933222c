"""All workers of a simulated run, made from its job."""

from collections.abc import Callable

from rollart.costs.interface import TrainingCosts
from rollart.costs.job_costs import rollout_pools, slowest_path
from rollart.domain.events import EngineLost, Event
from rollart.domain.job import Job
from rollart.domain.plan import Role
from rollart.sim.assembly import EngineKind, engine_sites, link_table
from rollart.sim.clock import Clock
from rollart.sim.engine_worker import EngineWorker
from rollart.sim.environments import Environments
from rollart.sim.episodes import Episodes
from rollart.sim.faults import EngineFaults
from rollart.sim.generation import Generation
from rollart.sim.judge import EngineJudge
from rollart.sim.rewards import Rewards
from rollart.sim.trainer import Trainer
from rollart.sim.weight_store import WeightStore
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
        self.rewards = Rewards(cluster.serverless, tasks, self.episodes, clock, report)
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
            clock,
            report,
        )
        self.faults = EngineFaults(job.faults, job.seed, self.engines, clock, self.lose, report)

    def lose(self, index: int) -> None:
        """An engine dies; a judge takes its judgements with it, another engine its turns."""
        if not self._judges[index]:
            self.generation.lose(index)
            return
        worker = self.engines[index]
        judgements = list(worker.kill())
        self._report(EngineLost(engine=index, incarnation=worker.incarnation, commands=(), saved_tokens=()))
        self.judge.lost(judgements)

    def forget(self, trajectory: int) -> None:
        """A trajectory has ended: drop what is held for it."""
        self.episodes.end(trajectory)
        self.generation.forget(trajectory)
