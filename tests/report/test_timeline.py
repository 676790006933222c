import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rollart.report.timeline import write_timeline


@pytest.fixture
def trace(toy: Any, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "timeline.json"
    count = write_timeline(path, toy.header, toy.records())
    loaded: dict[str, Any] = json.loads(path.read_text())
    assert count == sum(event["ph"] == "X" for event in loaded["traceEvents"])
    return loaded


def test_every_event_has_the_fields_of_its_phase(trace: dict[str, Any]) -> None:
    needed = {
        "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
        "s": {"name", "cat", "pid", "tid", "ts", "id"},
        "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
        "M": {"name", "pid", "args"},
    }
    for event in trace["traceEvents"]:
        assert needed[event["ph"]] <= set(event)
        assert event.get("dur", 0) >= 0
    assert {event["ph"] for event in trace["traceEvents"]} == set(needed)


def test_slices_of_a_row_do_not_overlap(trace: dict[str, Any]) -> None:
    rows: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in rows.values():
        slices.sort()
        for earlier, later in pairwise(slices):
            assert later[0] >= earlier[1] - 0.01


def test_every_arrow_goes_forward_between_turns_of_one_trajectory(trace: dict[str, Any]) -> None:
    slices = {
        (event["pid"], event["tid"], event["ts"]): event["args"]["trajectory"]
        for event in trace["traceEvents"]
        if event["ph"] == "X" and event["name"].startswith("GenerateTurn")
    }
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
    assert len(ends) > 10
    for arrow in ends.values():
        begin, end = (arrow[phase] for phase in "sf")
        assert begin["ts"] <= end["ts"]
        owners = {slices[event["pid"], event["tid"], event["ts"]] for event in (begin, end)}
        assert len(owners) == 1


def test_processes_have_names(trace: dict[str, Any]) -> None:
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert set(names.values()) >= {"environments", "rewards", "trainer", "weights", "engine 1 (g on rollout)"}
    assert {event["pid"] for event in trace["traceEvents"]} == set(names)


def test_the_file_stays_small(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    whole = write_timeline(path, toy.header, toy.records())
    assert write_timeline(path, toy.header, toy.records(), most_spans=25) < whole / 2
    loaded = json.loads(path.read_text())["traceEvents"]
    assert len(loaded) < 200
    assert any("1 in" in event["args"]["name"] for event in loaded if event["name"] == "process_name")
    shorter = write_timeline(path, toy.header, toy.records(), steps=1)
    assert shorter < write_timeline(path, toy.header, toy.records(), steps=2)
