"""The trainer: PyTorch and GRPO."""
