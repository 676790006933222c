from typing import Any

from rollart.report.spans import spans
from rollart.report.thinning import thinned_spans


def test_everything_is_kept_where_there_is_room(toy: Any) -> None:
    everything = list(spans(toy.records(), steps=None))
    thinned = thinned_spans(toy.records(), steps=None, limit=len(everything))
    assert (thinned.stride, thinned.spans) == (1, everything)


def test_trajectories_are_left_out_and_the_time_is_whole(toy: Any) -> None:
    everything = list(spans(toy.records(), steps=None))
    thinned = thinned_spans(toy.records(), steps=None, limit=len(everything) // 2)
    assert thinned.stride >= 2
    assert thinned.spans == [s for s in everything if s.trajectory is None or s.trajectory % thinned.stride == 0]
    assert [s for s in thinned.spans if s.what == "TrainBatch"] == [s for s in everything if s.what == "TrainBatch"]
    assert max(s.end_s for s in thinned.spans) == max(s.end_s for s in everything)


def test_what_belongs_to_no_trajectory_may_exceed_the_limit(toy: Any) -> None:
    everything = list(spans(toy.records(), steps=None))
    kept = thinned_spans(toy.records(), steps=None, limit=1).spans
    assert [s for s in kept if s.trajectory is None] == [s for s in everything if s.trajectory is None]
    assert {s.trajectory for s in kept if s.trajectory is not None} <= {0}
