"""How far off are single operators on shapes that were left out, from the tables and from the compact formulas?

    .venv/bin/python experiments/operators.py TABLES [--write] [--picture docs/images/operators.png]

Of each operator, precision and device one fifth of the shapes is left out (a shape is a matrix, a configuration of
heads, or a configuration of experts). The formula is fitted to the rest, the tables hold the rest, and both are asked
for all rows of the shapes left out; the tables are asked too for one fifth of the rows of shapes that they have.
Prefill is asked for single prompts, decode for up to 512 requests with a warm cache, as it was measured. With --write
the medians of the tables on shapes left out go to the catalogue.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import yaml

mpl.use("Agg")

from fit_operators import CATALOGUE, DEVICES, Problem, fitted, problems
from matplotlib import pyplot as plt

from rollart.catalog.load import devices
from rollart.costs.operators import formulas
from rollart.costs.operators.chip import Chip
from rollart.costs.operators.coefficients import Coefficients
from rollart.costs.operators.compact import CompactOperators
from rollart.costs.operators.interface import ExpertGroup, Heads
from rollart.costs.tables import curves
from rollart.costs.tables.folder import device_tables
from rollart.costs.tables.products import GemmGrid
from rollart.costs.tables.reader import Table

OPERATORS = ("gemm", "decode", "prefill", "experts")
HELD = 0.2
PERCENTILES = (50, 75, 90)
HEADS = ("num_heads", "num_key_value_heads", "head_dim")
KV_BYTES = {"bf16": 2.0, "fp8": 1.0}


class Outcome(NamedTuple):
    """Absolute errors, percent, of the rows that were left out."""

    device: str
    operator: str
    precision: str
    formula: Any
    table_shapes: Any
    table_rows: Any


def table_errors(problem: Problem, kept: Table, asked: Table, compact: CompactOperators) -> Any:
    """Errors of the asked rows from a table of the kept ones."""
    parts = [
        np.abs(seconds / rows["latency_s"] - 1)
        for rows, seconds in ANSWERS[problem.operator](problem.precision, kept, asked, compact)
    ]
    return 100 * np.concatenate(parts)


Answers = Iterator[tuple[Table, Any]]


def gemm_answers(precision: str, kept: Table, asked: Table, compact: CompactOperators) -> Answers:
    """Products, a matrix at a time."""
    grid = GemmGrid(kept, compact, precision)
    for rows in groups(asked, ("n", "k")):
        outputs, inputs = int(rows["n"][0]), int(rows["k"][0])
        form = compact.coefficients.fitted("gemm", precision).form
        computed = formulas.gemm_s(form, compact.chip, precision, rows["m"], inputs, outputs, launched=True)
        yield rows, computed * grid.ratio(rows["m"], inputs, outputs)


def decode_answers(precision: str, kept: Table, asked: Table, compact: CompactOperators) -> Answers:
    """Decode attention, a configuration of heads and a batch at a time."""
    grids: dict[Heads, curves.DecodeGrid] = {}
    for rows in groups(asked, (*HEADS, "batch_size")):
        heads = heads_of(rows, precision)
        if heads not in grids:
            grids[heads] = curves.DecodeGrid(curves.attention_rows(kept, heads)[0], compact, precision)
        batch, context = int(rows["batch_size"][0]), rows["step"] + 1
        computed = compact.decode_s(batch, context, heads, warm=True)
        yield rows, computed * grids[heads].ratio(batch, context)


def prefill_answers(precision: str, kept: Table, asked: Table, compact: CompactOperators) -> Answers:
    """Prefill attention of single prompts, a configuration of heads at a time."""
    for rows in groups(asked.where(asked["batch_size"] == 1), HEADS):
        heads = heads_of(rows, precision)
        curve = curves.prefill_curve(curves.attention_rows(kept, heads)[0], compact, precision)
        yield rows, compact.prefill_s(rows["isl"], heads) * curve.ratio(rows["isl"])


def expert_answers(precision: str, kept: Table, asked: Table, compact: CompactOperators) -> Answers:
    """Experts, a model and a split at a time."""
    names = ("hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    for rows in groups(asked, names):
        group = ExpertGroup(*(int(rows[name][0]) for name in names))
        curve, _ = curves.expert_curve(kept, compact, group, precision)
        yield rows, compact.experts_s(rows["num_tokens"], group, precision) * curve.ratio(rows["num_tokens"])


ANSWERS = {
    "gemm": gemm_answers,
    "decode": decode_answers,
    "prefill": prefill_answers,
    "experts": expert_answers,
}


def groups(table: Table, names: tuple[str, ...]) -> Iterator[Table]:
    """The table in parts of equal columns."""
    index = np.unique(np.column_stack([table[name] for name in names]), axis=0, return_inverse=True)[1]
    order = np.argsort(index, kind="stable")
    for part in np.split(order, np.cumsum(np.bincount(index))[:-1]):
        yield table.where(part)


def heads_of(rows: Table, precision: str) -> Heads:
    """The heads of a group of rows of an attention table."""
    queries, kv, dim = (int(rows[name][0]) for name in HEADS)
    token_bytes = 2 * KV_BYTES[precision] * kv * dim
    return Heads(queries, kv, dim, precision, token_bytes, 4.0 * queries * dim, 0.0)


def outcome(name: str, chip: Chip, problem: Problem) -> Outcome:
    """Leave shapes and rows out, fit, ask."""
    chance, rows = np.random.default_rng(1), problem.rows
    stacked = np.column_stack([rows[column] for column in problem.shape_columns])
    shapes = np.unique(stacked, axis=0, return_inverse=True)[1]
    count = int(shapes.max()) + 1
    out = np.isin(shapes, chance.permutation(count)[: max(1, round(HELD * count))]) & (count > 1)
    held = chance.random(len(rows)) < HELD
    known = rows.where(~out & ~held)
    form = fitted(problem, known, chance)
    fits = {problem.operator: {problem.precision: form._asdict()}}
    compact = CompactOperators(Coefficients(chip=chip, measured_on=name, tables="", fits=with_prefill(fits)))
    asked = rows.where(out) if count > 1 else rows.where(held)
    if problem.operator == "prefill":
        asked = asked.where(asked["batch_size"] == 1)
    by_formula = 100 * np.abs(problem.seconds(form, asked) / asked["latency_s"] - 1)
    by_table = table_errors(problem, known, asked, compact) if count > 1 else np.array([])
    in_rows = table_errors(problem, known, rows.where(~out & held), compact)
    return Outcome(name, problem.operator, problem.precision, by_formula, by_table, in_rows)


def with_prefill(fits: dict[str, Any]) -> dict[str, Any]:
    """Decode asks for the arithmetic of prefill too, which ordinary heads do not use."""
    stand_in = {"floor_s": 1e-5, "compute": 0.5, "bandwidth": 0.5, "blend": 1.0, "wave": 0.0}
    return {"prefill": {"bf16": stand_in}} | fits


def shown(errors: Any) -> str:
    """Median, 75th and 90th percentile."""
    return " / ".join(f"{value:.1f}" for value in np.percentile(errors, PERCENTILES)) if errors.size else "-"


def draw(outcomes: list[Outcome], path: Path) -> None:
    """Share of the rows left out with an error up to x, per operator; full lines tables, dashed formulas."""
    figure, axes = plt.subplots(1, len(OPERATORS), figsize=(14, 3.6), sharey=True, layout="constrained")
    colours = dict(zip(DEVICES, plt.get_cmap("tab10")(range(len(DEVICES))), strict=False))
    for axis, operator in zip(axes, OPERATORS, strict=True):
        for one in outcomes:
            if one.operator == operator and one.precision == "bf16":
                for errors, style in ((one.table_shapes, "-"), (one.formula, "--")):
                    share = np.linspace(0, 1, len(errors))
                    label = one.device if style == "-" else None
                    axis.plot(np.sort(errors), share, style, color=colours[one.device], label=label)
        axis.set(title=f"{operator}, bf16", xlim=(0, 50), xlabel="absolute error, %")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of the rows left out")
    axes[0].legend(frameon=False, title="full: tables, dashed: formula")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the table, draw the picture, keep the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--picture", type=Path, default=Path("docs/images/operators.png"))
    options = parser.parse_args()
    chips = yaml.safe_load((CATALOGUE / "chips.yaml").read_text(encoding="utf-8"))
    outcomes: list[Outcome] = []
    medians: dict[str, Any] = {}
    print(
        "| device | operator | precision | formula, shapes left out | tables, shapes left out | tables, rows left out |"
    )
    print("|---|---|---|---|---|---|")
    for name in DEVICES:
        entry = chips[name]
        chip = Chip(device=devices()[name], l2_bytes=entry["l2_bytes"], multiprocessors=entry["multiprocessors"])
        for problem in problems(chip, dict(device_tables(name, options.tables))):
            if problem.operator not in OPERATORS or len(problem.rows) < 100:
                continue
            one = outcome(name, chip, problem)
            outcomes.append(one)
            unseen = one.table_shapes if one.table_shapes.size else one.table_rows
            own = medians.setdefault(name, {}).setdefault(one.operator, {})
            own[one.precision] = round(float(np.median(unseen)), 1)
            figures = shown(one.formula), shown(one.table_shapes), shown(one.table_rows)
            print(f"| {name} | {one.operator} | {one.precision} | {' | '.join(figures)} |", flush=True)
    draw(outcomes, options.picture)
    if options.write:
        head = "# Median absolute error, %, of the tables on shapes left out: experiments/operators.py --write.\n"
        (CATALOGUE / "table_errors.yaml").write_text(head + yaml.safe_dump(medians, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()
