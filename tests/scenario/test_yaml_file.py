"""YAML files of any origin."""

from pathlib import Path

import pytest

from rollart.domain.errors import ScenarioError
from rollart.scenario.yaml_file import parse, read_mapping

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8)
)


def test_scalars_follow_yaml_1_2() -> None:
    text = "a: 1e9\nb: on\nc: 010\nd: .inf\ne: -.5\nf: 1:30\ng: 2001-01-01\nh: ~\ni: true\nj: '1'\nk: 1_000"
    assert parse(text, "x") == {
        "a": 1e9,
        "b": "on",
        "c": 10,
        "d": float("inf"),
        "e": -0.5,
        "f": "1:30",
        "g": "2001-01-01",
        "h": None,
        "i": True,
        "j": "1",
        "k": "1_000",
    }


def test_aliases_are_followed() -> None:
    assert parse("a: &x {b: 1}\nc: *x", "x") == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1,", "x: line 2: did not find expected node content (while parsing a flow node)"),
        ("a: 1\na: 2", "x: line 2: key 'a' is given twice"),
        ("!!python/object/apply:os.system [ls]", "x: line 1: tag 'tag:yaml.org,2002:python/object/apply:os.system' is"),
        ("a: !!binary aGk=", "x: line 1: tag 'tag:yaml.org,2002:binary' is not allowed"),
        ("[" * 1000, "x: line 1: is nested deeper than 40 levels"),
        ("a: &x [*x]", "x: line 1: an alias contains itself"),
        (BOMB, "x: line 6: aliases expand to more than 200000 values"),
        ("a: " + "9" * 5000, "x: line 1: a number of 5000 digits is too long"),
        ("? [1]\n: 2", "x: line 1: a key must be text"),
        ("a: !!int b", "x: is not YAML: invalid literal for int()"),
        ("a: !!bool b", "x: 'b' is tagged as true or false, and is neither"),
        ("a\0", "x: is not YAML: "),
        ("a: 1\n---\nb: 2", "x: line 2: "),
    ],
)
def test_bad_text_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text, "x")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "f.yaml: is empty"),
        (b"- 1", "f.yaml: holds a list"),
        (b"hello", "f.yaml: holds a text"),
        (b"\xff\xfe\x00", "f.yaml: byte 0 is not UTF-8 text"),
        (b"a: 1\n" + b"#" * 10_000_001, "f.yaml: is longer than 10 MB"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match="^" + message):
        read_mapping(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"^nope\.yaml: cannot be read: No such file"):
        read_mapping(tmp_path / "nope.yaml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        read_mapping(tmp_path)
