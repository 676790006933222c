"""What a user is told of failures."""

import json

import pytest

pytest.importorskip("ray")

from rollart.exec.real.failures import FILE_NAME, Failures


def test_every_failure_is_written_and_the_first_and_every_tenfold_of_a_kind_told(tmp_path):
    told = []
    failures = Failures(tmp_path, told.append)
    for number in range(150):
        failures.note("a reward of 'sums'", f"HTTP 503,\n  try {number}")
    failures.note("engine 0", "killed")
    assert told == [
        "failed: a reward of 'sums': HTTP 503, try 0",
        "failed: a reward of 'sums': HTTP 503, try 9 (10 times like this)",
        "failed: a reward of 'sums': HTTP 503, try 99 (100 times like this)",
        "failed: engine 0: killed",
    ]
    written = [json.loads(line) for line in (tmp_path / FILE_NAME).read_text().splitlines()]
    assert [(line["what"], line["reason"]) for line in written[-2:]] == [
        ("a reward of 'sums'", "HTTP 503, try 149"),
        ("engine 0", "killed"),
    ]
    assert len(written) == 151
    assert all(line["time_s"] >= 0.0 for line in written)


def test_a_run_without_failures_has_no_file_of_them(tmp_path):
    Failures(tmp_path)
    assert not (tmp_path / FILE_NAME).exists()


def test_nobody_need_be_told(tmp_path):
    Failures(tmp_path).note("engine 0", "killed")
    assert (tmp_path / FILE_NAME).exists()
