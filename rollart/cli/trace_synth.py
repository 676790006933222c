"""`rollart trace synth`: draw a trace from a profile."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer


def synth(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="Profile file.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Trace file to write; compressed where it ends in .gz.")],
    task: Annotated[list[str] | None, typer.Option(help="Task of the profile; may be repeated [all].")] = None,
    groups: Annotated[int, typer.Option(min=1, max=10_000_000, help="Groups of each task.")] = 64,
    group_size: Annotated[int, typer.Option(min=1, max=100_000, help="Trajectories of a group.")] = 8,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the draws.")] = 0,
    scale_tail: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=F", help="Multiply by F what values exceed the quantile 0.9 by; repeatable."),
    ] = None,
    failure_rate: Annotated[
        list[str] | None,
        typer.Option(metavar="CALL=RATE", help="Share of resets or steps (reset=, step=) that fail; repeatable."),
    ] = None,
    drift: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=PER_STEP", help="Change per training step, such as output_tokens=0.02; repeatable."
        ),
    ] = None,
    groups_per_step: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Groups of each task in a training step, for --drift.")
    ] = 16,
) -> None:
    """Draw a trace from a profile, of any size, changed by knobs."""
    from rollart.domain.errors import InputError
    from rollart.workload.knobs import Knobs
    from rollart.workload.profile_file import load_profile
    from rollart.workload.synth import synthesize
    from rollart.workload.trace_writer import write_trace

    try:
        knobs = Knobs(
            tail_scales=_assignments("--scale-tail", scale_tail),
            drifts=_assignments("--drift", drift),
            failure_rates=_assignments("--failure-rate", failure_rate),
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    loaded = load_profile(profile)
    unknown = [name for name in task or () if name not in loaded.tasks]
    if unknown:
        raise InputError(f"{profile}: has no task {unknown[0]!r}; it has {', '.join(loaded.tasks)}")
    drawn = synthesize(
        loaded,
        tasks=task or None,
        groups=groups,
        group_size=group_size,
        seed=seed,
        knobs=knobs,
        groups_per_step=groups_per_step if knobs.drifts else None,
    )
    typer.echo(f"wrote {write_trace(out, drawn)} trajectories to {out}", err=True)


def _assignments(option: str, texts: Sequence[str] | None) -> dict[str, float]:
    """{name: number} of NAME=NUMBER; ValueError for other text or a name given twice."""
    found: dict[str, float] = {}
    for text in texts or ():
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            raise ValueError(f"{option} is {text!r}; must be NAME=NUMBER, such as output_tokens=2") from None
        if name in found:
            raise ValueError(f"{option} names {name!r} twice; give it once")
        found[name] = value
    return found
