"""Scenario and plan files: read, checked, and turned into domain objects."""
