"""The engines of the toy driver: they die, come back, and are strict about what they are ordered to do."""

from dataclasses import dataclass, field

from rollart.domain.commands import GenerateTurn


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
