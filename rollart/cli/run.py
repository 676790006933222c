"""`rollart run`: do it, on real workers or on fake ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollart.cli.guard import INTERRUPTED
from rollart.cli.present import show_json, told_progress
from rollart.cli.run_folder import prepare, single_folder
from rollart.domain.errors import RunInterrupted

if TYPE_CHECKING:
    from rollart.running import FakeTime


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder of the results [runs/<scenario>-<policy>].")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Plan file with placement and policy.")] = None,
    fake: Annotated[bool, typer.Option("--fake", help="Fake workers: a dry run of any plan on this machine.")] = False,
    speed: Annotated[
        float | None, typer.Option(help="Fake workers live so many times as fast as the wall clock.")
    ] = None,
    logical: Annotated[
        bool, typer.Option("--logical", help="Fake workers live by logical time, as fast as it goes [the default].")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps, in place of the scenario's.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all chance, in place of the scenario's.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster of the real workers, HOST:PORT or auto [one on this machine].")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that was interrupted in the folder.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a scenario's plan; with --fake, on workers whose durations come from the cost models."""
    from rollart import api
    from rollart.cli.summaries import show_summary
    from rollart.scenario.load import load_scenario

    chosen = load_scenario(scenario, settings or (), plan=plan).with_changes(seed=seed, steps=steps)
    time = _fake_time(fake, speed, logical)
    chosen.job()
    folder = prepare(single_folder(out, chosen.name, chosen.policy))
    try:
        with told_progress(f"{chosen.name} {chosen.policy}") as (progress, tell):
            summary = api.run(
                chosen, out=folder, fake=time, address=address, resume=resume, progress=progress, tell=tell
            ).summary
    except RunInterrupted as stopped:
        typer.echo(str(stopped), err=True)
        raise typer.Exit(INTERRUPTED) from None
    if json:
        show_json(summary)
    else:
        show_summary(summary)
    typer.echo(f"wrote {folder}", err=True)


def _fake_time(fake: bool, speed: float | None, logical: bool) -> "FakeTime | None":
    from rollart.running import FakeTime

    if speed is not None and not 0.0 < speed < 1e9:
        raise typer.BadParameter(f"{speed} must be above 0", param_hint="--speed")
    if speed is not None and logical:
        raise typer.BadParameter("give either --speed or --logical")
    if not fake and (speed is not None or logical):
        raise typer.BadParameter("--speed and --logical are for --fake")
    return FakeTime(speed=speed) if fake else None
