"""`rollart check`: do the invariants of a run hold, and does a replay decide the same?"""

from pathlib import Path
from typing import Annotated

import typer

from rollart.cli.present import show_json


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check the log of a run: invariants, and a replay of its decisions. Exit code 1 if one does not hold."""
    from rollart import api

    report = api.check(run)
    if json:
        show_json(report.as_dict())
    else:
        typer.echo("\n".join(report.lines()))
    if not report.ok:
        raise typer.Exit(1)
