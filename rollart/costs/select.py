"""The rung of the ladder of trust that an engine's costs stand on, chosen by name."""

from pathlib import Path
from typing import Literal, get_args

from rollart.costs.engine_shape import EngineShape
from rollart.costs.host import DEFAULT_ENGINE_VERSION, HostTime, host_time
from rollart.costs.interface import EngineCosts
from rollart.costs.iteration import OperatorEngine
from rollart.costs.operators.coefficients import coefficients_for
from rollart.costs.operators.compact import CompactOperators
from rollart.costs.operators.interface import Operators
from rollart.costs.roofline import RooflineEngine
from rollart.costs.tables.folder import device_tables, tables_root
from rollart.costs.tables.measured import TableOperators
from rollart.domain.errors import InputError

CostSource = Literal["roofline", "compact", "tables"]
COST_SOURCES: tuple[CostSource, ...] = get_args(CostSource)
OPERATOR_SOURCES = ("compact", "tables")


def engine_costs(
    shape: EngineShape,
    source: str = "compact",
    *,
    engine_version: str = DEFAULT_ENGINE_VERSION,
    host: HostTime | None = None,
    tables: Path | None = None,
    tables_version: str | None = None,
) -> EngineCosts:
    """Costs of an engine from its data sheet, from fitted formulas, or from measured tables.

    `host` overrides the host time of `engine_version`; the roofline has its own. `tables` names the folder of
    systems with operator tables, `tables_version` the vLLM version of them (None: the newest). InputError where the
    device has no coefficients or no tables.
    """
    if source not in COST_SOURCES:
        raise InputError(f"costs {source!r} are not known; one of: {', '.join(COST_SOURCES)}")
    if source == "roofline":
        return RooflineEngine(shape)
    return OperatorEngine(
        shape, operators_for(shape, source, tables, tables_version), host or host_time(engine_version)
    )


def operators_for(
    shape: EngineShape, source: str, tables: Path | None = None, tables_version: str | None = None
) -> Operators:
    """The operators of a device, by formula or by table; InputError for another source."""
    if source not in OPERATOR_SOURCES:
        raise InputError(f"costs {source!r} are not made of operators; one of: {', '.join(OPERATOR_SOURCES)}")
    compact = CompactOperators(coefficients_for(shape.device))
    if source == "compact":
        return compact
    return TableOperators(device_tables(shape.device.name, tables_root(tables), tables_version), compact)
