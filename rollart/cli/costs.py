"""`rollart costs`: where an engine's time goes, and how far to trust it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollart.cli.model_name import model_named
from rollart.cli.present import number, show_json, show_table

if TYPE_CHECKING:
    from rollart.costs.breakdown import Term
    from rollart.costs.iteration import OperatorEngine

costs_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What the cost models say.")


@costs_app.callback()
def costs() -> None:
    """What the cost models say."""


@costs_app.command()
def show(
    model: Annotated[str, typer.Option("--model", help="Catalogue name, or path of a config.json.")],
    device: Annotated[str, typer.Option("--device", help="Catalogue name.")],
    tp: Annotated[int, typer.Option("--tp", min=1, help="Devices that share each layer (tensor parallel).")] = 1,
    batch: Annotated[int, typer.Option(min=0, help="Requests that decode.")] = 32,
    context: Annotated[int, typer.Option(min=0, help="Tokens that each of them holds.")] = 2048,
    prompt: Annotated[int, typer.Option(min=0, help="Tokens of a fresh prompt in the same iteration.")] = 0,
    precision: Annotated[str | None, typer.Option(help="Of the weights [as published].")] = None,
    kv_dtype: Annotated[str, typer.Option(help="Of the KV cache: bf16 or fp8.")] = "bf16",
    ep: Annotated[bool, typer.Option("--ep", help="Experts lie whole on one device each.")] = False,
    source: Annotated[str, typer.Option("--costs", help="compact or tables.")] = "compact",
    engine_version: Annotated[
        str, typer.Option(help="Whose host time: vllm-v1, vllm-v1-sync, vllm-v0 or sglang.")
    ] = "vllm-v1",
    tables: Annotated[Path | None, typer.Option(help="Folder of systems with operator tables.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the roofline to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show where the time of one iteration goes, with the source and expected error of each term."""
    from rollart.costs.breakdown import terms
    from rollart.domain.errors import InputError

    if batch + prompt == 0:
        raise InputError("an iteration without requests: give --batch or --prompt")
    engine = _engine(model, device, tp, precision, kv_dtype, ep, source, engine_version, tables)
    found = terms(engine, batch, context, prompt)
    if picture is not None:
        _draw(engine, found, picture)
    if json:
        show_json(_figures(engine, found, source, batch, context, prompt))
    else:
        _tabulate(engine, found, batch, context, prompt)


def _engine(
    model: str,
    device: str,
    tp: int,
    precision: str | None,
    kv_dtype: str,
    ep: bool,
    source: str,
    engine_version: str,
    tables: Path | None,
) -> "OperatorEngine":
    from rollart.catalog.load import devices
    from rollart.costs.engine_shape import EngineShape
    from rollart.costs.host import host_time
    from rollart.costs.iteration import OperatorEngine
    from rollart.costs.select import operators_for

    shape_model = model_named(model)
    shape = EngineShape(
        model=shape_model,
        device=devices()[device],
        tensor_parallel=tp,
        precision=precision or shape_model.native_precision,
        kv_dtype=kv_dtype,
        expert_parallel=tp if ep else 1,
    )
    return OperatorEngine(shape, operators_for(shape, source, tables), host_time(engine_version))


def _figures(
    engine: "OperatorEngine", found: "list[Term]", source: str, batch: int, context: int, prompt: int
) -> dict[str, Any]:
    shape = engine.shape
    return {
        "model": shape.model.name,
        "device": shape.device.name,
        "tp": shape.tensor_parallel,
        "precision": shape.precision,
        "kv_dtype": shape.kv_dtype,
        "costs": source,
        "batch": batch,
        "context_tokens": context,
        "prompt_tokens": prompt,
        "iteration_ms": 1e3 * sum(term.seconds for term in found),
        "kv_capacity_tokens": engine.kv_capacity_tokens,
        "terms": [
            {"name": term.name, "ms": 1e3 * term.seconds, "source": term.source, "error_pct": term.error_pct}
            for term in found
        ],
        "notes": list(engine.operators.notes),
    }


def _tabulate(engine: "OperatorEngine", found: "list[Term]", batch: int, context: int, prompt: int) -> None:
    shape, total = engine.shape, sum(term.seconds for term in found)
    sources = list(dict.fromkeys(term.source for term in found))
    rows = [
        (
            term.name,
            number(1e3 * term.seconds),
            f"{100 * term.seconds / total:.1f}",
            _rate(term),
            number(term.error_pct),
            f"[{sources.index(term.source) + 1}]",
        )
        for term in found
    ]
    rows.append(("iteration", number(1e3 * total), "100.0", "", "", ""))
    work = f"{batch} requests of {context:,} tokens" + (f" and a prompt of {prompt:,}" if prompt else "")
    title = f"{shape.model.name} ({shape.precision}) on {shape.tensor_parallel} x {shape.device.name}: {work}"
    show_table(title, ("term", "ms", "% of it", "TFLOP/s; TB/s", "error %", "source"), rows)
    for place, source in enumerate(sources, 1):
        typer.echo(f"[{place}] {source}")
    for note in engine.operators.notes:
        typer.echo(f"note: {note}")


def _rate(term: "Term") -> str:
    if term.flops is None or term.bytes is None or term.seconds <= 0:
        return "-"
    return f"{number(term.flops / term.seconds / 1e12)}; {number(term.bytes / term.seconds / 1e12)}"


def _draw(engine: "OperatorEngine", found: "list[Term]", path: Path) -> None:
    from rollart.report.figures.roofline import RooflinePoint, draw_roofline

    total = sum(term.seconds for term in found)
    points = [
        RooflinePoint(term.name, term.flops, term.bytes, term.seconds, term.seconds / total)
        for term in found
        if term.flops is not None and term.bytes is not None
    ]
    shape, chip = engine.shape, engine.operators.chip
    peak = shape.device.peak_flops_per_s(shape.precision)
    draw_roofline(points, f"{shape.model.name} on {shape.device.name}", chip.bandwidth, peak, path)
