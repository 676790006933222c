"""Two ranks that share the model's layers (FSDP2 over gloo) learn what one learns."""

import socket
import sys

import pytest
import torch
import torch.multiprocessing as processes
from safetensors.torch import load_file

from rollart.exec.real.trainer.checkpoint import save_checkpoint
from tests.exec.real.models import tiny_policy
from tests.exec.real.two_ranks import ROWS, learner, rank_of_two

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(sys.platform != "linux", reason="gloo on loopback is tried on Linux only"),
]


def test_two_ranks_learn_what_one_learns(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    processes.spawn(rank_of_two, args=(address, tmp_path), nprocs=2)
    alone = learner(tiny_policy())
    alone.step(ROWS, 1)
    alone.step(ROWS, 1)
    save_checkpoint(alone, tmp_path / "alone", 2, write=True)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("alone", "twice"))
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], rtol=1e-4, atol=1e-5)
