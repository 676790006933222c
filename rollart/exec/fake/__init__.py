"""Fake workers: the modelled workers behind real messages, many in one process.

They say how long things take by the cost models of the simulator, so that any plan dry-runs on a laptop with the
driver, the messages and the log of a real run.
"""

from rollart.exec.fake.workers import FakeWorkers, fake_workers

__all__ = ["FakeWorkers", "fake_workers"]
