import ctypes
import sys

import pytest

from rollart.sim import large_pages
from rollart.sim.large_pages import GROWTH_BYTES, LargePages, ask_for_large_pages, own_regions

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def asked(monkeypatch):
    """Sizes of the process at which large pages were asked for, and the sizes that it will have."""
    sizes, asked = [], []
    monkeypatch.setattr(large_pages, "_resident_bytes", lambda: sizes.pop(0))
    monkeypatch.setattr(large_pages, "ask_for_large_pages", lambda: asked.append(True))
    return sizes, asked


def test_they_are_asked_for_whenever_the_process_has_grown(asked):
    sizes, answers = asked
    start = 300 << 20
    sizes += [start, start, start + GROWTH_BYTES - 1, start + GROWTH_BYTES, start + GROWTH_BYTES + 1]
    sizes += [start, start + 2 * GROWTH_BYTES]
    pages, counts = LargePages(), []
    while sizes:
        pages.consume(None)
        counts.append(len(answers))
    assert counts == [0, 0, 1, 1, 1, 2]


def test_a_process_of_unknown_size_never_asks(asked):
    sizes, answers = asked
    sizes += [0] * 4
    pages = LargePages()
    while sizes:
        pages.consume(None)
    assert not answers


@linux
def test_own_regions_hold_what_is_written_and_no_code():
    block = ctypes.create_string_buffer(64 << 20)
    address = ctypes.addressof(block)
    code = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
    regions = own_regions()
    assert any(start <= address and address + len(block) <= end for start, end in regions)
    assert not any(start <= code < end for start, end in regions)


@linux
def test_memory_is_the_same_afterwards():
    numbers = [10**6 + n for n in range(500_000)]
    block = bytearray(range(256)) * (1 << 16)
    ask_for_large_pages()
    assert sum(numbers) == 500_000 * 10**6 + 500_000 * 499_999 // 2
    assert block == bytearray(range(256)) * (1 << 16)
