"""One rank of the trainer: turns rows into one optimiser step, and tells what a user watches."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from rollart.domain.execution import Learning, Proximal, Reduction
from rollart.exec.real.trainer.objective import Tokens, objective
from rollart.exec.real.trainer.policy import Policy
from rollart.exec.real.trainer.rows import Row, micro_batches, share_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """A padded micro-batch; flat tensors have one entry a generated token."""

    ids: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    """Position before the generated token, whose logits predict it."""
    tasks: torch.Tensor
    chosen: torch.Tensor
    tokens: Tokens
    lag: torch.Tensor
    """Versions between the weights that sampled a token and those that are trained."""


class Learner:
    """The policy, its optimiser, and the optional frozen reference."""

    def __init__(
        self,
        policy: Policy,
        tasks: Sequence[str],
        learning: Learning,
        steps: int,
        token_budget: int,
        *,
        reference: Policy | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        """`steps`: length of the learning-rate schedule. `token_budget`: padded tokens of a micro-batch."""
        self.policy = policy
        self._reference = reference
        self._tasks = {task: number for number, task in enumerate(tasks)}
        self._learning = learning
        self._entropy_bonus = torch.tensor([learning.entropy_bonus_of(task) for task in tasks])
        self._token_budget = token_budget
        self._rank, self._ranks = rank, ranks
        self._device = next(policy.parameters()).device
        self.optimizer = torch.optim.AdamW(
            policy.parameters(), lr=learning.learning_rate, weight_decay=learning.weight_decay
        )
        self._steps = steps
        self.steps_done = 0
        self._kept_on = self._device

    def come(self) -> None:
        """Have weights and optimiser state on the device that computes."""
        self._move(self._device)

    def leave(self) -> None:
        """Give the device's memory back: weights and optimiser state wait in the host's."""
        self.optimizer.zero_grad(set_to_none=True)
        self._move(torch.device("cpu"))
        torch.cuda.empty_cache()

    def _move(self, device: torch.device) -> None:
        if device == self._kept_on:
            return
        for policy in (self.policy, self._reference):
            if policy is not None:
                policy.to(device)
        for state in self.optimizer.state.values():
            # The count of steps is always on the host.
            state.update({key: value.to(device) for key, value in state.items() if key != "step"})
        self._kept_on = device

    def step(self, rows: Sequence[Row], version: int) -> dict[str, float]:
        """Train on a batch under weights `version`; what there is to watch, by name."""
        self.optimizer.zero_grad(set_to_none=True)
        weights = token_weights(rows, self._learning.reduction)
        mine = share_of(rows, self._rank, self._ranks)
        batches = [self._batch(each, weights, version) for each in micro_batches(mine, self._token_budget)]
        sums: dict[str, float] = defaultdict(float)
        ratios: list[torch.Tensor] = []
        lags: list[torch.Tensor] = []
        for batch in batches:
            told = self._backward(batch)
            for name in ("loss", "clipped", "entropy"):
                sums[name] += float(getattr(told, name).detach())
            ratios.append(told.ratio)
            lags.append(batch.lag)
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self._learning.max_gradient_norm)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        rate = self._learning.learning_rate * rate_share(self.steps_done, self._steps, self._learning)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.steps_done += 1
        return {
            "loss": sums["loss"],
            "clip_share": sums["clipped"],
            "entropy": sums["entropy"],
            "gradient_norm": float(norm),
            "learning_rate": rate,
            "tokens": float(sum(len(row.tokens) for row in rows)),
            **effective_sizes(torch.cat(ratios), torch.cat(lags)),
        }

    def _backward(self, batch: _Batch) -> Any:
        logprobs = self.policy(batch.ids, batch.rows, batch.columns, batch.tasks)
        new = _chosen(logprobs, batch.chosen)
        # Where a token cannot be sampled its probability is 0, and so is what it adds to the entropy.
        entropy = -(logprobs.exp() * logprobs.masked_fill(logprobs == -math.inf, 0.0)).sum(dim=-1)
        tokens = self._with_passes(batch, new)
        told = objective(new, entropy, tokens, self._learning)
        # FSDP averages gradients over ranks, and the weights are those of the whole batch.
        (told.loss * self._ranks).backward()
        return told

    def _with_passes(self, batch: _Batch, new: torch.Tensor) -> Tokens:
        """Add the log-probs of the proximal policy (one step per batch: the trainer's own) and of the reference."""
        tokens = batch.tokens
        proximal = new.detach() if self._learning.proximal is Proximal.RECOMPUTED else None
        reference = None
        if self._reference is not None:
            with torch.no_grad():
                told = self._reference(batch.ids, batch.rows, batch.columns, batch.tasks)
            reference = _chosen(told, batch.chosen)
        return Tokens(
            behaviour=tokens.behaviour,
            advantage=tokens.advantage,
            weight=tokens.weight,
            entropy_bonus=tokens.entropy_bonus,
            proximal=proximal,
            reference=reference,
        )

    def _batch(self, rows: Sequence[Row], weights: dict[int, float], version: int) -> _Batch:
        ids = pad_sequence([torch.tensor(row.tokens) for row in rows], batch_first=True)
        places = [(number, column) for number, row in enumerate(rows) for column, made in enumerate(row.made) if made]
        at_row = torch.tensor([number for number, _ in places])
        column = torch.tensor([place for _, place in places])
        task = torch.tensor([self._tasks[row.task] for row in rows])

        def flat(values: Sequence[Sequence[float]]) -> torch.Tensor:
            return torch.tensor([values[number][place] for number, place in places], device=self._device)

        def spread(values: Sequence[float]) -> torch.Tensor:
            return torch.tensor(values)[at_row].to(self._device)

        return _Batch(
            ids=ids.to(self._device),
            rows=at_row.to(self._device),
            columns=(column - 1).to(self._device),
            tasks=task[at_row].to(self._device),
            chosen=ids[at_row, column].to(self._device),
            tokens=Tokens(
                behaviour=flat([row.logprobs for row in rows]),
                advantage=spread([row.advantage for row in rows]),
                weight=spread([weights[id(row)] for row in rows]),
                entropy_bonus=self._entropy_bonus[task[at_row]].to(self._device),
            ),
            lag=version - flat([row.versions for row in rows]),
        )

    @torch.no_grad()
    def prompt_logprobs(self, prompts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probs of prompts' own tokens, without temperature and mask; the first token of each has none."""
        logprobs = []
        for prompt in prompts:
            ids = torch.tensor([list(prompt)], device=self._device)
            columns = torch.arange(len(prompt) - 1, device=self._device)
            told = self.policy(ids, torch.zeros_like(columns), columns, None)
            logprobs.append(_chosen(told, ids[0, 1:]).tolist())
        return logprobs


def _chosen(logprobs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logprobs.gather(1, tokens[:, None])[:, 0]


def rate_share(step: int, steps: int, learning: Learning) -> float:
    """Part of the learning rate at a step: it rises over the warm-up, then falls linearly to its last share."""
    if step < learning.warmup_steps:
        return (step + 1) / (learning.warmup_steps + 1)
    last = learning.final_learning_rate_share
    return 1.0 - (1.0 - last) * min(1.0, step / max(1, steps - 1))


def token_weights(rows: Sequence[Row], reduction: Reduction) -> dict[int, float]:
    """Weight of each generated token of a row, by the row's identity; the weights of a batch's tokens add up to 1.

    With weights by sequence, a step that trajectories of a group have in common is pushed away from where the failed
    ones among them are shorter: advantages add up to 0 over a group, but not when short ones weigh more.
    """
    if reduction is Reduction.SEQUENCE:
        return {id(row): 1.0 / (len(rows) * max(1, row.made_tokens)) for row in rows}
    kind = {id(row): row.task if reduction is Reduction.TASK else "" for row in rows}
    made, members = Counter[str](), Counter(kind.values())
    for row in rows:
        made[kind[id(row)]] += row.made_tokens
    return {row: members[each] / len(rows) / max(1, made[each]) for row, each in kind.items()}


def effective_sizes(ratios: torch.Tensor, lags: torch.Tensor) -> dict[str, float]:
    """Effective share of the tokens of each lag, (sum of ratios)^2 / (n * sum of squares), and the overall one."""
    sizes = {"effective_share": _effective(ratios)}
    for lag in sorted({int(each) for each in lags.tolist()}):
        sizes[f"effective_share_lag_{lag}"] = _effective(ratios[lags == lag])
    return sizes


def _effective(ratios: torch.Tensor) -> float:
    return float(ratios.sum() ** 2 / (len(ratios) * (ratios**2).sum()))
