"""What a prefill engine hands to the decode engine of a turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollart.exec.real.engines.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A prompt whose KV waits to be fetched."""

    parameters: Mapping[str, Any]
    """By which vLLM's connector finds the KV."""
    prefilled: Turn
    """How the prompt was computed. Its one token is not used: the decode engine samples the first."""

    @property
    def version(self) -> int:
        """Weights that the KV is of."""
        return self.prefilled.versions[0]
