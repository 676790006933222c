"""Spreads and errors of latencies, by hand; the report and the picture of a replay."""

import numpy as np
import pytest

from rollart.loadtest.figure import draw_replay
from rollart.loadtest.latencies import Quantities, error_pct, spread
from rollart.loadtest.open_loop import Served
from rollart.loadtest.replay_report import ReplayReport
from rollart.loadtest.requests import Latency, RequestLog, TimedRequest


def test_a_spread_leaves_out_what_is_not_known():
    found = spread(np.array([1.0, 2.0, np.nan, 3.0]))
    assert (found.mean, found.p50, found.p90) == (2.0, 2.0, pytest.approx(2.8))
    assert spread(np.array([np.nan])).mean is None


def test_errors_are_signed_and_simulated_against_measured():
    simulated = Quantities([Latency(1.1, 2.0, 10), Latency(0.9, 2.0, 1)])
    measured = Quantities([Latency(1.0, 1.9, 10), Latency(1.0, 1.0, 1)])
    errors = error_pct(simulated, 90.0, measured, 100.0)
    assert errors["duration"] == pytest.approx(-10.0)
    assert errors["ttft"] == {"mean": 0.0, "p50": 0.0, "p90": pytest.approx(8.0), "mape": pytest.approx(10.0)}
    assert errors["tpot"]["mean"] == pytest.approx(0.0)
    assert errors["e2e"]["mape"] == pytest.approx(100 * (2.0 / 1.9 - 1 + 1.0) / 2)


def report(measured):
    met = Latency(1.0, 3.0, 5) if measured else None
    log = RequestLog(name="log", requests=[TimedRequest(0.0, 10, 5, (), met), TimedRequest(1.0, 10, 5, (), met)])
    return ReplayReport(log=log, served=Served([Latency(0.5, 2.0, 5)] * 2, 3.0, 6), replicas=1)


def test_a_report_has_errors_where_the_log_was_measured():
    figures = report(measured=True).as_dict()
    assert figures["measured"]["duration_s"] == 4.0
    assert figures["error_pct"]["duration"] == -25.0
    assert figures["error_pct"]["ttft"]["mape"] == 50.0
    assert figures["wakes_per_request"] == 3.0
    assert "error_pct" not in report(measured=False).as_dict()


@pytest.mark.parametrize("measured", [False, True])
def test_a_report_leaves_a_table_and_a_picture(tmp_path, measured):
    subject = report(measured)
    subject.write_requests(tmp_path / "requests.csv")
    rows = (tmp_path / "requests.csv").read_text().splitlines()
    assert rows[2] == "1.0,10,5,0.5,2.0" + (",1.0,3.0" if measured else "")
    draw_replay(tmp_path / "replay.png", subject)
    assert (tmp_path / "replay.png").read_bytes().startswith(b"\x89PNG")
