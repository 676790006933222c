"""Groups: admission, completion, eviction, and the batch that the trainer takes.

Owns the groups and the counts of the tasks. A group is opened when the admission rule allows it, complete when its
group rule says so, dropped as a whole when it is stale, filtered or cannot be completed; a dropped group reopens the
quota of its task.
"""

from rollart.domain.trajectory import End
from rollart.sched.config import ControllerConfig
from rollart.sched.parts.admission import TaskView
from rollart.sched.parts.registry import Policy
from rollart.sched.rollout import Rollout
from rollart.sched.state import ControllerState, Group, Phase, Trajectory


class Buffer:
    """Opens groups and collects what they yield; the rollout's `Lifecycle`."""

    __slots__ = ("_config", "_policy", "_rollout", "_state")

    def __init__(self, config: ControllerConfig, state: ControllerState, policy: Policy, rollout: Rollout) -> None:
        self._config = config
        self._state = state
        self._policy = policy
        self._rollout = rollout

    # Admission

    def admit(self) -> None:
        """Open all groups that the admission rule allows, one of each task in turn, and start what has a slot."""
        state = self._state
        allowed = [self._allowed(task) for task in range(len(state.tasks))]
        for turn in range(max(allowed)):
            for task, count in enumerate(allowed):
                if turn < count:
                    self._open_group(task)
        self._rollout.start_queued()

    def _allowed(self, task: int) -> int:
        state = self._state
        counts = state.tasks[task]
        view = TaskView(
            groups_per_batch=self._config.tasks[task].groups_per_batch,
            opened=counts.opened - counts.dropped,
            installed=state.installed,
            taken=state.counted,
        )
        return self._policy.admission.groups_allowed(view)

    def _open_group(self, task: int) -> None:
        state = self._state
        counts = state.tasks[task]
        group = Group(
            id=state.next_group,
            task=task,
            prompt=counts.opened,
            version=state.installed,
            members=[],
            scored=[],
            next_member=0,
        )
        state.next_group += 1
        counts.opened += 1
        state.groups[group.id] = group
        state.by_version.setdefault(group.version, {})[group.id] = None
        for _ in range(self._policy.group.members_to_start(self._config.tasks[task].group_size)):
            self._start_member(group)

    def _start_member(self, group: Group) -> None:
        state = self._state
        trajectory = Trajectory(
            id=state.next_trajectory,
            task=group.task,
            group=group.id,
            member=group.next_member,
            start_version=state.installed,
        )
        state.next_trajectory += 1
        group.next_member += 1
        group.members.append(trajectory.id)
        state.trajectories[trajectory.id] = trajectory
        state.queue.push(trajectory.id)

    # What becomes of a trajectory (Lifecycle)

    def scored(self, trajectory: Trajectory) -> None:
        """Count it; its group may be complete."""
        group = self._state.groups[trajectory.group]
        group.scored.append(trajectory.id)
        if len(group.scored) >= self._config.tasks[group.task].group_size:
            self._complete(group)

    def gave_up(self, trajectory: Trajectory) -> None:
        """End it as failed; another member takes its place, or the group is dropped after too many."""
        group = self._state.groups[trajectory.group]
        group.members.remove(trajectory.id)
        self._rollout.end(trajectory, End.FAILED)
        if len(group.members) < self._config.tasks[group.task].group_size:
            self._replace_member(group)
        self._rollout.settle()

    def _replace_member(self, group: Group) -> None:
        group.replaced += 1
        if group.replaced > self._config.tasks[group.task].group_size:
            self._drop(group, End.FAILED)
            self.admit()
        else:
            self._start_member(group)
            self._rollout.start_queued()

    def _complete(self, group: Group) -> None:
        state = self._state
        group.complete = True
        done = set(group.scored)
        for trajectory_id in group.members:
            if trajectory_id not in done:
                self._rollout.end(state.trajectories[trajectory_id], End.SURPLUS)
        group.members = list(group.scored)
        if self._policy.group.has_signal([state.trajectories[t].reward for t in group.scored]):
            state.tasks[group.task].ready[group.id] = None
        else:
            self._drop(group, End.FILTERED)
            self.admit()
        self._rollout.settle()

    def _drop(self, group: Group, end: End) -> None:
        state = self._state
        for trajectory_id in group.members:
            self._rollout.end(state.trajectories[trajectory_id], end)
        state.tasks[group.task].dropped += 1
        state.tasks[group.task].ready.pop(group.id, None)
        self._forget(group)

    def _forget(self, group: Group) -> None:
        del self._state.groups[group.id]
        same_age = self._state.by_version[group.version]
        del same_age[group.id]
        if not same_age:
            del self._state.by_version[group.version]

    # Staleness

    def evict(self) -> None:
        """Drop every group with a member that is too old for the version now installed."""
        state = self._state
        oldest = self._policy.staleness.oldest(state.installed)
        if oldest is None:
            return
        for version in sorted(version for version in state.by_version if version < oldest):
            for group_id in list(state.by_version[version]):
                self._evict_or_move(state.groups[group_id], oldest)
        self._rollout.settle()

    def _evict_or_move(self, group: Group, oldest: int) -> None:
        """A group whose old members were all retried since is younger than it was when it was opened."""
        state = self._state
        begun = [t for t in map(state.trajectories.__getitem__, group.members) if t.phase is not Phase.QUEUED]
        version = min((t.start_version for t in begun), default=state.installed)
        if version < oldest:
            self._drop(group, End.STALE)
            return
        same_age = state.by_version[group.version]
        del same_age[group.id]
        if not same_age:
            del state.by_version[group.version]
        group.version = version
        state.by_version.setdefault(version, {})[group.id] = None

    # The batch

    def batch_is_ready(self) -> bool:
        """Whether every task has the groups of a batch."""
        pairs = zip(self._config.tasks, self._state.tasks, strict=True)
        return all(len(counts.ready) >= task.groups_per_batch for task, counts in pairs)

    def take_batch(self) -> list[Trajectory]:
        """The trajectories of the next batch, oldest group first; they have left the buffer as trained."""
        state = self._state
        batch: list[Trajectory] = []
        for task, counts in zip(self._config.tasks, state.tasks, strict=True):
            oldest_first = sorted(counts.ready, key=lambda group_id: (state.groups[group_id].version, group_id))
            for group_id in oldest_first[: task.groups_per_batch]:
                group = state.groups[group_id]
                batch += [state.trajectories[trajectory_id] for trajectory_id in group.scored]
                del counts.ready[group_id]
                self._forget(group)
        for trajectory in batch:
            self._rollout.end(trajectory, End.TRAINED)
        if self._policy.group.surplus == "stop":
            self._stop_surplus()
        return batch

    def _stop_surplus(self) -> None:
        for group in list(self._state.groups.values()):
            self._drop(group, End.SURPLUS)
        self._rollout.settle()

    def end_all(self) -> None:
        """The run is over: what has not ended is unfinished."""
        for trajectory in list(self._state.trajectories.values()):
            self._rollout.end(trajectory, End.UNFINISHED)
        self._state.groups.clear()
        self._state.by_version.clear()
        for counts in self._state.tasks:
            counts.ready.clear()
