"""Why workers failed, for the user: controller and run log know that they did, which is all that decisions need."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rollart.exec.real.startup import in_a_line

FILE_NAME = "failures.jsonl"
Why = Callable[[str, str], None]
"""Told what failed, and the reason."""


class Failures:
    """Writes a line for each failure to a file below a folder, and tells the first of a kind and every tenfold count.

    Failures are of one kind where what failed and the reason are the same but for numbers.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None] | None = None) -> None:
        self._path = folder / FILE_NAME
        self._tell = tell
        self._began_s = time.perf_counter()
        self._counts = Counter[str]()

    def note(self, what: str, reason: str) -> None:
        """Something failed."""
        reason = in_a_line(reason)
        line = {"time_s": round(time.perf_counter() - self._began_s, 3), "what": what, "reason": reason}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        kind = re.sub(r"\d+", "0", f"{what}: {reason}")
        self._counts[kind] += 1
        count = self._counts[kind]
        if self._tell is not None and count == 10 ** (len(str(count)) - 1):
            times = f" ({count} times like this)" if count > 1 else ""
            self._tell(f"failed: {what}: {reason}{times}")
