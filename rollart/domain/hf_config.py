"""Reads a model's shape from the fields of its Hugging Face `config.json`.

Understands decoder-only models with grouped-query or latent attention, dense or mixture-of-experts, with or
without sliding windows. What it does not understand (linear attention, encoder-decoder) it refuses by name.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rollart.domain.attention import GroupedAttention, LatentAttention
from rollart.domain.errors import InputError
from rollart.domain.model import Experts, Model

_QK_NORM_TYPES = frozenset({"qwen3", "qwen3_moe"})
_QKV_BIAS_TYPES = frozenset({"qwen2", "qwen2_moe"})
_TWO_MATRIX_TYPES = frozenset({"phi", "gpt_neox", "starcoder2", "falcon", "nemotron"})
_TIED_BY_DEFAULT = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
_EXPERT_COUNT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")
_EXPERT_ACTIVE_KEYS = ("num_experts_per_tok", "experts_per_token")
_MOST_LAYERS = 10_000
"""Far above any model; the counts walk over the layers, so a slip of the pen must not take minutes."""
_QUANT_METHODS = {"fp8": "fp8", "mxfp4": "mxfp4", "awq": "int4", "gptq": "int4"}


def model_from_hf_config(config: Mapping[str, Any], name: str) -> Model:
    """Build a Model from a config.json already read into a mapping.

    Raises InputError naming the key that is missing, of the wrong kind, or impossible.
    """
    if not isinstance(config, Mapping):
        raise InputError(f"model {name}: config must be a mapping, not {type(config).__name__}")
    nested = config.get("text_config")
    fields = _Fields({**config, **nested} if isinstance(nested, Mapping) else config, name)
    if fields.get("is_encoder_decoder"):
        raise fields.error("is_encoder_decoder", True, "only decoder-only models are understood")
    layers = fields.count("num_hidden_layers")
    if layers > _MOST_LAYERS:
        raise fields.error("num_hidden_layers", layers, f"must not exceed {_MOST_LAYERS}")
    experts, dense_layers = _experts(fields, layers)
    window, windowed_layers = _windows(fields, layers)
    model_type = fields.model_type
    return Model(
        name=name,
        hidden=fields.count("hidden_size"),
        layers=layers,
        vocabulary=fields.count("vocab_size"),
        tied_embeddings=bool(fields.get("tie_word_embeddings", model_type in _TIED_BY_DEFAULT)),
        attention=_attention(fields),
        dense_layers=dense_layers,
        dense_width=fields.count("intermediate_size") if dense_layers else 0,
        gated_mlp=model_type not in _TWO_MATRIX_TYPES,
        mlp_bias=bool(fields.get("mlp_bias", False)),
        experts=experts,
        window_tokens=window,
        windowed_layers=windowed_layers,
        max_context_tokens=fields.count("max_position_embeddings", None),
        native_precision=_native_precision(fields),
    )


class _Fields:
    """A config with checked access; its errors name the model, the key and the value."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self.config = config
        self.name = name

    @property
    def model_type(self) -> str:
        return str(self.get("model_type", ""))

    def get(self, key: str, default: Any = None) -> Any:
        value = self.config.get(key)
        return default if value is None else value

    def error(self, key: str, value: object, right: str) -> InputError:
        return InputError(f"model {self.name}: config key {key} = {value!r}: {right}")

    def count(self, key: str, default: int | str | None = "required") -> Any:
        """A positive whole number; the default where the key is absent or null."""
        value = self.config.get(key)
        if value is None:
            if default == "required":
                raise InputError(f"model {self.name}: config key {key} is missing; it must be a whole number")
            return default
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        if not whole or not math.isfinite(value) or value != int(value) or value < 1:
            raise self.error(key, value, "must be a whole number of 1 or more")
        return int(value)

    def non_negative(self, key: str, default: int) -> int:
        """A whole number of 0 or more."""
        return 0 if self.config.get(key) == 0 else int(self.count(key, default))

    def first_present(self, keys: Sequence[str]) -> str | None:
        return next((key for key in keys if self.config.get(key) is not None), None)


