"""`rollart calibrate`: how far is a scenario's cost model off on the machines of a run?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollart.cli.present import number, show_json, show_table, step_progress

if TYPE_CHECKING:
    from rollart.planning.calibration import CalibrationReport


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run on real workers.")],
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file that was run.")],
    plan: Annotated[Path | None, typer.Option(help="Plan file that was run.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Factors that make the scenario's costs those of a run, ready for its section `calibration`."""
    from rollart import api
    from rollart.scenario.load import load_scenario

    chosen = load_scenario(scenario, settings or (), plan=plan)
    with step_progress("simulating the run") as progress:
        report = api.calibrate(run, chosen, progress=progress)
    if json:
        show_json(report.as_dict())
    else:
        _show(report)


def _show(report: "CalibrationReport") -> None:
    factors = {**report.calibration.engines, "trainer": report.calibration.trainer}
    seen = [report.measured, report.before, report.after]
    rows = [(_unit(key), *(number(each.work_s[key]) for each in seen), number(factors[key])) for key in factors]
    rows.append(("a step", *(number(each.step_s) for each in seen), ""))
    show_table("seconds", ("", "measured", "simulated", "with the factors", "factor"), rows)
    engines = ", ".join(f"{pool}: {number(factor)}" for pool, factor in report.calibration.engines.items())
    typer.echo(f"\ncalibration:\n  engines: {{{engines}}}\n  trainer: {number(report.calibration.trainer)}")
    if not report.converged:
        typer.echo(f"the factors did not settle in {report.rounds} simulations: take them as rough", err=True)


def _unit(key: str) -> str:
    return "training, per token" if key == "trainer" else f"iteration on {key}"
