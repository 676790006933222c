"""What a prefill engine hands to the decode engine of a turn."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from rollart.exec.real.engines.turn import Turn


class Handover(NamedTuple):
    """A prompt whose KV waits to be fetched."""

    parameters: Mapping[str, Any]
    """By which vLLM's connector finds the KV."""
    prefilled: Turn
    """How the prompt was computed. Its one token is not used: the decode engine samples the first."""

    @classmethod
    def of(cls, fields: Sequence[Any]) -> Self:
        """One that came as a message."""
        parameters, prefilled = fields
        return cls(parameters=parameters, prefilled=Turn(*prefilled))

    @property
    def version(self) -> int:
        """Weights that the KV is of."""
        return self.prefilled.versions[0]
