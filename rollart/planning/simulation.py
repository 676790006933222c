"""One trial simulated: what a worker process does."""

from rollart.domain.errors import RollArtError
from rollart.scenario.scenario import Scenario
from rollart.sched.placement.trial import Outcome, Trial
from rollart.sim import simulate
from rollart.workload.reshaped import AS_IT_IS, ReshapedWorkload
from rollart.workload.trajectory import Workload


def simulate_trial(scenario: Scenario, trial: Trial) -> Outcome:
    """Simulate a trial on the workload of a scenario; a plan that does not fit or gets stuck is a failed outcome."""
    try:
        result = simulate(trial.job, trial_workload(scenario, trial))
    except RollArtError as error:
        return Outcome(step_s=(), cost=(), trajectories=0, failure=str(error))
    steps = result.statistics.counted_steps
    return Outcome(
        step_s=tuple(step.duration_s for step in steps),
        cost=tuple(step.usage.cost for step in steps if step.usage is not None),
        trajectories=sum(step.trajectories for step in steps),
    )


def trial_workload(scenario: Scenario, trial: Trial) -> Workload:
    """The scenario's workload under the seed of a trial, reshaped as it says."""
    workload = scenario.workload(trial.job.seed)
    if trial.reshape == AS_IT_IS:
        return workload
    return ReshapedWorkload(workload, trial.reshape, trial.job.training.context_limit)
