"""How long an engine has nothing to tell: until the end of a decode run that lies beyond the running step.

An arrival cuts a run of decode iterations, its prompt makes an iteration of its own kind, and another run follows.
Where all prompts are whole after that iteration and nobody waits, the length of the run is known in advance, and the
driver need not wake the engine for the two steps before it. More work never makes an iteration shorter, so what comes
in meanwhile can only put the end off.
"""

from rollart.costs.interface import EngineCosts
from rollart.serving.request import Request
from rollart.serving.scheduler import Scheduler
from rollart.serving.step import coefficients


def after_prompts(scheduler: Scheduler, costs: EngineCosts, end_s: float) -> tuple[int, float]:
    """Iterations of the run after an iteration with chunks that ends at `end_s`, and when the run ends.

    (0, `end_s`) where it cannot be told.
    """
    batch, kv = scheduler.batch, scheduler.kv
    size, tokens = batch.size, batch.tokens + batch.size
    if scheduler.decoding != size or scheduler.partial is not None or scheduler.waiting or scheduler.held:
        return 0, end_s
    iterations = batch.iterations_to_finish() - 1 if size else None
    for request in scheduler.prefilling:
        known = request.known_tokens + 1
        size += 1
        tokens += known
        left = request.output_tokens + request.context_tokens - known
        if iterations is None or left < iterations:
            iterations = left
    assert iterations is not None
    if iterations < 1 or (iterations // kv.block_size + 1) * size > kv.free + kv.idle:
        return 0, end_s
    return _run(costs, size, tokens, iterations, end_s)


def after_arrival(
    request: Request, scheduler: Scheduler, costs: EngineCosts, cut: int, left: int, end_s: float
) -> tuple[int, float]:
    """Iterations of a decode step, cut to `cut` that end at `end_s`, and of the run after a prompt; when the run ends.

    The prompt that arrived takes the first of the `left` iterations that were to come, whole and as cached as can be.
    """
    batch = scheduler.batch
    size, tokens = batch.size, batch.tokens + cut * batch.size
    known = request.context_tokens
    cached = max(request.peak_tokens, request.shared_blocks * scheduler.kv.block_size)
    end_s += costs.mixed_s(size, tokens, ((known - cached, cached),))
    if left == 1:
        return cut + 1, end_s
    run, end_s = _run(costs, size + 1, tokens + size + known + 1, left - 1, end_s)
    return cut + 1 + run, end_s


def _run(costs: EngineCosts, size: int, tokens: int, iterations: int, start_s: float) -> tuple[int, float]:
    """So many decode iterations, or as many as cost one and the same line, and their end."""
    base_s, per_token_s, limit_tokens = costs.decode(size, tokens)
    if limit_tokens < tokens + (iterations - 1) * size:
        iterations = int((limit_tokens - tokens) // size) + 1
    base_s, slope_s = coefficients(base_s, per_token_s, size, tokens)
    return iterations, start_s + iterations * (base_s + slope_s * iterations)
