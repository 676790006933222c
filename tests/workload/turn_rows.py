"""Turns of an imported trajectory as rows that a test can compare."""

from rollart.workload.trace import TraceTrajectory


def turns(trajectory: TraceTrajectory) -> list[tuple[int, int | None, int, float | None]]:
    """(new, kept, output, step) of each turn."""
    return [
        (turn.prompt_tokens, turn.kept_tokens, turn.output_tokens, None if turn.env_s is None else round(turn.env_s, 6))
        for turn in trajectory.turns
    ]