def _attention(fields: _Fields) -> GroupedAttention | LatentAttention:
    heads = fields.count("num_attention_heads")
    if fields.get("kv_lora_rank") is not None:
        return LatentAttention(
            heads=heads,
            query_rank=fields.count("q_lora_rank", None),
            kv_rank=fields.count("kv_lora_rank"),
            plain_dim=fields.count("qk_nope_head_dim"),
            rotary_dim=fields.count("qk_rope_head_dim"),
            value_dim=fields.count("v_head_dim"),
        )
    kv_heads = fields.count("num_key_value_heads", heads)
    if heads % kv_heads:
        raise fields.error("num_key_value_heads", kv_heads, f"must divide num_attention_heads = {heads}")
    hidden = fields.count("hidden_size")
    head_dim = fields.count("head_dim", None)
    if head_dim is None:
        if hidden % heads:
            raise fields.error("num_attention_heads", heads, f"must divide hidden_size = {hidden}")
        head_dim = hidden // heads
    model_type = fields.model_type
    bias = bool(fields.get("attention_bias", False))
    return GroupedAttention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        qkv_bias=bias or model_type in _QKV_BIAS_TYPES,
        output_bias=bias,
        qk_norm=model_type in _QK_NORM_TYPES,
        sinks=model_type == "gpt_oss",
    )


def _experts(fields: _Fields, layers: int) -> tuple[Experts | None, int]:
    """The experts and the number of layers that have an ordinary MLP instead."""
    count_key = fields.first_present(_EXPERT_COUNT_KEYS)
    if count_key is None or fields.get(count_key) == 0:
        return None, layers
    count = fields.count(count_key)
    active_key = fields.first_present(_EXPERT_ACTIVE_KEYS) or _EXPERT_ACTIVE_KEYS[0]
    active = fields.count(active_key)
    if active > count:
        raise fields.error(active_key, active, f"must not exceed {count_key} = {count}")
    width_key = fields.first_present(("moe_intermediate_size",)) or "intermediate_size"
    width = fields.count(width_key)
    is_gpt_oss = fields.model_type == "gpt_oss"
    shared = fields.non_negative("n_shared_experts", 0) * width
    shared_gate = fields.get("shared_expert_intermediate_size") is not None
    if shared_gate:
        shared = fields.non_negative("shared_expert_intermediate_size", 0)
    experts = Experts(
        count=count,
        active=active,
        width=width,
        shared_width=shared,
        shared_gate=shared_gate,
        expert_bias=is_gpt_oss,
        router_bias=is_gpt_oss or fields.get("topk_method") == "noaux_tc",
    )
    return experts, _dense_layers(fields, layers)


def _dense_layers(fields: _Fields, layers: int) -> int:
    first_dense = fields.non_negative("first_k_dense_replace", 0)
    if first_dense > layers:
        raise fields.error("first_k_dense_replace", first_dense, f"must not exceed num_hidden_layers = {layers}")
    mlp_only = fields.get("mlp_only_layers", [])
    if not isinstance(mlp_only, Sequence) or isinstance(mlp_only, str):
        raise fields.error("mlp_only_layers", mlp_only, "must be a list of layer numbers")
    every = fields.count("decoder_sparse_step", 1)
    sparse = [layer for layer in range(first_dense, layers) if layer not in mlp_only and (layer + 1) % every == 0]
    return layers - len(sparse)


def _windows(fields: _Fields, layers: int) -> tuple[int | None, int]:
    """The window and the number of layers that have it."""
    kinds = fields.get("layer_types")
    if kinds is None:
        window = fields.count("sliding_window", None)
        if window is None or fields.get("use_sliding_window") is False:
            return None, 0
        return window, layers - min(layers, fields.non_negative("max_window_layers", 0))
    if not isinstance(kinds, Sequence) or isinstance(kinds, str) or len(kinds) != layers:
        raise fields.error("layer_types", kinds, f"must be a list of num_hidden_layers = {layers} names")
    unknown = set(kinds) - {"full_attention", "sliding_attention"}
    if unknown:
        right = "only full_attention and sliding_attention are understood"
        raise fields.error("layer_types", sorted(unknown, key=str)[0], right)
    windowed = sum(kind == "sliding_attention" for kind in kinds)
    return (fields.count("sliding_window"), windowed) if windowed else (None, 0)


def _native_precision(fields: _Fields) -> str:
    """The precision the checkpoint is published in."""
    quantisation = fields.get("quantization_config")
    if not isinstance(quantisation, Mapping):
        return "bf16"
    return _QUANT_METHODS.get(str(quantisation.get("quant_method")), "bf16")
