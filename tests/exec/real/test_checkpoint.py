"""Checkpoints: after a return, training goes on as if nothing had happened."""

import pytest
import torch

from rollart.domain.errors import RunLogError
from rollart.domain.execution import Learning
from rollart.exec.real.trainer.checkpoint import load_checkpoint, save_checkpoint
from rollart.exec.real.trainer.learner import Learner
from rollart.exec.real.trainer.rows import Row
from tests.exec.real.models import tiny_policy

pytestmark = pytest.mark.filterwarnings("default")


def learner(seed):
    learning = Learning(final_learning_rate_share=0.1)
    return Learner(tiny_policy(seed, tie_word_embeddings=True), ("free", "masked"), learning, 10, 1000)


def row(advantage):
    return Row(
        task="free",
        group=0,
        tokens=[1, 2, 3],
        made=[False, True, True],
        logprobs=[0.0, -1.0, -2.0],
        versions=[-1, 0, 0],
        reward=0.0,
        advantage=advantage,
    )


def test_training_goes_on_where_it_was(tmp_path):
    one = learner(0)
    one.step([row(1.0)], 0)
    save_checkpoint(one, tmp_path / "v1", 1, write=True)
    told = one.step([row(-0.5)], 1)
    other = learner(9)
    assert load_checkpoint(other, tmp_path / "v1") == 1
    again = other.step([row(-0.5)], 1)
    assert again["learning_rate"] == told["learning_rate"]
    assert again["loss"] == told["loss"]
    for mine, its in zip(one.policy.parameters(), other.policy.parameters(), strict=True):
        torch.testing.assert_close(mine, its, rtol=0, atol=0)


def test_a_folder_without_a_checkpoint_is_said(tmp_path):
    with pytest.raises(RunLogError, match="no checkpoint"):
        load_checkpoint(learner(0), tmp_path)
