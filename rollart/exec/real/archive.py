"""Scored trajectories on disk, so that they can be trained on after the driver was gone.

One file each, written when the score is known and removed when a checkpoint of the trainer has what was learnt from it.
"""

from pathlib import Path

import msgspec

from rollart.domain.errors import OutputError, RunLogError
from rollart.exec.real.episodes import Episode


class EpisodeArchive:
    """The episodes of one run; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, trajectory: int, episode: Episode) -> None:
        """Write a scored episode. Raises OutputError."""
        if self._folder is None:
            return
        try:
            self._path(self._folder, trajectory).write_bytes(msgspec.msgpack.encode(episode))
        except OSError as error:
            raise OutputError(f"{self._folder}: {error.strerror or error}; give a folder that has room") from error

    def drop(self, trajectory: int) -> None:
        """Remove an episode, if it is there."""
        if self._folder is not None:
            self._path(self._folder, trajectory).unlink(missing_ok=True)

    def load(self, trajectory: int) -> Episode:
        """A kept episode. Raises RunLogError."""
        if self._folder is None:
            raise RunLogError(f"trajectory {trajectory}: nothing was kept of the interrupted run")
        path = self._path(self._folder, trajectory)
        try:
            return msgspec.msgpack.decode(path.read_bytes(), type=Episode)
        except (OSError, msgspec.MsgspecError) as error:
            raise RunLogError(f"{path}: the data of a scored trajectory is gone: {error}") from error

    def _path(self, folder: Path, trajectory: int) -> Path:
        return folder / f"{trajectory}.msgpack"
