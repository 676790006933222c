"""The policy that is trained: a Hugging Face causal model that gives logits where they are asked for.

Only the hidden states at the asked positions go through the output head, so the logits of a whole batch are never in
memory. Sequences are padded on the right: causal attention keeps the padding out of what comes before it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Policy(nn.Module):
    """The model with its allowed tokens by task."""

    def __init__(self, model: Any, allowed: Sequence[tuple[int, ...]], temperature: float) -> None:
        """`allowed`: by number of the task, the only tokens that are sampled; empty: all are."""
        super().__init__()
        self.model = model
        self._temperature = temperature
        self._masks: torch.Tensor | None = None
        if any(allowed):
            masks = torch.zeros(len(allowed), model.config.vocab_size)
            for number, ids in enumerate(allowed):
                if ids:
                    masks[number] = float("-inf")
                    masks[number, list(ids)] = 0.0
            self._masks = masks

    def forward(
        self, ids: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, tasks: torch.Tensor | None
    ) -> torch.Tensor:
        """Log-probs over the vocabulary of what follows each position (row, column), as they are sampled.

        `tasks`: number of each position's task; None: no mask and temperature 1.
        """
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state
        logits = self.model.lm_head(hidden[rows, columns]).float()
        if tasks is None:
            return torch.log_softmax(logits, dim=-1)
        logits = logits / self._temperature
        if self._masks is not None:
            logits = logits + self._masks.to(logits.device)[tasks]
        return torch.log_softmax(logits, dim=-1)


def load_policy(
    folder: Path, dtype: str, device: torch.device, allowed: Sequence[tuple[int, ...]], temperature: float
) -> Policy:
    """The policy with the weights of a model folder; they are kept in float32 where `dtype` says so."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=DTYPES[dtype], local_files_only=True)
    return Policy(model.to(device), allowed, temperature)


def shard(policy: Policy) -> None:
    """Cut every layer over the ranks of the default process group (FSDP2)."""
    from torch.distributed.fsdp import fully_shard

    for layer in policy.model.model.layers:
        fully_shard(layer)
    fully_shard(policy)


def full_weights(
    policy: Policy, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor by its name in the model folder, whole and on one device; tied ones once."""
    seen: set[int] = set()
    for name, parameter in policy.model.named_parameters(remove_duplicate=False):
        if id(parameter) in seen:
            continue
        seen.add(id(parameter))
        tensor = parameter.detach()
        if hasattr(tensor, "full_tensor"):
            tensor = tensor.full_tensor()
        yield name, tensor.to(device, dtype).contiguous()
