"""What a Ray cluster has, and which pools of a scenario it can satisfy."""

from pathlib import Path

from rollart.domain.errors import InputError
from rollart.domain.job import Job
from rollart.scenario.load import load_scenario


def job_of(path: Path) -> Job:
    """The job of a scenario file, whose plan says what is needed of each pool. Raises ScenarioError."""
    return load_scenario(path).job()


def cluster_resources(address: str, job: Job | None) -> tuple[dict[str, float], dict[str, str | None]]:
    """Ray's resources, and by pool what is lacking (None: nothing). InputError where nobody answers."""
    try:
        from rollart.exec.real.assembly import needed_devices
        from rollart.exec.real.cluster import connect, disconnect, lacking, resources
    except ImportError as error:
        raise InputError(f"doctor --address: {error.name} is not installed; `make setup-exec` installs it") from error
    connect(None, address)
    try:
        return resources(), {} if job is None else lacking(job.cluster, needed_devices(job))
    finally:
        disconnect()
