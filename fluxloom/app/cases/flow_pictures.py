"""Pictures of flow beside those of fields: a section through a volume, and the history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_history import HistoryPanel
from fluxloom.app.figures import figure_classes
from fluxloom.app.files import atomic
from fluxloom.mesh.mesh import MeshData

__all__ = ["draw_history", "draw_section", "new_figure"]

Array = npt.NDArray[np.float64]

_PIXELS = 500
_NEAR = 6
_DPI = 160


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """Return a figure of a width and a height in inches, and its canvas, without a window system."""
    Figure, FigureCanvasAgg = figure_classes()
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    return figure, FigureCanvasAgg(figure)


def draw_section(path: Path, mesh: MeshData, values: Array, normal: int, title: str, label: str) -> None:
    """Draw a cell field in the plane through the middle of a mesh across an axis: means of the nearest cells.

    Parameters
    ----------
    path
        A PNG file.
    mesh
        In three dimensions.
    values : (n_cells,)
        The field, cells in global order.
    normal
        Axis that the plane is across: 0, 1 or 2.
    title, label
        Of the picture, and of the colour bar.
    """
    from scipy.spatial import KDTree

    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    first, second = (k for k in range(3) if k != normal)
    step = max(high[first] - low[first], high[second] - low[second]) / _PIXELS
    lines = [np.arange(low[k] + 0.5 * step, high[k], step) for k in (first, second)]
    places = np.empty((lines[1].size, lines[0].size, 3))
    places[..., normal] = 0.5 * (low[normal] + high[normal])
    places[..., second], places[..., first] = np.meshgrid(*reversed(lines), indexing="ij")
    centres, reach = _centres(mesh)
    found = KDTree(centres).query(places, _NEAR)
    distance, cell = np.asarray(found[0]), np.asarray(found[1])
    weight = 1.0 / (distance**2 + (0.1 * reach[cell]) ** 2)
    mean = (weight * values[cell]).sum(axis=-1) / weight.sum(axis=-1)
    shown = np.where(distance[..., 0] > reach[cell[..., 0]], np.nan, mean)
    ratio = (high[second] - low[second]) / (high[first] - low[first])
    figure, canvas = new_figure(7.6, float(np.clip(6.2 * ratio + 0.9, 2.0, 9.0)))
    axes = figure.add_subplot()
    axes.set_facecolor("#3a3f47")
    extent = (low[first], high[first], low[second], high[second])
    drawn = axes.imshow(shown, origin="lower", extent=extent, cmap="viridis", interpolation="nearest")
    figure.colorbar(drawn, ax=axes, pad=0.02, aspect=30, shrink=0.9).set_label(label)
    axes.set(xlabel="xyz"[first], ylabel="xyz"[second])
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=11)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))


def _centres(mesh: MeshData) -> tuple[Array, Array]:
    """Return the middle of the nodes of each cell, and the distance to the furthest of them."""
    rows = mesh.cell_nodes()
    corners, firsts, counts = mesh.points[rows.indices], rows.offsets[:-1], rows.counts
    centres = np.add.reduceat(corners, firsts) / counts[:, None]
    distance = np.linalg.norm(corners - np.repeat(centres, counts, axis=0), axis=1)
    return centres, np.maximum.reduceat(distance, firsts)


def draw_history(path: Path, over: str, places: Array, panels: list[tuple[HistoryPanel, Array]], title: str) -> None:
    """Draw numbers over time or steps, one panel above the other.

    Parameters
    ----------
    path
        A PNG file.
    over, places : (n,)
        What they are drawn over.
    panels
        And the values of their lines, ``(n, lines)``.
    title
        Above the panels.
    """
    figure, canvas = new_figure(6.8, 1.2 + 1.9 * len(panels))
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (panel, values) in zip(grid, panels, strict=True):
        for name, line in zip(panel.columns, values.T, strict=True):
            axes.plot(places, line, linewidth=1.2, label=name)
        axes.set_ylabel(panel.label, fontsize=9)
        axes.grid(True, color="0.88", linewidth=0.5)
        axes.tick_params(labelsize=8)
        axes.margins(x=0)
        if panel.logarithmic and (values > 0.0).any():
            axes.set_yscale("log")
        if len(panel.columns) > 1:
            axes.legend(fontsize=8, frameon=False)
    grid[0].set_title(title, fontsize=11)
    grid[-1].set_xlabel(over)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))
