"""Pictures with matplotlib: a field on a plane mesh, a section through a volume, numbers over time or steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.flow import HistoryPanel, Picture
from fluxloom.run.results.figures import figure_classes
from fluxloom.run.results.files import atomic

__all__ = [
    "BODY", "colour_bar", "draw_curves", "draw_field", "draw_history", "draw_image", "draw_residual", "draw_section",
    "picture_file", "titled",
]  # fmt: skip

Array = npt.NDArray[np.float64]

_LINES, _FILLS = 24, 4
_NEAR = 0.01
"""Of a step between two levels: values this near a level are moved off it."""
_CONSTANT = 1e-3
"""Of a constant field, how much the scale shows above and below."""
_SHOWN_PERCENT = (1.0, 99.0)
_PIXELS, _NEIGHBOURS = 500, 6
"""Of a section: pixels along its longer side, and cells whose mean a pixel shows."""
_DPI = 160

BODY = "#3a3f47"
"""Colour of what is no fluid."""


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
    if mesh.dimension != 2:
        raise CaseError("pictures of meshes in three dimensions are not drawn; open the VTK file in ParaView")
    window = picture.window if picture.window is not None else _bounds(mesh)
    triangles, nodes, shades = _visible(mesh, np.asarray(values, dtype=np.float64), window, nodal)
    x, y = mesh.points[nodes, 0], mesh.points[nodes, 1]
    x0, x1, y0, y1 = window
    height = 6.2 * (y1 - y0) / (x1 - x0)
    with picture_file(path, 7.6, min(9.0, height + 0.9)) as figure:
        axes = figure.add_subplot()
        axes.set_facecolor(BODY)
        lines, fills, norm = _levels(shades, picture.centre)
        shown = {"norm": norm, "cmap": picture.colours, "extend": "both"}
        varies = np.ptp(shades[np.isfinite(shades)]) > _margin(shades)
        shades = _off_levels(shades if varies else np.full_like(shades, lines.mean()), fills)
        filled = axes.tricontourf(x, y, triangles, shades, levels=fills, **shown)
        if varies:
            axes.tricontour(x, y, triangles, shades, levels=lines, colors="black", linewidths=0.3, alpha=0.4)
        bar = colour_bar(figure, axes, filled, picture.label, ticks=lines[:: max(1, len(lines) // 10)])
        bar.ax.tick_params(labelsize=8)
        axes.set(xlim=(x0, x1), ylim=(y0, y1), aspect="equal", xlabel="x", ylabel="y")
        titled(axes, picture.title)


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


@contextmanager
def picture_file(path: Path, width: float, height: float) -> Iterator[Any]:
    """Give a figure of a width and a height in inches to draw in, and write it as a PNG file.

    Raises
    ------
    DeviceUnavailable
        When matplotlib is not installed.
    """
    figure_class, canvas_class = figure_classes()
    figure = figure_class(figsize=(width, height), dpi=_DPI, layout="constrained")
    canvas = canvas_class(figure)
    yield figure
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))


def titled(axes: Any, title: str) -> None:
    """Put a title above axes, and make their numbers small."""
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=11)


def colour_bar(figure: Any, axes: Any, drawn: Any, label: str, **more: Any) -> Any:
    """Put a colour bar beside axes, and return it."""
    bar = figure.colorbar(drawn, ax=axes, pad=0.02, aspect=30, shrink=0.9, **more)
    bar.set_label(label)
    return bar


def draw_image(
    path: Path, values: Array, extent: tuple[float, float, float, float], names: Sequence[str], title: str, label: str,
    **colours: Any,
) -> None:  # fmt: skip
    """Draw values of a plane grid, a pixel each.

    Parameters
    ----------
    path
        A PNG file.
    values
        ``(rows, columns)``, the first row below; NaN is what is no fluid.
    extent
        Ends along the columns, and along the rows.
    names
        Of the columns and the rows.
    title, label
        Of the picture, and of the colour bar.
    colours
        ``cmap``, ``vmin``, ``vmax``.
    """
    ratio = (extent[3] - extent[2]) / (extent[1] - extent[0])
    with picture_file(path, 7.6, float(np.clip(6.2 * ratio + 0.9, 2.0, 9.0))) as figure:
        axes = figure.add_subplot()
        axes.set_facecolor(BODY)
        shown = {"cmap": "viridis"} | colours
        drawn = axes.imshow(values, origin="lower", extent=extent, interpolation="nearest", **shown)
        colour_bar(figure, axes, drawn, label)
        axes.set(xlabel=names[0], ylabel=names[1])
        titled(axes, title)


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
    found = KDTree(centres).query(places, _NEIGHBOURS)
    distance, cell = np.asarray(found[0]), np.asarray(found[1])
    weight = 1.0 / (distance**2 + (0.1 * reach[cell]) ** 2)
    mean = (weight * values[cell]).sum(axis=-1) / weight.sum(axis=-1)
    shown = np.where(distance[..., 0] > reach[cell[..., 0]], np.nan, mean)
    extent = (float(low[first]), float(high[first]), float(low[second]), float(high[second]))
    draw_image(path, shown, extent, ("xyz"[first], "xyz"[second]), title, label)


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
    with picture_file(path, 6.8, 1.2 + 1.9 * len(panels)) as figure:
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


def draw_residual(
    path: Path, iterations: npt.NDArray[Any], residuals: npt.NDArray[Any], title: str = "Residual"
) -> None:
    """Draw the residual over the iterations, logarithmically."""
    good = np.isfinite(residuals) & (np.asarray(residuals) > 0)
    panel = HistoryPanel("root mean square change", ("residual",), logarithmic=True)
    draw_history(path, "iteration", np.asarray(iterations)[good], [(panel, np.asarray(residuals)[good, None])], title)


def draw_curves(
    path: Path, curves: Mapping[str, tuple[Array, Array]], names: tuple[str, str], title: str, *, upside_down: bool
) -> None:
    """Draw values over places as points, a colour a curve.

    Parameters
    ----------
    path
        A PNG file.
    curves
        Name to places and values.
    names
        Of the axes.
    title
        Above it.
    upside_down
        Whether the values grow downwards, as pressure coefficients are drawn.
    """
    with picture_file(path, 6.4, 4.4) as figure:
        axes = figure.add_subplot()
        for name, (places, values) in curves.items():
            axes.plot(places, values, ".", markersize=3, label=name)
        if upside_down:
            axes.invert_yaxis()
        axes.set(xlabel=names[0], ylabel=names[1])
        axes.grid(True, color="0.88", linewidth=0.5)
        titled(axes, title)
        if len(curves) > 1:
            axes.legend(fontsize=8, frameon=False)
