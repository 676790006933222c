"""What a command shows: one JSON object, or tables for people, on stdout; progress on stderr."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

_PAGE_COLUMNS = 110
"""Width of a table in a file or a pipe."""

Progress = Callable[[int, int], None]
"""Told the steps that are done and all steps."""


def show_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object; ValueError where a value is not finite, which JSON cannot hold."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> None:
    """Print a table; the first `texts` columns hold text that may be folded, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        is_text = index < texts
        table.add_column(
            column, justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold", min_width=6
        )
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _PAGE_COLUMNS
    console.print(table)


@contextmanager
def step_progress(title: str) -> Iterator[Progress | None]:
    """A bar of training steps on a terminal's stderr; nothing where stderr is not a terminal."""
    with told_progress(title) as (progress, _):
        yield progress


@contextmanager
def told_progress(title: str) -> Iterator[tuple[Progress | None, Callable[[str], None]]]:
    """The same bar, and what tells a line: above the bar, or plainly on stderr where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal:
        yield None, lambda line: print(line, file=sys.stderr, flush=True)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(title, total=None)
        yield lambda done, steps: bars.update(bar, completed=done, total=steps), bars.console.print


def number(value: object, digits: int = 3) -> str:
    """A number with a few significant digits, "-" for none."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
