"""What an engine says about a turn, out of vLLM's request output."""

from typing import Any, NamedTuple


class Turn(NamedTuple):
    """Tokens of a turn or of a part of it, and how they were made; a tuple, since they travel by the dozen."""

    tokens: list[int]
    logprobs: list[float]
    versions: list[int]
    """Weight version that sampled each token."""
    finished: bool
    """It ended at a stop token, not at its limit or an abort."""
    cached_tokens: int
    recomputed_tokens: int
    preemptions: int
    queue_s: float
    prefill_s: float
    decode_s: float

    def behind(self, prefilled: "Turn") -> "Turn":
        """This turn with the work on its prompt, which another engine has done."""
        return self._replace(
            cached_tokens=prefilled.cached_tokens,
            recomputed_tokens=prefilled.recomputed_tokens + self.recomputed_tokens,
            preemptions=prefilled.preemptions + self.preemptions,
            queue_s=prefilled.queue_s + self.queue_s,
            prefill_s=prefilled.prefill_s + prefilled.decode_s + self.prefill_s,
        )

    def followed_by(self, rest: "Turn", context_tokens: int) -> "Turn":
        """This part with the rest of the turn, before which `context_tokens` were computed again but for the cached."""
        return rest._replace(
            tokens=self.tokens + rest.tokens,
            logprobs=self.logprobs + rest.logprobs,
            versions=self.versions + rest.versions,
            cached_tokens=self.cached_tokens,
            recomputed_tokens=self.recomputed_tokens + context_tokens - rest.cached_tokens + rest.recomputed_tokens,
            preemptions=self.preemptions + rest.preemptions,
            queue_s=self.queue_s + rest.queue_s,
            prefill_s=self.prefill_s + rest.prefill_s,
            decode_s=self.decode_s + rest.decode_s,
        )


def turn_of(output: Any, passed_s: float) -> Turn:
    """The finished request `output`, which took `passed_s` in the engine's process.

    A request that went on under other weights had its context computed again: prompt and tokens so far, at each change.
    Time that vLLM does not account for (its inbox and outbox) is waiting.
    """
    completion = output.outputs[0]
    tokens = list(completion.token_ids)
    logprobs = [entry[token].logprob for entry, token in zip(completion.logprobs or (), tokens, strict=False)]
    spans = completion.weight_versions or []
    versions = [int(span.version) for span in spans for _ in range(span.start, span.end)]
    context = len(output.prompt_token_ids)
    times = output.metrics
    prefill_s = decode_s = 0.0
    if times is not None and times.first_token_ts > 0.0:
        prefill_s = max(0.0, times.first_token_ts - times.scheduled_ts)
        decode_s = max(0.0, times.last_token_ts - times.first_token_ts)
    return Turn(
        tokens=tokens,
        logprobs=logprobs,
        versions=versions,
        finished=completion.finish_reason == "stop",
        cached_tokens=output.num_cached_tokens or 0,
        recomputed_tokens=sum(context + span.start for span in spans[1:]),
        preemptions=max(0, (times.num_preemptions if times is not None else 0) - max(0, len(spans) - 1)),
        queue_s=max(0.0, passed_s - prefill_s - decode_s),
        prefill_s=prefill_s,
        decode_s=decode_s,
    )
