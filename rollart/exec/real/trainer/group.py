"""The trainer from the driver's side: all its ranks, the batches they are given, and the checkpoints."""

import asyncio
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from rollart.domain.commands import RestartTrainer, TrainBatch
from rollart.domain.errors import RollArtError, RunLogError, StartError, WorkerError
from rollart.domain.events import Event, TrainerLost, TrainerStarted, TrainingEnded
from rollart.domain.execution import Learning
from rollart.exec.real.episodes import Episodes
from rollart.exec.real.failures import Why
from rollart.exec.real.startup import in_a_line, started
from rollart.exec.real.trainer.advantages import with_advantages
from rollart.exec.real.trainer.rows import Row, row_of
from rollart.exec.real.weights.members import BROADCAST_LIMIT_S, Broadcast, Member


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One training step: what a user watches."""

    step: int
    version: int
    rewards: dict[str, float]
    """Mean reward by task."""
    staleness: tuple[int, ...]
    figures: dict[str, float]


class TrainerGroup:
    """Carries out TrainBatch and RestartTrainer; the store's `Publisher`."""

    def __init__(
        self,
        make_ranks: Callable[[], Sequence[Any]],
        learning: Learning,
        probes: Sequence[Sequence[int]],
        episodes: Episodes,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        report: Callable[[Event], None],
        why: Why,
        on_step: Callable[[StepReport], None],
        folder: Path,
        seed: int,
        devices: asyncio.Lock | None = None,
    ) -> None:
        """`make_ranks`: new actors of TrainerProcess. `why` is told the reason of every loss.

        `folder`: where checkpoints go.

        `devices`: held while the trainer has those that it shares with engines: from a batch until its weights are
        published. None: they are its own.
        """
        self._make_ranks = make_ranks
        self._ranks: Sequence[Any] = ()
        self._learning = learning
        self._probes = probes
        self._episodes = episodes
        self._spawn = spawn
        self._report = report
        self._why = why
        self._on_step = on_step
        self._folder = folder
        self._seed = seed
        self._devices = devices
        self._has_devices = False
        self._incarnation = 0
        self._down = False
        self._taken: dict[int, tuple[int, ...]] = {}
        """Version -> trajectories that it was made of, until a checkpoint has it."""
        self._saved = 0
        self.busy_s = 0.0

    async def start(self) -> None:
        """Load the model on every rank; the first checkpoint is the model as it is. Raises StartError."""
        await self._take_devices()
        await self._bring_up()
        await self._save(0)
        await self._leave_devices()

    async def _take_devices(self) -> None:
        if self._devices is not None and not self._has_devices:
            await self._devices.acquire()
            self._has_devices = True

    async def _leave_devices(self) -> None:
        if self._has_devices:
            await self._all("leave")
            self._give_devices()

    def _give_devices(self) -> None:
        if self._devices is not None and self._has_devices:
            self._has_devices = False
            self._devices.release()

    def resume(self, version: int) -> None:
        """The trainer is down; it will be asked to load a checkpoint. Raises RunLogError where that is gone."""
        if not self._checkpoint(version).is_dir():
            raise RunLogError(f"{self._checkpoint(version)}: the checkpoint of the interrupted run is gone")
        self._down = True
        self._saved = version

    async def _bring_up(self) -> None:
        self._ranks = self._make_ranks()
        address = await started("the trainer", self._ranks[0].address.remote())
        await started("the trainer", self._gathered("start", address))

    def train(self, command: TrainBatch) -> None:
        """Train on a batch."""
        self._taken[command.version] = command.trajectories
        rows = [row_of(episode) for episode in self._episodes.batch(command.trajectories)]
        self._spawn(self._train(command, rows, self._incarnation))

    async def _train(self, command: TrainBatch, rows: list[Row], incarnation: int) -> None:
        rewards = mean_rewards(rows)
        if self._learning.shuffle_rewards:
            rows = self._shuffled(rows, command.version)
        rows = with_advantages(rows, self._learning)
        await self._take_devices()
        try:
            told = await self._all("train", rows, command.version - 1)
            self.busy_s += told["train_s"]
            if command.checkpoint:
                await self._save(command.version)
        except RayActorError as error:
            self._lost(incarnation, error)
            return
        staleness = tuple(command.installed - version for version in command.start_versions)
        self._on_step(
            StepReport(step=command.step, version=command.version, rewards=rewards, staleness=staleness, figures=told)
        )
        self._report(TrainingEnded(command_id=command.id, version=command.version))

    def restart(self, command: RestartTrainer) -> None:
        """Start all ranks again from a checkpoint."""
        self._incarnation = command.incarnation
        self._down = False
        self._spawn(self._restart(command))

    async def _restart(self, command: RestartTrainer) -> None:
        for rank in self._ranks:
            ray.kill(rank)
        await self._take_devices()
        try:
            await self._bring_up()
            await self._all("load", str(self._checkpoint(command.version)))
            await self._leave_devices()
        except (RayActorError, StartError) as error:
            self._lost(command.incarnation, error)
            return
        self._report(TrainerStarted(command_id=command.id))

    def _lost(self, incarnation: int, error: Exception) -> None:
        """A rank has died, and with it the step of all."""
        if incarnation == self._incarnation and not self._down:
            self._down = True
            self._why("the trainer", str(error))
            self._give_devices()
            self._report(TrainerLost(incarnation=incarnation))

    def _shuffled(self, rows: list[Row], version: int) -> list[Row]:
        """The rows of each task with each other's rewards."""
        chance = random.Random(self._seed * 1_000_003 + version)
        by_task: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            by_task[row.task].append(row.reward)
        for rewards in by_task.values():
            chance.shuffle(rewards)
        return [replace(row, reward=by_task[row.task].pop()) for row in rows]

    async def publish(self) -> tuple[Sequence[Any], list[list[float]]] | None:
        """Put the present weights into the store; None when the trainer died over it."""
        incarnation = self._incarnation
        await self._take_devices()
        try:
            exports = [rank.export.options(num_returns="streaming").remote() for rank in self._ranks]
            # Asked for now, since what is asked next may be to train.
            probes = [rank.probe.remote(self._probes) for rank in self._ranks]
            references = [reference async for reference in exports[0]]
            for other in exports[1:]:
                async for _ in other:
                    pass
            # A generator that breaks off ends with a reference to its error.
            await asyncio.gather(*(_ready(reference) for reference in references[-1:]))
            told = (await asyncio.gather(*probes))[0]
            await self._leave_devices()
            return references, told
        except RayTaskError as error:
            # The trainer lives and says what is wrong, such as a store without room.
            raise _told(error) from None
        except RayError as error:
            self._lost(incarnation, error)
            return None

    async def broadcast(self, members: Sequence[Member]) -> Broadcast | None:
        """Send the present weights straight to engines that stand still; None when the trainer died over it."""
        incarnation = self._incarnation
        sent = [rank.broadcast.remote(list(members)) for rank in self._ranks]
        probes = [rank.probe.remote(self._probes) for rank in self._ranks]
        try:
            size = (await asyncio.wait_for(asyncio.gather(*sent), BROADCAST_LIMIT_S))[0]
            return Broadcast(bytes_each=size, probes=(await asyncio.gather(*probes))[0])
        except RayTaskError as error:
            raise _told(error) from None
        except (RayError, TimeoutError) as error:
            # What waits for a member that has died waits for ever.
            for rank in self._ranks:
                ray.kill(rank)
            self._lost(incarnation, error)
            return None

    async def _save(self, version: int) -> None:
        """Write a checkpoint; the one before the last is of no use any more, nor are episodes that are in it."""
        await self._all("save", str(self._checkpoint(version)), version)
        for old in [made for made in self._taken if made <= version]:
            for trajectory in self._taken.pop(old):
                self._episodes.forget(trajectory)
        for folder in self._folder.glob("version-*"):
            if folder.name not in (self._checkpoint(self._saved).name, self._checkpoint(version).name):
                shutil.rmtree(folder, ignore_errors=True)
        self._saved = version

    def _checkpoint(self, version: int) -> Path:
        return self._folder / f"version-{version}"

    async def _all(self, method: str, *arguments: Any) -> Any:
        """Call all ranks alike; what rank 0 answers. Raises what one of them raises as a RollArtError."""
        try:
            return await self._gathered(method, *arguments)
        except RayTaskError as error:
            raise _told(error) from None

    async def _gathered(self, method: str, *arguments: Any) -> Any:
        answers = await asyncio.gather(*(getattr(rank, method).remote(*arguments) for rank in self._ranks))
        return answers[0]


async def _ready(reference: Any) -> None:
    await reference


def _told(error: RayTaskError) -> RollArtError:
    """What the trainer raised; trying again would end the same way."""
    cause = error.cause
    if isinstance(cause, RollArtError):
        return cause
    return WorkerError(f"the trainer failed: {in_a_line(f'{type(cause).__name__}: {cause}')}")


def mean_rewards(rows: Sequence[Row]) -> dict[str, float]:
    """Mean reward by task."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(row.reward)
    return {task: fmean(rewards) for task, rewards in sorted(by_task.items())}
