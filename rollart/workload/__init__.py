"""What is to be generated: recorded traces, statistical profiles, and the trajectories drawn from them.

A *trace* is a file of recorded trajectories (`trace`, `trace_reader`, `trace_writer`, `importers`). A
*profile* is a file of distributions per task (`profile`, `quantiles`). Drivers ask a `Workload` for a
`TrajectorySpec` by (task, prompt, member, attempt), and the answer does not depend on the order in which they
ask. This package knows nothing of devices, engines, policies or simulated time.
"""
