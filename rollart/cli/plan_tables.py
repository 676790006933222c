"""What `rollart plan` shows to people: plans side by side, who runs where, the reasons, and the proof."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from rollart.cli.present import number, show_table

_CELLS = 64
"""Width of a pool's strip; a cell is a device, or as many as are needed to keep within it."""
_LETTERS = "abcdefghijklmnopqrsuvwxyz"
"""For engine groups; `t` is missing since T is the trainer."""

UNITS = {"step_time": "s", "cost": "money a step", "throughput_per_cost": "trajectories per money"}

Shown = Mapping[str, Any]
"""A plan report as plain data."""


def show_plan(shown: Shown) -> None:
    """Print a report."""
    plans = [shown, *shown["alternatives"]]
    unit = UNITS[shown["objective"]]
    columns = ("trainer", "engines", f"predicted {unit}", "simulated", "p50", "p90", "behind")
    show_table(f"plans, best first: {shown['objective']}, {unit}", columns, map(_plan_row, plans), texts=2)
    typer.echo("who runs where")
    for line in picture(shown):
        typer.echo(f"  {line}")
    typer.echo()
    show_table("pools", ("pool", "what limits it", "busy"), _pool_rows(shown), texts=2)
    if shown["sensitivity"]:
        _show_sensitivity(shown["sensitivity"])
    for line in (*_reasons(shown), _proof(shown)):
        typer.echo(line)


def _show_sensitivity(table: Shown) -> None:
    simulated = table["simulated"] is not None
    columns = (
        "what if",
        "best plan there, predicted",
        *(("kept plan, simulated", "new plan, simulated") if simulated else ()),
    )
    rows = [_effect_row(effect, table, simulated) for effect in (*table["effects"], *table["drifts"])]
    show_table("sensitivity, against the plan above", columns, rows)
    if table["drifts"]:
        typer.echo(f"plan again when {_plan_again(table['plan_again'])}")


def _effect_row(effect: Shown, table: Shown, simulated: bool) -> tuple[str, ...]:
    row = (effect["variation"], _change(effect["predicted"], table["predicted"]))
    if not simulated:
        return row
    return (*row, _change(effect["kept"], table["simulated"]), _change(effect["replanned"], table["simulated"]))


def _change(value: float | None, base: float) -> str:
    return "-" if value is None else f"{number(value, 4)} ({100 * (value / base - 1):+.1f} %)"


def _plan_again(scales: Shown) -> str:
    """From which drift on a new plan is clearly better."""
    found = [f"outputs are {scale:g} times as long" for scale in scales.values() if scale is not None]
    return " or ".join(found) or "outputs drift by more than a factor of 2: until there the plan stays as good"


def picture(shown: Shown) -> Iterator[str]:
    """A strip for each pool: T trains, letters are engine groups, a dot is idle; then what each letter serves."""
    plan = shown["plan"]
    letters = {group["name"]: _LETTERS[i % len(_LETTERS)] for i, group in enumerate(plan["engines"])}
    width = max(map(len, shown["pools"]))
    most = max((use["training"] + use["rollout"] + use["idle"] for use in shown["pools"].values()), default=1)
    each = -(-most // _CELLS)
    for name, use in shown["pools"].items():
        parts = [("T", use["training"])]
        for group in plan["engines"]:
            if group["pool"] == name and not group["time_shared"]:
                parts.append((letters[group["name"]], group["engines"] * group["tensor_parallel"]))
        parts.append((".", use["idle"]))
        yield f"{name:{width}}  {_strip(parts, each)}"
    yield f"{'':{width}}  T trains, . is idle" + (f"; a letter is {each} devices" if each > 1 else "")
    for group in plan["engines"]:
        served = [task for task, groups in plan["affinity"].items() if group["name"] in groups] or ["every task"]
        what = f"{group['engines']} x TP {group['tensor_parallel']}"
        yield f"{'':{width}}  {letters[group['name']]} {group['name']} ({what}): {', '.join(served)}"


def _strip(parts: Sequence[tuple[str, int]], each: int) -> str:
    """Letters for counts of devices; a part that is there gets at least one."""
    return "".join(letter * max(1, round(count / each)) for letter, count in parts if count)


def _plan_row(one: Shown) -> tuple[str, ...]:
    trainer, simulated = one["plan"]["trainer"], one["simulated"] or {}
    cut = "x".join(str(trainer[f"{kind}_parallel"]) for kind in ("tensor", "pipeline", "context"))
    behind = one["behind"]
    return (
        f"{trainer['pool']} x {trainer['devices']} ({cut})",
        ", ".join(f"{group['engines']} {group['name']}" for group in one["plan"]["engines"]),
        number(one["predicted"], 4),
        *(number(simulated.get(key), 4) for key in ("mean", "p50", "p90")),
        "-" if not behind else f"{100 * behind:.1f} %",
    )


def _pool_rows(shown: Shown) -> Iterator[tuple[str, ...]]:
    for name, use in shown["pools"].items():
        yield name, use["bottleneck"] or "-", f"{100 * use['busy']:.0f} %"


def _reasons(shown: Shown) -> Iterator[str]:
    if shown["bottleneck"]:
        yield f"a step waits for {shown['bottleneck']}"
    yield from (f"binding: {line}" for line in shown["binding"])
    judged = shown["judged"]
    if judged is not None:
        sure = "the ranking is clear" if judged["clear"] else "the ranking is not clear after all repetitions"
        if judged["out_of_time"]:
            sure = "time decided: some plans or repetitions were left out (--judging-limit)"
        alike = f", {judged['equally_good']} more equally good" if judged["equally_good"] else ""
        known = f" and {judged['remembered']} remembered" if judged["remembered"] else ""
        yield f"{sure}{alike}: {judged['simulated']} simulations{known}, {judged['wall_s']:.0f} s"


def _proof(shown: Shown) -> str:
    simulated = shown["simulated"]
    floor = f"floor {number(shown['floor'], 4)}"
    if simulated and shown["floor"]:
        floor += f" ({100 * shown['floor'] / simulated['mean']:.0f} % of the simulated)"
    gap = f"{100 * shown['gap']:.2f} %"
    return (
        f"{shown['status']}: bound {number(shown['bound'], 4)}, gap {gap}, {floor}, solved in {shown['wall_s']:.1f} s"
    )
