"""Rewards from a judge model on engines of its own: it reads a trajectory, and a rule reads what it answers."""

from collections.abc import Sequence
from math import ceil

from rollart.domain.execution import JudgeExecution
from rollart.domain.trajectory import Cause
from rollart.exec.real.engines.fleet import EngineFleet
from rollart.exec.real.rewards.function import Request
from rollart.exec.real.rewards.rules import question, score_of
from rollart.exec.real.rewards.scoring import RewardFailure
from rollart.exec.real.tokens import Tokenizer


class JudgeService:
    """Asks the least busy engine of a task's group."""

    def __init__(
        self,
        task: str,
        judge: JudgeExecution,
        tokenizer: Tokenizer,
        engines: Sequence[int],
        judge_tokens: int,
        context_limit: int,
        fleet: EngineFleet,
    ) -> None:
        """`tokenizer`: the judge's. `judge_tokens`: most that it writes. `context_limit`: prompt and judgement."""
        self._task = task
        self._judge = judge
        self._tokenizer = tokenizer
        self._engines = engines
        self._tokens = judge_tokens
        self._room = context_limit - judge_tokens
        self._fleet = fleet
        self.billed_s = 0.0
        self.cold_starts = 0

    async def start(self) -> None:
        """The engines are started with all others."""

    async def ask(self, request: Request) -> float:
        """The score of a judgement; a failure when no engine of the group is up, or the answer has none."""
        up = [index for index in self._engines if self._fleet.links[index].mailbox is not None]
        if not up:
            raise RewardFailure(Cause.ERROR, "no judge is up")
        index = min(up, key=lambda one: (len(self._fleet.links[one].asked), one))
        turn = await self._fleet.ask(index, self._task, self._prompt(request), self._tokens)
        if turn is None:
            raise RewardFailure(Cause.ERROR, "the judge died")
        try:
            return score_of(self._tokenizer.text(turn.tokens), self._judge)
        except ValueError as error:
            raise RewardFailure(Cause.ERROR, str(error)) from error

    def _prompt(self, request: Request) -> list[int]:
        """The question; a dialogue that is too long loses its beginning."""
        fields = {key: str(request[key]) for key in ("task", "text", "answer")}
        while True:
            ids = self._tokenizer.observation(question(self._judge.prompt, fields), first=True)
            if len(ids) <= self._room:
                return ids
            longest = max(("text", "answer"), key=lambda key: len(fields[key]))
            text = fields[longest]
            if not text:
                raise RewardFailure(Cause.ERROR, f"the question has {len(ids)} tokens; {self._room} are left for it")
            fields[longest] = text[ceil(len(text) * (1 - self._room / len(ids))) :]

    async def close(self) -> None:
        """The engines are stopped with all others."""
