"""Token counts of a provider, in the names of OpenAI's chat API."""

import msgspec

from rollart.workload.importers.episode import Call
from rollart.workload.trace import Tokens


class PromptDetails(msgspec.Struct, frozen=True):
    """Part of the prompt that was found in the provider's cache."""

    cached_tokens: Tokens | None = None


class ProviderUsage(msgspec.Struct, frozen=True):
    """Counts of one call; `prompt_tokens` includes the cached ones."""

    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    prompt_tokens_details: PromptDetails | None = None

    def call(self, env_s: float | None = None) -> Call:
        """The call that they are of, and the step after it."""
        details = self.prompt_tokens_details
        return Call(
            context_tokens=self.prompt_tokens,
            output_tokens=self.completion_tokens,
            cached_tokens=None if details is None else details.cached_tokens,
            env_s=env_s,
        )
