"""The write-ahead log of a run: every record before it is carried out, in blocks that survive the driver.

A file of blocks: length and CRC-32 of the payload (two little-endian uint32), then the payload, a compressed
MessagePack list of (time_s, record). A block is written and flushed to the disk as a whole; a torn last block, as a
driver that was killed leaves it, ends the journal.
"""

import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import BinaryIO

import msgspec

from rollart.domain.errors import OutputError, RunLogError
from rollart.runlog.schema import KINDS, Record

MAGIC = b"rollart journal 1\n"

RECORDS_AT_MOST = 4096
"""Records that wait for the disk; a flush costs milliseconds."""
SECONDS_AT_MOST = 1.0
"""Time that a record waits for the disk, while records come."""

_HEAD = struct.Struct("<II")
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[tuple[float, Record]]] = msgspec.msgpack.Decoder(
    list[tuple[float, reduce(or_, (kind.type for kind in KINDS))]]  # type: ignore[misc]
)


class Journal:
    """Appends records to a journal."""

    def __init__(self, path: Path, *, wall: Callable[[], float] = time.monotonic) -> None:
        """Begin a journal, or go on after the last whole block of the one that is there. Raises OutputError."""
        self._path = path
        self._wall = wall
        self._pending: list[tuple[float, Record]] = []
        self.records = 0
        """Records on the disk and on their way to it."""
        try:
            self._file = self._opened(path)
        except OSError as error:
            raise self._failed(error) from error
        self._synced_s = wall()

    def _opened(self, path: Path) -> BinaryIO:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.open("wb")
            fresh.write(MAGIC)
            return fresh
        end = len(MAGIC)
        for block_end, records in _blocks(path):
            end = block_end
            self.records += len(records)
        file: BinaryIO = path.open("r+b")
        file.truncate(end)
        file.seek(end)
        return file

    def add(self, time_s: float, record: Record) -> None:
        """Write a record, soon. Raises OutputError."""
        self._pending.append((time_s, record))
        self.records += 1
        if len(self._pending) >= RECORDS_AT_MOST or self._wall() - self._synced_s > SECONDS_AT_MOST:
            self.sync()

    def sync(self) -> None:
        """Write what waits, down to the disk. Raises OutputError."""
        self._synced_s = self._wall()
        if not self._pending:
            return
        payload = zlib.compress(_encoder.encode(self._pending), level=1)
        self._pending.clear()
        try:
            self._file.write(_HEAD.pack(len(payload), zlib.crc32(payload)) + payload)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Write the rest and close the file."""
        try:
            self.sync()
        finally:
            self._file.close()

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"journal {self._path}: {error.strerror or error}; give a folder that has room")


def read_journal(path: Path) -> Iterator[tuple[float, Record]]:
    """(time_s, record) of all whole blocks, in order. Raises RunLogError where it is no journal."""
    for _, records in _blocks(path):
        yield from records


def _blocks(path: Path) -> Iterator[tuple[int, list[tuple[float, Record]]]]:
    """Each whole block, with the place in the file where it ends; stops at the first that is torn."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise RunLogError(f"{path}: is not the journal of a run, or of another version of RollArt")
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, checksum = _HEAD.unpack(head)
                payload = file.read(length)
                if len(payload) < length or zlib.crc32(payload) != checksum:
                    return
                yield file.tell(), _decoder.decode(zlib.decompress(payload))
    except (OSError, msgspec.MsgspecError, zlib.error) as error:
        raise RunLogError(f"{path}: cannot be read: {error}") from error
