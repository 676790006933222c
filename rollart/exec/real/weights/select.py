"""Which carrier the weights of a run have."""

import hashlib
import socket
from pathlib import Path

from rollart.domain.execution import ExecutionSettings
from rollart.exec.real.weights.carrier import Carrier, RayObjects
from rollart.exec.real.weights.mooncake import MooncakeStore


def carrier_of(settings: ExecutionSettings, folder: Path) -> Carrier:
    """The carrier that the settings name. `folder`: of the run, whose name in a store that others use follows from it.

    A resumed run so has the name that it had before, and finds what its killed driver has left there.
    """
    if settings.mooncake is None:
        return RayObjects()
    place = f"{socket.gethostname()}:{folder.resolve()}"
    return MooncakeStore(settings.mooncake, f"rollart-{hashlib.sha256(place.encode()).hexdigest()[:16]}")
