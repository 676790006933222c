"""The life of a trajectory, from its environment's reset to the end of its episode, and its end.

Owns the phases up to there and the environment slots. Knows nothing of batches or weights: it hands a finished
trajectory to the scoring, says when one has failed for good, and ends one when it is told to.
"""

from rollart.domain.commands import (
    AbortGeneration,
    CancelTimer,
    CloseEnvironment,
    EndTrajectory,
    GenerateTurn,
    ResetEnvironment,
    SetTimer,
    StepEnvironment,
)
from rollart.domain.events import (
    EngineLost,
    EnvironmentClosed,
    EnvironmentFailed,
    EnvironmentReady,
    EnvironmentStepped,
    GenerationAborted,
    TurnGenerated,
)
from rollart.domain.trajectory import End
from rollart.sched.config import ControllerConfig
from rollart.sched.fleet import Fleet
from rollart.sched.orders import Orders
from rollart.sched.parts.registry import Policy
from rollart.sched.scoring import Scoring
from rollart.sched.state import ControllerState, Intent, Phase, Trajectory

_UNDER_WAY = (Phase.RESETTING, Phase.GENERATING, Phase.STEPPING, Phase.HELD, Phase.BACKOFF)


class Rollout:
    """Drives every trajectory through reset, turns and scoring."""

    __slots__ = (
        "_config",
        "_context_limit",
        "_fleet",
        "_lockstep",
        "_max_turns",
        "_orders",
        "_recovery",
        "_scoring",
        "_state",
        "_step_timeout_s",
    )

    def __init__(
        self,
        config: ControllerConfig,
        state: ControllerState,
        policy: Policy,
        orders: Orders,
        fleet: Fleet,
        scoring: Scoring,
    ) -> None:
        self._config = config
        self._state = state
        self._orders = orders
        self._fleet = fleet
        self._scoring = scoring
        self._recovery = policy.recovery
        # Asked for at every turn.
        self._lockstep = policy.interaction.lockstep
        self._context_limit = config.context_limit
        self._max_turns = [task.max_turns for task in config.tasks]
        self._step_timeout_s = policy.recovery.step_timeout_s

    # Starting

    def start_queued(self) -> None:
        """Reset environments for waiting trajectories while slots are free; retries go first."""
        state = self._state
        while state.slots_used < self._config.environment_slots:
            trajectory_id = state.retries.pop()
            if trajectory_id is None:
                trajectory_id = state.queue.pop()
            if trajectory_id is None:
                return
            trajectory = state.trajectories.get(trajectory_id)
            if trajectory is not None and trajectory.phase is Phase.QUEUED:
                self._reset(trajectory)

    def _reset(self, trajectory: Trajectory) -> None:
        state = self._state
        state.slots_used += 1
        trajectory.has_environment = True
        state.active += 1
        trajectory.start_version = state.installed
        trajectory.phase = Phase.RESETTING
        trajectory.command = self._orders.issue(
            ResetEnvironment,
            trajectory.id,
            trajectory=trajectory.id,
            task=self._config.tasks[trajectory.task].name,
            prompt=state.groups[trajectory.group].prompt,
            group=trajectory.group,
            member=trajectory.member,
            attempt=trajectory.attempt,
            version=trajectory.start_version,
            timeout_s=self._recovery.reset_timeout_s,
        )

    # Turns

    def on_ready(self, event: EnvironmentReady) -> None:
        """The first prompt is there: generate."""
        trajectory = self._orders.answered(event.command_id)
        if trajectory is None:
            return
        trajectory.context = trajectory.total_tokens = event.prompt_tokens
        trajectory.shared = event.shared_tokens
        trajectory.reusable = 0
        if trajectory.context >= self._context_limit:
            trajectory.truncated = True
            self._finish(trajectory)
        elif self._lockstep:
            self._hold(trajectory, Intent.GENERATE)
        else:
            self._generate(trajectory)

    def on_generated(self, event: TurnGenerated) -> None:
        """The turn is complete: act on the environment, unless the context is full."""
        trajectory = self._orders.answered(event.command_id)
        if trajectory is None:
            return
        self._made(trajectory, event.output_tokens)
        trajectory.reusable = trajectory.context
        if event.truncated:
            trajectory.truncated = True
            self._finish(trajectory)
        elif self._lockstep:
            self._hold(trajectory, Intent.STEP)
        else:
            self._step(trajectory)

    def on_stepped(self, event: EnvironmentStepped) -> None:
        """The observation is there: generate the next turn, unless the episode is over."""
        trajectory = self._orders.answered(event.command_id)
        if trajectory is None:
            return
        kept = event.kept_tokens
        if kept is not None and kept < trajectory.context:
            trajectory.context = trajectory.reusable = kept
            trajectory.shared = min(trajectory.shared, kept)
        trajectory.context += event.observation_tokens
        trajectory.total_tokens += event.observation_tokens
        trajectory.turn += 1
        trajectory.partial = 0
        if event.done:
            self._finish(trajectory)
        elif trajectory.turn >= self._max_turns[trajectory.task] or trajectory.context >= self._context_limit:
            trajectory.truncated = True
            self._finish(trajectory)
        elif self._lockstep:
            self._hold(trajectory, Intent.GENERATE)
        else:
            self._generate(trajectory)

    def _made(self, trajectory: Trajectory, tokens: int) -> None:
        trajectory.partial += tokens
        trajectory.context += tokens
        trajectory.total_tokens += tokens

    def _hold(self, trajectory: Trajectory, intent: Intent) -> None:
        """In lockstep: wait for the others."""
        trajectory.phase = Phase.HELD
        trajectory.intent = intent
        self._state.held.append(trajectory.id)
        self._release_held()

    def _step(self, trajectory: Trajectory) -> None:
        trajectory.phase = Phase.STEPPING
        state = self._state
        command_id = state.next_command
        state.next_command = command_id + 1
        state.open[command_id] = trajectory.id
        trajectory.command = command_id
        self._orders.out.append(
            StepEnvironment(
                id=command_id,
                trajectory=trajectory.id,
                turn=trajectory.turn,
                timeout_s=self._step_timeout_s,
            )
        )

    def _generate(self, trajectory: Trajectory) -> None:
        state = self._state
        if not self._fleet.bind(trajectory):
            trajectory.phase = Phase.HELD
            trajectory.intent = Intent.GENERATE
            state.unrouted.append(trajectory.id)
            return
        trajectory.phase = Phase.GENERATING
        command_id = state.next_command
        state.next_command = command_id + 1
        state.open[command_id] = trajectory.id
        trajectory.command = command_id
        prefill = trajectory.prefill_engine
        self._orders.out.append(
            GenerateTurn(
                id=command_id,
                trajectory=trajectory.id,
                group=trajectory.group,
                turn=trajectory.turn,
                engine=trajectory.engine,
                incarnation=trajectory.incarnation,
                prefill_engine=None if prefill < 0 else prefill,
                context_tokens=trajectory.context,
                reusable_tokens=trajectory.reusable,
                shared_tokens=trajectory.shared,
                partial_tokens=trajectory.partial,
                max_tokens=self._context_limit - trajectory.context,
            )
        )

    # Barriers

    def _release_held(self) -> None:
        """In lockstep: once every trajectory under way waits at the barrier, let all go on."""
        state = self._state
        if not state.held or len(state.held) < state.active:
            return
        held, state.held = state.held, []
        for trajectory_id in held:
            trajectory = state.trajectories[trajectory_id]
            if trajectory.intent is Intent.STEP:
                self._step(trajectory)
            else:
                self._generate(trajectory)

    def route_waiting(self) -> None:
        """An engine came up: try again for those that had none."""
        waiting, self._state.unrouted = self._state.unrouted, []
        for trajectory_id in waiting:
            trajectory = self._state.trajectories.get(trajectory_id)
            if trajectory is not None and trajectory.phase is Phase.HELD:
                self._generate(trajectory)

    # The end of the episode

    def _finish(self, trajectory: Trajectory) -> None:
        self._leave(trajectory)
        self._scoring.finished(trajectory)
        self._release_held()

    # Failures

    def on_failed(self, event: EnvironmentFailed) -> None:
        """Close the environment; another attempt starts from a reset after the back-off."""
        trajectory = self._orders.answered(event.command_id)
        if trajectory is None:
            return
        trajectory.failures += 1
        self._close(trajectory)
        self._fleet.release(trajectory)
        delay_s = self._recovery.retry_after_s(trajectory.failures)
        if delay_s is None:
            self._scoring.lifecycle.gave_up(trajectory)
            return
        trajectory.phase = Phase.BACKOFF
        trajectory.command = self._orders.issue(SetTimer, trajectory.id, delay_s=delay_s)

    def on_timer(self, trajectory_id: int) -> None:
        """A back-off is over."""
        trajectory = self._state.trajectories[trajectory_id]
        if trajectory.phase is Phase.SCORE_BACKOFF:
            self._scoring.score(trajectory)
            return
        trajectory.attempt += 1
        trajectory.turn = trajectory.context = trajectory.reusable = trajectory.shared = trajectory.partial = 0
        trajectory.total_tokens = 0
        trajectory.truncated = False
        trajectory.phase = Phase.QUEUED
        # A barrier must not wait for it: the slot it needs may be held by those at the barrier.
        self._state.active -= 1
        self._state.retries.push(trajectory_id)
        self.start_queued()
        self._release_held()

    def on_closed(self, event: EnvironmentClosed) -> None:
        """A slot is free."""
        if self._state.open.pop(event.command_id, None) is not None:
            self._state.slots_used -= 1
            self.start_queued()

    # Engines that stop or die

    def interrupt(self) -> None:
        """Abort every generation; each goes on, with the tokens made so far, after `resume_interrupted`."""
        self._state.interrupted = True
        for trajectory in self._state.trajectories.values():
            if trajectory.phase is Phase.GENERATING:
                self._abort(trajectory)
                trajectory.phase = Phase.HELD
                trajectory.intent = Intent.GENERATE

    def resume_interrupted(self) -> None:
        """Send the interrupted generations again."""
        self._state.interrupted = False
        self.route_waiting()

    def _abort(self, trajectory: Trajectory, subject: int | None = None) -> None:
        target = trajectory.command
        self._orders.void(target)
        trajectory.command = self._orders.issue(
            AbortGeneration,
            trajectory.id if subject is None else subject,
            target=target,
            trajectory=trajectory.id,
            engine=trajectory.engine,
            incarnation=trajectory.incarnation,
        )

    def on_aborted(self, event: GenerationAborted) -> None:
        """Keep what was made, unless the trajectory has ended; it goes on once the interruption is over."""
        trajectory = self._orders.answered(event.command_id)
        if trajectory is None:
            return
        self._made(trajectory, event.output_tokens)
        trajectory.reusable = trajectory.context
        trajectory.command = -1
        if self._state.interrupted and trajectory.context < self._config.context_limit:
            self._state.unrouted.append(trajectory.id)
        else:
            self._again(trajectory, 0)

    def engine_lost(self, event: EngineLost) -> None:
        """Send all that was open on a lost incarnation elsewhere, with the tokens that the event saves.

        What it does not list was on its way to the dead engine, or an abort that is never answered: nothing saved.
        """
        state = self._state
        lost = list(zip(event.commands, event.saved_tokens, strict=True))
        for trajectory in state.trajectories.values():
            if trajectory.engine == event.engine and trajectory.incarnation == event.incarnation:
                lost.append((trajectory.command, 0))
        for command_id, made in lost:
            cut_short = state.trajectories.get(state.open.get(command_id, -1))
            if cut_short is not None and cut_short.phase in (Phase.GENERATING, Phase.HELD):
                del state.open[command_id]
                self._again(cut_short, made)

    def _again(self, trajectory: Trajectory, made: int) -> None:
        """Go on with the turn that was cut short after `made` further tokens."""
        if self._recovery.migrate:
            self._made(trajectory, made)
        if trajectory.context >= self._context_limit:
            trajectory.truncated = True
            self._finish(trajectory)
        else:
            self._generate(trajectory)

    # Ending

    def end(self, trajectory: Trajectory, end: End) -> None:
        """End a trajectory wherever it is, and drop what is held for it."""
        phase = trajectory.phase
        if phase is Phase.GENERATING:
            self._abort(trajectory, -1)
        elif phase in (Phase.BACKOFF, Phase.SCORE_BACKOFF):
            self._orders.void(trajectory.command)
            self._orders.issue(CancelTimer, -1, target=trajectory.command)
        elif trajectory.command >= 0:
            self._orders.void(trajectory.command)
        if phase in _UNDER_WAY:
            if phase is Phase.HELD and trajectory.id in self._state.held:
                self._state.held.remove(trajectory.id)
            self._leave(trajectory)
        elif phase is Phase.FINISHED:
            self._state.unscored.remove(trajectory.id)
        self._orders.issue(EndTrajectory, -1, trajectory=trajectory.id, end=end)
        del self._state.trajectories[trajectory.id]

    def settle(self) -> None:
        """After trajectories were ended: barriers may open."""
        self._release_held()
        self._scoring.settle()

    def _leave(self, trajectory: Trajectory) -> None:
        """The trajectory is no longer under way: free its engine and its environment."""
        self._state.active -= 1
        self._fleet.release(trajectory)
        self._close(trajectory)

    def _close(self, trajectory: Trajectory) -> None:
        if trajectory.has_environment:
            trajectory.has_environment = False
            self._orders.issue(CloseEnvironment, trajectory.id, trajectory=trajectory.id)
