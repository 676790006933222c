"""`rollart engine`: one engine alone, against a request log or a fixed load."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollart.cli.engine_tables import show_load, show_replay, write_replay
from rollart.cli.model_name import model_named
from rollart.cli.present import show_json

if TYPE_CHECKING:
    from rollart.loadtest.deployment import Deployment
    from rollart.loadtest.engine_meta import EngineArguments

engine_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="One engine alone under load.")

ModelName = Annotated[str, typer.Option("--model", help="Catalogue name, or path of a config.json.")]
DeviceName = Annotated[str, typer.Option("--device", help="Catalogue name.")]
Tp = Annotated[int, typer.Option("--tp", min=1, help="Devices that share each layer (tensor parallel).")]
Seqs = Annotated[int | None, typer.Option(min=1, help="Most requests at once [the server's default].")]
Batched = Annotated[int | None, typer.Option(min=1, help="Token budget of an iteration [the server's default].")]
Precision = Annotated[str | None, typer.Option(help="Of the weights: bf16, fp8, fp4 ... [as published].")]
KvDtype = Annotated[str | None, typer.Option(help="Of the KV cache: bf16 or fp8 [bf16].")]
SchedulerName = Annotated[str, typer.Option(help="Whose rules it follows: vllm or sglang.")]
Async = Annotated[
    bool, typer.Option("--async-scheduling/--no-async-scheduling", help="vLLM composes ahead by default from 0.14 on.")
]
Costs = Annotated[str, typer.Option(help="Where iteration times come from: compact, tables or roofline.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@engine_app.command()
def replay(
    requests: Annotated[Path, typer.Argument(metavar="REQUESTS", help="An engine's log, Azure CSV, or Mooncake.")],
    model: ModelName,
    device: DeviceName,
    tp: Tp = 1,
    max_num_seqs: Seqs = None,
    max_num_batched_tokens: Batched = None,
    precision: Precision = None,
    kv_dtype: KvDtype = None,
    scheduler: SchedulerName = "vllm",
    async_scheduling: Async = True,
    costs: Costs = "compact",
    dp: Annotated[int | None, typer.Option("--dp", min=1, help="Data-parallel ranks [as in the log, or 1].")] = None,
    exchange_us: Annotated[
        float | None, typer.Option(min=0, help="Of a dispatch or combine of experts, beyond a collective [fitted].")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Engines; each request goes to the least loaded one.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many requests of the file.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for figures, requests and a picture.")] = None,
    json: Json = False,
) -> None:
    """Replay a request log; where the log has measured times, say how far the simulated ones are off."""
    from rollart.loadtest.cost_source import costs_from
    from rollart.loadtest.engine_meta import arguments_beside
    from rollart.loadtest.open_loop import replay as replay_requests
    from rollart.loadtest.reader import read_requests
    from rollart.loadtest.replay_report import ReplayReport

    log = read_requests(requests, limit=limit)
    logged = arguments_beside(requests)
    _warn_of(
        logged,
        tensor_parallel_size=tp,
        data_parallel_size=dp,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        kv_cache_dtype=kv_dtype,
    )
    deployment = _deployment(
        model=model,
        device=device,
        tensor_parallel=tp,
        precision=precision,
        kv_dtype=kv_dtype or (logged and logged.kv_cache_dtype) or "bf16",
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        scheduler=scheduler,
        async_scheduling=async_scheduling,
        costs_of=costs_from(costs, scheduler=scheduler, async_scheduling=async_scheduling),
        prefix_tokens=log.prefix_tokens,
        **({} if exchange_us is None else {"exchange_extra_s": exchange_us * 1e-6}),
        data_parallel=dp or (logged and logged.data_parallel_size) or 1,
        expert_parallel=not logged or logged.enable_expert_parallel is not False,
    )
    served = replay_requests(log, deployment.engines(replicas))
    report = ReplayReport(log=log, served=served, replicas=replicas)
    figures = {**_named(deployment), "costs": costs, **report.as_dict()}
    if out is not None:
        write_replay(out, report, figures)
    if json:
        show_json(figures)
    else:
        show_replay(figures)


@engine_app.command()
def load(
    model: ModelName,
    device: DeviceName,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests kept in flight.")],
    input_tokens: Annotated[int, typer.Option(min=1, help="Prompt length.")],
    output_tokens: Annotated[int, typer.Option(min=1, help="Output length.")],
    tp: Tp = 1,
    requests: Annotated[int | None, typer.Option(min=1, help="Requests in all [10 for each in flight].")] = None,
    precision: Precision = None,
    kv_dtype: KvDtype = None,
    length_range: Annotated[float, typer.Option(help="Lengths are drawn from so much of the nominal to it.")] = 1.0,
    max_num_seqs: Seqs = None,
    max_num_batched_tokens: Batched = None,
    scheduler: SchedulerName = "vllm",
    async_scheduling: Async = True,
    costs: Costs = "compact",
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the lengths.")] = 0,
    json: Json = False,
) -> None:
    """Keep a number of requests in flight; show time to first token and time per output token."""
    from rollart.loadtest.closed_loop import Load, keep_in_flight
    from rollart.loadtest.cost_source import costs_from
    from rollart.loadtest.latencies import Quantities

    work = Load(
        concurrency=concurrency,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        requests=requests or 10 * concurrency,
        length_range=length_range,
        seed=seed,
    )
    deployment = _deployment(
        model=model,
        device=device,
        tensor_parallel=tp,
        precision=precision,
        kv_dtype=kv_dtype or "bf16",
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        scheduler=scheduler,
        async_scheduling=async_scheduling,
        costs_of=costs_from(costs, scheduler=scheduler, async_scheduling=async_scheduling),
    )
    served = keep_in_flight(work, deployment.engines())
    tokens = sum(met.output_tokens for met in served.latencies)
    figures = {
        **_named(deployment),
        "costs": costs,
        "concurrency": concurrency,
        "requests": work.requests,
        **Quantities(served.latencies).milliseconds(),
        "duration_s": served.duration_s,
        "output_tokens_per_s": tokens / served.duration_s,
    }
    if json:
        show_json(figures)
    else:
        show_load(figures)


def _deployment(*, model: str, device: str, **settings: Any) -> "Deployment":
    from rollart.catalog.load import devices
    from rollart.loadtest.deployment import Deployment

    deployment = Deployment(model=model_named(model), device=devices()[device], **settings)
    widened = deployment.widened()
    if widened:
        typer.echo(f"note: {widened}", err=True)
    return deployment


def _warn_of(logged: "EngineArguments | None", **chosen: int | str | None) -> None:
    """Say on stderr where the engine of the log was set otherwise."""
    for line in logged.contradictions(**chosen) if logged else ():
        typer.echo(f"note: {line}", err=True)


def _named(deployment: "Deployment") -> dict[str, Any]:
    shape = deployment.shape
    return {
        "model": shape.model.name,
        "device": shape.device.name,
        "tp": shape.tensor_parallel,
        "precision": shape.precision,
        "kv_dtype": shape.kv_dtype,
        "dp": deployment.data_parallel,
        "scheduler": deployment.scheduler,
        "max_num_seqs": shape.max_num_seqs,
        "max_num_batched_tokens": shape.max_num_batched_tokens,
    }
