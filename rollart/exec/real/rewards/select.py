"""Which reward function each task has."""

from collections.abc import Mapping

from rollart.domain.execution import ENVIRONMENT, SERVE, ExecutionSettings, TaskExecution
from rollart.domain.job import Job
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.rewards.function import RemoteReward, Service
from rollart.exec.real.rewards.http import HttpService
from rollart.exec.real.rewards.judge import JudgeService
from rollart.exec.real.rewards.judges import JudgeModel
from rollart.exec.real.rewards.replica import imported
from rollart.exec.real.rewards.scoring import RewardFunction
from rollart.exec.real.tokens import Tokenizer


def check_functions(settings: ExecutionSettings) -> None:
    """Raise ScenarioError where a secret is not set or a function cannot be imported."""
    for task in settings.tasks:
        if task.reward.startswith(SERVE):
            imported(task.reward.removeprefix(SERVE))
        elif task.reward != ENVIRONMENT and task.judge is None:
            HttpService(task)


class RewardFunctions:
    """Makes the functions of a run."""

    def __init__(
        self,
        job: Job,
        settings: ExecutionSettings,
        tokenizer: Tokenizer,
        judges: Mapping[str, JudgeModel],
        name: str,
        *,
        shared: bool,
    ) -> None:
        """`name`: unlike that of any other run on the cluster. `shared`: the cluster is there when the run is over."""
        self._job = job
        self._settings = settings
        self._tokenizer = tokenizer
        self._judges = judges
        self._name = name
        self._shared = shared

    def made(self, engines: EngineFleet) -> dict[str, RewardFunction]:
        """The functions, by task; tasks whose environment gives the reward have none."""
        return {
            task.task: RemoteReward(self._service(task, engines), self._tokenizer, task.reward_concurrency)
            for task in self._settings.tasks
            if task.reward != ENVIRONMENT
        }

    def _service(self, task: TaskExecution, engines: EngineFleet) -> Service:
        if task.judge is not None:
            return self._judge(task, engines)
        if task.reward.startswith(SERVE):
            # Here, since importing Ray Serve takes seconds.
            from rollart.exec.real.rewards.serve import ServeService

            path, limits = task.reward.removeprefix(SERVE), self._job.cluster.serverless
            return ServeService(task, path, limits, self._name, shared=self._shared)
        return HttpService(task)

    def _judge(self, task: TaskExecution, engines: EngineFleet) -> JudgeService:
        assert task.judge is not None
        reward = next(each.reward for each in self._job.tasks if each.name == task.task)
        assert reward.engine_group is not None
        engine_groups = self._job.plan.placement.engines
        return JudgeService(
            task.task,
            task.judge,
            self._judges[reward.engine_group].tokenizer,
            [index for index, group in enumerate(engine_groups) if group.name == reward.engine_group],
            reward.judge_tokens,
            self._job.training.context_limit,
            engines,
        )
