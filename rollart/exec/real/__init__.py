"""Real workers: Ray places them, vLLM generates, environments answer, PyTorch trains, weights travel.

Nothing here decides anything: workers carry out the controller's commands and report what happened. Tokens, log-probs
and versions stay here, beside the events, which carry counts.
"""
