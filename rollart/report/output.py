"""Writes result files so that each is whole or absent."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rollart.domain.errors import OutputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` if the block succeeds. Raises OutputError."""
    # The suffix stays last, since writers of pictures choose the format by it.
    part = path.with_name(f".part-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{path}: {reason}; give a folder that is writable and has room") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file. Raises OutputError."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
