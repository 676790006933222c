"""Scored trajectories on disk."""

import pytest

from rollart.domain.errors import RunLogError
from rollart.exec.real.archive import EpisodeArchive
from rollart.exec.real.episodes import Episode, Episodes, Generated


def scored():
    episode = Episode(task="t", group=3, start_version=2, score=0.5)
    episode.observe([1, 2])
    episode.generated(Generated(tokens=[4], logprobs=[-0.25], versions=[2]))
    return episode


def test_an_episode_comes_back_as_it_was(tmp_path):
    EpisodeArchive(tmp_path).keep(7, scored())
    assert EpisodeArchive(tmp_path).load(7) == scored()


def test_what_is_forgotten_leaves_the_disk(tmp_path):
    archive = EpisodeArchive(tmp_path)
    episodes = Episodes(archive.drop)
    episodes.adopt(7, scored())
    archive.keep(7, episodes[7])
    episodes.forget(7)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RunLogError, match="the data of a scored trajectory is gone"):
        archive.load(7)


def test_without_a_folder_nothing_is_kept():
    archive = EpisodeArchive(None)
    archive.keep(7, scored())
    archive.drop(7)
    with pytest.raises(RunLogError, match="nothing was kept"):
        archive.load(7)
