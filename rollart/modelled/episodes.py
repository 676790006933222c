"""What will happen to each trajectory that is under way: the simulator's knowledge, hidden from the controller."""

from rollart.domain.commands import GenerateTurn, ResetEnvironment
from rollart.workload.trajectory import TrajectorySpec, Workload


class Episodes:
    """The drawn trajectories by the controller's number."""

    __slots__ = ("_workload", "specs")

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.specs: dict[int, TrajectorySpec] = {}

    def begin(self, command: ResetEnvironment) -> TrajectorySpec:
        """Draw the attempt that a reset starts."""
        spec = self._workload.trajectory(command.task, command.prompt, command.member, command.attempt)
        self.specs[command.trajectory] = spec
        return spec

    def tokens_to_make(self, command: GenerateTurn) -> int:
        """Tokens that the turn still needs if no limit cuts it, at least 1."""
        outputs = self.specs[command.trajectory].output_tokens
        return max(1, outputs[command.turn] - command.partial_tokens)

    def end(self, trajectory: int) -> None:
        """Forget a trajectory that has ended."""
        self.specs.pop(trajectory, None)
