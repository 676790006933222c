"""`rollart trace info`: what a trace holds, as tables, JSON and figures."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollart.cli.present import number, show_json, show_table

if TYPE_CHECKING:
    from rollart.workload.info import TraceTally
    from rollart.workload.task_info import TaskInfo
    from rollart.workload.trace_sample import TraceSample

POINTS = 2000
"""Trajectories of each task that figures show at most."""
STRIPS = 36
MOST_TASKS = 6
"""Tasks with points and strips of their own."""


def info(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace file, plain or gzip.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    figures: Annotated[
        Path | None, typer.Option("-o", "--figures", help="Folder for figures: tails, turns, strips.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
) -> None:
    """Show what a trace holds: turns, tokens, times, rewards, groups and token work of each task."""
    from rollart.workload.info import TraceTally
    from rollart.workload.trace_reader import TraceReader
    from rollart.workload.trace_sample import TraceSample

    reader, tally = TraceReader(trace, strict=strict), TraceTally()
    sample = TraceSample(POINTS if figures else 1)
    for trajectory in reader:
        tally.add(trajectory)
        sample.add(trajectory)
    if json:
        counts = {"good_lines": reader.good_lines, "bad_lines": reader.bad_lines, "errors": reader.errors}
        show_json({"trace": str(trace), **counts, "tasks": tally.info().as_dict()})
    else:
        for task in tally.info().tasks:
            _show_task(task)
        if reader.bad_lines:
            typer.echo(f"{reader.bad_lines} bad lines left out; first: {reader.errors[0]}", err=True)
    if figures:
        _draw(figures, trace.name, tally, sample)


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
        f"failed {number(task.failed_share)}, truncated {number(task.truncated_share)}"
    )
    show_table(title, columns, rows)
    typer.echo(
        f"  {task.heavy}-heavy: {number(task.prefill_per_decode)} tokens prefilled for one decoded, with a perfect "
        f"prefix cache, which holds {number(task.ideal_hit_rate)} of what is sent"
    )
    told = ", ".join(f"{field} {' or '.join(how)}" for field, how in task.provenance.items())
    typer.echo(f"  fields: {told or 'nothing is said of where they are from'}\n")


def _draw(folder: Path, name: str, tally: "TraceTally", sample: "TraceSample") -> None:
    from rollart.report.figures.trace_strips import draw_strips
    from rollart.report.figures.trace_tails import draw_tails
    from rollart.report.figures.trace_turns import draw_tokens_against_turns

    draw_tails(folder / "tails.png", tally.distributions(), f"{name}: share of values that are at least as large")
    largest = sorted(sample.tasks, key=lambda task: -len(sample.of(task)))[:MOST_TASKS]
    draw_tokens_against_turns(
        folder / "turns.png",
        [(task, sample.of(task)) for task in largest],
        f"{name}: tokens against turns, at most {POINTS:,} trajectories a task, and medians",
    )
    for task in largest:
        draw_strips(
            folder / f"strips-{re.sub(r'[^A-Za-z0-9._-]+', '-', task)}.png",
            sample.of(task)[:STRIPS],
            f"{name}, {task}: what contexts are made of, {min(STRIPS, len(sample.of(task)))} trajectories by chance",
        )
    typer.echo(f"figures are in {folder}", err=True)
