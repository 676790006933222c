"""Finds the operator tables of a device: a folder of systems, each with one folder per engine and library version.

    SYSTEM/vllm-0.24.0/gemm_perf.parquet        (or SYSTEM/vllm/0.24.0/...)
    SYSTEM/nccl-2.29.2/nccl_perf.parquet

The newest version is taken unless one is named. The folder is the caller's, else `ROLLART_OPERATORS`, else that of the
package aiconfigurator-core where it is installed.
"""

import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from rollart.costs.tables.reader import COLUMNS, Table, read_table
from rollart.domain.errors import InputError

SYSTEMS = {
    "A100": "a100_sxm",
    "H100": "h100_sxm",
    "H200": "h200_sxm",
    "B200": "b200_sxm",
    "L40S": "l40s",
    "RTX PRO 6000": "rtx_pro_6000_server",
}
"""Name of a catalogue device in the folder of tables."""
FOLDER_VARIABLE = "ROLLART_OPERATORS"
_PACKAGE = "aiconfigurator_core"


def tables_root(given: Path | None = None) -> Path:
    """The folder with the tables of all systems; InputError says how to name one."""
    named = given or (Path(os.environ[FOLDER_VARIABLE]) if os.environ.get(FOLDER_VARIABLE) else None)
    if named is not None:
        if not named.is_dir():
            raise InputError(f"operator tables: {named} is not a folder")
        return named
    spec = importlib.util.find_spec(_PACKAGE)
    for location in (spec.submodule_search_locations or []) if spec else []:
        for data in (Path(location) / "systems" / "data", Path(location) / "data"):
            if data.is_dir():
                return data
    raise InputError(
        f"operator tables: name their folder in {FOLDER_VARIABLE} or install aiconfigurator-core; "
        "costs: compact needs none"
    )


@lru_cache(maxsize=8)
def device_tables(device: str, root: Path, version: str | None = None) -> Mapping[str, Table]:
    """The tables of a device by operator; of each the newest version, or the vLLM version that is named."""
    system = SYSTEMS.get(device)
    if system is None or not (root / system).is_dir():
        known = ", ".join(name for name, folder in SYSTEMS.items() if (root / folder).is_dir())
        raise InputError(f"no operator tables of device {device} in {root}; there are some of: {known or 'none'}")
    found = {}
    for operator in COLUMNS:
        files = sorted(_files(root / system, operator, version), key=_version)
        if files:
            found[operator] = read_table(files[-1], operator)
    if "gemm" not in found:
        wanted = f" of vLLM {version}" if version else ""
        raise InputError(f"no gemm_perf.parquet{wanted} of device {device} in {root / system}")
    return found


def _files(system: Path, operator: str, version: str | None) -> Iterator[Path]:
    family = "nccl" if operator == "nccl" else "vllm"
    for path in system.rglob(f"{operator}_perf.parquet"):
        folder = path.parent.relative_to(system).as_posix()
        if folder.startswith(family) and (family == "nccl" or version is None or folder.endswith(version)):
            yield path


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.parent.name))
