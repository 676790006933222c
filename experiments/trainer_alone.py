"""Does the trainer learn, and does it stay? The laptop's tasks with sampling in PyTorch: no vLLM, no Ray, many seeds.

    .venv/bin/python experiments/trainer_alone.py --seeds 0 1 2 --lag 1 --set execution.learning.reduction=sequence

Batches, model, objective and learning rates are those of laptop.yaml; every token is sampled by weights that are
`--lag` versions older than the ones that are trained. A seed takes some minutes of one core. "worst after" is the
lowest mean reward of a step behind the first one that reached 0.9: what a collapse looks like, also where it heals.
With `--answers 20` the commonest answer to each task is printed every 20 steps, which shows where a policy is stuck.
Results are added to experiments/results/trainer_alone.json after each seed; those of the same settings are replaced.
"""

import argparse
import copy
import json
import tempfile
from collections import Counter, deque
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from milestones import GOAL, milestones

from rollart import api
from rollart.domain.execution import TaskExecution
from rollart.exec.real.environments.protocol import Action
from rollart.exec.real.environments.shipped import make_environment
from rollart.exec.real.model_folder import model_folder
from rollart.exec.real.tokens import Tokenizer, tokenizer_of
from rollart.exec.real.trainer.advantages import with_advantages
from rollart.exec.real.trainer.learner import Learner
from rollart.exec.real.trainer.policy import Policy, load_policy
from rollart.exec.real.trainer.rows import Row

ROOT = Path(__file__).resolve().parents[1]
LAPTOP = ROOT / "experiments/scenarios/laptop.yaml"
RESULT = ROOT / "experiments/results/trainer_alone.json"


class Player:
    """One trajectory: its environment, and its tokens as they come."""

    def __init__(self, settings: TaskExecution, tokenizer: Tokenizer, group: int, seed: int) -> None:
        self._settings, self._tokenizer, self._group = settings, tokenizer, group
        self._environment = make_environment(settings.environment, settings.arguments)
        self._turn: list[int] = []
        self.tokens: list[int] = []
        self._made: list[bool] = []
        self._logprobs: list[float] = []
        self._reward = 0.0
        self.turns = 0
        self.done = False
        self._see(self._environment.reset(seed, 0).text, first=True)

    def _see(self, text: Any, *, first: bool) -> None:
        ids = self._tokenizer.observation(text, first=first)
        self.tokens += ids
        self._made += [False] * len(ids)
        self._logprobs += [0.0] * len(ids)

    def take(self, token: int, logprob: float, most_turns: int) -> None:
        """Add a sampled token; the environment acts where the turn is over."""
        self.tokens.append(token)
        self._made.append(True)
        self._logprobs.append(logprob)
        self._turn.append(token)
        if len(self._turn) < self._settings.turn_tokens:
            return
        answer = self._environment.step(Action(text=self._tokenizer.text(self._turn), tokens=self._turn))
        self._turn, self.turns = [], self.turns + 1
        self._reward += answer.reward
        self.done = answer.done or self.turns == most_turns
        if not self.done:
            self._see(answer.text, first=False)

    @property
    def answer(self) -> str:
        """All that was generated."""
        return self._tokenizer.text([token for token, made in zip(self.tokens, self._made, strict=True) if made])

    def row(self, version: int) -> Row:
        """What the trainer is given."""
        return Row(
            task=self._settings.task,
            group=self._group,
            tokens=self.tokens,
            made=self._made,
            logprobs=self._logprobs,
            versions=[version if made else -1 for made in self._made],
            reward=self._reward,
        )


def play(policy: Policy, players: list[Player], task: int, most_turns: int) -> None:
    """Sample until all are done; what several have in common goes through the model once."""
    while open_ := [player for player in players if not player.done]:
        place = {tokens: place for place, tokens in enumerate(dict.fromkeys(tuple(p.tokens) for p in open_))}
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(tokens) for tokens in place], batch_first=True)
        last = torch.tensor([len(tokens) - 1 for tokens in place])
        rows = torch.arange(len(place))
        with torch.inference_mode():
            logprobs = policy(ids, rows, last, torch.full_like(rows, task))
        mine = logprobs[torch.tensor([place[tuple(player.tokens)] for player in open_])]
        chosen = torch.multinomial(mine.exp(), 1)[:, 0]
        taken = mine.gather(1, chosen[:, None])[:, 0]
        for player, token, logprob in zip(open_, chosen.tolist(), taken.tolist(), strict=True):
            player.take(token, logprob, most_turns)


