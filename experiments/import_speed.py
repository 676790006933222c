"""How fast an import reads, and what memory it takes, on a generated file.

    python experiments/import_speed.py [--mb 100] [--format openai-chat|tau-bench|mooncake] [--gzip]

The file is made in a temporary folder (chats of a tool-using agent, or requests) and imported by a process of its
own, as `rollart trace import` does. Prints one JSON object; the peak memory is that process's own. Rates are per
second of its CPU time, which other work on the machine hardly changes.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MB = 1_000_000
WORDS = ("the", "file", "returns", '{"path": "/testbed/src/module.py"}', "error:", "assert", "None", "größe")
"""Repeated over and over: content hardly matters, its length and its escapes do."""


def main() -> None:
    """Generate, import, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=100, help="size of the file in 10^6 bytes, unpacked [100]")
    parser.add_argument("--format", choices=sorted(WRITERS), default="openai-chat")
    parser.add_argument("--gzip", action="store_true", help="pack the file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("log.json.gz" if options.gzip else "log.json")
        written_bytes, records = generate(path, options.format, options.mb * MB)
        took_s = imported(options.format, path, Path(folder) / "out.jsonl")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    found = {
        "format": options.format,
        "gzip": options.gzip,
        "file_mb": round(written_bytes / MB, 1),
        "records": records,
        "wall_s": round(took_s, 2),
        "cpu_s": round(cpu_s, 2),
        "records_per_cpu_s": round(records / cpu_s),
        "mb_per_cpu_s": round(written_bytes / MB / cpu_s, 1),
        "peak_memory_mb": round(used.ru_maxrss * 1024 / MB),
    }
    print(json.dumps(found))


def imported(format_name: str, path: Path, out: Path) -> float:
    """Seconds of one import, by a process of its own."""
    command = [sys.executable, "-m", "rollart.cli.main", "trace", "import", format_name, str(path), "-o", str(out)]
    start_s = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start_s


def generate(path: Path, format_name: str, size_bytes: int) -> tuple[int, int]:
    """(bytes, records) that were written."""
    written = records = 0
    with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
        for piece in WRITERS[format_name]():
            written += file.write(piece)
            records += 1
            if written >= size_bytes:
                break
        written += file.write(TAILS[format_name])
    return written, records


def text(number: int, length: int) -> str:
    """Some text of about `length` characters."""
    return " ".join(WORDS[(number + at) % len(WORDS)] for at in range(length // 8))


def chat(number: int) -> list[dict[str, object]]:
    """A prompt and 1 to 20 turns, about 20 kB on average."""
    messages: list[dict[str, object]] = [
        {"role": "system", "content": text(0, 3000)},
        {"role": "user", "content": f"{number // 8} " + text(number // 8, 1000)},
    ]
    for turn in range(1 + number % 20):
        function = {"name": "bash", "arguments": json.dumps({"command": text(turn, 200)})}
        calls = [{"id": f"c{turn}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": text(number + turn, 300), "tool_calls": calls})
        messages.append({"role": "tool", "content": text(turn, 1000), "tool_call_id": f"c{turn}"})
    return messages


def chats() -> Iterator[bytes]:
    """Lines of `openai-chat`."""
    number = 0
    while True:
        yield json.dumps({"messages": chat(number)}).encode() + b"\n"
        number += 1


def trials() -> Iterator[bytes]:
    """Elements of `tau-bench`, the start of their list in front."""
    number = 0
    while True:
        trial = {"task_id": number // 8, "trial": number % 8, "reward": 1.0, "info": {}, "traj": chat(number)}
        yield (b"," if number else b"[") + json.dumps(trial).encode()
        number += 1


def requests() -> Iterator[bytes]:
    """Lines of `mooncake`: conversations of four requests, many at a time."""
    number = 0
    while True:
        conversation, turn = number % 5000 + number // 20_000 * 5000, number // 5000 % 4
        blocks = [conversation * 100 + at for at in range(12 + turn)]
        line = {"timestamp": number, "input_length": 6000 + 600 * turn, "output_length": 200, "hash_ids": blocks}
        yield json.dumps(line).encode() + b"\n"
        number += 1


WRITERS = {"openai-chat": chats, "tau-bench": trials, "mooncake": requests}
TAILS = {"openai-chat": b"", "tau-bench": b"]", "mooncake": b""}

if __name__ == "__main__":
    main()
