import pytest

from rollart.domain.commands import GenerateTurn, ResetEnvironment
from rollart.modelled.episodes import Episodes
from tests.modelled.toys import ToyWorkload, spec


def reset(trajectory, prompt, member, attempt):
    return ResetEnvironment(
        id=0,
        trajectory=trajectory,
        task="maze",
        prompt=prompt,
        group=9,
        member=member,
        attempt=attempt,
        version=0,
        timeout_s=1.0,
    )


def turn(number, partial_tokens):
    return GenerateTurn(
        id=0,
        trajectory=5,
        group=0,
        turn=number,
        engine=0,
        incarnation=0,
        prefill_engine=None,
        context_tokens=10,
        reusable_tokens=0,
        shared_tokens=0,
        partial_tokens=partial_tokens,
        max_tokens=10,
    )


def test_an_attempt_is_drawn_by_prompt_member_and_attempt_not_by_number():
    workload = ToyWorkload(lambda *key: spec(key=key))
    episodes = Episodes(workload)
    episodes.begin(reset(5, 2, 3, 0))
    assert episodes.begin(reset(5, 2, 3, 1)).attempt == 1
    assert workload.asked == [("maze", 2, 3, 0), ("maze", 2, 3, 1)]


@pytest.mark.parametrize(("number", "partial", "expected"), [(0, 0, 8), (1, 0, 4), (0, 5, 3), (0, 8, 1), (1, 9, 1)])
def test_a_turn_needs_what_it_lacks_and_at_least_one_token(number, partial, expected):
    episodes = Episodes(ToyWorkload(lambda *key: spec(key=key, outputs=(8, 4))))
    episodes.begin(reset(5, 0, 0, 0))
    assert episodes.tokens_to_make(turn(number, partial)) == expected


def test_a_trajectory_that_has_ended_is_forgotten():
    episodes = Episodes(ToyWorkload(lambda *key: spec(key=key)))
    episodes.begin(reset(5, 0, 0, 0))
    episodes.end(5)
    episodes.end(5)
    assert episodes.specs == {}
