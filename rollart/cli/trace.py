"""`rollart trace`: bring workloads in, look at them, make them."""

import typer

from rollart.cli.trace_import import import_files
from rollart.cli.trace_info import info
from rollart.cli.trace_profile import profile
from rollart.cli.trace_synth import synth
from rollart.cli.trace_tools import filter_trace, merge, sample, split

trace_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Import, inspect and make workload traces.")
trace_app.command("import")(import_files)
trace_app.command()(info)
trace_app.command()(profile)
trace_app.command()(synth)
trace_app.command("filter")(filter_trace)
trace_app.command()(merge)
trace_app.command()(split)
trace_app.command()(sample)
