"""Closed forms of a run of iterations against their sums."""

from hypothesis import given
from hypothesis import strategies as st

from rollart.serving.step import Step


def begun(start_s, iterations, base_s, per_token_s, batch, tokens):
    step = Step()
    step.begin(start_s, iterations, base_s, per_token_s, batch, tokens)
    return step


def test_boundaries_by_hand():
    # Iterations of 1 + 0.5 * 4 = 3, then 1 + 0.5 * 6 = 4, then 1 + 0.5 * 8 = 5 seconds.
    step = begun(10.0, 3, 1.0, 0.5, 2, 4)
    assert [step.boundary_s(k) for k in range(4)] == [10.0, 13.0, 17.0, 22.0]
    assert step.end_s == 22.0


def test_moments_on_a_boundary():
    step = begun(10.0, 3, 1.0, 0.5, 2, 4)
    assert [step.iterations_past(t) for t in (10.0, 12.9, 13.0, 17.0, 21.9, 22.0)] == [1, 1, 2, 3, 3, 3]
    assert [step.iterations_until(t) for t in (10.0, 12.9, 13.0, 17.0, 21.9)] == [1, 1, 1, 2, 3]
    assert [step.iterations_ended(t) for t in (10.0, 13.0, 16.9, 17.0, 22.0)] == [0, 1, 1, 2, 3]


def test_cut_only_shortens():
    step = begun(10.0, 3, 1.0, 0.5, 2, 4)
    step.cut(5)
    assert (step.iterations, step.end_s) == (3, 22.0)
    step.cut(2)
    assert (step.iterations, step.end_s) == (2, 17.0)


@given(
    iterations=st.integers(1, 3000),
    base_s=st.floats(1e-4, 1.0),
    per_token_s=st.one_of(st.just(0.0), st.floats(1e-12, 1e-2)),
    batch=st.integers(1, 300),
    share=st.floats(0.0, 1.1),
    start_s=st.floats(0.0, 1e6),
)
def test_the_iteration_of_a_moment_is_right_by_definition(iterations, base_s, per_token_s, batch, share, start_s):
    step = begun(start_s, iterations, base_s, per_token_s, batch, 20 * batch)
    moment = start_s + share * (step.end_s - start_s)
    past = step.iterations_past(moment)
    assert past == iterations or step.boundary_s(past) > moment
    assert past == 1 or step.boundary_s(past - 1) <= moment
