"""Checkpoints: the model in the Hugging Face form, and the optimiser's state beside it, all in safetensors files.

A checkpoint is complete or not there: it is written to a folder beside, which then takes its name.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from rollart.domain.errors import RunLogError
from rollart.exec.real.trainer.learner import Learner
from rollart.exec.real.trainer.policy import full_weights

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


def save_checkpoint(learner: Learner, folder: Path, version: int, *, write: bool) -> None:
    """Gather everything, which all ranks must do together, and write it where `write` says so."""
    model = dict(full_weights(learner.policy, torch.float32))
    moments = dict(_moments(learner))
    if not write:
        return
    stage = folder.with_name(folder.name + ".part")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    save_file(model, stage / MODEL)
    save_file(moments, stage / OPTIMIZER)
    state = {"version": version, "steps_done": learner.steps_done}
    (stage / STATE).write_text(json.dumps(state), encoding="utf-8")
    learner.policy.model.config.save_pretrained(stage)
    shutil.rmtree(folder, ignore_errors=True)
    stage.rename(folder)


def load_checkpoint(learner: Learner, folder: Path) -> int:
    """Put a checkpoint's weights and optimiser state back; its version. RunLogError where there is none."""
    try:
        model, moments = load_file(folder / MODEL), load_file(folder / OPTIMIZER)
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunLogError(f"{folder}: no checkpoint: {' '.join(str(error).split())[:200]}") from error
    with torch.no_grad():
        for name, parameter in learner.policy.model.named_parameters():
            _fill(parameter, model[name])
    _restore_moments(learner, moments)
    learner.steps_done = int(state["steps_done"])
    return int(state["version"])


def _moments(learner: Learner) -> Any:
    for name, parameter in learner.policy.model.named_parameters():
        for key, value in learner.optimizer.state.get(parameter, {}).items():
            whole = value.full_tensor() if hasattr(value, "full_tensor") else value
            yield f"{name}/{key}", whole.detach().cpu().contiguous()


def _restore_moments(learner: Learner, moments: dict[str, torch.Tensor]) -> None:
    named = dict(learner.policy.model.named_parameters())
    for key, value in moments.items():
        name, _, moment = key.rpartition("/")
        parameter = named[name]
        if moment == "step":
            learner.optimizer.state[parameter][moment] = value
            continue
        made = torch.zeros_like(parameter)
        _fill(made, value)
        learner.optimizer.state[parameter][moment] = made


def _fill(target: Any, whole: torch.Tensor) -> None:
    """Copy a whole tensor into a parameter, or into this rank's part of it."""
    if hasattr(target, "device_mesh"):
        from torch.distributed.tensor import distribute_tensor

        whole = distribute_tensor(whole.to(target.device), target.device_mesh, target.placements)
    with torch.no_grad():
        target.copy_(whole)
