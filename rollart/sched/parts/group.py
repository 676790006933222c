"""Group rule: how many members a group starts, when it is complete, and whether it is worth training on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


class GroupRule(Protocol):
    """Decides about the members of a group."""

    def members_to_start(self, group_size: int) -> int:
        """Members that start together, at least `group_size`."""
        ...

    def has_signal(self, rewards: Sequence[float]) -> bool:
        """Whether a complete group is trained on; else it ends filtered and another takes its place."""
        ...

    @property
    def surplus(self) -> Literal["stop", "keep"]:
        """What becomes of unfinished groups when a batch is taken without them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOf:
    """The first g of g + r members complete the group; the others end as surplus."""

    redundant_members: int = 0
    filter_equal_rewards: bool = False
    """Filter groups whose members all have the same reward: their GRPO advantage is zero."""
    surplus: Literal["stop", "keep"] = "keep"

    def __post_init__(self) -> None:
        if not 0 <= self.redundant_members <= 1000:
            raise ValueError(f"redundant_members is {self.redundant_members}; must be from 0 to 1000")
        if self.surplus not in ("stop", "keep"):
            raise ValueError(f"surplus is {self.surplus!r}; must be 'stop' or 'keep'")

    def members_to_start(self, group_size: int) -> int:
        """All of g + r."""
        return group_size + self.redundant_members

    def has_signal(self, rewards: Sequence[float]) -> bool:
        """False where the filter is on and all rewards are equal."""
        return not self.filter_equal_rewards or min(rewards) != max(rewards)
