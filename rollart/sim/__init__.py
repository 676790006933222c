"""The simulator: carries out the controller's commands on SimPy, with durations from cost models."""

from rollart.sim.simulate import SimulationResult, simulate

__all__ = ["SimulationResult", "simulate"]
