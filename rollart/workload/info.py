"""Summarises a trace, one trajectory at a time."""

from collections.abc import Iterable, Mapping

from rollart.workload.distribution import Distribution
from rollart.workload.task_info import QUANTITIES, TaskInfo, TraceInfo
from rollart.workload.trace import TraceTrajectory


def trace_info(trajectories: Iterable[TraceTrajectory]) -> TraceInfo:
    """Read all trajectories once and summarise them by task."""
    tally = TraceTally()
    for trajectory in trajectories:
        tally.add(trajectory)
    return tally.info()


class TraceTally:
    """Running figures of a trace."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Tally] = {}

    def add(self, trajectory: TraceTrajectory) -> None:
        """Count one trajectory in."""
        tally = self._tasks.get(trajectory.task)
        if tally is None:
            tally = self._tasks[trajectory.task] = _Tally()
        tally.add(trajectory)

    def info(self) -> TraceInfo:
        """The summary so far."""
        return TraceInfo(tasks=tuple(tally.info(task) for task, tally in self._tasks.items()))

    def distributions(self) -> dict[str, Mapping[str, Distribution]]:
        """Per task, all values of each quantity."""
        return {task: tally.found for task, tally in self._tasks.items()}


class _Group:
    """Rewards of one group, and the length of the prompt its members share."""

    __slots__ = ("highest", "lowest", "scored", "shared_tokens")

    def __init__(self, shared_tokens: int) -> None:
        self.shared_tokens = shared_tokens
        self.scored = 0
        self.lowest = 0.0
        self.highest = 0.0

    def score(self, reward: float) -> None:
        self.lowest = min(self.lowest, reward) if self.scored else reward
        self.highest = max(self.highest, reward) if self.scored else reward
        self.scored += 1

    @property
    def without_signal(self) -> bool:
        return self.scored >= 2 and self.lowest == self.highest


class _Tally:
    """Running figures of one task."""

    def __init__(self) -> None:
        self.found: Mapping[str, Distribution] = {name: Distribution() for name in QUANTITIES}
        self._groups: dict[str, _Group] = {}
        self._trajectories = 0
        self._failed = 0
        self._truncated = 0
        self._scored = 0
        self._reward_sum = 0.0
        self._sent_tokens = 0
        self._hit_tokens = 0
        self._decoded_tokens = 0
        self._provenance: dict[str, set[str]] = {}

    def add(self, trajectory: TraceTrajectory) -> None:
        """Count one trajectory in."""
        self._trajectories += 1
        self._failed += trajectory.outcome == "failed" or trajectory.reset_outcome != "ok"
        self._truncated += trajectory.outcome == "truncated"
        for name, how in trajectory.provenance.items():
            self._provenance.setdefault(name, set()).add(how)
        self._add_quantities(trajectory)
        group = self._groups.get(trajectory.group)
        self._add_token_work(trajectory, 0 if group is None else group.shared_tokens)
        if group is None:
            group = self._groups[trajectory.group] = _Group(trajectory.prompt_tokens)
        if trajectory.reward is not None:
            self._scored += 1
            self._reward_sum += trajectory.reward
            self.found["reward"].add(trajectory.reward)
            group.score(trajectory.reward)

    def _add_quantities(self, trajectory: TraceTrajectory) -> None:
        found, turns = self.found, trajectory.turns
        own_prompt = turns[0].prompt_tokens if turns else 0
        found["turns"].add(len(turns))
        found["prompt_tokens"].add(trajectory.prompt_tokens + own_prompt)
        outputs = [turn.output_tokens for turn in turns]
        found["response_tokens"].add(sum(outputs))
        found["output_tokens"].extend(outputs)
        found["observation_tokens"].extend([turn.prompt_tokens for turn in turns[1:]])
        found["env_s"].extend([turn.env_s for turn in turns if turn.env_s is not None])
        if trajectory.reset_s is not None:
            found["reset_s"].add(trajectory.reset_s)
        if trajectory.reward_s is not None:
            found["reward_s"].add(trajectory.reward_s)

    def _add_token_work(self, trajectory: TraceTrajectory, shared_tokens: int) -> None:
        """`shared_tokens`: of the prompt, what an earlier member of the group has computed."""
        cached = min(shared_tokens, trajectory.prompt_tokens)
        longest = 0
        for turn, context in zip(trajectory.turns, trajectory.contexts(), strict=True):
            if turn.kept_tokens is not None:
                cached = min(cached, turn.kept_tokens)
            self._sent_tokens += context
            self._hit_tokens += min(cached, max(0, context - 1))
            self._decoded_tokens += turn.output_tokens
            cached = context + turn.output_tokens
            longest = max(longest, cached)
        self.found["context_tokens"].add(longest)

    def info(self, task: str) -> TaskInfo:
        """The figures so far."""
        return TaskInfo(
            task=task,
            trajectories=self._trajectories,
            groups=len(self._groups),
            groups_without_signal=sum(group.without_signal for group in self._groups.values()),
            failed_share=self._failed / self._trajectories,
            truncated_share=self._truncated / self._trajectories,
            reward_mean=self._reward_sum / self._scored if self._scored else None,
            quantities={name: found.summary() for name, found in self.found.items()},
            context_tokens_sent=self._sent_tokens,
            prefill_tokens=self._sent_tokens - self._hit_tokens,
            decode_tokens=self._decoded_tokens,
            provenance={name: tuple(sorted(how)) for name, how in sorted(self._provenance.items())},
        )
