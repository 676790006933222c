"""How a context grows over turns: stripping of reasoning, compaction, and the context limit."""

from dataclasses import dataclass

from rollart.workload.profile import Compaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRules:
    """What happens to the context between turns."""

    strip_share: float = 0.0
    compaction: Compaction | None = None
    limit_tokens: int | None = None

    @property
    def plain(self) -> bool:
        """Whether contexts only ever grow."""
        return self.strip_share == 0.0 and self.compaction is None


@dataclass(slots=True, kw_only=True)
class ContextPlan:
    """Per-turn token lists after the rules were applied; as in `TrajectorySpec`."""

    new_tokens: list[int]
    kept_tokens: list[int | None] | None
    output_tokens: list[int]
    truncated: bool


def plan_context(
    rules: ContextRules, prompt_tokens: int, observation_tokens: list[int], output_tokens: list[int]
) -> ContextPlan:
    """Apply the rules to raw lengths; `observation_tokens[0]` is what is added to the prompt.

    Stripped reasoning stands before the answer, so only the context in front of it keeps its place: the
    answer counts among the new tokens of the next turn. Truncation shortens the last output to end at the
    limit, and drops what follows; at least one turn of one token is left.
    """
    total = prompt_tokens + sum(observation_tokens) + sum(output_tokens)
    limit = rules.limit_tokens
    if rules.plain and (limit is None or total <= limit):
        return ContextPlan(
            new_tokens=observation_tokens, kept_tokens=None, output_tokens=output_tokens, truncated=False
        )
    return _walk(rules, prompt_tokens, observation_tokens, output_tokens)


def _walk(
    rules: ContextRules, prompt_tokens: int, observation_tokens: list[int], output_tokens: list[int]
) -> ContextPlan:
    plan = ContextPlan(new_tokens=[], kept_tokens=[], output_tokens=[], truncated=False)
    kept_tokens: list[int | None] = []
    context = prompt_tokens
    output = 0
    for turn, (observation, next_output) in enumerate(zip(observation_tokens, output_tokens, strict=True)):
        kept, new = _next_turn(rules, prompt_tokens, context, output, observation)
        context = (context + output if kept is None else kept) + new
        room = next_output if rules.limit_tokens is None else rules.limit_tokens - context
        if room < 1 and turn > 0:
            plan.truncated = True
            break
        output = max(1, min(next_output, room))
        plan.new_tokens.append(new)
        kept_tokens.append(kept)
        plan.output_tokens.append(output)
        if output < next_output:
            plan.truncated = True
            break
    plan.kept_tokens = kept_tokens if any(kept is not None for kept in kept_tokens) else None
    return plan


def _next_turn(
    rules: ContextRules, prompt_tokens: int, context: int, output: int, observation: int
) -> tuple[int | None, int]:
    """(kept tokens, new tokens) of the turn after `output` was generated on `context`."""
    stripped = round(rules.strip_share * output)
    compaction = rules.compaction
    if compaction is not None and output and context + output - stripped + observation > compaction.limit_tokens:
        return prompt_tokens, compaction.summary_tokens + observation
    if stripped:
        return context, output - stripped + observation
    return None, observation
