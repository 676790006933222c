"""The control plane: a pure state machine from events to commands, and the parts that policies are made of."""

from rollart.sched.config import ControllerConfig, EngineClass, TaskConfig
from rollart.sched.controller import Controller
from rollart.sched.presets import PRESETS, resolve

__all__ = ["PRESETS", "Controller", "ControllerConfig", "EngineClass", "TaskConfig", "resolve"]
