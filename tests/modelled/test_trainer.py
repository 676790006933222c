from rollart.domain.commands import TrainBatch
from rollart.domain.events import TrainingEnded
from rollart.modelled.trainer import Trainer
from tests.modelled.toys import ToyTraining
from tests.sim.runs import Bench


def batch(command, version, *context_tokens):
    count = len(context_tokens)
    return TrainBatch(
        id=command,
        step=version - 1,
        version=version,
        installed=version - 1,
        trajectories=tuple(range(count)),
        start_versions=(0,) * count,
        context_tokens=context_tokens,
    )


def test_a_step_takes_what_its_cost_model_says():
    bench, costs = Bench(), ToyTraining(base_s=2.0, token_s=1 / 64)
    trainer = Trainer(costs, 1000, bench.clock, bench.report)
    bench.at(1.0, lambda: trainer.train(batch(7, 3, 64, 128)))
    assert bench.run() == [(6.0, TrainingEnded(command_id=7, version=3))]
    assert trainer.busy_s == 5.0


def test_a_compacted_trajectory_counts_at_most_the_context_limit():
    bench, costs = Bench(), ToyTraining()
    trainer = Trainer(costs, 1000, bench.clock, bench.report)
    bench.at(0.0, lambda: trainer.train(batch(0, 1, 999, 1000, 5000)))
    bench.run()
    assert costs.batches == [[999, 1000, 1000]]
