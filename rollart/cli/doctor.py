"""`rollart doctor`: what can this machine do?"""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from rollart.cli.present import show_json, show_table

CORE_PACKAGES = (
    "simpy",
    "numpy",
    "scipy",
    "ortools",
    "matplotlib",
    "pydantic",
    "typer",
    "rich",
    "PyYAML",
    "pyarrow",
    "msgspec",
)
EXECUTOR_PACKAGES = {"torch": "training", "ray": "placing workers", "vllm": "real engines"}
MIN_MEMORY_GB = 2.0
SIMPY_EVENTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: str
    """ok, missing, or optional: what is not there and only some verbs need."""
    value: str
    remedy: str = ""


def doctor(
    address: Annotated[
        str | None, typer.Option(help="Look at a Ray cluster, HOST:PORT or auto, in place of this machine.")
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="With --address: the scenario whose pools it shall have.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look at this machine: what is there, what is missing, and what to do. Exit code 1 if something is missing."""
    if scenario is not None and address is None:
        raise typer.BadParameter("--scenario is for --address")
    findings = list(_findings() if address is None else _cluster(address, scenario))
    healthy = all(finding.state != "missing" for finding in findings)
    if json:
        show_json({"ok": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [(each.what, each.state, each.value, each.remedy) for each in findings]
        show_table(
            "this machine" if address is None else address, ("what", "state", "value", "what to do"), rows, texts=4
        )
    if not healthy:
        raise typer.Exit(1)


def _cluster(address: str, scenario: Path | None) -> Iterator[Finding]:
    """What a Ray cluster has, and which pools of a scenario it can satisfy."""
    from rollart.running.cluster import cluster_resources, job_of

    resources, missing = cluster_resources(address, None if scenario is None else job_of(scenario))
    for name, amount in sorted(resources.items()):
        yield Finding(what=name, state="ok", value=f"{amount:g}")
    for pool, problem in missing.items():
        yield Finding(what=f"pool {pool}", state="missing" if problem else "ok", value=problem or "can be satisfied")


def _findings() -> Iterator[Finding]:
    yield Finding(what="Python", state="ok", value=platform.python_version())
    yield Finding(what="CPU cores", state="ok", value=str(_cores()))
    yield _memory()
    yield _writable()
    for package in CORE_PACKAGES:
        yield _package(package, "missing", "pip install rollart")
    for package, use in EXECUTOR_PACKAGES.items():
        yield _package(package, "optional", f"only for {use}")
    yield _gpus()
    yield _simpy()


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> Finding:
    try:
        total_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):
        return Finding(what="memory", state="optional", value="unknown", remedy="the system does not tell")
    enough = total_gb >= MIN_MEMORY_GB
    remedy = "" if enough else f"large scenarios need {MIN_MEMORY_GB:.0f} GB"
    return Finding(what="memory", state="ok" if enough else "missing", value=f"{total_gb:.1f} GB", remedy=remedy)


def _writable() -> Finding:
    here = Path.cwd()
    if os.access(here, os.W_OK):
        free_gb = shutil.disk_usage(here).free / 1e9
        return Finding(what="this folder", state="ok", value=f"writable, {free_gb:.1f} GB free")
    return Finding(what="this folder", state="missing", value="not writable", remedy="give -o a folder that is")


def _package(name: str, absent: str, remedy: str) -> Finding:
    for distribution in (name, f"{name}-cpu"):
        try:
            return Finding(what=name, state="ok", value=version(distribution))
        except PackageNotFoundError:
            continue
    return Finding(what=name, state=absent, value="not installed", remedy=remedy)


def _gpus() -> Finding:
    """GPUs by nvidia-smi, if that is there and answers."""
    program = shutil.which("nvidia-smi")
    query = ["--query-gpu=name", "--format=csv,noheader"]
    names: list[str] = []
    if program:
        try:
            done = subprocess.run([program, *query], capture_output=True, text=True, timeout=10, check=False)
            names = done.stdout.split("\n") if done.returncode == 0 else []
        except (OSError, subprocess.TimeoutExpired):
            names = []
    names = [name.strip() for name in names if name.strip()]
    if not names:
        return Finding(what="GPUs", state="optional", value="none", remedy="the simulator needs none")
    return Finding(what="GPUs", state="ok", value=f"{len(names)} x {names[0]}")


def _simpy() -> Finding:
    """Rate of bare SimPy events with one process; the yardstick of `rollart bench`."""
    import simpy

    environment = simpy.Environment()

    def tick() -> Iterator[simpy.Event]:
        for _ in range(SIMPY_EVENTS):
            yield environment.timeout(1)

    environment.process(tick())  # type: ignore[arg-type]
    start = time.perf_counter()
    environment.run()
    rate = SIMPY_EVENTS / (time.perf_counter() - start)
    return Finding(what="SimPy", state="ok", value=f"{rate / 1e6:.2f} million events/s")
