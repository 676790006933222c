"""A model from the `config.json` of its checkpoint."""

from pathlib import Path

import msgspec

from rollart.domain.errors import InputError
from rollart.domain.hf_config import model_from_hf_config
from rollart.domain.model import Model
from rollart.workload.trace_reader import read_lines


def model_of_file(path: Path) -> Model:
    """The model, named after the folder of the file. Raises InputError where the file is no model's config."""
    try:
        config = msgspec.json.decode(b"".join(read_lines(path)))
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: is not JSON: {error}") from error
    return model_from_hf_config(config, path.resolve().parent.name)
