"""What each of two ranks of a trainer does, in a process of its own."""

import torch

from rollart.domain.execution import Learning
from rollart.exec.real.trainer.checkpoint import load_checkpoint, save_checkpoint
from rollart.exec.real.trainer.learner import Learner
from rollart.exec.real.trainer.policy import shard
from rollart.exec.real.trainer.rows import Row
from tests.exec.real.models import tiny_policy

ROWS = [
    Row(
        task="free",
        group=number // 2,
        tokens=[1, 2, 3, 4][: 2 + number % 3],
        made=[False, True, True, True][: 2 + number % 3],
        logprobs=[0.0, -1.0, -2.0, -0.5][: 2 + number % 3],
        versions=[-1, 0, 0, 0][: 2 + number % 3],
        reward=0.0,
        advantage=(-1.0) ** number * (1 + number),
    )
    for number in range(5)
]


def learner(policy, rank=0, ranks=1):
    learning = Learning(learning_rate=1e-2, max_gradient_norm=0.5)
    return Learner(policy, ("free", "masked"), learning, 10, 1000, rank=rank, ranks=ranks)


def rank_of_two(rank, address, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    policy = tiny_policy()
    shard(policy)
    made = learner(policy, rank, 2)
    made.step(ROWS, 1)
    save_checkpoint(made, folder / "once", 1, write=rank == 0)
    torch.distributed.barrier()
    load_checkpoint(made, folder / "once")
    made.step(ROWS, 1)
    save_checkpoint(made, folder / "twice", 2, write=rank == 0)
    torch.distributed.destroy_process_group()
