"""Random mixtures of policy, hardware, tasks and trouble, for property tests."""

from typing import Any

from hypothesis import strategies as st

from rollart.domain.plan import Role
from rollart.sched import PRESETS, ControllerConfig, EngineClass, TaskConfig
from tests.sched.setups import engines, setup, task
from tests.sched.toydriver import Luck

MIX = (task("maze", size=2, groups=2), task("math", size=3, groups=1, max_turns=1))

SHAPES: dict[str, tuple[tuple[EngineClass, ...], tuple[TaskConfig, ...]]] = {
    "one class": ((engines(count=3),), MIX),
    "two classes": (
        (engines("h20", 2), engines("h800", 2, weight=2.5)),
        (task("maze", size=2, groups=2, fallback=(1,)), task("math", size=3, suited=(1,), fallback=(0,))),
    ),
    "prefill and decode": (
        (engines("prefill", 2, role=Role.PREFILL), engines("decode", 2, role=Role.DECODE)),
        (task(size=2, groups=2, suited=(0, 1)),),
    ),
    "time-shared": ((engines(count=2, time_shared=True),), (task(size=2, groups=2),)),
    "partly time-shared": (
        (engines("local", 2, time_shared=True), engines("remote", 1)),
        (task(size=2, groups=2, suited=(0, 1)),),
    ),
    "judge": ((engines(count=2), engines("judge", 1, role=Role.JUDGE)), MIX),
}

_SYNCS: tuple[dict[str, Any], ...] = (
    {"transport": "store", "prefetch": True},
    {"transport": "store", "prefetch": True, "wait_for_fetch": False},
    {"transport": "store", "prefetch": False},
    {"in_flight": "interrupt", "suspend": True},
    {"in_flight": "keep", "suspend": False},
    {"order": "update_first"},
)


@st.composite
def policies(draw: st.DrawFn) -> tuple[str, dict[str, dict[str, Any]]]:
    """A preset, and overrides of some of its parts."""
    slots: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "group": st.fixed_dictionaries(
            {
                "redundant_members": st.integers(0, 2),
                "filter_equal_rewards": st.booleans(),
                "surplus": st.sampled_from(("stop", "keep")),
            }
        ),
        "sync": st.sampled_from(_SYNCS),
        "interaction": st.sampled_from(({"kind": "per_batch"}, {"kind": "per_trajectory"})),
        "router": st.fixed_dictionaries(
            {"kind": st.sampled_from(("least_loaded", "round_robin")), "sticky": st.booleans()}
        ),
        "recovery": st.fixed_dictionaries(
            {
                "migrate": st.booleans(),
                "max_attempts": st.sampled_from((1, 2, 4)),
                "checkpoint_every": st.sampled_from((1, 2, 3)),
            }
        ),
        "staleness": st.fixed_dictionaries({"kind": st.just("every_turn"), "bound": st.integers(0, 2)}),
        "admission": st.fixed_dictionaries(
            {"lookahead": st.integers(1, 2), "redundant_groups": st.sampled_from((0.0, 0.5, 1.0))}
        ),
    }
    changed = draw(st.sets(st.sampled_from(sorted(slots)), max_size=3))
    return draw(st.sampled_from(sorted(PRESETS))), {slot: draw(slots[slot]) for slot in sorted(changed)}


@st.composite
def configs(draw: st.DrawFn, steps: int = 3) -> ControllerConfig:
    """A configuration that a run can finish."""
    preset, overrides = draw(policies())
    classes, tasks = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    return setup(
        preset,
        overrides,
        tasks=tasks,
        classes=classes,
        steps=steps,
        slots=draw(st.sampled_from((1, 4, 64))),
        context_limit=draw(st.sampled_from((60, 400))),
    )


@st.composite
def lucks(draw: st.DrawFn, engines_at_most: int = 4) -> Luck:
    """How much goes wrong; engine numbers are cut to the fleet by the test."""
    losses = st.lists(st.tuples(st.integers(0, 120), st.integers(0, engines_at_most - 1)), max_size=8)
    return Luck(
        seed=draw(st.integers(0, 10**6)),
        environment_fails=draw(st.sampled_from((0.0, 0.05, 0.2))),
        reward_fails=draw(st.sampled_from((0.0, 0.1))),
        late_answer=draw(st.sampled_from((0.0, 0.3))),
        losses=tuple(draw(losses)),
        trainer_losses=tuple(draw(st.lists(st.integers(0, 120), max_size=4))),
        crashes=tuple(draw(st.lists(st.integers(0, 120), max_size=3))),
        notice=draw(st.sampled_from((0, 3))),
    )
