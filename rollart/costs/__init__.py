"""Seconds for work: engine iterations, training steps, weight transfers, environment calls."""
