"""The estimated policy gradient against the exact one, on a FrozenLake that can be enumerated.

    .venv/bin/python experiments/frozenlake_gradient.py

A lake of 2 x 2 fields with one hole and at most three moves has few walks. The exact gradient of the expected reward
is the derivative of the sum over all walks of probability times reward. The trainer's estimate comes from batches of
groups of sampled walks, with the objective and the advantages of `rollart.exec.real.trainer` (no deviation, and no
clipping on-policy). The group's own mean as the baseline scales the expectation by (n - 1) / n, which is divided out.
Writes experiments/results/frozenlake_gradient.json.
"""

import argparse
import itertools
import json
import math
from pathlib import Path

import torch

from rollart.domain.execution import AdvantageScale, Learning
from rollart.exec.real.environments.frozenlake import FrozenLake
from rollart.exec.real.environments.protocol import Action
from rollart.exec.real.trainer.advantages import with_advantages
from rollart.exec.real.trainer.objective import Tokens, objective
from rollart.exec.real.trainer.rows import Row

MAP = ["SF", "HG"]
MOVES = "LDRU"
MOST_TURNS = 3
GROUP = 8
GROUPS_PER_BATCH = 50
RESULT = Path(__file__).parent / "results/frozenlake_gradient.json"


Walks = dict[str, tuple[tuple[str, ...], float]]
"""Moves -> states and reward."""


def walk(lake: FrozenLake, moves: str) -> tuple[tuple[str, ...], float]:
    """The states at which each of the moves that were carried out was chosen, and the reward."""
    state = lake.reset(0, 0).text
    states, earned = [], 0.0
    for move in moves:
        states.append(str(state).rpartition("\n")[2])
        seen = lake.step(Action(text=move, tokens=[]))
        earned += seen.reward
        state = seen.text
        if seen.done:
            break
    return tuple(states), earned


def all_walks() -> dict[str, tuple[tuple[str, ...], float]]:
    """Every different walk: the moves that were carried out -> states, reward."""
    lake = FrozenLake(map=MAP)
    walks = {}
    for moves in itertools.product(MOVES, repeat=MOST_TURNS):
        states, earned = walk(lake, "".join(moves))
        walks["".join(moves[: len(states)])] = (states, earned)
    return walks


def logprob(policy: torch.Tensor, states: tuple[str, ...], moves: str, places: dict[str, int]) -> torch.Tensor:
    """Log-prob of each move of a walk under a tabular softmax policy."""
    rows = torch.log_softmax(policy, dim=1)
    return torch.stack([rows[places[state], MOVES.index(move)] for state, move in zip(states, moves, strict=True)])


def exact(policy: torch.Tensor, walks: Walks, places: dict[str, int]) -> torch.Tensor:
    """Derivative of the expected reward."""
    total = sum(
        logprob(policy, states, moves, places).sum().exp() * earned
        for moves, (states, earned) in walks.items()
        if earned
    )
    (gradient,) = torch.autograd.grad(total, policy)
    return gradient


def estimate(policy: torch.Tensor, walks: Walks, places: dict[str, int], chance: torch.Generator) -> torch.Tensor:
    """The trainer's gradient from one batch of sampled walks."""
    names = list(walks)
    with torch.no_grad():
        chances = torch.stack([logprob(policy, walks[m][0], m, places).sum().exp() for m in names])
    drawn = [
        names[i]
        for i in torch.multinomial(chances, GROUP * GROUPS_PER_BATCH, replacement=True, generator=chance).tolist()
    ]
    rows = [
        Row(task="lake", group=number // GROUP, tokens=[], made=[], logprobs=[], versions=[], reward=walks[moves][1])
        for number, moves in enumerate(drawn)
    ]
    learning = Learning(advantage_scale=AdvantageScale.NONE, deviation_floor=1.0)
    advantages = [row.advantage for row in with_advantages(rows, learning)]
    new = [logprob(policy, walks[moves][0], moves, places) for moves in drawn]
    flat = torch.cat(new)
    tokens = Tokens(
        behaviour=flat.detach(),
        advantage=torch.cat([torch.full((len(each),), a) for each, a in zip(new, advantages, strict=True)]),
        weight=torch.full((len(flat),), 1.0 / len(drawn)),
        entropy_bonus=torch.zeros_like(flat),
    )
    loss = objective(flat, torch.zeros_like(flat), tokens, learning).loss
    (gradient,) = torch.autograd.grad(-loss, policy)
    return gradient * GROUP / (GROUP - 1)


def main() -> None:
    """Print and write how many standard errors each component of the estimate is off."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    chance = torch.Generator().manual_seed(options.seed)
    walks = all_walks()
    places = {state: place for place, state in enumerate(sorted({s for states, _ in walks.values() for s in states}))}
    policy = torch.randn(len(places), len(MOVES), generator=chance).requires_grad_()
    right = exact(policy, walks, places)
    drawn = torch.stack([estimate(policy, walks, places, chance) for _ in range(options.batches)])
    error = drawn.std(dim=0) / math.sqrt(options.batches)
    off = ((drawn.mean(dim=0) - right).abs() / error.clamp(min=1e-12))[error > 1e-9]
    result = {
        "seed": options.seed,
        "batches": options.batches,
        "groups_per_batch": GROUPS_PER_BATCH,
        "group_size": GROUP,
        "components": len(off),
        "largest_component": float(right.abs().max()),
        "standard_errors_off": {"mean": float(off.mean()), "max": float(off.max())},
        "cosine": float(torch.cosine_similarity(drawn.mean(dim=0).flatten(), right.flatten(), dim=0)),
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
