"""Reads the faults of a scenario: rates, and a recorded preemption trace."""

import csv
import math
from pathlib import Path

from rollart.domain.errors import ScenarioError
from rollart.domain.job import Faults, Preemption
from rollart.scenario.files import find_file
from rollart.scenario.sections.document import FaultsSection

COLUMNS = ["time_s", "engine", "away_s"]
MAX_ROWS = 1_000_000


def faults_of(section: FaultsSection, folder: Path) -> Faults:
    """The faults; ScenarioError names the line of the preemption trace that is wrong."""
    preemptions: tuple[Preemption, ...] = ()
    if section.preemption_trace is not None:
        place = "faults.preemption_trace"
        preemptions = read_preemptions(find_file(section.preemption_trace, folder, place))
    return Faults(
        engine_mtbf_s=section.engine_mtbf_s,
        engine_restart_s=section.engine_restart_s,
        preemptions=preemptions,
        trainer_mtbf_s=section.trainer_mtbf_s,
        trainer_restart_s=section.trainer_restart_s,
        reward_failed=section.reward_failed,
        reward_late=section.reward_late,
        reward_garbage=section.reward_garbage,
    )


def read_preemptions(path: Path) -> tuple[Preemption, ...]:
    """Rows `time_s,engine,away_s` behind a header line of these names, in order of time."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            if next(rows, None) != COLUMNS:
                raise ScenarioError(f"{path.name}:1: must be the header {','.join(COLUMNS)}")
            found = [_preemption(row, f"{path.name}:{number}") for number, row in enumerate(rows, 2) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path.name}: cannot be read: {error}") from error
    if len(found) > MAX_ROWS:
        raise ScenarioError(f"{path.name}: has {len(found)} rows; at most {MAX_ROWS}")
    return tuple(sorted(found, key=lambda each: (each.time_s, each.engine)))


def _preemption(row: list[str], place: str) -> Preemption:
    try:
        time_s, engine, away_s = float(row[0]), int(row[1]), float(row[2])
    except (ValueError, IndexError):
        raise ScenarioError(f"{place}: {','.join(row)[:60]!r} must be three numbers {','.join(COLUMNS)}") from None
    if len(row) != len(COLUMNS) or engine < 0 or not (0 <= time_s < math.inf and 0 < away_s < math.inf):
        raise ScenarioError(f"{place}: must have time_s >= 0, engine >= 0 and away_s > 0, all finite")
    return Preemption(time_s=time_s, engine=engine, away_s=away_s)
