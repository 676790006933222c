"""Reading profiles."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rollart.domain.errors import TraceError
from rollart.workload.profile_file import load_profile, profile_from_mapping


def test_a_profile_is_converted(document: dict[str, Any]) -> None:
    task = profile_from_mapping(document, "p").tasks["maze"]
    assert task.turns.law.quantile(0.5) == pytest.approx(6.0)
    assert (task.turns.prompt_share, task.output_tokens.member_share) == (0.3, 0.2)
    assert (task.reset_failures.timeout, task.reset_failures.timeout_s) == (0.01, 30.0)
    assert (task.success.mean, task.strip_share, task.compaction) == (0.4, 0.0, None)


def test_guesses_are_listed(document: dict[str, Any]) -> None:
    assert profile_from_mapping(document, "p").guesses() == ("maze.env_s",)


def test_shares_of_tasks_add_up_to_one(document: dict[str, Any]) -> None:
    document["tasks"]["other"] = document["tasks"]["maze"] | {"share": 3.0}
    tasks = profile_from_mapping(document, "p").tasks
    assert {name: task.share for name, task in tasks.items()} == {"maze": 0.25, "other": 0.75}


def test_a_file_reads_like_its_mapping(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(document))
    assert load_profile(path).tasks["maze"].env_s.law.quantile(0.9) == pytest.approx(1.0)


def change(document: dict[str, Any], key: str, value: object) -> None:
    *path, last = key.split(".")
    place = document["tasks"]["maze"] if path or last in document["tasks"]["maze"] else document
    for part in path:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("turns.quantiles", {0.5: 9, 0.9: 3}, "tasks.maze.turns: value 3 at p = 0.9 is below 9; values must not fall"),
        ("turns.quantiles", {0.5: 0}, "tasks.maze: turns falls to 0; must stay >= 1"),
        ("turns.quantiles", {}, "tasks.maze.turns.quantiles is {}; dictionary should have at least 1 item"),
        ("turns.prompt_share", 1.5, "tasks.maze.turns.prompt_share is 1.5; input should be less than or equal to 1"),
        ("output_tokens.member_share", 0.9, "tasks.maze.output_tokens: prompt_share + member_share is 1.1; at most 1"),
        ("env_s.tail", {"family": "pareto", "from": 0.5, "parameter": 2}, "tail.from is 0.5; must be the highest"),
        ("env_s.tail", {"family": "x", "from": 0.9, "parameter": 2}, "env_s.tail.family is 'x'; input should be"),
        ("env_s.guess", False, "tasks.maze.env_s: has neither source nor guess"),
        ("env_s.quantiles", {0.5: float("nan")}, "env_s.quantiles.0.5 is nan; input should be a finite number"),
        ("reset_failures.failed", 0.995, "tasks.maze.reset_failures: failed + timeout is 1.005; at most 1"),
        ("success", None, "tasks.maze.success is missing"),
        ("env_s.speed", 1, "tasks.maze.env_s.speed is not a key of a profile"),
        ("turns.quantiles", {0.5: 20_000}, "tasks.maze: turns goes beyond 10000; set its max to 10000 or less"),
        ("env_s.quantiles", {0.5: 1e12}, "env_s.quantiles.0.5 is 1000000000000.0; input should be less than or equal"),
        ("schema", 2, "schema is 2; input should be 1"),
        ("output_tokens.from_turns", {1: {"quantiles": {0.5: 9}}}, "from_turns.1"),
        ("output_tokens.from_turns", {2: {"quantiles": {0.5: 0}}}, "maze: output_tokens falls to 0; must stay >= 1"),
        ("output_tokens.from_turns", {2: {"quantiles": {0.1: 9, 0.9: 3}}}, "from_turns.2: value 3 at p = 0.9 is below"),
        ("turns.from_turns", {2: {"quantiles": {0.5: 9}}}, "maze: turns is drawn once a trajectory; by_turn, turns_c"),
    ],
)
def test_a_wrong_key_is_one_line(document: dict[str, Any], key: str, value: object, message: str) -> None:
    change(document, key, value)
    with pytest.raises(TraceError) as caught:
        profile_from_mapping(document, "p.yaml")
    assert str(caught.value).startswith("p.yaml: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


DOUBLING_ALIASES = (
    b"".join([b"a0: &a0 [x, x]\n", *(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 60))])
    + b"schema: *a59\n"
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds NoneType; a profile is a mapping"),
        (b"- 1", "holds list; a profile is a mapping"),
        (b"a: [", "is not YAML"),
        (b"\xc3\x28", "is not YAML"),
        (b"!!python/object/apply:os.system ['true']", "is not YAML"),
        (b"#" * (5 << 20), "longer than 4 MiB"),
        (b"name: a\nname: b\n", "is not YAML: key 'name' is given twice"),
        (b"schema: &a [*a]\n", "schema is \\[\\[\\[\\["),
        (DOUBLING_ALIASES, "schema is "),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=message) as caught:
        load_profile(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none.yaml: cannot be read: No such file"):
        load_profile(tmp_path / "none.yaml")
