"""Figures of runs, drawn with matplotlib's Agg canvas; nothing global is left behind."""

from rollart.report.figures.breakdown import draw_breakdown
from rollart.report.figures.gantt import draw_gantt
from rollart.report.figures.policies import PolicyBar, draw_policies, policy_bars
from rollart.report.figures.rewards import draw_rewards
from rollart.report.figures.staleness import draw_staleness
from rollart.report.figures.utilization import draw_utilization

__all__ = [
    "PolicyBar",
    "draw_breakdown",
    "draw_gantt",
    "draw_policies",
    "draw_rewards",
    "draw_staleness",
    "draw_utilization",
    "policy_bars",
]
