"""`rollart simulate`: what would this plan do?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollart.cli.present import show_json, step_progress
from rollart.cli.run_folder import parent_folder, prepare, single_folder
from rollart.domain.errors import InputError

if TYPE_CHECKING:
    from rollart.scenario.scenario import Scenario


def simulate(
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder of the results [runs/<scenario>-<policy>].")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps, in place of the scenario's.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all chance, in place of the scenario's.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Plan file with placement and policy.")] = None,
    policy: Annotated[str | None, typer.Option(help="Policy preset, in place of the scenario's.")] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Policy presets to run one after the other.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each policy, with seeds that follow each other.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    no_log: Annotated[bool, typer.Option("--no-log", help="Keep only the summary, no run log.")] = False,
) -> None:
    """Simulate scenarios: what would their plans do?"""
    if policy is not None and compare is not None:
        raise typer.BadParameter("give either --policy or --compare")
    variants = [
        variant
        for path in scenarios
        for variant in _variants(path, settings or (), plan, _policies(policy, compare), seed, seeds, steps)
    ]
    if len(variants) > 1 or compare is not None:
        _several(variants, out, log=not no_log, as_json=json)
    else:
        _single(variants[0], out, log=not no_log, as_json=json)


def _policies(policy: str | None, compare: str | None) -> list[str | None]:
    if compare is None:
        return [policy]
    names = [name.strip() for name in compare.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise typer.BadParameter(
            f"{compare!r} must be different policies with commas between them", param_hint="--compare"
        )
    return list(names)


def _variants(
    path: Path,
    settings: Sequence[str],
    plan: Path | None,
    policies: Sequence[str | None],
    seed: int | None,
    seeds: int,
    steps: int | None,
) -> list["Scenario"]:
    """One scenario file under each policy and seed, all checked before the first one runs."""
    from rollart.scenario.load import load_scenario

    scenario = load_scenario(path, settings, plan=plan)
    first = scenario.seed if seed is None else seed
    variants = [
        scenario.with_changes(policy=policy, seed=first + offset, steps=steps)
        for policy in policies
        for offset in range(seeds)
    ]
    for variant in variants:
        variant.job()
    return variants


def _single(variant: "Scenario", out: Path | None, *, log: bool, as_json: bool) -> None:
    from rollart.cli.summaries import show_summary

    folder = prepare(single_folder(out, variant.name, variant.policy))
    summary = _run(variant, folder, log=log)
    if as_json:
        show_json(summary)
    else:
        show_summary(summary)
    typer.echo(f"wrote {folder}", err=True)


def _several(variants: Sequence["Scenario"], out: Path | None, *, log: bool, as_json: bool) -> None:
    """Run the variants in folders of their own and set them side by side."""
    from rollart.cli.summaries import compare_summaries, show_comparison, write_comparison

    scenarios = {variant.name for variant in variants}
    if out is None and len(scenarios) > 1:
        raise InputError("several scenarios need a common folder for their results; give one with -o")
    parent = prepare(parent_folder(out, variants[0].name))
    names = [variant.policy if len(scenarios) == 1 else f"{variant.name} {variant.policy}" for variant in variants]
    repeated = len(names) > len(set(names))
    summaries = [
        _run(variant, prepare(parent / _folder_name(name, variant.seed if repeated else None)), log=log)
        for name, variant in zip(names, variants, strict=True)
    ]
    comparison = compare_summaries(summaries, names)
    write_comparison(parent, summaries, comparison, names)
    if as_json:
        show_json({"runs": summaries, "comparison": comparison})
    else:
        show_comparison(comparison)
    typer.echo(f"wrote {parent}", err=True)


def _folder_name(name: str, seed: int | None) -> str:
    base = name.replace(" ", "-")
    return base if seed is None else f"{base}-seed{seed}"


def _run(variant: "Scenario", folder: Path, *, log: bool) -> Any:
    from rollart import api

    with step_progress(f"{variant.name} {variant.policy}") as progress:
        # Without a log the runner gets the one option more, so that its plain form stays the plain call.
        options = {} if log else {"log": False}
        return api.simulate(variant, out=folder, progress=progress, **options).summary
