"""Growth of contexts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.workload.context import ContextRules, plan_context
from rollart.workload.profile import Compaction
from rollart.workload.trajectory import StepOutcome, TrajectorySpec


def compaction(limit: int, summary: int) -> Compaction:
    return Compaction(limit_tokens=limit, summary_tokens=summary, source="test")


def contexts(prompt: int, new: list[int], kept: list[int | None] | None, output: list[int]) -> list[int]:
    spec = TrajectorySpec(
        task="t",
        prompt=0,
        member=0,
        attempt=0,
        prompt_tokens=prompt,
        reset_s=0.0,
        reset_outcome=StepOutcome.OK,
        new_tokens=new,
        kept_tokens=kept,
        output_tokens=output,
        env_s=[0.0] * len(new),
        env_outcome=None,
        reward_s=0.0,
        reward=0.0,
    )
    return list(spec.contexts())


def test_a_plain_context_only_grows() -> None:
    plan = plan_context(ContextRules(limit_tokens=1000), 100, [0, 10, 20], [30, 40, 50])
    assert (plan.new_tokens, plan.kept_tokens, plan.output_tokens) == ([0, 10, 20], None, [30, 40, 50])
    assert contexts(100, plan.new_tokens, plan.kept_tokens, plan.output_tokens) == [100, 140, 200]
    assert not plan.truncated


def test_stripped_reasoning_moves_the_answer_to_the_next_turn() -> None:
    plan = plan_context(ContextRules(strip_share=0.75), 100, [0, 10, 20], [40, 80, 8])
    assert plan.new_tokens == [0, 10 + 10, 20 + 20]
    assert plan.kept_tokens == [None, 100, 120]
    assert contexts(100, plan.new_tokens, plan.kept_tokens, plan.output_tokens) == [100, 120, 160]


def test_compaction_keeps_the_prompt_and_a_summary() -> None:
    rules = ContextRules(compaction=compaction(200, 15))
    plan = plan_context(rules, 100, [0, 10, 10], [50, 60, 5])
    assert plan.kept_tokens == [None, None, 100]
    assert contexts(100, plan.new_tokens, plan.kept_tokens, plan.output_tokens) == [100, 160, 125]


def test_the_limit_shortens_the_last_output() -> None:
    plan = plan_context(ContextRules(limit_tokens=200), 100, [0, 10, 10], [50, 60, 5])
    assert (plan.output_tokens, plan.truncated) == ([50, 40], True)


def test_a_turn_that_would_start_at_the_limit_is_dropped() -> None:
    plan = plan_context(ContextRules(limit_tokens=160), 100, [0, 10, 10], [50, 60, 5])
    assert (plan.output_tokens, plan.truncated) == ([50], True)


@settings(max_examples=80)
@given(
    st.integers(1, 300),
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 200)), min_size=1, max_size=12),
    st.floats(0, 1),
    st.booleans(),
    st.integers(301, 2000),
)
def test_no_rule_breaks_the_limit_or_keeps_more_than_there_was(
    prompt: int, raw: list[tuple[int, int]], strip_share: float, compacts: bool, limit: int
) -> None:
    rules = ContextRules(
        strip_share=strip_share, compaction=compaction(350, 5) if compacts else None, limit_tokens=limit
    )
    new = [0, *(observation for observation, _ in raw[1:])]
    plan = plan_context(rules, prompt, new, [output for _, output in raw])
    found = contexts(prompt, plan.new_tokens, plan.kept_tokens, plan.output_tokens)
    before = prompt
    for turn, context in enumerate(found):
        kept = plan.kept_tokens[turn] if plan.kept_tokens is not None else None
        assert kept is None or kept <= before
        before = context + plan.output_tokens[turn]
        assert plan.output_tokens[turn] >= 1 and before <= limit
    assert plan.truncated or len(found) == len(raw)
