"""`rollart trace profile`: fit a profile to a trace."""

from pathlib import Path
from typing import Annotated

import typer

from rollart.cli.present import number, show_table


def profile(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace file, plain or gzip.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Profile file to write, YAML.")],
    times: Annotated[
        Path | None, typer.Option(help="Profile that gives the times which the trace lacks, and their sources.")
    ] = None,
    context_limit: Annotated[
        int | None, typer.Option(min=2, help="Longest context, in tokens, that the trace was recorded under or cut to.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the profile [that of its file].")] = None,
    source: Annotated[str | None, typer.Option(help="What the figures' source says [name of the trace file].")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
) -> None:
    """Fit distributions, tails, correlations and rates of each task of a trace."""
    from rollart.workload.fit.document import fit_profile
    from rollart.workload.profile_file import load_document
    from rollart.workload.profile_writer import write_profile
    from rollart.workload.trace_reader import TraceReader

    borrowed = None if times is None else load_document(times)
    reader = TraceReader(trace, strict=strict)
    document = fit_profile(
        reader,
        name=name or out.stem,
        source=source or trace.name,
        times=borrowed,
        context_limit_tokens=context_limit,
    )
    write_profile(out, document)
    for task, keys in document["tasks"].items():
        rows = [
            (
                figure,
                str(len(of["quantiles"])),
                of["tail"]["family"] if "tail" in of else "-",
                *(number(of.get(share, 0.0)) for share in ("prompt_share", "member_share", "turns_correlation")),
                "yes" if "by_turn" in of else "-",
                ", ".join(map(str, of.get("from_turns", ()))) or "-",
            )
            for figure, of in keys.items()
            if isinstance(of, dict) and "quantiles" in of
        ]
        show_table(
            task, ("figure", "quantiles", "tail", "prompt", "member", "with turns", "by turn", "from turns"), rows
        )
    if reader.bad_lines:
        typer.echo(f"{reader.bad_lines} bad lines left out; first: {reader.errors[0]}", err=True)
    typer.echo(f"wrote {out}", err=True)
