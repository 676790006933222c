"""Planning a scenario: the optimiser's plans, judged by simulations over all cores that are remembered on disk."""
