"""Every error that RollArt raises on purpose.

    RollArtError                 what a user can mend; the CLI prints it as one line and exits with 1
    ├── InputError               a file or an option is wrong: what, where, what would be right
    │   ├── ScenarioError        scenario or plan file
    │   └── TraceError           workload trace or profile
    ├── CapacityError            a model, batch or plan does not fit its devices (with the numbers)
    ├── OutputError              a result could not be written
    ├── StartError               a process of a run could not start, with what it said
    ├── WorkerError              a process of a run failed at its work, with what it said
    ├── StuckError               a run cannot go on: no engine is left, or the trainer dies at every step
    ├── RunInterrupted           a user stopped a run, which can be resumed
    └── RunLogError              a run log is broken, or of another schema version

    InvariantError               a promise of the control plane is broken: a bug, never caught

A failed rollout is data with a cause, not an exception.
"""


class RollArtError(Exception):
    """Base of all errors that a user can mend."""


class InputError(RollArtError):
    """Bad input; the message names the place, the value and what would be right."""


class ScenarioError(InputError):
    """A scenario or plan file is wrong."""


class TraceError(InputError):
    """A workload trace or profile is wrong."""


class CapacityError(RollArtError):
    """Something does not fit where it was placed; the message has the numbers."""


class OutputError(RollArtError):
    """A result could not be written."""


class StartError(RollArtError):
    """A process of a run could not start; the message says why, as far as the process knew."""


class WorkerError(RollArtError):
    """A process of a run failed at its work in a way that would come again."""


class StuckError(RollArtError):
    """A run cannot go on with what is left of its workers."""


class RunInterrupted(RollArtError):
    """A run was stopped on purpose before its end."""


class RunLogError(RollArtError):
    """A run log cannot be read, or breaks its schema."""


class InvariantError(AssertionError):
    """A promise of the control plane is broken; this is a bug in RollArt."""
