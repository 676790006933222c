"""`rollart trace import`: recordings of other systems, turned into a trace."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option("-o", "--out", help="Trace file to write; compressed where it ends in .gz.")]


def import_files(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help="Foreign format, such as tau-bench, or auto.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Files in that format, or folders of them.")],
    out: Out,
    tokens: Annotated[
        str, typer.Option(help="Tokens of texts: chars4, words, bytes, bytes4, or a tokenizer.json.")
    ] = "chars4",
    times: Annotated[Path | None, typer.Option(help="Profile to draw missing times from [none are drawn].")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the drawn times.")] = 0,
    task: Annotated[str | None, typer.Option(help="Name of the task [as the format has it].")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
) -> None:
    """Turn recordings of another system into a trace. A file that is not of the format is an error."""
    from rollart.workload.importers import ImportOptions, TraceImport
    from rollart.workload.profile_file import load_profile
    from rollart.workload.times import fill_times
    from rollart.workload.trace_writer import write_trace

    profile = None if times is None else load_profile(times)
    found = TraceImport(files, ImportOptions(format=format_name, tokens=tokens, task=task, strict=strict))
    count = write_trace(out, found if profile is None else fill_times(found, profile, seed))
    for message in found.errors:
        typer.echo(message, err=True)
    if found.bad_records:
        typer.echo(f"left out {found.bad_records} bad records", err=True)
    for reason, count_of in found.unusable.most_common():
        typer.echo(f"left out {count_of} episodes {reason}", err=True)
    if found.left_out:
        typer.echo(f"left out {len(found.left_out)} files of no known format, such as {found.left_out[0]}", err=True)
    formats = ", ".join(f"{number} {name}" for name, number in sorted(found.formats.items()))
    read = f" (files read: {formats})" if format_name == "auto" else ""
    typer.echo(f"wrote {count} trajectories to {out}{read}", err=True)
