"""Shipped environments, in this process."""

import pytest

from rollart.domain.errors import ScenarioError
from rollart.exec.real.environments.protocol import Action
from rollart.exec.real.environments.shipped import make_environment


def act(environment, text):
    return environment.step(Action(text=text, tokens=[]))


def test_counting_is_graded_digit_by_digit():
    counting = make_environment("counting", {"length": 4})
    assert counting.reset(13, 0).text == "#3"
    answer = act(counting, "4567")
    assert (answer.reward, answer.done) == (1.0, True)
    counting.reset(3, 0)
    assert act(counting, "4599").reward == 0.5
    counting.reset(9, 0)
    assert act(counting, "01").reward == 0.5


def test_frozenlake_is_walked_from_start_to_goal():
    pytest.importorskip("gymnasium")
    lake = make_environment("frozenlake", {})
    first = lake.reset(0, 0)
    assert first.text == "SFFF\nFHFH\nFFFH\nHFFG\n0,0:"
    texts = [act(lake, move) for move in "DDRRD"]
    assert [each.text for each in texts] == ["1,0:", "2,0:", "2,1:", "2,2:", "3,2:"]
    last = act(lake, "R")
    assert (last.reward, last.done) == (1.0, True)


def test_a_hole_ends_the_walk_without_reward():
    pytest.importorskip("gymnasium")
    lake = make_environment("frozenlake", {"map": ["SH", "FG"]})
    lake.reset(0, 0)
    fallen = act(lake, "R")
    assert (fallen.reward, fallen.done) == (0.0, True)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("nonsense", {}, "environment 'nonsense' is unknown; known: "),
        ("no.such:Thing", {}, "environment 'no.such:Thing' cannot be imported: No module named 'no'"),
        ("math:pi", {}, "environment 'math:pi' does not start with {}: 'float' object is not callable"),
        ("builtins:list", {}, "environment 'builtins:list' lacks reset, step, close"),
        ("counting", {"modulus": 20}, "environment 'counting' does not start with {'modulus': 20}: modulus is 20"),
    ],
    ids=["unknown", "module", "no class", "no environment", "argument"],
)
def test_what_is_no_environment_is_said_in_one_line(name, arguments, message):
    with pytest.raises(ScenarioError) as raised:
        make_environment(name, arguments)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
