"""Laws that change with the number of turns of a trajectory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.workload.fit.document import fit_profile
from rollart.workload.fit.observed import observe
from rollart.workload.fit.turn_classes import class_of, turn_classes
from rollart.workload.profile_file import load_document, profile_from_mapping
from rollart.workload.profile_writer import write_profile
from rollart.workload.synth import synthesize
from rollart.workload.trace import TraceTrajectory, TraceTurn


def two_kinds(count: int) -> list[TraceTrajectory]:
    """Half answer at once, with some 1,000 tokens; half take five turns of some 20."""
    chance = np.random.default_rng(1)
    found = []
    for number in range(count):
        turns, level = (1, 1000.0) if number % 2 else (5, 20.0)
        outputs = np.maximum(1, level * np.exp(0.3 * chance.standard_normal(turns))).astype(int).tolist()
        found.append(
            TraceTrajectory(
                task="a",
                group=str(number),
                prompt_tokens=10,
                turns=tuple(TraceTurn(output_tokens=tokens, env_s=1.0) for tokens in outputs),
                reset_s=1.0,
                reward_s=1.0,
                reward=1.0,
            )
        )
    return found


def test_two_kinds_of_trajectories_have_two_laws(tmp_path: Path) -> None:
    document = fit_profile(two_kinds(400), name="x", source="test")
    figure = document["tasks"]["a"]["output_tokens"]
    assert list(figure["from_turns"]) == [2] and "turns_correlation" not in figure
    assert "laws of trajectories of 1, 2 turns and more" in figure["source"]
    write_profile(tmp_path / "p.yaml", document)
    profile = profile_from_mapping(load_document(tmp_path / "p.yaml"), "x")
    drawn = list(synthesize(profile, groups=400, group_size=1, seed=2))
    for turns, level in ((1, 1000.0), (5, 20.0)):
        outputs = [turn.output_tokens for one in drawn if len(one.turns) == turns for turn in one.turns]
        assert np.median(outputs) == pytest.approx(level, rel=0.08)


def test_what_one_correlation_says_needs_no_classes(document: dict[str, Any]) -> None:
    trace = synthesize(profile_from_mapping(document, "test"), groups=600, group_size=1, seed=3)
    observed = observe(trace)["maze"]
    for figure in ("output_tokens", "observation_tokens", "env_s"):
        assert len(turn_classes(observed.draws(figure), observed.lengths)) == 1, figure


def test_few_trajectories_are_one_class() -> None:
    observed = observe(two_kinds(60))["a"]
    assert turn_classes(observed.draws("output_tokens"), observed.lengths) == [1]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2000), min_size=1, max_size=40), st.sets(st.integers(2, 1000), max_size=5))
def test_a_class_holds_what_lies_between_its_edges(turns: list[int], edges: set[int]) -> None:
    classes = [1, *sorted(edges)]
    for count, index in zip(turns, class_of(np.array(turns), classes).tolist(), strict=True):
        assert classes[index] <= max(count, 1)
        assert index + 1 == len(classes) or count < classes[index + 1]
