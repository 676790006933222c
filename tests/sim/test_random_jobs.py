"""Promises that hold on every job: no deadlock, invariants, replay, and conservation of tokens and trajectories."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollart.domain.commands import (
    AbortGeneration,
    EndTrajectory,
    GenerateTurn,
    ResetEnvironment,
    StepEnvironment,
    TrainBatch,
)
from rollart.domain.events import (
    EngineLost,
    EngineUpdated,
    EnvironmentReady,
    EnvironmentStepped,
    GenerationAborted,
    TurnGenerated,
)
from rollart.domain.trajectory import End
from rollart.runlog.samples import EngineSample, LinkSample
from rollart.sched.presets import PRESETS
from tests.sim.random_jobs import KV_BLOCKS, random_case
from tests.sim.runs import run

SEEDS = st.integers(0, 2**32)


def simulate(case):
    groups = case.job.plan.placement.engine_groups
    costs = {group.name: case.costs for group in groups}
    return run(case.job, case.workload, costs=costs, kv_blocks=KV_BLOCKS)


class TokenCount:
    """Tokens of every trajectory, counted from the log alone."""

    def __init__(self, migrate):
        self.migrate = migrate
        self.tokens = {}
        self.open = {}

    def take(self, record):
        if isinstance(record, ResetEnvironment | StepEnvironment | GenerateTurn):
            self.open[record.id] = record
        elif isinstance(record, AbortGeneration):
            self.open.pop(record.target, None)
            self.open[record.id] = record
        elif isinstance(record, EngineLost):
            self._lost(record)
        elif isinstance(record, EnvironmentReady | EnvironmentStepped | TurnGenerated | GenerationAborted):
            command = self.open.pop(record.command_id, None)
            if command is not None:
                self._answered(command.trajectory, record)

    def _answered(self, trajectory, event):
        if isinstance(event, EnvironmentReady):
            self.tokens[trajectory] = event.prompt_tokens
        elif isinstance(event, EnvironmentStepped):
            self.tokens[trajectory] += event.observation_tokens
        else:
            self.tokens[trajectory] += event.output_tokens

    def _lost(self, event):
        for number, made in zip(event.commands, event.saved_tokens, strict=True):
            command = self.open.pop(number, None)
            if command is not None and self.migrate:
                self.tokens[command.trajectory] += made
        for number, command in list(self.open.items()):
            # An abort that the dead engine does not answer any more.
            where = (getattr(command, "engine", None), getattr(command, "incarnation", None))
            if where == (event.engine, event.incarnation):
                del self.open[number]


def check(case):
    finished = simulate(case)
    assert finished.invariants().violation is None
    assert finished.replay().difference is None
    check_trajectories(case, finished)
    check_trained_tokens(case, finished)
    check_engines(case, finished)
    check_times(finished)


def check_trajectories(case, finished):
    statistics, job = finished.statistics, case.job
    assert statistics.open_trajectories == 0
    assert statistics.ends[End.TRAINED] == job.steps * job.training.batch_size
    ends = Counter(record.end for _, record in finished.of(EndTrajectory))
    assert sum(ends.values()) == sum(statistics.ends.values()) + statistics.never_begun
    per_task = Counter()
    for task in statistics.tasks:
        per_task[task.task] = task.ends[End.TRAINED]
    # Equal shares and equal group sizes: every task has its part of every batch.
    assert set(per_task.values()) == {job.steps * job.training.batch_size // len(job.tasks)}


def check_trained_tokens(case, finished):
    count = TokenCount(case.job.plan.policy.parts["recovery"]["migrate"])
    for _, _, record in finished.records:
        count.take(record)
        if isinstance(record, TrainBatch):
            assert record.context_tokens == tuple(count.tokens[number] for number in record.trajectories)
    # A step that is done again, since the trainer was lost, has the same batch.
    batches = {record.version: record for _, record in finished.of(TrainBatch)}
    assert [step.tokens for step in finished.statistics.steps] == [
        sum(batch.context_tokens) for batch in batches.values()
    ]


def check_engines(case, finished):
    groups = case.job.plan.placement.engine_groups
    judges = {entry.engine for entry in finished.header.engines if entry.role == "judge"}
    samples = {sample.engine: sample for _, sample in finished.of(EngineSample)}
    turns = [turn for _, turn in finished.of(TurnGenerated)]
    made = sum(turn.output_tokens for turn in turns)
    decoded = sum(sample.decode_tokens for engine, sample in samples.items() if engine not in judges)
    # A prompt that becomes whole makes a token too: at the start, after a preemption, and after a weight update.
    again = sum(sample.preemptions for sample in samples.values())
    updates = len(finished.of(EngineUpdated)) * max(group.max_num_seqs for group in groups)
    assert decoded >= made - len(turns) - again - updates
    end_s = finished.statistics.end_s
    for sample in samples.values():
        assert sample.busy_s <= end_s + 1e-6
        assert sample.kv_block_s <= KV_BLOCKS * end_s + 1e-6
    for _, link in finished.of(LinkSample):
        assert link.busy_s <= end_s + 1e-6 or link.link == "weights"


def check_times(finished):
    times = [time_s for _, time_s, _ in finished.records]
    assert times == sorted(times)
    for step in finished.statistics.steps:
        assert sum(step.stages_s.values()) == pytest.approx(step.duration_s, abs=1e-6)
    for time_s, turn in finished.of(TurnGenerated):
        assert min(turn.queue_s, turn.prefill_s, turn.decode_s) >= -1e-9
        assert turn.queue_s + turn.prefill_s + turn.decode_s <= time_s + 1e-6


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_promises_hold_on_random_jobs(seed):
    check(random_case(seed))


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_promises_hold_under_every_preset(preset):
    for seed in range(100, 103):
        check(random_case(seed, preset))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(SEEDS, st.sampled_from(sorted(PRESETS)))
def test_promises_hold_on_many_random_jobs(seed, preset):
    check(random_case(seed, preset))
