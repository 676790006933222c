"""What a killed engine may leave behind: vLLM's own processes, which do not always notice.

A worker of vLLM that waits for work by spinning takes a core from the engine that comes after it.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Processes below an engine's own, on its node, each with the time it began (pids are used again)."""

    node: str
    processes: tuple[tuple[int, str], ...]


def descendants(root: int) -> tuple[tuple[int, str], ...]:
    """Processes below `root` with the time they began, in ticks since the system started."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for folder in PROCESSES.glob("[0-9]*"):
        with suppress(OSError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append((int(folder.name), fields[19]))
    found: list[tuple[int, str]] = []
    waiting = [root]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += [pid for pid, _ in children]
    return tuple(found)


def end_processes(processes: tuple[tuple[int, str], ...]) -> int:
    """Kill those that are still the same; how many."""
    killed = 0
    for pid, began in processes:
        with suppress(OSError, IndexError):
            fields = (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
            if fields[19] == began and fields[0] != "Z":
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


async def clear(remains: Remains) -> None:
    """Kill what is left, on its node."""
    strategy = NodeAffinitySchedulingStrategy(node_id=remains.node, soft=False)
    task: Any = ray.remote(end_processes).options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
    await task.remote(remains.processes)
