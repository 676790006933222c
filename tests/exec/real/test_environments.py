"""Shipped environments, in this process."""

from pathlib import Path

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


BROKEN = {"sums.py": "def add(a, b):\n    return a - b\n", "test_sums.py": "import sums\nassert sums.add(2, 3) == 5\n"}


@pytest.fixture
def sandbox():
    made = make_environment(
        "sandbox", {"files": BROKEN, "task": "mend add", "test": "python3 test_sums.py", "network": True}
    )
    yield made
    made.close()


def test_a_mended_program_is_rewarded(sandbox):
    assert sandbox.reset(0, 0).text == "mend add\nFiles: sums.py test_sums.py\n$ "
    seen = act(sandbox, "cat sums.py")
    assert "return a - b" in seen.text
    assert seen.text.endswith("[exit 0]\n$ ")
    act(sandbox, "sed -i 's/a - b/a + b/' sums.py")
    last = act(sandbox, "submit")
    assert (last.reward, last.done) == (1.0, True)


def test_a_broken_program_is_not_rewarded_and_the_next_episode_starts_afresh(sandbox):
    sandbox.reset(0, 0)
    act(sandbox, "echo x > new.txt")
    last = act(sandbox, "submit")
    assert (last.reward, last.done) == (0.0, True)
    assert "AssertionError" in last.text
    sandbox.reset(0, 1)
    assert act(sandbox, "ls").text == "sums.py\ntest_sums.py\n\n[exit 0]\n$ "


def test_hidden_tests_replace_what_the_agent_wrote():
    made = make_environment(
        "sandbox",
        {
            "files": {"sums.py": BROKEN["sums.py"]},
            "hidden": {"check.py": BROKEN["test_sums.py"]},
            "task": "mend add",
            "test": "python3 check.py",
            "network": True,
        },
    )
    made.reset(0, 0)
    act(made, "echo 'pass' > check.py")
    assert act(made, "submit").reward == 0.0
    made.close()


def test_commands_are_limited():
    made = make_environment(
        "sandbox",
        {"files": {}, "task": "t", "test": "true", "network": True, "command_timeout_s": 0.5, "memory_mb": 256},
    )
    made.reset(0, 0)
    assert act(made, "sleep 30").text.startswith("[stopped after 0.5 s]")
    assert "[exit 0]" not in act(made, "python3 -c 'bytearray(10**9)'").text
    assert act(made, "echo $HOME").text.startswith("/tmp")
    made.close()


def test_a_sandbox_without_network_reaches_no_loopback_of_the_host():
    try:
        made = make_environment("sandbox", {"files": {}, "task": "t", "test": "true"})
    except ScenarioError as error:
        pytest.skip(str(error))
    made.reset(0, 0)
    assert act(made, "ls /sys/class/net; cat /proc/net/dev | grep -c eth").text.endswith("[exit 1]\n$ ")
    made.close()


def test_files_stay_within_the_sandbox():
    with pytest.raises(ScenarioError, match=r"path '\.\./x' leads out of the sandbox"):
        make_environment("sandbox", {"files": {"../x": ""}, "task": "t", "test": "true", "network": True})


def test_reasoning_tasks_are_graded_by_their_own_verifier():
    pytest.importorskip("reasoning_gym")
    sums = make_environment("reasoning", {"dataset": "basic_arithmetic", "seed": 1})
    sums.reset(3, 0)
    right = sums._entry["answer"]
    assert act(sums, f"I think <answer>{right}</answer>").reward == 1.0
    assert act(sums, f"The answer is {right}.").reward == 1.0
    assert act(sums, "I do not know").reward < 0.5
    told = make_environment("reasoning", {"dataset": "basic_arithmetic", "seed": 1, "instruction": " A number only."})
    assert told.reset(3, 0).text == sums.reset(3, 0).text + " A number only."


def test_a_text_game_is_played():
    pytest.importorskip("textarena")
    game = make_environment("textgame", {"id": "GuessTheNumber-v0"})
    assert "guess" in game.reset(5, 0).text.lower()
    answers = [act(game, "[10]")]
    while not answers[-1].done and len(answers) < 30:
        answers.append(act(game, f"[{len(answers)}]"))
    assert answers[-1].done
    game.close()


def test_the_class_in_the_documentation_is_an_environment(tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[3] / "docs/real-workers.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "environment_of_the_page.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    echo = make_environment("environment_of_the_page:Echo", {"word": "ice"})
    assert echo.reset(0, 0).text == "say ice: "
    assert act(echo, "ice").reward == 1.0


def test_delays_have_the_mean_and_the_tail_that_were_asked_for():
    from rollart.exec.real.environments.delayed import delay_s

    count = 100_000
    delays = [delay_s(0.5, 2.5, (number + 0.5) / count) for number in range(count)]
    assert sum(delays) / count == pytest.approx(0.5, rel=0.01)
    assert min(delays) == pytest.approx(0.3, rel=0.01)
    assert sum(delay > 3.0 for delay in delays) / count == pytest.approx(10**-2.5, rel=0.01)


def test_a_slowed_environment_is_the_same_but_slower(monkeypatch):
    slept = []
    monkeypatch.setattr("rollart.exec.real.environments.delayed.time.sleep", slept.append)
    arguments = {"environment": "counting", "arguments": {"length": 4}, "mean_s": 0.1}
    walks = []
    for member in (0, 0, 1):
        slow = make_environment("delayed", arguments)
        assert slow.reset(13, member).text == "#3"
        assert act(slow, "4567").reward == 1.0
        walks.append(slept.pop())
    assert walks[0] == walks[1] != walks[2]
    assert min(walks) >= 0.06
    with pytest.raises(ScenarioError, match="tail is 1; must be above 1"):
        make_environment("delayed", {**arguments, "tail": 1})
