"""The vocabulary: cluster, model, task, trajectory, plan, events and commands. Data, no behaviour of its own."""
