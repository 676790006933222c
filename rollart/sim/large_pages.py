"""Large pages for the memory of a large simulation, where the kernel gives them (Linux 6.1 or newer).

What is under way on thousands of engines is hundreds of MB of small objects that are touched in the order of events,
so nearly every touch leaves the processor's caches, and with pages of 4 KB its translation buffer as well: a miss of
the second kind costs a walk through page tables that are not in the caches either. Pages of 2 MB do away with that.
Nothing depends on them; where they cannot be had, nothing happens.
"""

import ctypes
import mmap
import sys
from pathlib import Path

from rollart.runlog.window import Window

PAGE_BYTES = 2 << 20
GROWTH_BYTES = 128 << 20
"""They are asked for whenever the process has grown by this much: what is smaller is not worth the copying."""
_ADVICE = (14, 25)
"""MADV_HUGEPAGE: from now on; MADV_COLLAPSE: copy what is there into large pages."""
_ADDRESSES, _RIGHTS, _NAME = 0, 1, 5
"""Columns of /proc/self/maps; memory that is of no file and has no purpose of its own has no name."""


class LargePages:
    """A sink of the run log that looks at every window whether the process has grown."""

    def __init__(self) -> None:
        self.asked_bytes = _resident_bytes()
        """Size of the process when large pages were asked for last, at first when it was made."""

    def consume(self, window: Window) -> None:  # noqa: ARG002 - what a window holds does not matter
        """Ask for large pages if the process has grown."""
        resident_bytes = _resident_bytes()
        if resident_bytes >= self.asked_bytes + GROWTH_BYTES:
            self.asked_bytes = resident_bytes
            ask_for_large_pages()


def ask_for_large_pages() -> None:
    """Ask the kernel to hold this process's own memory in large pages."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in own_regions():
        first, last = -(-start // PAGE_BYTES) * PAGE_BYTES, end // PAGE_BYTES * PAGE_BYTES
        if first < last:
            for advice in _ADVICE:
                # Refused where the kernel is older, or large pages are off.
                madvise(first, last - first, advice)


def own_regions() -> list[tuple[int, int]]:
    """Addresses (first, one past the last) of the memory that this process has written for itself."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        columns = line.split(maxsplit=_NAME)
        name = columns[_NAME] if len(columns) > _NAME else ""
        if columns[_RIGHTS].startswith("rw-p") and name in ("", "[heap]"):
            start, _, end = columns[_ADDRESSES].partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found


def _resident_bytes() -> int:
    """Memory that this process has in use; 0 where there is no Linux to say so."""
    if sys.platform != "linux":
        return 0
    with Path("/proc/self/statm").open("rb") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE
