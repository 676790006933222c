"""Starts the processes of a run on Ray: engines, ranks of the trainer, hosts of environments."""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from rollart.domain.errors import StartError
from rollart.domain.execution import ExecutionSettings, TaskExecution, WeightTransfer
from rollart.domain.job import Job
from rollart.domain.plan import EngineGroup, Role
from rollart.exec.real.cluster import QUIET, bundle, demand
from rollart.exec.real.engines.actor import EngineProcess
from rollart.exec.real.engines.connectors import KvTransfer
from rollart.exec.real.engines.kv_room import GIB
from rollart.exec.real.engines.remains import Remains, clear, end_processes
from rollart.exec.real.engines.sampling import sampling_of
from rollart.exec.real.engines.spec import EngineSpec, Sampling
from rollart.exec.real.environments.host import EnvironmentHost
from rollart.exec.real.mailbox import Mailbox
from rollart.exec.real.rewards.judges import JudgeModel
from rollart.exec.real.sharing import Place, shared_places
from rollart.exec.real.startup import started
from rollart.exec.real.tokens import Tokenizer
from rollart.exec.real.trainer.process import TrainerProcess, TrainerSpec
from rollart.exec.real.weights.buckets import BUCKET_BYTES
from rollart.exec.real.weights.carrier import Carrier, RayObjects
from rollart.exec.real.wire import Exchange, Message

MEMORY_FOLDER = Path("/dev/shm")

Received = Callable[[Message], None]
Lost = Callable[[str], None]
Failed = Callable[[Exception], None]


