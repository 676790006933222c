"""The objective of GRPO for one micro-batch.

Per generated token, with log-probs `new` of the policy that is trained, `proximal` and `behaviour`, and advantage A:

    weight * correction * gain(ratio) * A + entropy_bonus * entropy - kl_coefficient * kl

    gain(ratio) = min(ratio, 1 + clip_high) where A >= 0, else min(max(ratio, 1 - clip_low), dual_clip)
    ratio       = exp(new - proximal)
    correction  = min(exp(proximal - behaviour), correction_limit), without gradient

That is PPO's clipped ratio with a bound on the other side too (dual clip, Ye et al. 1912.09729, eq. 3): without it a
token that has become a hundred times as likely since it was sampled, with A below 0, outweighs the rest of its batch.
In bypass form (`proximal: behaviour`) the proximal policy is the behaviour policy and the correction 1; in decoupled
form (`proximal: recomputed`, Hilton et al. 2110.00641) it is the trainer's at the start of the step. No factor counts
the same correction twice. `kl` is the estimator exp(d) - d - 1 with d = reference - new. `weight` makes the sum over
all micro-batches of all ranks the mean that `Learning.reduction` names, so that no cut into micro-batches changes the
gradient.
"""

from dataclasses import dataclass

import torch

from rollart.domain.execution import Learning, Proximal


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Generated tokens of a micro-batch; all tensors have one entry a token."""

    behaviour: torch.Tensor
    advantage: torch.Tensor
    weight: torch.Tensor
    entropy_bonus: torch.Tensor
    proximal: torch.Tensor | None = None
    """None in bypass form."""
    reference: torch.Tensor | None = None
    """None without a divergence term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The loss, and what a user watches, summed with the tokens' weights."""

    loss: torch.Tensor
    clipped: torch.Tensor
    entropy: torch.Tensor
    ratio: torch.Tensor
    """Ratio of each token to its behaviour policy, without gradient."""


def objective(new: torch.Tensor, entropy: torch.Tensor, tokens: Tokens, learning: Learning) -> Terms:
    """The loss to be minimised; `new` and `entropy` carry the gradient."""
    proximal, correction = tokens.behaviour, None
    if learning.proximal is Proximal.RECOMPUTED:
        assert tokens.proximal is not None
        proximal = tokens.proximal
        correction = torch.exp(proximal - tokens.behaviour).clamp(max=learning.correction_limit)
    ratio = torch.exp(new - proximal)
    rewarded = ratio.clamp(max=1.0 + learning.clip_high)
    punished = ratio.clamp(1.0 - learning.clip_low, learning.dual_clip)
    bounded = torch.where(tokens.advantage >= 0.0, rewarded, punished)
    gain = bounded * tokens.advantage
    if correction is not None:
        gain = gain * correction
    gain = gain + tokens.entropy_bonus * entropy
    if tokens.reference is not None and learning.kl_coefficient:
        apart = tokens.reference - new
        gain = gain - learning.kl_coefficient * (torch.exp(apart) - apart - 1.0)
    loss = -(gain * tokens.weight).sum()
    with torch.no_grad():
        is_clipped = ((ratio != bounded) & (tokens.advantage != 0.0)).to(new.dtype)
        return Terms(
            loss=loss,
            clipped=(is_clipped * tokens.weight).sum(),
            entropy=(entropy * tokens.weight).sum(),
            ratio=torch.exp(new - tokens.behaviour),
        )
