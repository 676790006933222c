"""The commands of the event at hand, and the list of those that are still open."""

from typing import Any

from rollart.domain.commands import UNANSWERED, Command
from rollart.sched.state import ControllerState, Trajectory


class Orders:
    """Gives commands their ids, collects them, and remembers whom an answer concerns."""

    __slots__ = ("out", "state")

    def __init__(self, state: ControllerState) -> None:
        self.state = state
        self.out: list[Command] = []

    def issue(self, kind: type[Command], subject: int, **fields: Any) -> int:
        """Append a command; its answer will concern `subject` (trajectory or engine; -1: nobody)."""
        state = self.state
        command_id = state.next_command
        state.next_command = command_id + 1
        if kind not in UNANSWERED:
            state.open[command_id] = subject
        self.out.append(kind(id=command_id, **fields))
        return command_id

    def answered(self, command_id: int) -> Trajectory | None:
        """The trajectory that an answer concerns; None when the command is no longer open."""
        trajectory_id = self.state.open.pop(command_id, None)
        return None if trajectory_id is None else self.state.trajectories.get(trajectory_id)

    def void(self, command_id: int) -> None:
        """Forget an open command: a late answer to it will be ignored."""
        self.state.open.pop(command_id, None)
