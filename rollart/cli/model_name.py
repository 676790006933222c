"""What `--model` stands for."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollart.domain.model import Model


def model_named(name: str) -> "Model":
    """A model of the catalogue, or of a config.json where the name is that of a file. Raises InputError."""
    from rollart.catalog.load import models
    from rollart.loadtest.model_file import model_of_file

    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        return model_of_file(path)
    return models()[name]
