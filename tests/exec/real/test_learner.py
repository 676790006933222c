"""One step of the trainer: what is cut how must not change what is learnt."""

import random

import pytest
import torch

from rollart.domain.execution import Learning, Reduction
from rollart.exec.real.trainer.advantages import with_advantages
from rollart.exec.real.trainer.learner import Learner, effective_sizes, rate_share, token_weights
from rollart.exec.real.trainer.rows import Row
from tests.exec.real.models import tiny_policy

pytestmark = pytest.mark.filterwarnings("default")


def rows(count=7):
    chance = random.Random(3)
    made = []
    for number in range(count):
        length = chance.randint(4, 15)
        task = "free" if number % 2 else "masked"
        tokens = [chance.choice([3, 4, 5]) for _ in range(length)]
        generated = [False, False, *(chance.random() < 0.6 for _ in range(length - 3)), True]
        made.append(
            Row(
                task=task,
                group=number // 2,
                tokens=tokens,
                made=generated,
                logprobs=[-chance.random() if each else 0.0 for each in generated],
                versions=[chance.randint(3, 5) if each else -1 for each in generated],
                reward=0.0,
                advantage=chance.gauss(0, 1),
            )
        )
    return made


def learner(budget=10_000, **changes):
    settings = {"learning_rate": 1e-2, "entropy_bonus": 0.01, "max_gradient_norm": 1e9, **changes}
    return Learner(tiny_policy(), ("free", "masked"), Learning(**settings), 10, budget)


def gradients(made, each_rows):
    told = made.step(each_rows, 5)
    return told, [parameter.grad.clone() for parameter in made.policy.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("reduction", list(Reduction))
@pytest.mark.parametrize("budget", [1, 20, 60])
def test_micro_batches_do_not_change_the_gradient(reduction, budget):
    told, whole = gradients(learner(reduction=reduction), rows())
    cut_told, cut = gradients(learner(budget, reduction=reduction), rows())
    assert cut_told["loss"] == pytest.approx(told["loss"], abs=1e-6)
    for one, other in zip(cut, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_ranks_together_have_the_gradient_of_one():
    _, whole = gradients(learner(), rows())
    parts = []
    for rank in (0, 1):
        made = learner()
        made._rank, made._ranks = rank, 2
        parts.append(gradients(made, rows())[1])
    for one, other, both in zip(*parts, whole, strict=True):
        torch.testing.assert_close((one + other) / 2, both, rtol=1e-4, atol=1e-6)


def test_masked_tokens_have_no_probability():
    policy = tiny_policy()
    zero = torch.zeros(1, dtype=torch.long)
    logprobs = policy(torch.tensor([[3, 4]]), zero, zero, zero + 1)[0]
    assert logprobs[[3, 4, 5]].exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    assert torch.isinf(logprobs[[0, 1, 2, 6, 11]]).all()


def test_temperature_is_that_of_sampling():
    zero = torch.zeros(1, dtype=torch.long)
    plain = tiny_policy(allowed=((),))(torch.tensor([[3]]), zero, zero, zero)
    warm = tiny_policy(allowed=((),), temperature=2.0)(torch.tensor([[3]]), zero, zero, zero)
    torch.testing.assert_close(warm, torch.log_softmax(plain / 2.0, dim=-1))


def test_a_task_has_its_own_entropy_bonus():
    made = [row.with_advantage(0.0) for row in rows()]
    _, of_all = gradients(learner(entropy_bonus=0.3), made)
    _, of_each = gradients(learner(entropy_bonus=5.0, task_entropy_bonus={"free": 0.3, "masked": 0.3}), made)
    _, of_free = gradients(learner(entropy_bonus=0.0, task_entropy_bonus={"free": 0.3}), made)
    _, of_masked = gradients(learner(entropy_bonus=0.3, task_entropy_bonus={"free": 0.0}), made)
    for every, each, free, masked in zip(of_all, of_each, of_free, of_masked, strict=True):
        torch.testing.assert_close(each, every)
        torch.testing.assert_close(free + masked, every, rtol=1e-4, atol=1e-6)
    assert max(float(part.abs().max()) for part in of_free) > 1e-4
    assert max(float(part.abs().max()) for part in of_masked) > 1e-4


def test_good_actions_become_likelier():
    made = learner(learning_rate=1e-2, entropy_bonus=0.0)
    good = Row(
        task="masked",
        group=0,
        tokens=[3, 4],
        made=[False, True],
        logprobs=[0.0, -1.0],
        versions=[-1, 0],
        reward=1.0,
        advantage=1.0,
    )
    zero = torch.zeros(1, dtype=torch.long)

    def probability():
        return made.policy(torch.tensor([[3, 4]]), zero, zero, zero + 1)[0, 4].exp().item()

    before = probability()
    made.step([good], 0)
    assert probability() > before


def test_weights_add_up_to_one():
    batch = rows()
    for reduction in Reduction:
        weights = token_weights(batch, reduction)
        assert sum(weights[id(row)] * row.made_tokens for row in batch) == pytest.approx(1.0)


def test_by_task_tokens_of_a_task_count_alike_and_tasks_by_their_trajectories():
    batch = rows(3)
    weights = token_weights(batch, Reduction.TASK)
    masked = [row for row in batch if row.task == "masked"]
    assert len({weights[id(row)] for row in masked}) == 1
    assert sum(weights[id(row)] * row.made_tokens for row in masked) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("reduction", "pushed"), [(Reduction.TASK, 0.0), (Reduction.TOKEN, 0.0), (Reduction.SEQUENCE, -1.0)]
)
def test_a_step_in_common_is_pushed_only_where_short_trajectories_weigh_more(reduction, pushed):
    """Of a group whose members begin alike, the one that fails does so after two tokens, the other takes eight."""
    rewards, lengths = (1.0, 0.0), (8, 2)
    group = [
        Row(
            task="walk",
            group=0,
            tokens=[3] * (length + 1),
            made=[False] + [True] * length,
            logprobs=[0.0] * (length + 1),
            versions=[-1] + [0] * length,
            reward=reward,
        )
        for reward, length in zip(rewards, lengths, strict=True)
    ]
    members = with_advantages(group, Learning())
    weights = token_weights(members, reduction)
    push = sum(weights[id(row)] * row.advantage for row in members)
    assert push == pytest.approx(0.0, abs=1e-12) if pushed == 0.0 else push < 0.0


def test_the_learning_rate_rises_and_falls():
    learning = Learning(warmup_steps=1, final_learning_rate_share=0.5)
    assert [rate_share(step, 5, learning) for step in range(6)] == [0.5, 0.875, 0.75, 0.625, 0.5, 0.5]


def test_effective_shares_are_told_by_lag():
    sizes = effective_sizes(torch.tensor([1.0, 1.0, 1.0, 3.0]), torch.tensor([0, 0, 1, 1]))
    assert sizes == pytest.approx(
        {"effective_share": 36 / 48, "effective_share_lag_0": 1.0, "effective_share_lag_1": 16 / 20}
    )


def test_a_learner_that_was_away_goes_on_where_it_was():
    stayed, went = learner(), learner()
    went._device = torch.device("cpu", 0)  # another name than the host's, so that there is a way to go
    for each in (stayed, went):
        each.step(rows(), 5)
        each.leave()
        assert all(parameter.grad is None for parameter in each.policy.parameters())
        each.come()
        each.step(rows(), 6)
    for one, other in zip(stayed.policy.parameters(), went.policy.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
