"""Reads a scenario file."""

from collections.abc import Sequence
from pathlib import Path

from rollart.domain.errors import ScenarioError
from rollart.scenario.overrides import apply_overrides
from rollart.scenario.problems import check_form
from rollart.scenario.scenario import Scenario
from rollart.scenario.sections.document import ScenarioFile
from rollart.scenario.yaml_file import read_mapping


def load_scenario(path: Path | str, overrides: Sequence[str] = (), *, plan: Path | str | None = None) -> Scenario:
    """Read a scenario file, change it by KEY=VALUE settings and by a plan file, and check all of it.

    Raises ScenarioError: at most a few lines, each naming file, key, value and what would be right.
    """
    path = Path(path)
    raw = read_mapping(path)
    try:
        apply_overrides(raw, overrides)
    except ScenarioError as error:
        raise ScenarioError(f"{path.name}: {error}") from error
    document = check_form(ScenarioFile, raw, path.name)
    scenario = Scenario(document=document, origin=path.name, folder=path.resolve().parent)
    if plan is not None:
        scenario = scenario.with_plan(Path(plan))
    scenario.job()
    return scenario
