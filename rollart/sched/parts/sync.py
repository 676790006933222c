"""Weight sync: when and how a new version gets onto the engines."""

from dataclasses import dataclass
from typing import Literal, Protocol


class SyncRule(Protocol):
    """Decides the shape of a weight update."""

    @property
    def order(self) -> Literal["update_first", "batch_first"]:
        """Update as soon as a version is trained, or after the next batch was taken."""
        ...

    @property
    def prefetch(self) -> bool:
        """Push and pull beside the rollout, so that only the load is exposed."""
        ...

    @property
    def transport(self) -> Literal["broadcast", "store"]:
        """Trainer to engines directly, or through a store from which each engine pulls on its own."""
        ...

    @property
    def wait_for_fetch(self) -> bool:
        """Whether a batch that is there waits for a version that is still on its way to the engines' hosts."""
        ...

    @property
    def in_flight(self) -> Literal["keep", "interrupt"]:
        """Requests stay in the suspended engine, or are aborted and sent again with the tokens made so far."""
        ...

    @property
    def suspend(self) -> bool:
        """Whether the engines stop for the update."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSync:
    """Suspend, update, resume, with these choices.

    Blocking broadcast: prefetch off (everything between suspend and resume is exposed). The paper's six steps:
    batch_first, prefetch on, in_flight keep. AReaL: update_first, in_flight interrupt. In-flight swap (PipelineRL):
    suspend off.

    With `wait_for_fetch` off, under batch_first, the trainer does not wait for its own push: it trains on the batch,
    and the engines get the version after a later one. What they sample with is then up to one version older than
    alpha says for the paper's order; the bound itself, in versions installed, holds.
    """

    order: Literal["update_first", "batch_first"] = "update_first"
    transport: Literal["broadcast", "store"] = "broadcast"
    prefetch: bool = False
    wait_for_fetch: bool = True
    in_flight: Literal["keep", "interrupt"] = "keep"
    suspend: bool = True

    def __post_init__(self) -> None:
        if self.order not in ("update_first", "batch_first"):
            raise ValueError(f"order is {self.order!r}; must be 'update_first' or 'batch_first'")
        if self.transport not in ("broadcast", "store"):
            raise ValueError(f"transport is {self.transport!r}; must be 'broadcast' or 'store'")
        if self.transport == "broadcast" and self.prefetch:
            raise ValueError("prefetch needs transport 'store': a broadcast cannot wait on the engines' hosts")
        if self.in_flight not in ("keep", "interrupt"):
            raise ValueError(f"in_flight is {self.in_flight!r}; must be 'keep' or 'interrupt'")
        if self.in_flight == "interrupt" and not self.suspend:
            raise ValueError("in_flight 'interrupt' needs suspend: true")
