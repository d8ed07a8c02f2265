"""Pictures of a wing by sections: pressure coefficients over the chord, a panel a station, computed over measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError
from fluxloom.run.pictures import picture_file

__all__ = ["Panel", "Pressures", "draw_sections"]

Array = npt.NDArray[np.float64]

_COLUMNS = 4
_LIFTED = 0.15
"""Room above the lowest and below the highest coefficient."""


@dataclass(frozen=True, eq=False)
class Pressures:
    """Pressure coefficients along a section.

    Attributes
    ----------
    name
        Whose.
    x, cp : (n,)
        Places over the chord, and the coefficients there.
    marks
        Single places, as of a measurement; else a line through them in their order.
    """

    name: str
    x: Array
    cp: Array
    marks: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """A station.

    Attributes
    ----------
    title
        Above it.
    curves
        In the order in which they are drawn.
    """

    title: str
    curves: Sequence[Pressures]


def draw_sections(path: Path, panels: Sequence[Panel], title: str, critical: float | None = None) -> None:
    """Draw a panel for each station, with the same axes, and write a PNG file.

    Parameters
    ----------
    path
        The file.
    panels
        The stations.
    title
        Above all of them.
    critical
        Pressure coefficient of sonic speed, a thin line.

    Raises
    ------
    CaseError
        If there is no panel.
    DeviceUnavailable
        When matplotlib is not installed.
    """
    if not panels:
        raise CaseError("a picture of sections: there is none: give at least one station")
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with picture_file(path, 3.1 * columns, 2.7 * rows + 0.5) as figure:
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).reshape(-1)
        values = np.concatenate([curve.cp for panel in panels for curve in panel.curves])
        colours: dict[str, str] = {}
        for axes, panel in zip(grid, panels, strict=False):
            for curve in panel.curves:
                colour = "black" if curve.marks else colours.setdefault(curve.name, f"C{len(colours)}")
                style = {"marker": "o", "markersize": 3, "linestyle": ""} if curve.marks else {"linewidth": 1.1}
                axes.plot(curve.x, curve.cp, color=colour, label=curve.name, markerfacecolor="none", **style)
            if critical is not None:
                axes.axhline(critical, color="0.6", linewidth=0.6, linestyle="--")
            axes.set_title(panel.title, fontsize=9)
            axes.grid(True, color="0.9", linewidth=0.5)
            axes.tick_params(labelsize=7)
        grid[0].set(xlim=(-0.03, 1.03), ylim=(float(values.max()) + _LIFTED, float(values.min()) - _LIFTED))
        for k, axes in enumerate(grid[: len(panels)]):
            axes.set(xlabel="x / chord" if k + columns >= len(panels) else "", ylabel="Cp" if k % columns == 0 else "")
        spare = grid[len(panels) :]
        for axes in spare:
            axes.set_axis_off()
        handles, labels = grid[0].get_legend_handles_labels()
        if len(spare):
            spare[0].legend(handles, labels, loc="center", fontsize=8, frameon=False)
        else:
            grid[0].legend(handles, labels, fontsize=7, frameon=False)
        figure.suptitle(title, fontsize=11)
