"""`rollart plan`: what is the best plan, and how far from the bound?"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rollart.cli.plan_tables import show_plan
from rollart.cli.present import show_json, step_progress
from rollart.domain.planning import Objective


class Sensitivity(StrEnum):
    """How much is looked into what other worlds would change."""

    NONE = "none"
    MODEL = "model"
    SIMULATED = "simulated"


def plan(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Plan file to write.")] = Path("plan.yaml"),
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario.")
    ] = None,
    objective: Annotated[
        Objective | None, typer.Option(help="What the best plan is best at [the scenario's: step_time].")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0.0, help="Most money for an hour of all that the plan takes.")
    ] = None,
    deadline: Annotated[float | None, typer.Option(min=0.0, help="Most seconds of a step.")] = None,
    time_limit: Annotated[float, typer.Option(min=1.0, help="Seconds for the optimiser.")] = 30.0,
    judging_limit: Annotated[
        float,
        typer.Option(min=1.0, help="Seconds for simulations that judge; none is begun that would not end in time."),
    ] = 120.0,
    top: Annotated[int, typer.Option(min=1, max=20, help="Plans that the simulator judges.")] = 4,
    seeds: Annotated[
        int, typer.Option(min=0, max=64, help="Most simulations of a plan in choosing; 0: the model alone decides.")
    ] = 8,
    steps: Annotated[int, typer.Option(min=1, max=1000, help="Least steps of a simulation behind its warm-up.")] = 4,
    sensitivity: Annotated[
        Sensitivity,
        typer.Option(help="What other worlds would change: solved again within the time limit, or simulated too."),
    ] = Sensitivity.MODEL,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes that simulate [all cores].")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the search, in place of the scenario's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the best plan, prove how far from the bound it is, and let the simulator judge it."""
    from rollart import api
    from rollart.scenario.load import load_scenario

    loaded = load_scenario(scenario, [*(settings or ()), *_settings(objective, budget, deadline)])
    options = api.PlanOptions(
        time_limit_s=time_limit,
        judging_limit_s=judging_limit,
        top=top,
        repetitions=seeds,
        counted_steps=steps,
        sensitivity=api.SensitivityTable(sensitivity.value),
        workers=workers,
        seed=seed,
    )
    with step_progress("simulations") as progress:
        report = api.plan(loaded, out=out, options=options, progress=progress)
    if json:
        show_json(report.as_dict())
    else:
        show_plan(report.as_dict())
    typer.echo(f"wrote {out}", err=True)


def _settings(objective: Objective | None, budget: float | None, deadline: float | None) -> list[str]:
    """What the options change in the scenario's planner section."""
    changes = {"objective": objective and objective.value, "hourly_budget": budget, "deadline_s": deadline}
    return [f"planner.{key}={value}" for key, value in changes.items() if value is not None]
