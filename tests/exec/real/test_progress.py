"""What a user watches while a real run goes on."""

import json

import pytest

pytest.importorskip("torch")

from rollart.exec.real.progress import Progress, line_of, shares
from rollart.exec.real.trainer.group import StepReport


def report(step, reward=0.25, tokens=600.0):
    return StepReport(
        step=step, version=step, rewards={"sums": reward}, staleness=(0, 1, 1, 0), figures={"tokens": tokens}
    )


def test_a_line_says_step_reward_staleness_rate_and_who_was_busy():
    line = line_of(report(2), 60, 12.0, {"rollout": 0.431, "trainer": 0.5})
    assert line == (
        "step 3/60: 12.0 s, reward sums 0.25, staleness 0.50, 50 tokens/s trained on, busy rollout 43%, trainer 50%"
    )


def test_shares_are_of_all_workers_of_a_name_and_of_the_time_between():
    before = {"rollout": (10.0, 2), "trainer": (4.0, 1)}
    now = {"rollout": (14.0, 2), "trainer": (11.0, 1), "judges": (1.0, 1)}
    assert shares(before, now, 4.0) == {"rollout": 0.5, "trainer": 1.0, "judges": 0.25}
    assert shares(before, now, 0.0) == {"rollout": 0.0, "trainer": 0.0, "judges": 0.0}


def test_every_step_is_told_and_written(tmp_path):
    told, busy_s = [], iter([0.0, 0.0, 0.0])
    progress = Progress(tmp_path, 2, None, told.append)
    progress.begin(lambda: {"rollout": (next(busy_s), 1)})
    progress.step(report(0))
    progress.step(report(1, reward=0.75))
    progress.close()
    written = [json.loads(line) for line in (tmp_path / "learning.jsonl").read_text().splitlines()]
    assert [line.partition(":")[0] for line in told] == ["step 1/2", "step 2/2"]
    assert [(each["step"], each["rewards"], each["utilization"]) for each in written] == [
        (0, {"sums": 0.25}, {"rollout": 0.0}),
        (1, {"sums": 0.75}, {"rollout": 0.0}),
    ]
    assert progress.figures()["reward"]["sums"] == {"first": 0.5, "last": 0.5, "best": 0.5}


def test_nobody_need_be_told(tmp_path):
    progress = Progress(tmp_path, 1, None)
    progress.step(report(1))
    progress.close()
    assert len((tmp_path / "learning.jsonl").read_text().splitlines()) == 1
