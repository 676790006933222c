"""One generation request on an engine, and what the engine says when it is complete.

A request is mutable: the caller fills the first half and hands it over, the engine owns the second half.
The token made last has no KV before the next iteration computes it, so a decoding request has KV for all
tokens it knows but one.
"""

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from rollart.domain.errors import CapacityError, InvariantError

if TYPE_CHECKING:
    from rollart.serving.segment import Segment


class Role(enum.Enum):
    """Which phases of a request this engine runs."""

    BOTH = "both"
    PREFILL = "prefill"
    """Complete when the prompt is computed and its first token made; the caller exports the KV."""
    DECODE = "decode"
    """The KV of all context tokens but the last arrives with the request."""


class Loss(enum.Enum):
    """Why KV that existed once has to be computed again."""

    HISTORY = "history"
    """Earlier turns: evicted, made on another engine, or lost to an update while the chain was idle."""
    PREEMPTION = "preemption"
    UPDATE = "update"


class Request:
    """A prompt, its place in the prefix cache, and how many tokens it will generate.

    `chain` keys the trajectory; `group` the prompt whose `shared_tokens` leading tokens are common (one
    value per group).  `context_tokens` is the whole prompt: earlier turns and tokens made before a migration
    belong to it.  The leading `reusable_tokens` are identical to what the chain held before.
    `prefix` names the leading blocks of the prompt, each for itself and all before it, where
    `EngineConfig.prefix_tokens` says how long they are; chain and group are not looked at then.
    `output_tokens` will be made here; a PREFILL request makes one, whatever it says.
    `payload` is the caller's own and comes back with the completion.
    """

    __slots__ = (
        "cached_tokens",
        "chain",
        "chunk_tokens",
        "computed_tokens",
        "context_tokens",
        "first_token_s",
        "group",
        "group_segment",
        "known_tokens",
        "kv_arrives",
        "kv_offset",
        "loss",
        "output_tokens",
        "payload",
        "peak_tokens",
        "preemptions",
        "prefix",
        "prefix_segments",
        "recomputed_tokens",
        "request_id",
        "reusable_tokens",
        "role",
        "scheduled_s",
        "shared_blocks",
        "shared_tokens",
        "submitted_s",
        "ticket",
    )

    def __init__(
        self,
        *,
        request_id: int,
        chain: int,
        context_tokens: int,
        output_tokens: int,
        group: int = 0,
        shared_tokens: int = 0,
        reusable_tokens: int = 0,
        role: Role = Role.BOTH,
        prefix: tuple[int, ...] = (),
        payload: Any = None,
    ) -> None:
        self.request_id = request_id
        self.chain = chain
        self.group = group
        self.shared_tokens = shared_tokens
        self.context_tokens = context_tokens
        self.reusable_tokens = reusable_tokens
        self.output_tokens = 1 if role is Role.PREFILL else output_tokens
        self.role = role
        self.prefix = prefix
        self.payload = payload
        # From here on the engine's.  `known_tokens` (prompt and tokens made) and `computed_tokens` (those
        # with KV) stand still while the request decodes: then kv_offset + iteration index have KV.
        self.known_tokens = context_tokens
        self.computed_tokens = 0
        self.kv_offset = 0
        self.chunk_tokens = 0
        self.kv_arrives = role is Role.DECODE
        # Order of admission, 0 while not running.
        self.ticket = 0
        self.group_segment: Segment | None = None
        # The named leading blocks that it holds, from the first on.
        self.prefix_segments: list[Segment] | None = None
        self.shared_blocks = 0
        # Leading tokens that were computed before; computing them again is a loss.
        self.peak_tokens = 0
        self.loss = Loss.HISTORY
        self.submitted_s = 0.0
        self.scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.cached_tokens = 0
        self.recomputed_tokens = 0
        self.preemptions = 0


class Completion(NamedTuple):
    """A finished request; all durations in seconds.

    `queue_s` is submission to first scheduled iteration, `first_token_s` submission to first token,
    `prefill_s` first scheduled to first token (0 for Role.DECODE) and `decode_s` the rest.
    `cached_tokens` were found at the first admission; `recomputed_tokens` sums all kinds of `Loss`.
    """

    request_id: int
    time_s: float
    output_tokens: int
    cached_tokens: int
    queue_s: float
    first_token_s: float
    prefill_s: float
    decode_s: float
    recomputed_tokens: int
    preemptions: int
    payload: Any


def check_request(request: Request, kv_capacity_tokens: int) -> None:
    """Raise InvariantError for a request that makes no sense, CapacityError for one that cannot run even alone."""
    context, output = request.context_tokens, request.output_tokens
    if (
        context < 1
        or output < 1
        or not 0 <= request.shared_tokens <= context
        or not 0 <= request.reusable_tokens <= context
    ):
        raise InvariantError(
            f"engine: request {request.request_id} has context {context}, output {output},"
            f" shared {request.shared_tokens}, reusable {request.reusable_tokens} tokens; context and"
            " output are at least 1, shared and reusable at most the context"
        )
    # The token made last needs no KV.
    kv_tokens = context + output - 1
    if kv_tokens > kv_capacity_tokens:
        raise CapacityError(
            f"engine: request {request.request_id} needs the KV of {kv_tokens} tokens (context {context}"
            f" + output {output} - 1), the engine holds {kv_capacity_tokens}; a larger engine or a shorter"
            " limit is needed"
        )


def completion_of(request: Request, now: float) -> Completion:
    """What is told of a request that has just made its last token."""
    scheduled_s, first_s = request.scheduled_s, request.first_token_s
    assert scheduled_s is not None
    assert first_s is not None
    decode_from_s = scheduled_s if request.role is Role.DECODE else first_s
    return Completion(
        request.request_id,
        now,
        request.output_tokens,
        request.cached_tokens,
        scheduled_s - request.submitted_s,
        first_s - request.submitted_s,
        decode_from_s - scheduled_s,
        now - decode_from_s,
        request.recomputed_tokens,
        request.preemptions,
        request.payload,
    )
