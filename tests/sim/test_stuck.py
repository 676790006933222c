"""A run that cannot go on says so."""

import pytest

from rollart.domain.errors import StuckError
from rollart.domain.job import Faults
from tests.modelled.toys import job, same_for_all
from tests.sim.runs import run


def test_without_any_engine_left_the_run_is_stuck():
    faults = Faults(engine_mtbf_s=1e-3, engine_restart_s=1e-3)
    with pytest.raises(StuckError, match="no engine is left"):
        run(job(parts={"recovery": {"max_engine_restarts": 1}}, faults=faults), same_for_all())
