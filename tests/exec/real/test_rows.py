"""Rows and micro-batches."""

from rollart.exec.real.episodes import Episode
from rollart.exec.real.trainer.rows import Row, micro_batches, row_of, share_of


def row(length):
    return Row(
        task="t",
        group=0,
        tokens=[1] * length,
        made=[True] * length,
        logprobs=[0.0] * length,
        versions=[0] * length,
        reward=0,
    )


def test_what_follows_the_last_generated_token_is_cut():
    episode = Episode(task="t", group=4, start_version=0, score=0.5)
    episode.observe([1, 2])
    episode.tokens.append(3)
    episode.made.append(True)
    episode.logprobs.append(-0.1)
    episode.versions.append(2)
    episode.observe([4])
    made = row_of(episode)
    assert made.tokens == [1, 2, 3]
    assert made.versions == [-1, -1, 2]
    assert (made.group, made.reward, made.made_tokens) == (4, 0.5, 1)


def test_micro_batches_keep_to_their_budget_and_lose_nothing():
    rows = [row(length) for length in (5, 1, 3, 4, 2, 9)]
    batches = list(micro_batches(rows, 8))
    assert [[len(each.tokens) for each in batch] for batch in batches] == [[9], [5], [4, 3], [2, 1]]


def test_ranks_share_the_rows_evenly_by_length():
    rows = [row(length) for length in (5, 1, 3, 4)]
    assert [[len(each.tokens) for each in share_of(rows, rank, 2)] for rank in (0, 1)] == [[5, 3], [4, 1]]
