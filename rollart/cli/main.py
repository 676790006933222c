"""The command line: `rollart VERB ...`. Each group of verbs has a file; heavy modules load when a verb runs."""

from typing import Annotated

import typer

from rollart import __version__
from rollart.cli.bench import bench
from rollart.cli.calibrate import calibrate
from rollart.cli.check import check
from rollart.cli.costs import costs_app
from rollart.cli.doctor import doctor
from rollart.cli.engine import engine_app
from rollart.cli.guard import GuardedGroup
from rollart.cli.plan import plan
from rollart.cli.run import run
from rollart.cli.simulate import simulate
from rollart.cli.trace import trace_app

app = typer.Typer(
    name="rollart",
    cls=GuardedGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Plan, simulate and run multi-task agentic RL of LLMs on disaggregated, mixed hardware.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rollart {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Plan, simulate and run multi-task agentic RL of LLMs on disaggregated, mixed hardware."""


app.command()(simulate)
app.command()(plan)
app.command()(run)
app.command()(check)
app.command()(calibrate)
app.add_typer(trace_app, name="trace")
app.add_typer(engine_app, name="engine")
app.add_typer(costs_app, name="costs")
app.command()(doctor)
app.command()(bench)


def main() -> None:
    """Entry point of the `rollart` command."""
    app()


if __name__ == "__main__":
    main()
