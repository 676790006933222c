"""Dense products from a measured table: a grid over rows, inputs and outputs."""

import numpy as np

from rollart.costs.operators.compact import CompactOperators
from rollart.costs.operators.formulas import Numbers, gemm_s
from rollart.costs.tables.grid import Axis, fill_last_axis, fill_rows
from rollart.costs.tables.reader import Table


class GemmGrid:
    """Ratios of one precision's measured products to the formula."""

    def __init__(self, rows: Table, compact: CompactOperators, precision: str) -> None:
        form = compact.coefficients.fitted("gemm", precision).form
        computed = gemm_s(form, compact.chip, precision, rows["m"], rows["k"], rows["n"], launched=True)
        self.outputs, self.inputs, self.rows = Axis.of(rows["n"]), Axis.of(rows["k"]), Axis.of(rows["m"])
        shape = len(self.outputs.points), len(self.inputs.points), len(self.rows.points)
        ratios = np.full(shape, np.nan)
        place = self.outputs.places(rows["n"]), self.inputs.places(rows["k"]), self.rows.places(rows["m"])
        ratios[place] = np.log(rows["latency_s"] / computed)
        fill_last_axis(ratios, self.rows)
        self._ratios = _without_gaps(ratios, self.outputs, self.inputs)

    def ratio(self, rows: Numbers, inputs: int, outputs: int) -> Numbers:
        """Measured over computed seconds."""
        o0, o1, across = self.outputs.bracket(outputs)
        i0, i1, along = self.inputs.bracket(inputs)
        grid = self._ratios
        low = (1 - along) * grid[o0, i0] + along * grid[o0, i1]
        high = (1 - along) * grid[o1, i0] + along * grid[o1, i1]
        curve = (1 - across) * low + across * high
        found: Numbers = np.exp(np.interp(np.log(np.maximum(rows, 1.0)), np.log(self.rows.points), curve))
        return found


def _without_gaps(ratios: Numbers, outputs: Axis, inputs: Axis) -> Numbers:
    """Shapes that were not measured take the mean of what their neighbours along either side of the matrix say."""
    along, across = ratios.copy(), np.swapaxes(ratios, 0, 1).copy()
    fill_rows(along, inputs)
    fill_rows(across, outputs)
    both = np.stack([along, np.swapaxes(across, 0, 1)])
    known = ~np.isnan(both)
    mean: Numbers = np.where(known, both, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return mean
