"""Real engines and a real trainer that are kept from run to run, for runs that change no weights.

Start-up takes longer than a short run, and two runs on the same processes differ in their policy alone. Between two
runs an engine gives up what it was at work on and forgets its prefixes; the trainer loads the model again. With a
learning rate above 0 the engines would begin with the weights of the run before.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rollart.domain.execution import ExecutionSettings
from rollart.domain.job import Job
from rollart.exec.clocks import WallClock
from rollart.exec.execute import Crew, Execution, execute
from rollart.exec.real.cluster import connect, disconnect
from rollart.exec.real.engines.actor import EngineProcess
from rollart.exec.real.launch import Launcher, Lost, Received
from rollart.exec.real.mailbox import Mailbox, Outbox
from rollart.exec.real.model_folder import model_folder
from rollart.exec.real.progress import Progress
from rollart.exec.real.rewards.select import RewardFunctions
from rollart.exec.real.startup import started
from rollart.exec.real.tokens import Tokenizer, tokenizer_of
from rollart.exec.real.workers import RealWorkers
from rollart.runlog.writer import FILE_NAME

SETTLING_S, LOOK_S = 1.0, 0.05
"""An order to an engine is carried out within the first; time between two looks at it."""
NAME = "rollart-kept"


class KeptEngine(EngineProcess):
    """An engine that can begin anew without starting anew."""

    async def anew(self) -> None:
        """As after the start: nothing open, nothing cached, nothing to say, version 0."""
        while not self._orders.empty():
            await asyncio.sleep(LOOK_S)
        await asyncio.sleep(SETTLING_S)
        await self._resume(-1)
        for turn in list(self._turns):
            await self._abort(-1, turn)
        while self._turns:
            await asyncio.sleep(LOOK_S)
        await self._engine.reset_prefix_cache()
        await self._now_at(0)
        self._pulled.clear()
        self._outbox = Outbox(self._counters)


class LentMailbox(Mailbox):
    """A mailbox whose end is not that of its actor."""

    def kill(self) -> None:
        """Leave the actor to the next run."""
        self.hang_up()


class KeptLauncher(Launcher):
    """Starts engines and trainer once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._kept: dict[int, Any] = {}
        self._ranks: list[Any] = []

    async def engine(self, index: int, incarnation: int, received: Received, lost: Lost, *, suspended: bool) -> Mailbox:
        """The engine of the run before, or a new one."""
        if index in self._kept:
            await self._kept[index].anew.remote()
        else:
            actor = self.engine_process(index, incarnation, KeptEngine)
            self._remains[index] = await started(f"engine {index}", actor.start.remote(0, suspended=suspended))
            self._kept[index] = actor
        assert self._exchange is not None
        return LentMailbox(self._kept[index], self._exchange, received, lost, self._failed)

    def trainer_ranks(self) -> list[Any]:
        """The trainer of the run before, or a new one; it will be told to load the model."""
        self._ranks = self._ranks or super().trainer_ranks()
        return self._ranks

    def close(self) -> None:
        """Nothing ends with a run but its connections."""
        self.hang_up()

    def end(self) -> None:
        """All ends."""
        super().close()


class KeptWorkers:
    """Makes runs on the same engines and trainer."""

    def __init__(self, launcher: KeptLauncher, tokenizer: Tokenizer) -> None:
        self._launcher = launcher
        self._tokenizer = tokenizer

    def run(self, job: Job, settings: ExecutionSettings, folder: Path) -> Execution:
        """One run, with its log in a folder. The settings may differ from the first ones in environments alone."""
        if settings.learning.learning_rate:
            raise ValueError("the engines keep their weights: the learning rate must be 0")
        progress = Progress(folder, job.steps, None)
        rewards = RewardFunctions(job, settings, self._tokenizer, {}, NAME, shared=False)
        crew = Crew(
            make_clock=partial(WallClock, 1.0),
            make_workers=lambda _: (
                lambda desk: RealWorkers(job, settings, desk, self._launcher, progress, rewards, print)
            ),
        )
        try:
            return execute(job, crew, log_path=folder / FILE_NAME)
        finally:
            progress.close()


@contextmanager
def kept_workers(job: Job, settings: ExecutionSettings) -> Iterator[KeptWorkers]:
    """Ray, engines and trainer of a plan; they start with the first run."""
    folder = Path(tempfile.mkdtemp(prefix=NAME))
    model = model_folder(settings, folder, job.seed)
    tokenizer = tokenizer_of(settings.tokenizer, model, job.model.vocabulary)
    connect(job.cluster, None)
    launcher = KeptLauncher(job, settings, model, tokenizer, folder, NAME)
    try:
        yield KeptWorkers(launcher, tokenizer)
    finally:
        launcher.end()
        disconnect()
        shutil.rmtree(folder, ignore_errors=True)
