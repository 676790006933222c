"""An engine that sleeps until a completion may be due, under the costs that simulations use."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.catalog.load import devices, models
from rollart.costs.engine_shape import EngineShape
from rollart.costs.select import engine_costs
from rollart.serving import Engine, EngineConfig, Request
from tests.serving.patient import Patient

SHAPES = {
    (source, model): engine_costs(EngineShape(model=models()[model], device=devices()[device]), source)
    for source, model, device in (
        ("roofline", "Qwen3-8B", "H800"),
        ("compact", "Qwen3-8B", "H100"),
        ("compact", "Qwen3-30B-A3B", "H200"),
    )
}


CONFIG = EngineConfig(max_num_seqs=16, max_num_batched_tokens=2048, kv_blocks=4000)


def wakes(engine, second, at_s):
    """Every wake-up, and what it completes: a request of 30 tokens, and another that arrives while it decodes."""
    told = [(0.0, Request(request_id=1, chain=1, context_tokens=500, output_tokens=30)), (at_s, second)]
    found = []
    while told or engine.next_wake < inf:
        now = engine.next_wake
        if told and told[0][0] <= now:
            now, request = told.pop(0)
            engine.submit(request, now)
        else:
            found.append((now, [done.request_id for done in engine.advance(now)]))
    return found


def both(costs, second, at_s):
    """The wake-ups of an engine that is woken for each step, and of one that is woken for completions alone."""
    return wakes(Engine(CONFIG, costs), second(), at_s), wakes(Patient(Engine(CONFIG, costs)), second(), at_s)


def completed(found):
    """When something completed, and what."""
    moments = [(now, done) for now, done in found if done]
    return [now for now, _ in moments], [done for _, done in moments]


def second(context_tokens):
    return lambda: Request(request_id=2, chain=2, context_tokens=context_tokens, output_tokens=60)


def test_an_engine_is_woken_to_start_and_for_what_completes():
    eager, patient = both(SHAPES["roofline", "Qwen3-8B"], second(300), 0.05)
    # It starts, the prompt is whole, the run is cut, the second prompt is whole, and each of the two completes.
    assert [done for _, done in eager] == [[], [], [], [], [1], [2]]
    assert [done for _, done in patient] == [[], [1], [2]]
    assert completed(patient)[0] == pytest.approx(completed(eager)[0], rel=1e-12)


@pytest.mark.parametrize("context_tokens", [1, 2000, 2047, 2048, 5000, 20_000])
@pytest.mark.parametrize("costs", SHAPES.values(), ids=["-".join(key) for key in SHAPES])
def test_prompts_of_several_iterations_do_not_make_it_late(costs, context_tokens):
    eager, patient = both(costs, second(context_tokens), 0.05)
    moments, done = completed(eager)
    assert done == completed(patient)[1] == [[1], [2]]
    assert completed(patient)[0] == pytest.approx(moments, rel=1e-12)


@pytest.mark.parametrize("costs", SHAPES.values(), ids=["-".join(key) for key in SHAPES])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    budget=st.sampled_from([32, 64, 512, 8192]),
    blocks=st.sampled_from([40, 120, 4000]),
    lag=st.integers(0, 1),
)
def test_sleep_changes_no_completion(costs, seed, budget, blocks, lag, run_workload, make_workload):
    config = EngineConfig(
        max_num_seqs=16, max_num_batched_tokens=budget, kv_blocks=blocks, block_size=4, scheduling_lag=lag
    )
    eager, patient = (
        run_workload(kind(Engine(config, costs)), make_workload(seed, config))
        for kind in (lambda engine: engine, Patient)
    )
    assert patient.replies == eager.replies
    assert len(patient.completions) == len(eager.completions)
    for ours, theirs in zip(patient.completions, eager.completions, strict=True):
        assert ours[:-1] == pytest.approx(theirs[:-1], rel=1e-9, abs=1e-9)
