"""Pictures of compressible flow beside those of fields: the pressure coefficient along walls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fluxloom.app.cases.compressible_observers import Curve
from fluxloom.app.cases.flow_pictures import new_figure
from fluxloom.app.files import atomic

__all__ = ["draw_pressure"]


def draw_pressure(path: Path, curves: Sequence[Curve], title: str) -> None:
    """Draw pressure coefficients over x, upwards where they are negative, and write a PNG file.

    Parameters
    ----------
    path
        The file.
    curves
        One for each patch or cut.
    title
        Above it.

    Raises
    ------
    DeviceUnavailable
        When matplotlib is not installed.
    """
    figure, canvas = new_figure(6.4, 4.4)
    axes = figure.add_subplot()
    for curve in curves:
        axes.plot(curve.along, curve.values, ".", markersize=3, label=curve.name)
    axes.invert_yaxis()
    axes.set(xlabel="x", ylabel="pressure coefficient")
    axes.grid(True, color="0.88", linewidth=0.5)
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=11)
    if len(curves) > 1:
        axes.legend(fontsize=8, frameon=False)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))
