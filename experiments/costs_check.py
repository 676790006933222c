"""Sets what the cost models say beside published figures: figure, published, model, error, and whether it was fitted.

    python experiments/costs_check.py [--serving-points serving_latency.csv]

Published figures are those of the RollArt paper (arXiv 2512.22560). The optional file holds measured serving points
in the columns of ai-dynamo/aiconfigurator's `serving_latency.csv`; time per output token is compared.
"""

import argparse
import csv
import statistics
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from rollart.catalog.load import devices, models
from rollart.costs import weights
from rollart.costs.engine_shape import EngineShape
from rollart.costs.roofline import RooflineEngine
from rollart.costs.trainer_shape import TrainerShape
from rollart.costs.training import RooflineTrainer
from rollart.domain.cluster import Link
from rollart.domain.errors import RollArtError
from rollart.domain.training import Training

DEVICES, MODELS = devices(), models()
PAPER_MODELS = ("Qwen3-8B", "Qwen3-14B", "Qwen3-32B")
TCP_S = (6.911, 14.437, 29.649)
RDMA_S = (5.466, 5.817, 9.442)
PUSH_S = (32.4, 67.8, 127.3)
PULL_S = (6.2, 16.3, 29.7)
EXPOSED_S = (1.4, 5.1, 9.6)
ENGINE_DEVICES = 4
"""Of the scenarios of the paper; what stops an engine is its load from the host."""
FIG_3_STEP_S, FIG_3_TRAINING_SHARE = 365.7, 0.231


class Row(NamedTuple):
    """One compared figure."""

    figure: str
    published: float
    model: float
    standing: str
    """Fitted: a constant was chosen on it. Derived: computed from other figures. Assumed: from generic constants."""


def transfer_rows() -> list[Row]:
    """Tables 3 and 4."""
    rows = []
    for index, name in enumerate(PAPER_MODELS):
        size = MODELS[name].weight_bytes("bf16")
        pull = weights.pull_s(size, weights.TCP_200G)
        load = weights.host_to_device_s(size, ENGINE_DEVICES, DEVICES["H800"])
        rows += [
            Row(f"Table 3 TCP transfer {name} s", TCP_S[index], weights.transfer_s(size, weights.TCP_200G), "fitted"),
            Row(
                f"Table 3 RDMA transfer {name} s", RDMA_S[index], weights.transfer_s(size, weights.RDMA_400G), "fitted"
            ),
            Row(f"Table 4 push {name} s", PUSH_S[index], weights.push_s(size, weights.TCP_200G), "fitted"),
            Row(f"Table 4 all pulls {name} s", PULL_S[index], pull, "derived"),
            Row(f"Table 4 exposed pull {name} s", EXPOSED_S[index], load, "assumed"),
        ]
    return sorted(rows, key=lambda row: row.figure)


def training_rows() -> list[Row]:
    """Fig. 3: training of Qwen3-8B on 32 H800, batch 128; its lengths and cut are not published."""
    published = FIG_3_STEP_S * FIG_3_TRAINING_SHARE
    rows = []
    for shape in (TrainerShape(devices=32, tp=4, dp=8), TrainerShape(devices=32, tp=2, cp=2, dp=8)):
        costs = RooflineTrainer(
            model=MODELS["Qwen3-8B"],
            device=DEVICES["H800"],
            shape=shape,
            training=Training(batch_size=128, context_limit=32768),
            fabric=Link(bandwidth_bytes_per_s=400e9, latency_s=5e-6),
        )
        for tokens in (16384, 32768):
            figure = f"Fig. 3 training s, TP {shape.tp} CP {shape.cp}, all at {tokens // 1024}k"
            rows.append(Row(figure, published, costs.step([tokens] * 128).total_s, "assumed"))
    return rows


def parameter_rows() -> list[Row]:
    """Published parameter counts, in billions."""
    published = {"Qwen3-32B": 32.76, "Qwen3-235B-A22B": 235.09, "DeepSeek-R1": 671.03, "gpt-oss-120b": 116.8}
    return [Row(f"{name} parameters, 1e9", count, MODELS[name].parameters / 1e9, "derived")
            for name, count in published.items()]  # fmt: skip


def serving_errors(file: Path) -> dict[str, list[float]]:
    """Relative error of time per output token, by system and model, over the points the roofline can express.

    Data-parallel attention and models that do not fit by its memory account are left out.
    """
    errors: dict[str, list[float]] = defaultdict(list)
    with file.open(encoding="utf-8") as lines:
        for point in csv.DictReader(lines):
            if point["mode"] != "agg" or point["attention_dp_size"] not in ("", "1"):
                continue
            try:
                predicted = predicted_tpot_s(point)
            except RollArtError:
                continue
            name = f"{point['system']} {point['backend']} {point['model_path'].split('/')[-1]}"
            errors[name].append(predicted * 1e3 / float(point["silicon_tpot_ms"]) - 1)
    return errors


def predicted_tpot_s(point: dict[str, str]) -> float:
    """Steady closed loop: a decode iteration, and the prefill work that falls into it."""
    is_gpt_oss = "gpt-oss" in point["model_path"]
    precision = "mxfp4" if is_gpt_oss else (point["precision"] or "bf16")
    name = point["model_path"].split("/")[-1].removesuffix("-FP8").removesuffix("-Instruct").replace("Meta-", "")
    engine = RooflineEngine(
        EngineShape(
            model=MODELS[name],
            device=DEVICES[point["system"].removesuffix("_sxm").removesuffix("_server")],
            tensor_parallel=int(point["tp_size"]),
            precision=precision,
        )
    )
    new, out, batch = int(point["isl"]), int(point["osl"]), int(float(point["concurrency"]))
    context = batch * (new + out // 2)
    piece = engine.decode(batch, context)
    decode_s = piece.base_s + piece.per_token_s * context
    prefill_s = engine.mixed_s(batch, context, [(new, 0)]) - decode_s
    return decode_s + prefill_s * batch / out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--serving-points", type=Path)
    options = parser.parse_args()
    print(f"{'figure':52} {'published':>10} {'model':>10} {'error %':>8}  standing")
    for row in [*parameter_rows(), *transfer_rows(), *training_rows()]:
        error = 100 * (row.model / row.published - 1)
        print(f"{row.figure:52} {row.published:10.2f} {row.model:10.2f} {error:8.1f}  {row.standing}")
    if options.serving_points is None:
        return
    print("\ntime per output token, measured serving points: points, median error, median absolute error")
    for name, errors in sorted(serving_errors(options.serving_points).items()):
        absolute = statistics.median(abs(error) for error in errors)
        print(f"{name:52} {len(errors):5} {100 * statistics.median(errors):8.1f} {100 * absolute:8.1f}  assumed")


if __name__ == "__main__":
    main()
