"""What work took behind the warm-up does not hang on when exactly the counters are read."""

from pathlib import Path

import pytest

from rollart import api
from rollart.planning.observed import Observer
from rollart.runlog.reader import read_header, windows
from rollart.runlog.reducer import Reducer
from rollart.runlog.samples import EngineSample, Sample

LAPTOP = Path(__file__).resolve().parents[2] / "experiments/scenarios/laptop.yaml"
A_MOMENT_S = 1e-6


@pytest.fixture(scope="module", params=[0, 1, 3], ids=lambda warmup: f"warmup {warmup}")
def log(request, tmp_path_factory):
    """The log of a run of six steps."""
    folder = tmp_path_factory.mktemp("observed") / "run"
    scenario = api.load_scenario(LAPTOP, ["steps=6", f"warmup_steps={request.param}"])
    api.run(scenario, out=folder, fake=api.FakeTime(speed=None))
    return folder / "runlog.parquet"


def observed(log, delay_s=0.0):
    """Of a log whose samples were taken so much later."""
    header = read_header(log)
    observer, reducer = Observer(header), Reducer(header)
    for window in windows(log):
        for kind, batch in window.batches.items():
            if issubclass(kind, Sample):
                batch.time_s = batch.time_s + delay_s
        observer.consume(window)
        reducer.consume(window)
    return observer.observed(reducer.statistics())


def test_counters_read_a_moment_after_the_step_give_the_same(log):
    assert observed(log, A_MOMENT_S).iteration_s == observed(log).iteration_s


def test_iterations_are_those_behind_the_warmup(log):
    header, rows = read_header(log), {}
    for window in windows(log):
        for _, _, record in window.in_order():
            if isinstance(record, EngineSample):
                rows.setdefault(record.engine, [(0.0, 0)]).append((record.busy_s, record.iterations))
    pools = {entry.engine: entry.pool for entry in header.engines}
    expected = {}
    for engine, readings in rows.items():
        (first_s, first), (last_s, last) = readings[header.warmup_steps], readings[-1]
        expected[pools[engine]] = pytest.approx((last_s - first_s) / (last - first))
    assert observed(log).iteration_s == expected
