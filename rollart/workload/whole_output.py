"""Output files that are complete under their name, or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from rollart.domain.errors import OutputError


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to; it takes the place of `path` when the block succeeds. Raises OutputError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with temporary.open("wb") as file:
                yield cast(IO[bytes], file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
