"""The run log: what a driver and the controller said to each other, and every figure that follows from it."""
