"""What vLLM's workers learn beside their own methods: to install weights that lie in files on their host.

On CPUs vLLM packs linear layers for its kernels when it loads them. `reload_weights` packs them again, except the
output head, which keeps the packed copy of the OLD weights where it shares them with the embedding: outputs then
change with the rest of the model and look alive, and every log-prob is wrong. So the head is packed again by hand.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from safetensors import safe_open

NICENESS = 10
"""Of an engine that shares its cores; a tenth of the weight of a process with niceness 0."""


class WeightInstaller:
    """Mixed into vLLM's worker class by `worker_extension_cls`."""

    model_runner: Any

    def install_weights(self, paths: Sequence[str]) -> int:
        """Install the weights in safetensors files; the number of tensors that were read."""
        names: list[str] = []
        self.model_runner.reload_weights(weights_iterator=_tensors(paths, names))
        self.pack_head()
        return len(names)

    def pack_head(self) -> None:
        """Make the output head follow new weights, whichever way they came; on GPUs it does."""
        _pack_head(self.model_runner.get_model())

    def let_others_first(self) -> None:
        """Compute when nothing else wants the cores: on CPUs the driver, environments and the trainer need them too."""
        os.nice(NICENESS)


def _tensors(paths: Sequence[str], names: list[str]) -> Iterator[tuple[str, torch.Tensor]]:
    for path in paths:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  (a safetensors file is no mapping)
                names.append(name)
                yield name, file.get_tensor(name)


def _pack_head(model: Any) -> None:
    head = getattr(model, "lm_head", None)
    if head is None or head.weight.device.type != "cpu":
        return
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

    dispatch_cpu_unquantized_gemm(head, remove_weight=False)
