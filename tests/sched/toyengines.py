"""Engines and trainer of the toy driver: they die, come back, and are strict about what they are ordered to do."""

from dataclasses import dataclass, field

from rollart.domain.commands import GenerateTurn, RestartTrainer, TrainBatch


@dataclass
class ToyEngine:
    """One engine as it is, which the controller knows only by report."""

    incarnation: int = 0
    up: bool = True
    suspended: bool = False
    released: bool = False
    """Its memory is the trainer's."""
    version: int = 0
    on_host: set[int] = field(default_factory=set)
    turns: dict[int, GenerateTurn] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)
    """Turns that would be complete, were the engine not suspended."""

    def die(self) -> dict[int, GenerateTurn]:
        """It is gone with all it held; the turns that were open on it."""
        lost, self.turns = self.turns, {}
        self.up = False
        self.ready, self.on_host = [], set()
        return lost

    def come_back(self, incarnation: int) -> None:
        """A fresh incarnation: suspended, with no version of its own."""
        assert not self.up
        assert incarnation > self.incarnation
        self.incarnation = incarnation
        self.up = self.suspended = self.released = True
        self.version = 0

    def reaches(self, incarnation: int) -> bool:
        """Whether an order to this incarnation arrives."""
        return self.up and self.incarnation == incarnation


@dataclass
class ToyTrainer:
    """The trainer as it is."""

    incarnation: int = 0
    up: bool = True
    version: int = 0
    saved: set[int] = field(default_factory=lambda: {0})
    """Versions with a checkpoint: the last one that was acknowledged, and perhaps a later one."""
    working: bool = False

    def begin(self, command: TrainBatch) -> None:
        """A step on top of the version that it holds; the order acknowledges that version."""
        assert not self.working, f"{command} while a step runs"
        if self.up:
            assert command.version == self.version + 1, f"{command} on top of version {self.version}"
            self.working = True
            if self.version in self.saved:
                self.saved = {self.version}

    def end(self, command: TrainBatch) -> None:
        """The step is done."""
        self.working = False
        self.version = command.version
        if command.checkpoint:
            self.saved.add(command.version)

    def die(self) -> None:
        """It is gone, but for its checkpoints."""
        self.up = self.working = False

    def come_back(self, command: RestartTrainer) -> None:
        """It loads a checkpoint."""
        assert not self.up
        assert command.incarnation > self.incarnation
        assert command.version in self.saved, f"{command} of a checkpoint that is gone, there are {self.saved}"
        self.incarnation, self.version, self.up = command.incarnation, command.version, True
