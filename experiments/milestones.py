"""When a curve of mean rewards reached the goal, and how far it fell afterwards."""

GOAL = 0.9
"""Mean reward of a step that counts as having learned."""


def milestones(curve: list[float]) -> tuple[int | None, float]:
    """The first step, from 1, that reached the goal, and the lowest mean reward from there on; (None, 0): none did."""
    reached = next((step for step, reward in enumerate(curve, start=1) if reward >= GOAL), None)
    return (None, 0.0) if reached is None else (reached, min(curve[reached - 1 :]))
