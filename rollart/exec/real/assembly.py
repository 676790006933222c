"""Puts a real run together: Ray, the model's folder, the tokenizer, and a factory of its workers."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rollart.domain.errors import CapacityError
from rollart.domain.execution import ExecutionSettings
from rollart.domain.job import Job
from rollart.exec.ports import Desk, WorkerSet
from rollart.exec.real.cluster import check_address, connect, disconnect, lacking
from rollart.exec.real.engines.connectors import connector_of
from rollart.exec.real.engines.kv_room import check_kv_room
from rollart.exec.real.environments.shipped import make_environment
from rollart.exec.real.failures import Failures
from rollart.exec.real.launch import Launcher
from rollart.exec.real.model_folder import model_folder
from rollart.exec.real.progress import Progress
from rollart.exec.real.rewards.judges import judges_of
from rollart.exec.real.rewards.select import RewardFunctions, check_functions
from rollart.exec.real.tokens import tokenizer_of
from rollart.exec.real.weights.select import carrier_of, check_plan
from rollart.exec.real.workers import RealWorkers
from rollart.sched.placement.rent import devices_taken


@contextmanager
def connected(
    job: Job,
    settings: ExecutionSettings,
    folder: Path,
    address: str | None,
    predicted_step_s: float | None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Callable[[Desk], WorkerSet]]:
    """A factory of real workers, while Ray is there; `tell` is given a line for every training step, and for failures.

    Connector, model, tokens, environments and pools are checked first. Raises ScenarioError, CapacityError or
    InputError.
    """
    if address is not None:
        check_address(address)
    kv_connector = connector_of(job, settings)
    check_plan(job, settings)
    check_kv_room(job, settings)
    for task in settings.tasks:
        make_environment(task.environment, task.arguments).close()
    model = model_folder(settings, folder, job.seed)
    tokenizer = tokenizer_of(settings.tokenizer, model, job.model.vocabulary)
    for task in settings.tasks:
        for text in (*task.allowed, *task.stop):
            tokenizer.token(text)
    check_functions(settings)
    judges = judges_of(job, settings, model, tokenizer, folder)
    carrier = carrier_of(settings, folder)
    carrier.check()
    connect(job.cluster, address)
    progress = Progress(folder, job.steps, predicted_step_s, tell)
    try:
        missing = [lack for lack in lacking(job.cluster, needed_devices(job)).values() if lack is not None]
        if missing:
            raise CapacityError("; ".join(missing))
        name = f"rollart-{os.getpid()}"
        launcher = Launcher(job, settings, model, tokenizer, folder, name, judges, carrier, kv_connector)
        rewards = RewardFunctions(job, settings, tokenizer, judges, name, shared=address is not None)
        failures = Failures(folder, tell)
        yield lambda desk: RealWorkers(job, settings, desk, launcher, progress, rewards, failures.note)
    finally:
        progress.close()
        carrier.close()
        disconnect()


def needed_devices(job: Job) -> dict[str, int]:
    """Devices that the plan takes of each pool; time-shared engines take the trainer's."""
    taken = {name: devices_taken(job.plan.placement, name) for name in job.cluster.pools}
    return {name: devices for name, devices in taken.items() if devices}
