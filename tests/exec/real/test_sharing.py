"""Which of the trainer's devices a time-shared engine has."""

import pytest

from rollart.domain.errors import CapacityError
from rollart.exec.real.sharing import Place, shared_places


def ranks(*nodes):
    """A rank on each node that is named, with a GPU of its own."""
    return [Place(node=node, devices=(str(nodes[:number].count(node)),)) for number, node in enumerate(nodes)]


def test_an_engine_is_on_one_node_and_no_device_is_in_two():
    assert shared_places(ranks("a", "a", "b", "b"), [1, 2, 1]) == [
        Place(node="b", devices=("0",)),
        Place(node="a", devices=("0", "1")),
        Place(node="b", devices=("1",)),
    ]


def test_cpus_have_no_numbers():
    assert shared_places([Place(node="a")], [1]) == [Place(node="a")]


def test_ranks_that_lie_badly_are_named():
    with pytest.raises(CapacityError, match="needs 2 of the trainer's devices on one node; left by node: 1, 1"):
        shared_places(ranks("a", "b"), [2])
