"""A table of every file in a folder that some format recognises, with what was read from it.

    python experiments/traces_table.py FOLDER [--markdown]

Every file is imported by itself with `auto` and the default estimate of tokens; files of no known format are
listed below the table. Sums of seconds are of what was recorded, "-" where nothing was.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from rollart.domain.errors import TraceError
from rollart.workload.importers import ImportOptions, TraceImport
from rollart.workload.importers.files import find_files
from rollart.workload.trace import TraceTrajectory

COLUMNS = (
    "file",
    "format",
    "trajectories",
    "groups",
    "turns",
    "sent tokens",
    "output tokens",
    "env s",
    "reset s",
    "reward s",
    "mean reward",
    "bad",
    "tokens are",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--markdown", action="store_true", help="as a table for a page")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = [COLUMNS]
    others: list[str] = []
    for path, _ in find_files([options.folder]):
        name = str(path.relative_to(options.folder))
        try:
            rows.append((name, *row_of(path)))
        except TraceError as error:
            others.append(f"{name}: {str(error).removeprefix(f'{path}: ')}")
    show(rows, options.markdown)
    print("\nnot read:", *others, sep="\n  ")


def row_of(path: Path) -> tuple[str, ...]:
    """The cells after the name; TraceError for a file of no format."""
    found = TraceImport((path,), ImportOptions(format="auto"))
    trajectories = list(found)
    rewards = [one.reward for one in trajectories if one.reward is not None]
    return (
        *found.formats,
        f"{len(trajectories):,}",
        f"{len({(one.task, one.group) for one in trajectories}):,}",
        f"{sum(len(one.turns) for one in trajectories):,}",
        f"{sum(sum(one.contexts()) for one in trajectories):,}",
        f"{sum(turn.output_tokens for one in trajectories for turn in one.turns):,}",
        seconds(turn.env_s for one in trajectories for turn in one.turns),
        seconds(one.reset_s for one in trajectories),
        seconds(one.reward_s for one in trajectories),
        f"{sum(rewards) / len(rewards):.3f}" if rewards else "-",
        str(found.bad_records),
        " and ".join(sorted({provenance(one) for one in trajectories})),
    )


def provenance(trajectory: TraceTrajectory) -> str:
    """How its tokens came about."""
    return trajectory.provenance["output_tokens"]


def seconds(found: Iterable[float | None]) -> str:
    """The sum of what was recorded."""
    known = [value for value in found if value is not None]
    return f"{sum(known):,.2f}" if known else "-"


def show(rows: list[tuple[str, ...]], markdown: bool) -> None:
    """In columns, or as Markdown."""
    if markdown:
        rows = [rows[0], tuple("---" for _ in COLUMNS), *rows[1:]]
        for row in rows:
            print("|", " | ".join(row), "|")
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
