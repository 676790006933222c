"""The trainer from the driver's side, with ranks that answer as a test says."""

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

from ray.exceptions import RayActorError, RayTaskError

from rollart.domain.commands import TrainBatch
from rollart.domain.errors import OutputError, WorkerError
from rollart.domain.events import TrainerLost, TrainingEnded
from rollart.domain.execution import Learning
from rollart.exec.real.episodes import Episodes
from rollart.exec.real.trainer.group import TrainerGroup

COMMAND = TrainBatch(
    id=3, step=0, version=1, trajectories=(), start_versions=(0,), installed=0, context_tokens=(), checkpoint=False
)


class Bench:
    """A trainer of one rank, and what it has said."""

    def __init__(self, answer, folder):
        self.events, self.reasons, self.steps, self.work = [], [], [], []
        self.trainer = TrainerGroup(
            list,
            Learning(),
            (),
            Episodes(),
            self.work.append,
            self.events.append,
            lambda *told: self.reasons.append(told),
            self.steps.append,
            folder,
            0,
        )

        async def train(*_):
            if isinstance(answer, Exception):
                raise answer
            return answer

        self.trainer._ranks = [SimpleNamespace(train=SimpleNamespace(remote=train))]

    def train(self):
        self.trainer.train(COMMAND)
        asyncio.run(self.work.pop())


def test_a_step(tmp_path):
    bench = Bench({"train_s": 0.5}, tmp_path)
    bench.train()
    assert bench.events == [TrainingEnded(command_id=3, version=1)]
    assert (bench.trainer.busy_s, bench.steps[0].staleness) == (0.5, (0,))


def test_a_rank_that_dies_is_the_loss_of_the_trainer_and_told_why(tmp_path):
    bench = Bench(RayActorError(), tmp_path)
    bench.train()
    assert bench.events == [TrainerLost(incarnation=0)]
    ((what, reason),) = bench.reasons
    assert what == "the trainer"
    assert reason == "The actor experienced an error before finishing this task."


@pytest.mark.parametrize(
    ("raised", "error", "told"),
    [
        (MemoryError("80 GiB\nwere asked for."), WorkerError, "the trainer failed: MemoryError: 80 GiB were asked for"),
        (OutputError("/out: the disk is full"), OutputError, "/out: the disk is full"),
    ],
    ids=["out of memory", "what a user can mend already"],
)
def test_what_a_rank_raises_ends_the_run_in_a_line(tmp_path, raised, error, told):
    bench = Bench(RayTaskError("train", "trace", raised), tmp_path)
    with pytest.raises(error) as ended:
        bench.train()
    assert str(ended.value) == told
    assert bench.events == []
