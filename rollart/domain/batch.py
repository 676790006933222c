"""How many groups of each task a batch holds."""

from collections.abc import Mapping, Sequence

from rollart.domain.errors import ScenarioError
from rollart.domain.task import Task

_ROUNDING = 1e-6


def groups_per_batch(tasks: Sequence[Task], batch_size: int) -> Mapping[str, int]:
    """Groups per task, at least one each, whose trajectories add up to the batch exactly.

    Equal group sizes: largest remainder over the shares. Different sizes: each task's part must be whole groups.
    Raises ScenarioError where the batch cannot be cut so.
    """
    sizes = {task.group_size for task in tasks}
    groups = _largest_remainder(tasks, batch_size) if len(sizes) == 1 else _exact(tasks, batch_size)
    empty = [task for task in tasks if groups[task.name] < 1]
    if empty:
        task = empty[0]
        least = max(-(-other.group_size // other.share) for other in empty)
        raise ScenarioError(
            f"training.batch_size: {batch_size} leaves task {task.name} (share {task.share:.4g}, groups of "
            f"{task.group_size}) without a group; must be about {least:.0f} or more"
        )
    return groups


def _largest_remainder(tasks: Sequence[Task], batch_size: int) -> dict[str, int]:
    size = tasks[0].group_size
    if batch_size % size:
        raise ScenarioError(
            f"training.batch_size: {batch_size} is not a multiple of the group size {size}; "
            f"{max(1, round(batch_size / size)) * size} would be"
        )
    total = batch_size // size
    wanted = {task.name: task.share * total for task in tasks}
    groups = {name: int(want + _ROUNDING) for name, want in wanted.items()}
    by_remainder = sorted(wanted, key=lambda name: groups[name] - wanted[name])
    for name in by_remainder[: total - sum(groups.values())]:
        groups[name] += 1
    return groups


def _exact(tasks: Sequence[Task], batch_size: int) -> dict[str, int]:
    groups = {}
    for task in tasks:
        wanted = task.share * batch_size / task.group_size
        groups[task.name] = round(wanted)
        if abs(wanted - round(wanted)) > _ROUNDING * max(1.0, wanted):
            raise ScenarioError(
                f"training.batch_size: {batch_size} gives task {task.name} {wanted:.3f} groups of {task.group_size}; "
                "with different group sizes each task's share of the batch must be whole groups"
            )
    return groups
