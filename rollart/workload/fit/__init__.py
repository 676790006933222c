"""Profiles fitted to recorded trajectories: distributions, tails, correlations and rates of each task."""
