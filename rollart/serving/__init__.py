"""One LLM engine: continuous batching, paged KV, prefix cache; a pure object that is told the time."""

from rollart.serving.config import EngineConfig
from rollart.serving.counters import Usage
from rollart.serving.engine import Engine
from rollart.serving.request import Completion, Loss, Request, Role

__all__ = ["Completion", "Engine", "EngineConfig", "Loss", "Request", "Role", "Usage"]
