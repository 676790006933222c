"""Estimated turns, brought to the sums that a file has of the same trajectory.

Some files count the tokens of all calls together but not of each. The texts then give the shape and the sums the
scale: outputs are multiplied so that they come to the sum of outputs, then prompts and observations so that the
contexts of all calls come to the sum of inputs. Turns stay estimates.
"""

from itertools import pairwise

from rollart.workload.trace import TraceTurn

HIGHEST_FACTOR = 4.0
"""Sums that are further off than this, up or down, are of something else: hidden reasoning, a context that was cut."""


def scaled_to(
    prompt_tokens: int, turns: tuple[TraceTurn, ...], input_sum: int, output_sum: int
) -> tuple[int, tuple[TraceTurn, ...]]:
    """(prompt, turns) whose contexts and outputs come to the sums, as far as whole tokens allow.

    Unchanged where a sum is 0, a factor is out of bounds, or the context was ever cut.
    """
    outputs = [turn.output_tokens for turn in turns]
    if not (input_sum and output_sum and sum(outputs)) or any(turn.kept_tokens is not None for turn in turns):
        return prompt_tokens, turns
    output_factor = output_sum / sum(outputs)
    count = len(turns)
    of_outputs = sum(output * (count - 1 - index) for index, output in enumerate(outputs))
    of_rest = prompt_tokens * count + sum(turn.prompt_tokens * (count - index) for index, turn in enumerate(turns))
    rest_factor = (input_sum - of_outputs * output_factor) / of_rest
    if not all(1 / HIGHEST_FACTOR <= factor <= HIGHEST_FACTOR for factor in (output_factor, rest_factor)):
        return prompt_tokens, turns
    new = _scaled([prompt_tokens, *(turn.prompt_tokens for turn in turns)], rest_factor)
    generated = _scaled(outputs, output_factor)
    return max(1, new[0]), tuple(
        TraceTurn(prompt_tokens=observed, output_tokens=output, env_s=turn.env_s, outcome=turn.outcome)
        for turn, observed, output in zip(turns, new[1:], generated, strict=True)
    )


def _scaled(values: list[int], factor: float) -> list[int]:
    """Whole numbers whose running sums are those of the scaled values, rounded."""
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return [round(after * factor) - round(before * factor) for before, after in pairwise(sums)]
