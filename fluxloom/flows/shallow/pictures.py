"""The picture of the tsunami case: the surface with its shore."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.run.pictures import colour_bar, picture_file, titled

__all__ = ["draw_water"]

FloatArray = npt.NDArray[np.float64]

_LAND = ["#d8cba8", "#8a7a5a"]  # matplotlib 3.8.0 takes a pair for a colour and its opacity


def draw_water(
    path: Path,
    mesh: MeshData,
    fields: Mapping[str, FloatArray],
    gauges: Mapping[str, tuple[float, float]],
    title: str,
    *,
    thin: float,
) -> None:
    """Draw the surface where there is water, the bed elsewhere, the shore, and the gauges.

    Parameters
    ----------
    path
        A PNG file.
    mesh
        The whole mesh.
    fields
        ``depth``, ``elevation`` and ``bed`` in its cells, ``(n,)``.
    gauges
        Name to coordinates.
    title
        Above the picture.
    thin
        Depth of thin water; what is less than a thousand times as deep is drawn dry.

    Raises
    ------
    DeviceUnavailable
        When matplotlib is not installed.
    """
    from matplotlib.colors import LinearSegmentedColormap

    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    ratio = (high[1] - low[1]) / (high[0] - low[0])
    with picture_file(path, 8.0, float(np.clip(6.6 * ratio + 0.9, 2.4, 9.0))) as figure:
        axes = figure.add_subplot()
        triangles, owner = _triangles(mesh)
        wet = fields["depth"] > 1e3 * thin
        x, y = mesh.points[:, 0], mesh.points[:, 1]
        if not wet.all():
            land = LinearSegmentedColormap.from_list("land", _LAND)
            dry = ~wet[owner]
            axes.tripcolor(x, y, triangles[dry], facecolors=fields["bed"][owner][dry], cmap=land, rasterized=True)
        if wet.any():
            drawn = _draw_surface(axes, mesh, triangles, owner, fields["elevation"], wet)
            colour_bar(figure, axes, drawn, "surface elevation [m]")
        _draw_shore(axes, mesh, triangles, owner, wet)
        for label, at in gauges.items():
            axes.plot(*at, "k^", markersize=4)
            axes.annotate(label, at, xytext=(3, 3), textcoords="offset points", fontsize=7)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xlabel="x [m]", ylabel="y [m]")
        titled(axes, title)


def _draw_surface(
    axes: Any, mesh: MeshData, triangles: Any, owner: Any, surface: FloatArray, wet: npt.NDArray[np.bool_]
) -> Any:
    """Draw the surface of wet cells, in colours up to what one cell in 200 exceeds; return what a scale belongs to."""
    shown = wet[owner]
    limit = float(np.percentile(np.abs(surface[wet]), 99.5)) or 1.0
    return axes.tripcolor(
        mesh.points[:, 0], mesh.points[:, 1], triangles[shown], facecolors=surface[owner][shown], cmap="RdBu_r",
        vmin=-limit, vmax=limit, rasterized=True,
    )  # fmt: skip


def _draw_shore(axes: Any, mesh: MeshData, triangles: Any, owner: Any, wet: npt.NDArray[np.bool_]) -> None:
    """Draw the sides between wet and dry cells."""
    from matplotlib.collections import LineCollection

    links = connectivity(mesh)
    between = wet[links.interior_cells[:, 0]] != wet[links.interior_cells[:, 1]]
    if between.any():
        ends = mesh.points[links.interior_nodes.table[between]]
        axes.add_collection(LineCollection(list(ends), colors="black", linewidths=0.7))


def _triangles(mesh: MeshData) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the triangles of all cells, and the cell of each."""
    rows = mesh.cell_nodes()
    parts, owners = [], []
    for count in np.unique(rows.counts):
        cells = np.flatnonzero(rows.counts == count)
        corners = rows.indices[rows.offsets[cells][:, None] + np.arange(count)].astype(np.int64)
        for k in range(1, int(count) - 1):
            parts.append(corners[:, [0, k, k + 1]])
            owners.append(cells)
    return np.concatenate(parts), np.concatenate(owners)
