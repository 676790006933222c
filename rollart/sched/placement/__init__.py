"""The planner: which devices train, which roll out, which task goes where."""
