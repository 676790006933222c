import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.runlog.ledger import Ledger, Roll


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_keys_are_found_and_missing_ones_are_not() -> None:
    ledger = Ledger(time_s=np.float64)
    ledger.append(ints(2, 5, 9), {"time_s": np.array([0.2, 0.5, 0.9])})
    assert ledger.find(ints(5, 1, 9, 10)).tolist() == [1, -1, 2, -1]
    assert ledger.find_one(5) == 1
    assert ledger.find_one(6) is None and ledger.find_one(10) is None
    assert Ledger().find(ints(0)).tolist() == [-1]


def test_rows_can_be_written_through_the_column() -> None:
    ledger = Ledger(value=np.int64)
    ledger.append(ints(1, 2), {"value": ints(0, 0)})
    ledger["value"][1] = 7
    assert ledger["value"].tolist() == [0, 7]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=12))
def test_appending_and_dropping_keep_rows_together(moves: list[tuple[int, bool]]) -> None:
    ledger, expected, key = Ledger(double=np.int64), [], 0
    for count, drop in moves:
        keys = ints(*range(key, key + count))
        ledger.append(keys, {"double": 2 * keys})
        expected += keys.tolist()
        key += count + 1
        if drop:
            ledger.keep(ledger["key"] % 2 == 0)
            expected = [each for each in expected if each % 2 == 0]
    assert ledger["key"].tolist() == expected
    assert ledger["double"].tolist() == [2 * each for each in expected]


def test_a_roll_grows_with_defaults() -> None:
    roll = Roll(end=(np.int8, -1, ()), spent_s=(np.float64, 0.0, (2,)))
    roll.reach(1)
    roll["end"][1] = 3
    roll.reach(4)
    roll.reach(2)
    assert len(roll) == 5
    assert roll["end"].tolist() == [-1, 3, -1, -1, -1]
    assert roll["spent_s"].shape == (5, 2)
