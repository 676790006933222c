"""vLLM's own weight transfer by NCCL, on CPUs: gloo takes NCCL's place, all else of it is as it is on GPUs."""

from contextlib import nullcontext
from datetime import timedelta

import torch

from rollart.exec.real.engines.actor import EngineProcess
from rollart.exec.real.trainer.process import TrainerProcess

LIMIT = timedelta(seconds=60)


class Gloo:
    """What the transfer asks of vLLM's communicator for NCCL."""

    def __init__(self, host, port, rank, world_size, device):
        del device
        store = torch.distributed.TCPStore(host, port, world_size, is_master=rank == 0, timeout=LIMIT)
        self._group = torch.distributed.ProcessGroupGloo(store, rank, world_size, LIMIT)

    def broadcast(self, tensor, src, stream=None):
        del stream
        options = torch.distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = src, 0
        self._group.broadcast([tensor], options).wait()

    def destroy(self):
        self._group = None


class Stream:
    """Of a device that does everything at once."""

    def synchronize(self):
        pass


def take_nccls_place():
    """Let the transfer of this process go over gloo."""
    from vllm.distributed.weight_transfer import nccl_common, packed_tensor

    nccl_common.stateless_init_process_group = Gloo
    packed_tensor._get_streams = lambda _, count: [Stream() for _ in range(count)]
    torch.cuda.stream = lambda _: nullcontext()
    torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.synchronize = lambda: None


class GlooEngine(EngineProcess):
    """An engine whose workers know of gloo."""

    async def start(self, version, *, suspended):
        from rollart.exec.real.engines import backend

        backend.EXTENSION = "tests.exec.real.gloo_installer.GlooInstaller"
        return await super().start(version, suspended=suspended)


class GlooTrainer(TrainerProcess):
    """A trainer that sends over gloo."""

    def broadcast(self, members):
        take_nccls_place()
        return super().broadcast(members)
