"""The part of the invariants that concerns trajectories: they begin, end once, and are trained on while fresh."""

from array import array

from rollart.domain.commands import EndTrajectory, ResetEnvironment, TrainBatch
from rollart.domain.trajectory import End

_UNSEEN, _BEGUN, _ENDED, _TAKEN, _TRAINED = range(5)
"""Taken: ended as trained, in no batch yet."""


class Breach(Exception):
    """A broken promise; the checker turns it into a line of its report."""


class Numbers:
    """An array that is as long as it must be."""

    def __init__(self, typecode: str, default: int) -> None:
        """See the module `array` for the codes."""
        self._values = array(typecode)
        self._default = default

    def __getitem__(self, index: int) -> int:
        """The value, or the default."""
        return int(self._values[index]) if 0 <= index < len(self._values) else self._default

    def __setitem__(self, index: int, value: int) -> None:
        """Grow if need be."""
        missing = index + 1 - len(self._values)
        if missing > 0:
            self._values.extend([self._default] * missing)
        self._values[index] = value


class LifeCheck:
    """Follows every trajectory."""

    def __init__(self, staleness_bound: int | None) -> None:
        """None: the policy has no bound."""
        self._bound = staleness_bound
        self._states = Numbers("b", _UNSEEN)
        self._start_versions = Numbers("q", -1)
        self._open: set[int] = set()
        self._steps: dict[int, TrainBatch] = {}
        """Steps since the last checkpoint of the trainer, by the version that they make."""
        self._installed = 0
        self.begun = 0
        """Trajectories that were reset at least once."""

    def begin(self, command: ResetEnvironment) -> None:
        """An attempt begins."""
        number = command.trajectory
        state = self._states[number]
        if state > _BEGUN:
            raise Breach(f"trajectory {number} is reset after it has ended")
        if state == _UNSEEN:
            self.begun += 1
            self._states[number] = _BEGUN
            self._open.add(number)
        self._start_versions[number] = command.version

    def end(self, command: EndTrajectory) -> None:
        """It ends."""
        number, state = command.trajectory, self._states[command.trajectory]
        if state > _BEGUN:
            raise Breach(f"trajectory {number} ends a second time, as {command.end.value}")
        if state == _UNSEEN and command.end is End.TRAINED:
            raise Breach(f"trajectory {number} is trained on and was never begun")
        self._states[number] = _TAKEN if command.end is End.TRAINED else _ENDED
        self._open.discard(number)

    def train(self, command: TrainBatch) -> None:
        """A batch goes to the trainer."""
        self._steps[command.version] = command
        if command.installed < self._installed:
            raise Breach(f"installed version {command.installed} follows {self._installed}; it must not go back")
        self._installed = command.installed
        for number, start in zip(command.trajectories, command.start_versions, strict=True):
            if self._states[number] != _TAKEN:
                raise Breach(f"trajectory {number} is in a batch and has not ended once as trained")
            self._states[number] = _TRAINED
            if start != self._start_versions[number]:
                raise Breach(
                    f"trajectory {number} was begun at version {self._start_versions[number]}, the batch says {start}"
                )
            staleness = command.installed - start
            if self._bound is not None and staleness > self._bound:
                raise Breach(f"trajectory {number} has staleness {staleness}, the bound is {self._bound}")

    def trained(self, version: int) -> None:
        """The trainer holds a version; where it is saved, the steps up to it can never be void."""
        if version in self._steps and self._steps[version].checkpoint:
            self._steps = {later: step for later, step in self._steps.items() if later > version}

    def rewind(self, version: int) -> None:
        """The trainer starts again from a version: the steps after it are void, and their batches free."""
        void = [step for later, step in self._steps.items() if later > version]
        self._steps = {made: step for made, step in self._steps.items() if made <= version}
        for step in void:
            self._installed = min(self._installed, step.installed)
            for number in step.trajectories:
                self._states[number] = _TAKEN

    def finish(self) -> None:
        """The log ends."""
        if self._open:
            raise Breach(f"{len(self._open)} trajectories have not ended; the first is {min(self._open)}")
