"""What vLLM's workers import so that their weight transfer goes over gloo."""

from rollart.exec.real.engines.worker_extension import WeightInstaller
from tests.exec.real.gloo_weights import take_nccls_place

take_nccls_place()


class GlooInstaller(WeightInstaller):
    """The same, in a process where gloo has NCCL's place."""
