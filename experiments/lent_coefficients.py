"""How far off are one device's coefficients on another device's measurements?

    .venv/bin/python experiments/lent_coefficients.py TABLES

H20, H800, A800 and H200 have no tables and borrow the efficiencies of a relative. This lends those of every measured
device to every other one, which is a harder case than same silicon with another link, and prints the median signed and
absolute error, percent, in bf16.
"""

import argparse
from pathlib import Path

import numpy as np
import yaml
from fit_operators import CATALOGUE, DEVICES, problems

from rollart.catalog.load import devices
from rollart.costs.operators.chip import Chip
from rollart.costs.operators.coefficients import coefficients_for
from rollart.costs.tables.folder import device_tables

OPERATORS = ("gemm", "decode", "prefill", "experts")


def main() -> None:
    """Print one row for each lender and borrower."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", type=Path)
    options = parser.parse_args()
    chips = yaml.safe_load((CATALOGUE / "chips.yaml").read_text(encoding="utf-8"))
    print("| borrower | lender | " + " | ".join(OPERATORS) + " |")
    print("|---" * (2 + len(OPERATORS)) + "|")
    for borrower in DEVICES:
        entry = chips[borrower]
        chip = Chip(device=devices()[borrower], l2_bytes=entry["l2_bytes"], multiprocessors=entry["multiprocessors"])
        found = [
            problem
            for problem in problems(chip, dict(device_tables(borrower, options.tables)))
            if problem.operator in OPERATORS and problem.precision == "bf16"
        ]
        for lender in DEVICES:
            own = coefficients_for(devices()[lender])
            cells = []
            for problem in found:
                form = own.fitted(problem.operator, "bf16").form
                error = 100 * (problem.seconds(form, problem.rows) / problem.rows["latency_s"] - 1)
                cells.append(f"{np.median(error):+.0f} / {np.median(np.abs(error)):.0f}")
            print(f"| {borrower} | {lender} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
