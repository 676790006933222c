"""A run directory is complete or as it was before: results are made in a hidden folder in it, then moved in place."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rollart.domain.errors import OutputError

_STAGE = ".part"


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder to write results to; if the block succeeds they replace those in `folder`, else nothing changes.

    Raises OutputError when `folder` cannot be written.
    """
    existed = folder.is_dir()
    stage = folder / _STAGE
    try:
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir(parents=True)
        yield stage
        for result in sorted(stage.iterdir()):
            target = folder / result.name
            if target.is_dir():
                shutil.rmtree(target)
            result.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{folder}: {reason}; give a folder that is writable and has room") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if not existed and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
