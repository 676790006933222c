"""Environments: what the agents act on, in processes of their own."""
