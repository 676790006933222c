"""Runs a scenario on workers: on fake ones to see that the plan works, on real ones to train."""

from rollart.running.fakes import FakeTime
from rollart.running.run_scenario import run_scenario

__all__ = ["FakeTime", "run_scenario"]
