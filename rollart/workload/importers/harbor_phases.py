"""The phases of a Harbor trial: when its environment was set up, its agent ran, its verifier judged.

What the agent's phase holds beside the calls of the model is the time of its environment steps; it is spread
evenly over the turns, so the sum is measured and each turn is an estimate.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from rollart.workload.importers.clock import instant, span_s
from rollart.workload.trace import Tokens, TraceTurn


class Phase(msgspec.Struct, frozen=True):
    """Start and end, ISO 8601."""

    started_at: str | None = None
    finished_at: str | None = None

    def seconds(self, name: str) -> float | None:
        """How long it took; None if it did not end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return span_s(instant(self.started_at), instant(self.finished_at), name)


class AgentMetadata(msgspec.Struct, frozen=True):
    """What the terminus agent notes."""

    n_episodes: Tokens | None = None
    api_request_times_msec: list[Annotated[float, Meta(ge=0.0)]] = []


class AgentResult(msgspec.Struct, frozen=True):
    """Sums over all calls."""

    n_input_tokens: Tokens | None = None
    n_output_tokens: Tokens | None = None
    metadata: AgentMetadata | None = None


class VerifierResult(msgspec.Struct, frozen=True):
    """Rewards by name, or one."""

    rewards: dict[str, float | None] | None = None
    reward: float | None = None


class Phases(msgspec.Struct, frozen=True):
    """The part of a trial's result that importers use."""

    environment_setup: Phase | None = None
    agent_setup: Phase | None = None
    agent_execution: Phase | None = None
    verifier: Phase | None = None
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: msgspec.Raw = msgspec.Raw()

    @classmethod
    def of(cls, metadata: bytes) -> "Phases":
        """From a row's metadata, which is of other systems in most rows."""
        return msgspec.json.decode(metadata, type=cls) if metadata.startswith(b"{") else cls()

    @property
    def reset_s(self) -> float | None:
        """Seconds of setting up the environment and the agent in it."""
        setup = self.environment_setup.seconds("environment_setup") if self.environment_setup else None
        agent = self.agent_setup.seconds("agent_setup") if self.agent_setup else None
        return None if setup is None else setup + (agent or 0.0)

    @property
    def reward_s(self) -> float | None:
        """Seconds of the verifier."""
        return self.verifier.seconds("verifier") if self.verifier else None

    @property
    def reward(self) -> float | None:
        """The reward named "reward", else the only one."""
        found = self.verifier_result
        if found is None or found.rewards is None:
            return None if found is None else found.reward
        if "reward" in found.rewards:
            return found.rewards["reward"]
        return next(iter(found.rewards.values())) if len(found.rewards) == 1 else None

    @property
    def failed(self) -> bool:
        """Whether the trial ended in an exception."""
        return bytes(self.exception_info) not in (b"", b"null")

    def spread(self, turns: tuple[TraceTurn, ...]) -> tuple[TraceTurn, ...]:
        """The turns with the time of the steps, where the times of the model's calls are known."""
        agent_s = self.agent_execution.seconds("agent_execution") if self.agent_execution else None
        metadata = self.agent_result.metadata if self.agent_result else None
        if agent_s is None or metadata is None or not metadata.api_request_times_msec:
            return turns
        step_s = max(0.0, agent_s - sum(metadata.api_request_times_msec) / 1000.0) / len(turns)
        return tuple(msgspec.structs.replace(turn, env_s=step_s) for turn in turns)
