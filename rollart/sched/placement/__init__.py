"""The planner: which devices train, which roll out, which task goes where."""

from rollart.sched.placement.planner import PlanReport, plan

__all__ = ["PlanReport", "plan"]
