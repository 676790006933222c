"""Workers whose durations come from cost models: engines, environments, rewards, trainer, weights, and their faults.

The simulator runs them in simulated time, the executor's fake workers behind real messages; they know only a clock.
"""
