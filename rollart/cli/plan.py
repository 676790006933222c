"""`rollart plan`: what is the best plan, and how far from the bound?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollart.cli.present import number, show_json, show_table

if TYPE_CHECKING:
    from rollart.sched.placement import PlanReport


def plan(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Plan file to write.")] = Path("plan.yaml"),
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario.")
    ] = None,
    time_limit: Annotated[float, typer.Option(min=1.0, help="Seconds for the optimiser.")] = 30.0,
    top: Annotated[int, typer.Option(min=1, max=20, help="Plans that the simulator judges.")] = 3,
    seeds: Annotated[int, typer.Option(min=0, help="Simulations of each; 0: the model alone decides.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the placement with the smallest step time under the scenario's policy."""
    from rollart import api
    from rollart.scenario.load import load_scenario

    report = api.plan(
        load_scenario(scenario, settings or ()), out=out, time_limit_s=time_limit, top=top, repetitions=seeds
    )
    if json:
        show_json(api.plan_as_dict(report))
    else:
        _show(report)
    typer.echo(f"wrote {out}", err=True)


def _show(report: "PlanReport") -> None:
    from rollart import api

    shown: dict[str, Any] = api.plan_as_dict(report)
    rows = [
        (
            f"{one['plan']['trainer']['pool']} x {one['plan']['trainer']['devices']}",
            ", ".join(f"{g['engines']} {g['name']}" for g in one["plan"]["engines"]),
            number(one["predicted"], 4),
            number(one["simulated"] and one["simulated"]["mean"], 4),
        )
        for one in (shown, *shown["alternatives"])
    ]
    show_table("plans, best first", ("trainer", "engines", "predicted s", "simulated s"), rows, texts=2)
    affinity = shown["plan"]["affinity"].items()
    show_table("who serves a task", ("task", "engine groups"), [(t, ", ".join(g)) for t, g in affinity], texts=2)
    gap = f"{100 * report.gap:.2f} %"
    typer.echo(f"{report.status}: bound {number(report.bound_s, 4)} s, gap {gap}, {report.wall_s:.1f} s")
