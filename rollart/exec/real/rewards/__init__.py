"""Rewards that are not computed by the environment."""
