"""How long an engine has nothing to tell: until the end of a decode run that lies beyond the running step.

An arrival cuts a run of decode iterations, its prompt makes an iteration of its own kind, and another run follows.
Where all prompts are whole after that iteration and nobody waits, the length of the run is known in advance, and the
driver need not wake the engine for the two steps before it. More work never makes an iteration shorter, so what comes
in meanwhile can only put the end off.
"""

from rollart.costs.interface import EngineCosts, LinearPiece
from rollart.serving.batch import DecodeBatch
from rollart.serving.config import EngineConfig
from rollart.serving.kvcache import KVCache
from rollart.serving.request import Request
from rollart.serving.scheduler import Scheduler
from rollart.serving.step import Step, coefficients


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


def iterations_alike(batch: DecodeBatch, kv: KVCache, piece: LinearPiece) -> int:
    """Decode iterations until a request finishes, blocks run out or costs bend."""
    iterations = batch.iterations_to_finish()
    room = piece.limit_tokens - batch.tokens
    if room < (iterations - 1) * batch.size:
        iterations = int(room // batch.size) + 1
    if iterations > 1:
        iterations = 1 + batch.iterations_within(kv.free + kv.idle, iterations - 1)
    return iterations


def with_arrival(
    request: Request,
    unseen: int,
    scheduler: Scheduler,
    costs: EngineCosts,
    config: EngineConfig,
    step: Step,
    iterations: int,
    until_s: float,
) -> tuple[int, float]:
    """What becomes of `iterations` from the step's start on, quiet until `until_s`, by a request that arrived.

    `unseen`: requests that no iteration has seen, with this one. What it puts off stays as it was, if it makes more
    tokens than are to come and preempts nobody; else until 0.0.
    """
    kv = scheduler.kv
    left = iterations - step.iterations
    rows = len(scheduler.running) + unseen
    blocks = (request.context_tokens + left) // kv.block_size + (iterations // kv.block_size + 1) * rows
    if scheduler.waiting or request.output_tokens < left or blocks > kv.free + kv.idle:
        return iterations, 0.0
    if unseen > 1 or request.kv_arrives or not _is_next(request, scheduler, config):
        return iterations, until_s
    return _behind_prompt(request, scheduler, costs, step.iterations, left, step.end_s)


def _is_next(request: Request, scheduler: Scheduler, config: EngineConfig) -> bool:
    """Whether its prompt is sure to be in the iteration behind the running step, whole and alone."""
    others = scheduler.decoding
    fits = others + request.context_tokens <= config.max_num_batched_tokens
    return scheduler.mixes and not config.scheduling_lag and len(scheduler.running) == others and fits


def _behind_prompt(
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
