"""Fits the compact operator formulas to measured tables and writes `rollart/catalog/operators.yaml`.

    .venv/bin/python experiments/fit_operators.py TABLES [--only gemm experts:mxfp4] [--write]

TABLES is a folder of systems (the data of ai-dynamo/aiconfigurator). Of each operator and precision: 20 % of the rows
are left out, and the shapes are cut into five parts; five fits see four parts each, without the rows left out. Errors
are median and 90th percentile of absolute percentages: `in` on what the fits saw, `rows` on the rows left out (of
shapes that were seen), `shapes` on the parts left out. The coefficients that ship come from one more fit to everything.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from scipy.optimize import least_squares

from rollart.catalog.load import devices
from rollart.costs.operators import formulas
from rollart.costs.operators.chip import Chip
from rollart.costs.operators.coefficients import COLLECTIVES
from rollart.costs.tables.folder import device_tables
from rollart.costs.tables.reader import Table

CATALOGUE = Path(__file__).parents[1] / "rollart" / "catalog"
SHIPPED = CATALOGUE / "operators.yaml"
DEVICES = ("A100", "H100", "L40S", "RTX PRO 6000")
FOLDS, HELD_ROWS, MOST_ROWS, LOSS_SCALES = 5, 0.2, 3000, (0.6, 0.15)
LOWEST, HIGHEST = -25.0, 6.0
"""Bounds of the logarithms of the coefficients."""
GEMM_TYPES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
KV_TYPES = {"bfloat16": ("bf16", 2.0), "fp8": ("fp8", 1.0)}
EXPERT_TYPES = GEMM_TYPES | {"int4_wo": "int4", "w4a16_mxfp4": "mxfp4"}
GEMM_START = formulas.GemmFit(3e-6, 0.8, 0.8, 1.0, 0.3, 0.3, 1.0, 0.5, 1e-9)
LAUNCHED_START = GEMM_START._replace(launch_s=1e-4)
"""Block-scaled ones were measured without a captured graph."""
DECODE_START = formulas.DecodeFit(1e-5, 0.8, 1.0, 0.5, 1e-9, 32.0)
PREFILL_START = formulas.PrefillFit(1e-5, 0.5, 0.8, 1.0, 0.3)
EXPERT_START = formulas.ExpertFit(3e-5, 0.5, 0.7, 1.0, 1.0, 0.9, 0.3)
MAPPED_START = EXPERT_START._replace(skew=0.95, spread_s=1e-5, uneven=0.5)
"""The kernels of gpt-oss, which map experts to ranks."""
GPT_OSS_KERNELS = "gptoss"
PEAKS = {"compute": (0.01, 1.0), "bandwidth": (0.01, 1.0)}
"""Parts of a peak."""
LAUNCHED_BOUNDS = PEAKS | {"floor_s": (1e-7, 1e-5)}
"""The kernel's own floor lies below what the host takes to start it, so it is not seen; other products' lie here."""
MAPPED_BOUNDS = PEAKS | {"bandwidth": (0.65, 1.0), "skew": (0.3, 1.0)}
"""Rows with balanced experts, which are all read, reach 0.68 to 0.70 of the bandwidth on the three devices."""
COLLECTIVE_START = formulas.CollectiveFit(1e-5, 0.7, 1.0)
ALL_REDUCE_START = formulas.AllReduceFit(5e-6, 0.6, 1e-5, 0.7, 6e-5, 0.9)


class Problem(NamedTuple):
    """One operator in one precision: rows, the shape each belongs to, and the formula."""

    operator: str
    precision: str
    rows: Table
    shape_columns: tuple[str, ...]
    start: Any
    """Where the search begins; a coefficient that starts at 0 stays there."""
    seconds: Callable[[Any, Table], Any]
    bounds: Mapping[str, tuple[float, float]] = {}
    """Least and most of coefficients that have a meaning of their own."""

    @property
    def name(self) -> str:
        """As `--only` has it."""
        return f"{self.operator}:{self.precision}"


class Errors(NamedTuple):
    """Absolute errors, percent, of each row: median and 90th percentile."""

    seen: tuple[float, float]
    rows: tuple[float, float]
    shapes: tuple[float, float] | None


def problems(chip: Chip, tables: Mapping[str, Table]) -> Iterator[Problem]:
    """All that can be fitted to the tables of one device."""
    yield from gemm_problems(chip, tables["gemm"])
    yield from decode_problems(chip, tables["generation_attention"])
    yield from prefill_problems(chip, tables["context_attention"])
    yield from expert_problems(chip, tables["moe"])
    yield from collective_problems(chip, tables)


def gemm_problems(chip: Chip, table: Table) -> Iterator[Problem]:
    """Products of the sizes that language models have: both sides of the matrix from 1,024."""
    for name, precision in GEMM_TYPES.items():
        rows = table.where((table["gemm_dtype"] == name) & (table["n"] >= 1024) & (table["k"] >= 1024))

        def seconds(fit: Any, t: Table, precision: str = precision) -> Any:
            return formulas.gemm_s(fit, chip, precision, t["m"], t["k"], t["n"], launched=True)

        start, bounds = (LAUNCHED_START, LAUNCHED_BOUNDS) if precision == "fp8_block" else (GEMM_START, {})
        yield Problem("gemm", precision, rows, ("n", "k"), start, seconds, bounds)


def attention_rows(table: Table, kv_type: str) -> Table:
    """Full attention with 64 or 128 per head and 4 heads or more per device."""
    plain = (table["window_size"] == 0) & np.isin(table["head_dim"], (64, 128)) & (table["num_heads"] >= 4)
    return table.where(plain & (table["kv_cache_dtype"] == kv_type))


def decode_problems(chip: Chip, table: Table) -> Iterator[Problem]:
    """Decode attention, up to 512 requests."""
    for name, (precision, number_bytes) in KV_TYPES.items():
        rows = attention_rows(table, name)

        def seconds(fit: Any, t: Table, number_bytes: float = number_bytes) -> Any:
            token_bytes = 2 * number_bytes * t["num_key_value_heads"] * t["head_dim"]
            return formulas.decode_s(fit, chip, t["batch_size"], t["step"] + 1, t["num_heads"], token_bytes, warm=True)

        shape = ("num_heads", "num_key_value_heads", "head_dim")
        yield Problem("decode", precision, rows.where(rows["batch_size"] <= 512), shape, DECODE_START, seconds)


def prefill_problems(chip: Chip, table: Table) -> Iterator[Problem]:
    """Prefill attention of whole prompts of 16 tokens or more."""
    for name, (precision, number_bytes) in KV_TYPES.items():
        rows = attention_rows(table, name)

        def seconds(fit: Any, t: Table, number_bytes: float = number_bytes) -> Any:
            moved = 4 * t["num_heads"] * t["head_dim"] + 4 * number_bytes * t["num_key_value_heads"] * t["head_dim"]
            pair = 4 * t["num_heads"] * t["head_dim"]
            return formulas.prefill_s(fit, chip, t["batch_size"], t["isl"], t["num_heads"], pair, moved)

        shape = ("num_heads", "num_key_value_heads", "head_dim")
        yield Problem("prefill", precision, rows.where(rows["isl"] >= 16), shape, PREFILL_START, seconds)


def expert_problems(chip: Chip, table: Table) -> Iterator[Problem]:
    """Experts under the skewed load of the tables (power law 1.2), on up to 8 ranks."""
    small = (table["moe_ep_size"] <= 8) & (table["moe_tp_size"] <= 8)
    for name, precision in EXPERT_TYPES.items():
        rows = table.where(small & (table["moe_dtype"] == name) & (table["distribution"] == "power_law_1.2"))
        start, bounds = EXPERT_START, {}
        if precision == "mxfp4":
            # A table can hold another model's kernel in this precision too, which no engine here uses.
            rows = rows.where(np.char.find(rows["kernel_source"].astype(str), GPT_OSS_KERNELS) >= 0)
            start, bounds = MAPPED_START, MAPPED_BOUNDS

        def seconds(fit: Any, t: Table, precision: str = precision) -> Any:
            return formulas.experts_s(
                fit,
                chip,
                precision,
                t["num_tokens"],
                hidden=t["hidden_size"],
                width=t["inter_size"],
                active=t["topk"],
                experts=t["num_experts"],
                tp=t["moe_tp_size"],
                ep=t["moe_ep_size"],
            )

        shape = ("hidden_size", "inter_size", "topk", "num_experts")
        yield Problem("experts", precision, rows, shape, start, seconds, bounds)


def collective_problems(chip: Chip, tables: Mapping[str, Table]) -> Iterator[Problem]:
    """Collectives per number of devices; the message size of the tables counts 2-byte numbers."""
    nccl, custom = tables["nccl"], tables.get("custom_allreduce")
    for kind in COLLECTIVES:
        for ranks in (2, 4, 8):
            table = nccl.where((nccl["op_name"] == kind) & (nccl["nccl_dtype"] == "half"))
            if kind == "all_reduce" and custom is not None:
                table = custom.where(custom["backend"] == "vllm_graph")

            def seconds(fit: Any, t: Table, kind: str = kind, ranks: int = ranks) -> Any:
                if kind == "all_reduce":
                    return formulas.all_reduce_s(fit, chip, 2.0 * t["message_size"], ranks)
                return formulas.collective_s(fit, chip, kind, 2.0 * t["message_size"], ranks)

            rows = table.where(table["num_gpus"] == ranks)
            start = ALL_REDUCE_START if kind == "all_reduce" else COLLECTIVE_START
            yield Problem(kind, str(ranks), rows, ("num_gpus",), start, seconds)


def fitted(problem: Problem, rows: Table, chance: np.random.Generator) -> Any:
    """Coefficients, all positive, that make the logarithms of most rows agree; outliers weigh little."""
    if len(rows) > MOST_ROWS:
        mask = np.zeros(len(rows), bool)
        mask[chance.permutation(len(rows))[:MOST_ROWS]] = True
        rows = rows.where(mask)
    goal = np.log(rows["latency_s"])
    start = problem.start
    shortest = "launch_s" if getattr(start, "launch_s", 0.0) else start._fields[0]
    start = start._replace(**{shortest: rows["latency_s"].min()})
    free = [name for name, value in start._asdict().items() if value]
    bounds = [np.log(problem.bounds[name]) if name in problem.bounds else (LOWEST, HIGHEST) for name in free]
    low, high = np.array([each[0] for each in bounds]), np.array([each[1] for each in bounds])

    def form(logs: Any) -> Any:
        return start._replace(**dict(zip(free, np.exp(logs), strict=True)))

    def miss(logs: Any, scale: float) -> Any:
        return np.arctan((np.log(problem.seconds(form(logs), rows)) - goal) / scale)

    logs = np.log([getattr(start, name) for name in free])
    for scale in LOSS_SCALES:
        logs = least_squares(miss, logs, bounds=(low, high), max_nfev=80, args=(scale,)).x
    return type(start)(*(float(f"{value:.4g}") for value in form(logs)))


def cross_validated(problem: Problem, chance: np.random.Generator) -> Errors:
    """Errors seen and unseen; None for shapes where there are fewer than two."""
    rows = problem.rows
    shapes = np.unique(np.column_stack([rows[name] for name in problem.shape_columns]), axis=0, return_inverse=True)[1]
    count = int(shapes.max()) + 1
    fold_of = chance.permutation(count) % min(FOLDS, count)
    fold, held = fold_of[shapes], chance.random(len(rows)) < HELD_ROWS
    parts: dict[str, list[Any]] = {"seen": [], "rows": [], "shapes": []}
    for out in range(min(FOLDS, count)):
        outside = (fold == out) & (count > 1)
        fit = fitted(problem, rows.where(~outside & ~held), chance)
        error = 100 * np.abs(problem.seconds(fit, rows) / rows["latency_s"] - 1)
        parts["seen"].append(error[~outside & ~held])
        parts["rows"].append(error[~outside & held])
        parts["shapes"].append(error[outside])
    seen, left_rows, left_shapes = (np.concatenate(parts[name]) for name in ("seen", "rows", "shapes"))
    return Errors(spread(seen), spread(left_rows), spread(left_shapes) if left_shapes.size else None)


def spread(errors: Any) -> tuple[float, float]:
    """Median and 90th percentile."""
    middle, high = np.percentile(errors, (50, 90))
    return float(middle), float(high)


def fit_device(
    name: str, root: Path, chips: dict[str, Any], only: Sequence[str], before: dict[str, Any]
) -> dict[str, Any]:
    """Fits, prints and returns everything of one device; what is not in `only`, if anything is, as it was `before`."""
    entry = chips[name]
    chip = Chip(device=devices()[name], l2_bytes=entry["l2_bytes"], multiprocessors=entry["multiprocessors"])
    tables = device_tables(name, root)
    fits: dict[str, dict[str, Any]] = before["fits"] if only else {}
    for problem in problems(chip, tables):
        if len(problem.rows) < 10 or (only and problem.name not in only and problem.operator not in only):
            continue
        chance = np.random.default_rng(0)
        errors = cross_validated(problem, chance)
        final = fitted(problem, problem.rows, chance)
        unseen = errors.shapes or errors.rows
        figures = {name: value for name, value in final._asdict().items() if value}
        figures["error_pct"] = round(unseen[0], 1)
        fits.setdefault(problem.operator, {})[problem.precision] = figures
        shapes = "-" if errors.shapes is None else "{:.1f} / {:.1f}".format(*errors.shapes)
        print(
            f"| {name} | {problem.operator} | {problem.precision} | {len(problem.rows)} | "
            f"{errors.seen[0]:.1f} / {errors.seen[1]:.1f} | {errors.rows[0]:.1f} / {errors.rows[1]:.1f} | {shapes} |",
            flush=True,
        )
    return {"tables": tables["gemm"].path.parent.name, "fits": fits}


def main() -> None:
    """Fit all devices; the table goes to the terminal, the coefficients to the catalogue with --write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", type=Path)
    parser.add_argument("--only", nargs="+", default=(), metavar="OPERATOR[:PRECISION]", help="the others keep theirs")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    chips = yaml.safe_load((CATALOGUE / "chips.yaml").read_text(encoding="utf-8"))
    print("| device | operator | precision | rows | in: median / p90 % | rows left out | shapes left out |")
    print("|---|---|---|---|---|---|---|")
    before = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    fits = {name: fit_device(name, options.tables, chips, options.only, before[name]) for name in DEVICES}
    if options.write:
        head = (
            "# Coefficients of the compact operator formulas, written by experiments/fit_operators.py --write.\n"
            "# Fitted to the operator tables of ai-dynamo/aiconfigurator at 095f58a51c4c (Apache-2.0).\n"
            "# error_pct: median absolute error on whole shapes left out (on rows where there is one shape only).\n"
        )
        text = yaml.safe_dump(fits, sort_keys=False, default_flow_style=None, width=110)
        SHIPPED.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
