"""What a training step has to do, whatever devices do it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The algorithm's side of a step."""

    batch_size: int
    """Trajectories per step, over all tasks."""
    context_limit: int
    """Most tokens of a trajectory, prompt and responses together."""
    reference_pass: bool = True
    """Log-probs of a frozen reference model (for a KL term)."""
    behaviour_pass: bool = True
    """Log-probs of the behaviour policy, computed again by the trainer."""
    micro_batch_tokens: int = 32768
    """Token budget of a packed micro-batch per rank."""
    recompute_activations: bool = True
