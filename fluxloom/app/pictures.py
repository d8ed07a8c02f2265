"""Pictures with matplotlib: a field on a plane mesh, and the history of the residual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Picture
from fluxloom.app.figures import figure_classes
from fluxloom.app.files import atomic
from fluxloom.core.errors import CaseError
from fluxloom.mesh.mesh import MeshData

__all__ = ["draw_field", "draw_residual"]

_LINES, _FILLS = 24, 4
_NEAR = 0.01
"""Of a step between two levels: values this near a level are moved off it."""
_CONSTANT = 1e-3
"""Of a constant field, how much the scale shows above and below."""
_SHOWN_PERCENT = (1.0, 99.0)
_BODY = "#3a3f47"
_DPI = 160


def draw_field(
    path: Path, mesh: MeshData, values: npt.NDArray[Any], picture: Picture, *, nodal: bool = False
) -> None:
    """Draw a scalar field of a plane mesh as filled contours and write a PNG file.

    Values of cells are averaged to the nodes; parts of the window that the mesh does not cover (the body) are
    grey.

    Parameters
    ----------
    path
        The file.
    mesh
        In two dimensions.
    values : (n_cells,) or (n_points,) floating point
        The field, cells or nodes in global order.
    picture
        Title, window, colours.
    nodal
        Whether the values are those of nodes.

    Raises
    ------
    CaseError
        For a mesh in three dimensions, or a window without cells.
    DeviceUnavailable
        When matplotlib is not installed.
    """
    figure_class, canvas_class = figure_classes()
    if mesh.dimension != 2:
        raise CaseError("pictures of meshes in three dimensions are not drawn; open the VTK file in ParaView")
    window = picture.window if picture.window is not None else _bounds(mesh)
    triangles, nodes, shades = _visible(mesh, np.asarray(values, dtype=np.float64), window, nodal)
    x, y = mesh.points[nodes, 0], mesh.points[nodes, 1]
    x0, x1, y0, y1 = window
    height = 6.2 * (y1 - y0) / (x1 - x0)
    figure = figure_class(figsize=(7.6, min(9.0, height + 0.9)), dpi=_DPI, layout="constrained")
    canvas = canvas_class(figure)
    axes = figure.add_subplot()
    axes.set_facecolor(_BODY)
    lines, fills, norm = _levels(shades, picture.centre)
    shown = {"norm": norm, "cmap": picture.colours, "extend": "both"}
    varies = np.ptp(shades[np.isfinite(shades)]) > _margin(shades)
    shades = _off_levels(shades if varies else np.full_like(shades, lines.mean()), fills)
    filled = axes.tricontourf(x, y, triangles, shades, levels=fills, **shown)
    if varies:
        axes.tricontour(x, y, triangles, shades, levels=lines, colors="black", linewidths=0.3, alpha=0.4)
    bar = figure.colorbar(filled, ax=axes, pad=0.02, aspect=30, shrink=0.9, ticks=lines[:: max(1, len(lines) // 10)])
    bar.set_label(picture.label)
    bar.ax.tick_params(labelsize=8)
    axes.set(xlim=(x0, x1), ylim=(y0, y1), aspect="equal", xlabel="x", ylabel="y")
    axes.tick_params(labelsize=8)
    axes.set_title(picture.title, fontsize=11)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))


def _bounds(mesh: MeshData) -> tuple[float, float, float, float]:
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def _levels(values: npt.NDArray[np.float64], centre: float | None) -> tuple[Any, Any, Any]:
    """Return levels of the lines (round numbers), of the fills (four between two lines), and the colour scale.

    The scale leaves out the last per cent at both ends, which are few nodes at a nose or an edge, unless all that there
    is to see is in them.
    """
    from matplotlib.colors import Normalize, TwoSlopeNorm
    from matplotlib.ticker import MaxNLocator

    finite = values[np.isfinite(values)]
    if not finite.size:
        raise CaseError("the field has no finite values to draw")
    low, high = (float(value) for value in np.percentile(finite, _SHOWN_PERCENT))
    margin = _margin(finite)
    if high - low < margin:
        low, high = float(finite.min()), float(finite.max())
    if high - low < margin:
        middle, part = float(np.median(finite)), _CONSTANT * max(abs(low), abs(high))
        low, high = middle - max(margin, part), middle + max(margin, part)
    low, high = low + _NEAR**2 * (high - low), high - _NEAR**2 * (high - low)  # round-off adds no level at the ends
    lines = np.asarray(MaxNLocator(_LINES, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    fills = np.linspace(lines[0], lines[-1], _FILLS * (len(lines) - 1) + 1)
    norm = Normalize(fills[0], fills[-1])
    if centre is not None and fills[0] < centre < fills[-1]:
        norm = TwoSlopeNorm(centre, fills[0], fills[-1])
    return lines, fills, norm


def _margin(values: npt.NDArray[np.float64]) -> float:
    """Return the range of values below which a field is constant."""
    return max(1e-12, 1e-6 * float(np.abs(values[np.isfinite(values)]).max()))


def _off_levels(values: npt.NDArray[np.float64], levels: Any) -> npt.NDArray[np.float64]:
    """Return values of which none is within a hundredth of a step of a level: those that are lie above it.

    Where a field has the value of a level, as a uniform stream of Mach 2.5, contours would show its round-off.
    """
    step = levels[1] - levels[0]
    nearest = np.round((values - levels[0]) / step) * step + levels[0]
    return np.where(np.abs(values - nearest) < _NEAR * step, nearest + _NEAR * step, values)


def _visible(
    mesh: MeshData, values: npt.NDArray[np.float64], window: tuple[float, float, float, float], nodal: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the triangles of the cells in a window, their nodes, and the field at the nodes."""
    x0, x1, y0, y1 = window
    pad = 0.05 * max(x1 - x0, y1 - y0)
    total, count = np.zeros(mesh.n_points), np.zeros(mesh.n_points)
    pieces: list[npt.NDArray[np.int64]] = []
    for name, numbers in mesh.cell_ranges.items():
        block = mesh.cells[name]
        if block.shape[1] < 3 or not len(block):
            continue
        centre = mesh.points[block].mean(axis=1)
        inside = (
            (centre[:, 0] > x0 - pad) & (centre[:, 0] < x1 + pad)
            & (centre[:, 1] > y0 - pad) & (centre[:, 1] < y1 + pad)
        )  # fmt: skip
        chosen = block[inside].astype(np.int64)
        width = chosen.shape[1]
        if not nodal:
            cell = values[numbers.start : numbers.stop][inside]
            total += np.bincount(chosen.reshape(-1), np.repeat(cell, width), minlength=mesh.n_points)
            count += np.bincount(chosen.reshape(-1), minlength=mesh.n_points)
        pieces += [chosen[:, [0, k, k + 1]] for k in range(1, width - 1)]
    corners = np.concatenate(pieces) if pieces else np.empty((0, 3), dtype=np.int64)
    if not len(corners):
        raise CaseError(f"no cells lie in the window {x0:g},{x1:g},{y0:g},{y1:g}; give x0,x1,y0,y1 of the mesh")
    nodes, local = np.unique(corners, return_inverse=True)
    return local.reshape(-1, 3), nodes, values[nodes] if nodal else total[nodes] / count[nodes]


def draw_residual(
    path: Path, iterations: npt.NDArray[Any], residuals: npt.NDArray[Any], title: str = "Residual"
) -> None:
    """Draw the residual over the iterations, logarithmically, and write a PNG file.

    Raises
    ------
    DeviceUnavailable
        When matplotlib is not installed.
    """
    figure_class, canvas_class = figure_classes()
    figure = figure_class(figsize=(6.4, 4.0), dpi=_DPI, layout="constrained")
    canvas = canvas_class(figure)
    axes = figure.add_subplot()
    good = np.isfinite(residuals) & (np.asarray(residuals) > 0)
    axes.plot(np.asarray(iterations)[good], np.asarray(residuals)[good], color="#1f4e79", linewidth=1.3)
    if good.any():
        axes.set_yscale("log")
    axes.grid(True, which="major", color="0.85", linewidth=0.6)
    axes.grid(True, which="minor", color="0.93", linewidth=0.4)
    axes.set(xlabel="iteration", ylabel="root mean square change", title=title)
    axes.margins(x=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))
