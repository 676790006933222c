"""A model that fits a test."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from rollart.exec.real.trainer.policy import Policy

FIELDS = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "intermediate_size": 16,
    "vocab_size": 12,
    "tie_word_embeddings": False,
    "max_position_embeddings": 64,
    "use_cache": False,
}


def tiny_policy(seed=0, allowed=((), (3, 4, 5)), temperature=1.0, **changes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model("qwen3", **{**FIELDS, **changes}), dtype=torch.float32
        )
    return Policy(model, allowed, temperature)
