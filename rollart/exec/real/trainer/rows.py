"""What the trainer is given of a trajectory, and how rows are put together into micro-batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rollart.exec.real.episodes import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One trajectory; all lists have one entry a token."""

    task: str
    group: int
    tokens: list[int]
    made: list[bool]
    """Whether the agent generated the token."""
    logprobs: list[float]
    """Of the behaviour policy, for tokens that the agent generated."""
    versions: list[int]
    """Weight version that sampled the token; -1 for the environment's."""
    reward: float
    advantage: float = 0.0

    @property
    def made_tokens(self) -> int:
        """Tokens that the loss is about."""
        return sum(self.made)

    def with_advantage(self, advantage: float) -> "Row":
        """The same with an advantage."""
        return replace(self, advantage=advantage)


def row_of(episode: Episode) -> Row:
    """A scored episode as a row; what came after the last generated token is of no use to the loss."""
    assert episode.score is not None
    end = max((index for index, made in enumerate(episode.made) if made), default=-1) + 1
    return Row(
        task=episode.task,
        group=episode.group,
        tokens=episode.tokens[:end],
        made=episode.made[:end],
        logprobs=episode.logprobs[:end],
        versions=episode.versions[:end],
        reward=episode.score,
    )


def micro_batches(rows: Sequence[Row], token_budget: int) -> Iterator[list[Row]]:
    """Rows of similar length together, padded to at most `token_budget` tokens (one row may be longer than that)."""
    batch: list[Row] = []
    for row in sorted(rows, key=lambda row: -len(row.tokens)):
        if batch and (len(batch) + 1) * len(batch[0].tokens) > token_budget:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def share_of(rows: Sequence[Row], rank: int, ranks: int) -> list[Row]:
    """The rows of one rank: every `ranks`-th by length, so that all have about the same to do."""
    return sorted(rows, key=lambda row: -len(row.tokens))[rank::ranks]
