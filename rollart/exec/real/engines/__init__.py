"""Engines: vLLM behind Ray actors."""