def one_seed(seed: int, lag: int, steps: int, changes: list[str], answers: int | None = None) -> dict[str, Any]:
    """Train, and tell how it went; print the commonest answers every so many steps."""
    scenario = api.load_scenario(LAPTOP, changes)
    job, settings = scenario.job(), scenario.execution()
    turns = {task.name: task.max_turns for task in job.tasks}
    torch.manual_seed(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = model_folder(settings, Path(name), seed)
        tokenizer = tokenizer_of(settings.tokenizer, folder, job.model.vocabulary)
        allowed = [tuple(map(tokenizer.token, task.allowed)) for task in settings.tasks]
        policy = load_policy(folder, settings.dtype, torch.device("cpu"), allowed, settings.temperature)
    learner = Learner(policy, list(turns), settings.learning, steps, job.training.micro_batch_tokens)
    older = deque([copy.deepcopy(policy)] * (lag + 1), maxlen=lag + 1)
    curves: dict[str, list[float]] = {task: [] for task in turns}
    for step in range(steps):
        rows: list[Row] = []
        for number, task in enumerate(settings.tasks):
            each, group = job.training.batch_size // len(settings.tasks), job.tasks[number].group_size
            players = _players(task, tokenizer, each, group, number, seed * 100_003 + step)
            play(older[0], players, number, turns[task.task])
            made = [player.row(max(0, step - lag)) for player in players]
            curves[task.task].append(fmean(row.reward for row in made))
            rows += made
            if answers and (step + 1) % answers == 0:
                answer, count = Counter(player.answer for player in players).most_common(1)[0]
                print(
                    f"step {step + 1}, {task.task} {curves[task.task][-1]:.2f}: {answer} ({count} of {each})",
                    flush=True,
                )
        learner.step(with_advantages(rows, settings.learning), step)
        older.append(copy.deepcopy(policy))
    return {"seed": seed, "lag": lag, "steps": steps, "changes": changes, "curves": curves}


def _players(task: TaskExecution, tokenizer: Tokenizer, each: int, group: int, number: int, seed: int) -> list[Player]:
    first = number * each // group
    return [Player(task, tokenizer, first + index // group, seed * 1_009 + index // group) for index in range(each)]


def told(run: dict[str, Any]) -> str:
    """A line about a run."""
    parts = []
    for task, curve in run["curves"].items():
        reached, lowest = milestones(curve)
        worst = "" if reached is None else f", {GOAL} at step {reached}, worst after {lowest:.2f}"
        parts.append(f"{task} {fmean(curve[:5]):.2f} -> {fmean(curve[-5:]):.2f}{worst}")
    return f"{' '.join(run['changes']) or 'as it is'}, lag {run['lag']}, seed {run['seed']}: {'; '.join(parts)}"


def show(runs: list[dict[str, Any]]) -> None:
    """Of all runs that are kept, by settings and lag: how many end above the goal, how late they reached it."""
    print(f"| settings | lag | seeds | task | last five steps above {GOAL} | {GOAL} reached in step | worst after |")
    print("|---|---|---|---|---|---|---|")
    kinds: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in runs:
        kinds.setdefault((" ".join(run["changes"]) or "as it is", run["lag"]), []).append(run)
    for (settings, lag), alike in kinds.items():
        for task in alike[0]["curves"]:
            curves = [run["curves"][task] for run in alike]
            good = sum(fmean(curve[-5:]) >= GOAL for curve in curves)
            met = [(reached, low) for reached, low in map(milestones, curves) if reached is not None]
            steps = f"{min(met)[0]} to {max(met)[0]}" if met else "-"
            lowest = min((low for _, low in met), default=0.0)
            print(f"| {settings} | {lag} | {len(alike)} | {task} | {good} | {steps} | {lowest:.2f} |")


def main() -> None:
    """Run the seeds, and keep what they gave."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="none: only show what is kept")
    parser.add_argument("--lag", type=int, default=1)
    parser.add_argument("--steps", type=int, default=110)
    parser.add_argument("--set", dest="changes", nargs="*", default=[], help="KEY=VALUE of the scenario")
    parser.add_argument("--answers", type=int, default=None, help="print the commonest answers every so many steps")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in options.seeds:
        run = one_seed(seed, options.lag, options.steps, options.changes, options.answers)
        kept = json.loads(RESULT.read_text())["runs"] if RESULT.is_file() else []
        same = ("seed", "lag", "steps", "changes")
        kept = [other for other in kept if any(other[key] != run[key] for key in same)]
        run["curves"] = {task: [round(reward, 4) for reward in curve] for task, curve in run["curves"].items()}
        text = json.dumps({"version": api.code_version(), "scenario": LAPTOP.name, "runs": [*kept, run]})
        RESULT.write_text(text + "\n", encoding="utf-8")
        print(told(run), flush=True)
    show(json.loads(RESULT.read_text())["runs"] if RESULT.is_file() else [])


if __name__ == "__main__":
    main()
