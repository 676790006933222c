"""The reference page is made from the form, and says something about every field."""

from pathlib import Path

from rollart.scenario.problems import form_schema
from rollart.scenario.reference import field_rows, reference
from rollart.scenario.requirement import node_at, requirement, unit_of
from rollart.scenario.sections.document import ScenarioFile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scenario.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), "run: python -m rollart.scenario.reference > docs/scenario.md"


def test_every_field_has_a_meaning() -> None:
    rows = list(field_rows())
    assert [path for path, _, _, meaning in rows if not meaning] == []
    paths = {path for path, *_ in rows}
    assert {"cluster.pools.NAME.count", "tasks[].reward.kind", "placement.engines[].role", "policy.router"} <= paths


def test_requirements_in_words() -> None:
    schema = form_schema(ScenarioFile)

    def words(*location: str | int) -> str:
        node = node_at(schema, location)
        assert node is not None
        return requirement(node, str(location[-1]))

    assert words("training", "batch_size") == "a whole number >= 1"
    assert words("tasks", 0, "share") == "a number > 0 and <= 1"
    assert words("cluster", "pools", "any", "price_per_hour") == "a number >= 0 per device and hour"
    assert words("faults", "engine_mtbf_s") == "a number > 0 in seconds"
    assert words("placement", "kv_return") == "one of recompute, transfer"
    assert words("training", "reference_pass") == "true or false"
    assert node_at(schema, ("training", "nope")) is None
    assert unit_of("image_gb") == "in GB of 10^9 bytes"
    assert unit_of("count") is None
