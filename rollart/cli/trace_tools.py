"""`rollart trace filter | merge | split | sample`: traces out of traces, as streams, whole or not at all."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rollart.workload.trace import TraceTrajectory

TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="Trace file, plain or gzip.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="Trace file to write; compressed where it ends in .gz.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the choice.")]
Tokens = Annotated[int | None, typer.Option(min=0, help="Bound on the longest context, its output included.")]
Turns = Annotated[int | None, typer.Option(min=0, help="Bound on the number of turns.")]
Reward = Annotated[float | None, typer.Option(help="Bound on the reward; a trajectory without one is left out.")]


class Outcome(StrEnum):
    """How a trajectory ended."""

    OK = "ok"
    FAILED = "failed"
    TRUNCATED = "truncated"


def filter_trace(
    trace: TraceFile,
    out: Out,
    task: Annotated[list[str] | None, typer.Option(help="Keep this task; repeatable [all].")] = None,
    outcome: Annotated[list[Outcome] | None, typer.Option(help="Keep this outcome; repeatable [all].")] = None,
    min_turns: Turns = None,
    max_turns: Turns = None,
    min_tokens: Tokens = None,
    max_tokens: Tokens = None,
    min_reward: Reward = None,
    max_reward: Reward = None,
    whole_groups: Annotated[
        bool, typer.Option("--whole-groups", help="Keep a group only if all of it is kept.")
    ] = False,
) -> None:
    """Keep the trajectories that meet every bound."""
    from rollart.workload.selection import Filter, filtered
    from rollart.workload.trace_reader import TraceReader

    rule = Filter(
        tasks=task or (),
        outcomes=[str(one) for one in outcome or ()],
        least_turns=min_turns,
        most_turns=max_turns,
        least_tokens=min_tokens,
        most_tokens=max_tokens,
        least_reward=min_reward,
        most_reward=max_reward,
    )
    _write(out, filtered(lambda: TraceReader(trace, strict=True), rule, whole_groups=whole_groups))


def merge(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACES...", help="Trace files, plain or gzip.")],
    out: Out,
    same_groups: Annotated[
        bool, typer.Option("--same-groups", help="Equal ids are the same prompt; else the file's name parts them.")
    ] = False,
) -> None:
    """Put several traces into one."""
    from rollart.domain.errors import InputError
    from rollart.workload.selection import merged
    from rollart.workload.trace_reader import TraceReader

    names = [trace.name.split(".")[0] for trace in traces]
    if not same_groups and len(set(names)) < len(names):
        names = [str(trace) for trace in traces]
    if len(set(names)) < len(names):
        raise InputError(f"{max(names, key=names.count)}: is named twice; name each trace once")
    sources = ((name, TraceReader(trace, strict=True)) for name, trace in zip(names, traces, strict=True))
    _write(out, merged(sources, same_groups=same_groups))


def split(
    trace: TraceFile,
    out: Out,
    rest: Annotated[Path, typer.Option(help="Trace file for the other groups.")],
    share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Expected share of the groups in the first file.")
    ] = 0.5,
    seed: Seed = 0,
) -> None:
    """Cut a trace in two by whole groups."""
    from rollart.domain.errors import InputError
    from rollart.workload.group_choice import in_share
    from rollart.workload.trace_reader import TraceReader

    if out.resolve() == rest.resolve():
        raise InputError(f"{rest}: is named for both parts; name two files")
    for path, first in ((out, True), (rest, False)):
        reader = TraceReader(trace, strict=True)
        _write(path, (one for one in reader if in_share(one, share, seed) is first))


def sample(
    trace: TraceFile,
    out: Out,
    groups: Annotated[int | None, typer.Option(min=1, help="Groups of each task [all].")] = None,
    members: Annotated[int | None, typer.Option(min=1, help="Trajectories of each group [all].")] = None,
    seed: Seed = 0,
) -> None:
    """Keep some groups of each task, or some members of each group, by chance."""
    from rollart.workload.selection import sampled
    from rollart.workload.trace_reader import TraceReader

    _write(out, sampled(lambda: TraceReader(trace, strict=True), groups=groups, members=members, seed=seed))


def _write(out: Path, trajectories: Iterable["TraceTrajectory"]) -> None:
    from rollart.domain.errors import InputError
    from rollart.workload.trace_writer import write_trace

    def at_least_one() -> Iterator["TraceTrajectory"]:
        found = iter(trajectories)
        first = next(found, None)
        if first is None:
            raise InputError(f"{out}: no trajectory is left for it; nothing is written")
        yield first
        yield from found

    typer.echo(f"wrote {write_trace(out, at_least_one())} trajectories to {out}", err=True)
