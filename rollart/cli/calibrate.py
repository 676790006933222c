"""`rollart calibrate`: how far is a scenario's cost model off on the machines of a run?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollart.cli.present import number, show_json, show_table, step_progress

if TYPE_CHECKING:
    from rollart.api import CalibrationReport


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run on real workers.")],
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file that was run.")],
    plan: Annotated[Path | None, typer.Option(help="Plan file that was run.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What makes the scenario's costs those of a run, ready for its section `calibration`."""
    from rollart import api
    from rollart.scenario.load import load_scenario

    chosen = load_scenario(scenario, settings or (), plan=plan)
    with step_progress("simulating the run") as progress:
        report = api.calibrate(run, chosen, progress=progress)
    if json:
        show_json(report.as_dict())
    else:
        show_calibration(report)


def show_calibration(report: "CalibrationReport") -> None:
    """A table of times before and after, and the section for the scenario."""
    found, seen = report.calibration, (report.measured, report.before, report.after)
    rows = [
        (f"iteration on {pool}", *(number(each.iteration_s[pool]) for each in seen), f"x {number(factor)}")
        for pool, factor in found.engines.items()
    ]
    rows.append(("training, per token", *(number(each.training_s) for each in seen), f"x {number(found.trainer)}"))
    for name in report.measured.movements_s:
        times = (number(each.movements_s.get(name)) for each in seen)
        rows.append((f"{name.removesuffix('_s')} of weights", *times, f"+ {number(getattr(found.weights, name))}"))
    rows.append(("a step", *(number(each.step_s) for each in seen), ""))
    show_table("seconds", ("", "measured", "simulated", "calibrated", "correction"), rows)
    engines = ", ".join(f"{pool}: {number(factor)}" for pool, factor in found.engines.items())
    weights = ", ".join(f"{name}: {number(value)}" for name, value in asdict(found.weights).items())
    typer.echo(f"calibration:\n  engines: {{{engines}}}\n  trainer: {number(found.trainer)}")
    typer.echo(f"  weights: {{{weights}}}")
    if not report.converged:
        typer.echo(f"the factors did not settle in {report.rounds} simulations: take them as rough", err=True)