class Launcher:
    """Knows job, settings, model folder and tokenizer, and what each process must be told."""

    def __init__(
        self,
        job: Job,
        settings: ExecutionSettings,
        model: Path,
        tokenizer: Tokenizer,
        folder: Path,
        name: str,
        judges: Mapping[str, JudgeModel] | None = None,
        carrier: Carrier | None = None,
        kv_connector: str | None = None,
    ) -> None:
        """`name`: unlike that of any other run on this machine. `judges`: by engine group.

        `carrier` of weights: Ray objects unless another is given. `kv_connector`: between prefill and decode engines,
        where there are some.
        """
        self._job = job
        self._settings = settings
        self._model = model
        self._name = name
        self._judges = judges or {}
        self.carrier = carrier or RayObjects()
        self._kv_connector = kv_connector
        self.tokenizer = tokenizer
        self.folder = folder
        self._engines = job.plan.placement.engines
        self._available = ray.cluster_resources()
        self._remains: dict[int, Remains] = {}
        self._tasks = {task.task: task for task in settings.tasks}
        self._shared = [index for index, group in enumerate(self._engines) if group.time_shared]
        self.shared_devices = asyncio.Lock() if self._shared else None
        """Held by whoever takes up memory of devices that trainer and engines share."""
        self._bundles: Any = None
        self._ranks: list[Any] = []
        self._trained = asyncio.Event()
        """The trainer has processes."""
        self._places: dict[int, Place] = {}
        self._exchange: Exchange | None = None
        self._failed: Failed = _nobody

    async def listen(self, failed: Failed) -> None:
        """Let processes call in, on the address by which Ray knows this node; before the first of them is started.

        `failed(error)` is told what is raised over a message of theirs.
        """
        self._failed = failed
        self._exchange = await Exchange.opened(ray.util.get_node_ip_address())

    def hang_up(self) -> None:
        """Let nobody call in any more."""
        if self._exchange is not None:
            self._exchange.close()

    def _mailbox(self, actor: Any, received: Received, lost: Lost) -> Mailbox:
        assert self._exchange is not None
        return Mailbox(actor, self._exchange, received, lost, self._failed)

    @property
    def engine_count(self) -> int:
        """Engines of the plan."""
        return len(self._engines)

    @property
    def engine_groups(self) -> list[str]:
        """The group of every engine."""
        return [group.name for group in self._engines]

    @property
    def receivers(self) -> dict[int, int]:
        """Engines that follow the trainer's weights -> vLLM's workers of each."""
        return {
            index: group.tensor_parallel for index, group in enumerate(self._engines) if group.role is not Role.JUDGE
        }

    # Engines

    async def engine(self, index: int, incarnation: int, received: Received, lost: Lost, *, suspended: bool) -> Mailbox:
        """An engine, once its model is loaded; what an earlier one has left behind goes first. Raises StartError."""
        remains = self._remains.pop(index, None)
        if remains is not None:
            with suppress(RayError):
                await clear(remains)
        devices = self.shared_devices if index in self._shared else None
        if devices is not None:
            await self._find_places()
        async with devices or nullcontext():
            actor = self.engine_process(index, incarnation)
            what = f"engine {index} of {self.engine_groups[index]!r}"
            try:
                self._remains[index] = await started(what, actor.start.remote(0, suspended=suspended))
                mailbox = self._mailbox(actor, received, lost)
                await started(what, mailbox.connected)
            except StartError:
                ray.kill(actor)
                raise
        return mailbox

    async def _find_places(self) -> None:
        """Learn where the trainer's ranks are; they stay there, whoever of them dies."""
        await self._trained.wait()
        if not self._places:
            ranks = await asyncio.gather(*(rank.place.remote() for rank in self._ranks))
            sizes = [self._engines[index].tensor_parallel for index in self._shared]
            self._places = dict(zip(self._shared, shared_places(ranks, sizes), strict=True))

    def engine_process(self, index: int, incarnation: int, process: type[EngineProcess] = EngineProcess) -> Any:
        """The actor of an engine; its model is not loaded yet. Ray restarts and repeats nothing."""
        group = self._engines[index]
        variables = self._environment(index, group)
        if index in self._places:
            place = self._places[index]
            options: dict[str, Any] = {"num_cpus": 0}
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id=place.node, soft=False)
            if place.devices:
                variables["CUDA_VISIBLE_DEVICES"] = ",".join(place.devices)
        else:
            options = demand(self._job.cluster.pools[group.pool], group.tensor_parallel, self._available)
        options["runtime_env"] = {"env_vars": variables}
        actor: Any = ray.remote(process).options(max_restarts=0, max_task_retries=0, **options)
        return actor.remote(self._engine_spec(index, incarnation, group))

    def _environment(self, index: int, group: EngineGroup) -> dict[str, str]:
        variables = dict(QUIET)
        cores = self._cores(index, group)
        if cores is not None and group.tensor_parallel > 1:
            variables["VLLM_CPU_OMP_THREADS_BIND"] = cores
        elif cores is not None:
            # On CPUs vLLM gives even a single worker a process of its own in order to bind it, at the price of an
            # import of vLLM at the start and of two messages an iteration. Bound by us, it can do without.
            variables["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
            variables["OMP_NUM_THREADS"] = str(len(numbers(cores)))
        return variables

    def _cores(self, index: int, group: EngineGroup) -> str | None:
        """Cores of one engine, where the settings name some for its pool."""
        cores = self._settings.cores.get(group.pool)
        if cores is None:
            return None
        of_pool = [number for number, other in enumerate(self._engines) if other.pool == group.pool]
        per_engine = cores.split(",")
        return per_engine[of_pool.index(index) % len(per_engine)]

    def _engine_spec(self, index: int, incarnation: int, group: EngineGroup) -> EngineSpec:
        settings, on_cpu = self._settings, self._job.cluster.pools[group.pool].device.kind == "cpu"
        cores, judge = self._cores(index, group), self._judges.get(group.name)
        return EngineSpec(
            folder=str(self._model if judge is None else judge.folder),
            host_folder=str(MEMORY_FOLDER / self._name / f"engine-{index}-{incarnation}"),
            carrier=self.carrier,
            broadcast=settings.weight_transfer is WeightTransfer.NCCL and judge is None,
            dtype=settings.dtype,
            context_limit=self._job.training.context_limit,
            max_num_seqs=group.max_num_seqs,
            max_num_batched_tokens=group.max_num_batched_tokens,
            block_size=group.block_size,
            prefix_caching=group.prefix_caching,
            tensor_parallel=group.tensor_parallel,
            gpu_memory_utilization=group.gpu_memory_utilization,
            cores=frozenset(numbers(cores)) if cores is not None and group.tensor_parallel == 1 else None,
            kv_cache_bytes=int(settings.kv_cache_gb * GIB) if on_cpu else None,
            seed=(self._job.seed * 1_000_003 + index * 1_009 + incarnation) % 2**31,
            sampling={task: self.sampling(task) for task in self._tasks} if judge is None else judge.sampling,
            time_shared=group.time_shared,
            kv_transfer=self._kv_transfer(group),
        )

    def _kv_transfer(self, group: EngineGroup) -> KvTransfer | None:
        if self._kv_connector is None or group.role not in (Role.PREFILL, Role.DECODE):
            return None
        folder = str(MEMORY_FOLDER / self._name / "kv")
        return KvTransfer(connector=self._kv_connector, prefills=group.role is Role.PREFILL, folder=folder)

    def sampling(self, task: str) -> Sampling:
        """How the turns of a task are sampled."""
        settings = self._tasks[task]
        return sampling_of(self.tokenizer, self._settings.temperature, settings.allowed, settings.stop)

    # Trainer

    def trainer_ranks(self) -> list[Any]:
        """An actor for every rank; the model is not loaded yet. New ones get the devices of those before them."""
        placement, settings = self._job.plan.placement.trainer, self._settings
        pool = self._job.cluster.pools[placement.pool]
        options = demand(pool, 1, self._available)
        options["runtime_env"] = {"env_vars": {**QUIET, "OMP_NUM_THREADS": str(settings.trainer_threads)}}
        spec = TrainerSpec(
            folder=str(self._model),
            dtype=settings.dtype,
            engine_dtype=settings.dtype,
            temperature=settings.temperature,
            tasks=tuple(self._tasks),
            allowed=tuple(self.sampling(task).allowed for task in self._tasks),
            learning=settings.learning,
            steps=self._job.steps,
            token_budget=self._job.training.micro_batch_tokens,
            threads=settings.trainer_threads,
            ranks=placement.devices,
            bucket_bytes=BUCKET_BYTES,
            carrier=self.carrier,
        )
        if self._bundles is None:
            self._bundles = placement_group([bundle(options)] * placement.devices, strategy="PACK")
        process: Any = ray.remote(TrainerProcess)
        self._ranks = [
            process.options(max_restarts=0, scheduling_strategy=self._seat(rank), **options).remote(spec, rank)
            for rank in range(placement.devices)
        ]
        self._trained.set()
        return self._ranks

    def _seat(self, rank: int) -> PlacementGroupSchedulingStrategy:
        return PlacementGroupSchedulingStrategy(
            placement_group=self._bundles, placement_group_bundle_index=rank, placement_group_capture_child_tasks=False
        )

    # Environments

    def environment_host(self, task: TaskExecution, received: Received, lost: Lost) -> Mailbox:
        """A process for environments of a task, on any node."""
        options = {"num_cpus": 0, "scheduling_strategy": "SPREAD", "runtime_env": {"env_vars": QUIET}}
        host = ray.remote(EnvironmentHost).options(max_restarts=0, **options)
        vocabulary = self._job.model.vocabulary
        return self._mailbox(host.remote(task, self._settings.tokenizer, str(self._model), vocabulary), received, lost)

    def close(self) -> None:
        """Hang up, and remove what engines have left on this host, processes and memory."""
        self.hang_up()
        for remains in self._remains.values():
            if remains.node == ray.get_runtime_context().get_node_id():
                end_processes(remains.processes)
        shutil.rmtree(MEMORY_FOLDER / self._name, ignore_errors=True)


def _nobody(error: Exception) -> None:
    raise AssertionError("nobody listens yet") from error


def numbers(cores: str) -> list[int]:
    """Cores of a range such as `0-3`, or the one that is named."""
    first, _, last = cores.partition("-")
    return list(range(int(first), int(last or first) + 1))
