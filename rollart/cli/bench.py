"""`rollart bench`: how fast is the simulator on this machine?"""

from typing import Annotated

import typer

from rollart.cli.present import number, show_json, show_table


def bench(json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Measure the simulator: turns per second, and their ratio to bare SimPy events in the same run."""
    from rollart import api

    figures = api.bench()
    if json:
        show_json(figures)
    else:
        show_table("simulator", ("figure", "value"), [(key, number(value)) for key, value in figures.items()])
