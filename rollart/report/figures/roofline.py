"""The roofline picture of one iteration: what each term reaches against the peaks of its device."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rollart.report.figures.canvas import SERIES_COLOURS, label, legend_beside, new_figure
from rollart.report.output import replacing

_SMALLEST, _LARGEST = 0.3, 3e4
"""Operations per byte that the picture shows."""


class RooflinePoint(NamedTuple):
    """One term: operations and bytes of one device, and its share of the iteration (0..1)."""

    name: str
    flops: float
    bytes: float
    seconds: float
    share: float


def draw_roofline(
    points: Iterable[RooflinePoint], title: str, bandwidth_bytes_per_s: float, peak_flops_per_s: float, path: Path
) -> None:
    """Draw rate over intensity, both logarithmic; the area of a point is its share of the iteration."""
    figure, axes = new_figure(title, width_px=1100)
    intensity = np.geomspace(_SMALLEST, _LARGEST, 200)
    axes.loglog(intensity, np.minimum(intensity * bandwidth_bytes_per_s, peak_flops_per_s) / 1e12, color="#444444")
    for place, point in enumerate(points):
        x, y = point.flops / point.bytes, point.flops / point.seconds / 1e12
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        name = f"{point.name}: {100 * point.share:.0f} %"
        axes.scatter([x], [y], s=40 + 1200 * point.share, color=colour, alpha=0.75, label=name)
    label(axes, "operations per byte moved", "TFLOP/s of one device", grid="both")
    legend_beside(axes)
    with replacing(path) as part:
        figure.savefig(part)
