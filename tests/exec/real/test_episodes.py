"""The token store."""

from rollart.domain.commands import EndTrajectory, ResetEnvironment
from rollart.domain.trajectory import End
from rollart.exec.real.episodes import Episodes, Generated


def begin(episodes, trajectory, group=0, attempt=0):
    episodes.begin(
        ResetEnvironment(
            id=1,
            trajectory=trajectory,
            task="t",
            prompt=0,
            group=group,
            member=0,
            attempt=attempt,
            version=3,
            timeout_s=1,
        )
    )


def test_tokens_are_appended_with_their_origin():
    episodes = Episodes()
    begin(episodes, 7)
    assert episodes.ready(7, [1, 2]) == 2
    episode = episodes[7]
    episode.generated(Generated(tokens=[5], logprobs=[-0.5], versions=[3]))
    assert episode.turn == [5]
    episode.observe([9])
    assert episode.tokens == [1, 2, 5, 9]
    assert episode.made == [False, False, True, False]
    assert episode.logprobs == [0.0, 0.0, -0.5, 0.0]
    assert episode.versions == [-1, -1, 3, -1]
    assert episode.turn == []


def test_a_group_shares_the_leading_tokens_of_its_prompts():
    episodes = Episodes()
    for trajectory in (1, 2):
        begin(episodes, trajectory)
    assert episodes.ready(1, [4, 5, 6]) == 3
    assert episodes.ready(2, [4, 5, 9, 9]) == 2


def test_a_group_that_is_gone_shares_nothing_with_its_successor():
    episodes = Episodes()
    begin(episodes, 1)
    episodes.ready(1, [4, 5])
    episodes.end(EndTrajectory(id=2, trajectory=1, end=End.STALE))
    assert episodes.get(1) is None
    begin(episodes, 2)
    assert episodes.ready(2, [8]) == 1


def test_what_is_trained_on_stays_and_a_new_attempt_starts_empty():
    episodes = Episodes()
    begin(episodes, 1)
    episodes.ready(1, [4])
    episodes.end(EndTrajectory(id=2, trajectory=1, end=End.TRAINED))
    assert episodes.batch((1,))[0].tokens == [4]
    begin(episodes, 1, attempt=1)
    assert episodes[1].tokens == []
    episodes.forget(1)
    episodes.forget(1)
    assert episodes.get(1) is None
