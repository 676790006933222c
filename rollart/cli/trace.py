"""`rollart trace`: bring workloads in, look at them, make them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollart.cli.present import number, show_json, show_table
from rollart.cli.trace_profile import profile

if TYPE_CHECKING:
    from rollart.workload.task_info import TaskInfo
    from rollart.workload.trace import TraceTrajectory

trace_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Import, inspect and make workload traces.")
Out = Annotated[Path, typer.Option("-o", "--out", help="Trace file to write; compressed where it ends in .gz.")]


@trace_app.command("import")
def import_files(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help="Foreign format, such as tau-bench.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Files in that format.")],
    out: Out,
) -> None:
    """Turn recordings of another system into a trace. A file that is not of the format is an error."""
    from rollart.workload.importers import import_trace
    from rollart.workload.trace_writer import write_trace

    def trajectories() -> Iterator["TraceTrajectory"]:
        for file in files:
            yield from import_trace(format_name, file)

    typer.echo(f"wrote {write_trace(out, trajectories())} trajectories to {out}", err=True)


@trace_app.command()
def info(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace file, plain or gzip.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
) -> None:
    """Show what a trace holds: turns, tokens, times, rewards and token work of each task."""
    from rollart.workload.info import trace_info
    from rollart.workload.trace_reader import TraceReader

    reader = TraceReader(trace, strict=strict)
    found = trace_info(reader)
    if json:
        counts = {"good_lines": reader.good_lines, "bad_lines": reader.bad_lines, "errors": reader.errors}
        show_json({"trace": str(trace), **counts, "tasks": found.as_dict()})
        return
    for task in found.tasks:
        _show_task(task)
    if reader.bad_lines:
        typer.echo(f"{reader.bad_lines} bad lines left out; first: {reader.errors[0]}", err=True)


@trace_app.command()
def synth(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="Profile file.")],
    out: Out,
    task: Annotated[list[str] | None, typer.Option(help="Task of the profile; may be repeated [all].")] = None,
    groups: Annotated[int, typer.Option(min=1, max=10_000_000, help="Groups of each task.")] = 64,
    group_size: Annotated[int, typer.Option(min=1, max=100_000, help="Trajectories of a group.")] = 8,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the draws.")] = 0,
) -> None:
    """Draw a trace from a profile."""
    from rollart.domain.errors import InputError
    from rollart.workload.profile_file import load_profile
    from rollart.workload.synth import synthesize
    from rollart.workload.trace_writer import write_trace

    loaded = load_profile(profile)
    unknown = [name for name in task or () if name not in loaded.tasks]
    if unknown:
        raise InputError(f"{profile}: has no task {unknown[0]!r}; it has {', '.join(loaded.tasks)}")
    drawn = synthesize(loaded, tasks=task or None, groups=groups, group_size=group_size, seed=seed)
    typer.echo(f"wrote {write_trace(out, drawn)} trajectories to {out}", err=True)


trace_app.command()(profile)


def _show_task(task: "TaskInfo") -> None:
    columns = (task.task, "count", "mean", "p50", "p90", "p99", "max")
    rows = [
        (name, *map(number, (of.count, of.mean, of.p50, of.p90, of.p99, of.max)))
        for name, of in task.quantities.items()
        if of is not None
    ]
    title = (
        f"{task.task}: {task.trajectories:,} trajectories in {task.groups:,} groups, "
        f"{task.groups_without_signal:,} of them without signal; mean reward {number(task.reward_mean)}, "
        f"failed {number(task.failed_share)}, prefill per decoded token {number(task.prefill_per_decode)}, "
        f"ideal prefix hits {number(task.ideal_hit_rate)}"
    )
    show_table(title, columns, rows)
