"""The parts of a policy: one slot, one small interface, one class per rule.

A part is a frozen dataclass: its fields are the parameters of a scenario, it has no state of its own. `SLOTS` maps
each slot to its rules by name; `register` adds one.
"""

from rollart.sched.parts.registry import SLOTS, Policy, build, register

__all__ = ["SLOTS", "Policy", "build", "register"]
