"""The whole state of a controller: plain data, nothing derived, so that a snapshot is one encode away."""

from enum import IntEnum

import msgspec


class Phase(IntEnum):
    """Where a trajectory is in its life (see the diagram in docs/control-plane.md)."""

    QUEUED = 0
    """Admitted, waits for an environment slot."""
    RESETTING = 1
    GENERATING = 2
    STEPPING = 3
    HELD = 4
    """Waits for the others of a batch-paced rollout, or for an engine."""
    BACKOFF = 5
    """Its environment failed; a timer runs."""
    FINISHED = 6
    """Its episode is over, the reward is not asked for yet."""
    SCORING = 7
    SCORE_BACKOFF = 8
    SCORED = 9
    """In the buffer."""


class Intent(IntEnum):
    """What a held trajectory does next."""

    GENERATE = 0
    STEP = 1


class Trajectory(msgspec.Struct, kw_only=True, gc=False):
    """One episode on its way."""

    id: int
    task: int
    group: int
    member: int
    attempt: int = 0
    phase: Phase = Phase.QUEUED
    intent: Intent = Intent.GENERATE
    command: int = -1
    """The open command that its progress waits for; -1: none."""
    engine: int = -1
    incarnation: int = -1
    prefill_engine: int = -1
    prefill_incarnation: int = -1
    turn: int = 0
    context: int = 0
    reusable: int = 0
    shared: int = 0
    partial: int = 0
    """Tokens of the current turn made so far."""
    total_tokens: int = 0
    """Prompt, observations and responses, compacted ones too: what the trainer gets."""
    start_version: int = 0
    failures: int = 0
    score_failures: int = 0
    truncated: bool = False
    has_environment: bool = False
    reward: float = 0.0


class Group(msgspec.Struct, kw_only=True):
    """Trajectories of one prompt."""

    id: int
    task: int
    prompt: int
    version: int
    """Lower bound of its members' start versions."""
    members: list[int]
    """Trajectories that have not ended."""
    scored: list[int]
    next_member: int
    replaced: int = 0
    complete: bool = False


class TaskState(msgspec.Struct, kw_only=True):
    """Counts of one task."""

    opened: int = 0
    """Groups started."""
    dropped: int = 0
    """Groups that ended without being trained."""
    ready: dict[int, None] = {}
    """Complete groups, in the order of completion."""


class EngineStatus(IntEnum):
    """What the controller knows of an engine."""

    UP = 0
    JOINING = 1
    """Restarting, or waiting for its weights."""
    REMOVED = 2
    CATCHING_UP = 3
    """Installing the version that the others have."""


class Engine(msgspec.Struct, kw_only=True, gc=False):
    """One engine."""

    status: EngineStatus = EngineStatus.UP
    incarnation: int = 0
    version: int = 0
    load: int = 0
    """Trajectories bound to it."""
    losses: int = 0
    order: int = -1
    """Latest order to it as a newcomer (restart, catch up, resume)."""


class SyncPhase(IntEnum):
    """Progress of a weight update."""

    IDLE = 0
    FETCHING = 1
    """Push and pull run beside the rollout."""
    FETCHED = 2
    SUSPENDING = 3
    PUSHING = 4
    UPDATING = 5
    RESUMING = 6
    OFFLOADING = 7
    """Engines on time-shared devices give their memory back before a training step."""


class Step(msgspec.Struct, kw_only=True):
    """A batch that the trainer got or gets, until a checkpoint has it."""

    step: int
    version: int
    installed: int
    trajectories: tuple[int, ...]
    start_versions: tuple[int, ...]
    context_tokens: tuple[int, ...]


class Trainer(msgspec.Struct, kw_only=True):
    """The trainer."""

    up: bool = True
    incarnation: int = 0
    version: int = 0
    """Version that it holds."""
    checkpoint: int = 0
    """Version of its last checkpoint; 0 is the initial model."""
    order: int = -1
    """Latest RestartTrainer."""
    losses: int = 0
    """Losses since it last finished a step."""
    steps: list[Step] = []
    """Steps that the checkpoint lacks, and the one that is ordered, by version without gaps."""


class Sync(msgspec.Struct, kw_only=True):
    """The weight update under way."""

    phase: SyncPhase = SyncPhase.IDLE
    target: int = 0
    newest: int = 0
    """Latest version that was trained; fetched when the target is installed."""
    wanted: bool = False
    """The training loop waits for the update."""
    waiting: dict[int, int] = {}
    """Open command -> engine (-1: the push)."""
    pulled: dict[int, None] = {}
    """Engines whose host has the target version."""
    suspended: dict[int, None] = {}
    joining: list[int] = []
    """Restarted engines that get their weights when the update is over."""
    unpublished: bool = False
    """The store does not have the installed version, since the run was resumed."""
    push_due: bool = False
    """The push waits for the trainer, which is down or does steps again."""


class Fifo(msgspec.Struct, kw_only=True):
    """A first-in-first-out queue of numbers, as plain data; both ends cost O(1)."""

    items: list[int] = []
    head: int = 0

    def push(self, item: int) -> None:
        """Append at the end."""
        self.items.append(item)

    def pop(self) -> int | None:
        """Take the first; None when it is empty."""
        if self.head == len(self.items):
            return None
        item = self.items[self.head]
        self.head += 1
        if self.head > 64 and self.head * 2 > len(self.items):
            del self.items[: self.head]
            self.head = 0
        return item


class ControllerState(msgspec.Struct, kw_only=True):
    """Everything that changes."""

    next_command: int = 0
    next_trajectory: int = 0
    next_group: int = 0
    trajectories: dict[int, Trajectory] = {}
    groups: dict[int, Group] = {}
    tasks: list[TaskState] = []
    engines: list[Engine] = []
    open: dict[int, int] = {}
    """Open command -> trajectory, or engine, by the kind of the command; -1: only its answer is awaited."""
    retries: Fifo = msgspec.field(default_factory=Fifo)
    """Trajectories whose next attempt waits for an environment slot; served before `queue`."""
    queue: Fifo = msgspec.field(default_factory=Fifo)
    """Trajectories that wait for their first environment slot."""
    slots_used: int = 0
    by_version: dict[int, dict[int, None]] = {}
    """Start version -> groups, for eviction."""
    held: list[int] = []
    unrouted: list[int] = []
    """Trajectories that wait for an engine to come up."""
    interrupted: bool = False
    """Generations were aborted for a weight update and wait for its end."""
    active: int = 0
    """Trajectories between reset and the end of their episode, without those whose retry waits for a slot."""
    unscored: list[int] = []
    """Finished trajectories whose reward waits for the end of the rollout."""
    installed: int = 0
    """n of every rule: the version installed on the engines."""
    trained: int = 0
    taken: int = 0
    """Batches taken."""
    counted: int = 0
    """Batches taken that admission counts already (later than `taken` while an update runs)."""
    training: int = -1
    """Open TrainBatch command (or RestartTrainer, where a batch waits for it); -1: the trainer has nothing to do."""
    trainer: Trainer = msgspec.field(default_factory=Trainer)
    batch: list[Trajectory] = []
    """The batch that is taken but not yet in training."""
    batch_installed: int = 0
    """Version that was installed when it was taken."""
    sync: Sync = msgspec.field(default_factory=Sync)
    stopped: bool = False
