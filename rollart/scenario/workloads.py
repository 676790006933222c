"""Builds the workload of a scenario from the profiles and traces that its tasks name."""

from collections.abc import Callable, Collection
from functools import cache, lru_cache
from pathlib import Path

from rollart.domain.errors import ScenarioError, TraceError
from rollart.scenario.files import find_file
from rollart.scenario.sections.document import ScenarioFile
from rollart.scenario.sections.tasks import TaskSection
from rollart.workload.profile import Profile
from rollart.workload.profile_file import load_profile
from rollart.workload.profile_workload import ProfileWorkload
from rollart.workload.trace_reader import TraceReader
from rollart.workload.trace_workload import TraceWorkload
from rollart.workload.trajectory import MixedWorkload, TrajectorySpec, Workload

Source = ProfileWorkload | TraceWorkload


class RenamedTask:
    """One task of a workload under another name."""

    def __init__(self, workload: Workload, inner: str) -> None:
        self._workload = workload
        self._inner = inner

    def trajectory(self, task: str, prompt: int, member: int, attempt: int) -> TrajectorySpec:
        """The trajectory of the inner task, with `task` as its task."""
        spec = self._workload.trajectory(self._inner, prompt, member, attempt)
        spec.task = task
        return spec


def workload_of(document: ScenarioFile, folder: Path, seed: int) -> Workload:
    """The workload of all tasks; each file is read once. ScenarioError, TraceError name the file that is wrong."""
    limit = document.training.context_limit

    @cache
    def from_profile(path: Path) -> ProfileWorkload:
        return ProfileWorkload(read_profile(path), seed, context_limit_tokens=limit)

    @cache
    def from_trace(path: Path, times: Path | None) -> TraceWorkload:
        profile = read_profile(times) if times else None
        return TraceWorkload(TraceReader(path, strict=True), times=profile, seed=seed)

    return MixedWorkload({task.name: _task_workload(task, folder, from_profile, from_trace) for task in document.tasks})


def workload_files(document: ScenarioFile, folder: Path) -> list[Path]:
    """Every file that the workload is read from, task by task."""
    return [path for task in document.tasks for path in _paths(task, folder) if path is not None]


def check_workload(task: TaskSection, folder: Path) -> None:
    """ScenarioError for a file that does not exist, or a profile that is wrong or lacks the task; reads no trace."""
    path, _ = _paths(task, folder)
    if task.workload.profile is not None:
        place = f"tasks.{task.name}.workload"
        try:
            profile = read_profile(path)
        except TraceError as error:
            raise ScenarioError(f"{place}: {error}") from error
        _check_task(task, profile.tasks, path)


def read_profile(path: Path) -> Profile:
    """A profile; one that has not changed since it was last read is not read again."""
    status = path.stat()
    return _read_profile(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _read_profile(path: Path, _changed_ns: int, _size_bytes: int) -> Profile:
    return load_profile(path)


def _check_task(task: TaskSection, known: Collection[str], path: Path) -> str:
    """Name of the task in its source; ScenarioError where the source lacks it."""
    inner = task.workload.task or task.name
    if inner not in known:
        place = f"tasks.{task.name}.workload.task"
        raise ScenarioError(f"{place}: {inner!r} is not in {path.name}; it has {', '.join(known)}")
    return inner


def _paths(task: TaskSection, folder: Path) -> tuple[Path, Path | None]:
    section, place = task.workload, f"tasks.{task.name}.workload"
    if section.profile is not None:
        return find_file(section.profile, folder, f"{place}.profile"), None
    assert section.trace is not None, "the form asks for a profile or a trace"
    times = find_file(section.times, folder, f"{place}.times") if section.times else None
    return find_file(section.trace, folder, f"{place}.trace"), times


def _task_workload(
    task: TaskSection,
    folder: Path,
    from_profile: Callable[[Path], ProfileWorkload],
    from_trace: Callable[[Path, Path | None], TraceWorkload],
) -> Workload:
    path, times = _paths(task, folder)
    place = f"tasks.{task.name}.workload"
    try:
        source: Source = from_profile(path) if task.workload.profile else from_trace(path, times)
    except TraceError as error:
        raise ScenarioError(f"{place}: {error}") from error
    inner = _check_task(task, source.tasks, path)
    return source if inner == task.name else RenamedTask(source, inner)
