"""The Airfoil benchmark mesh: 3I x J quads around NACA 0012 through the complex square root.

Source: OP2 Airfoil (Mudalige, Giles, Reguly et al., "OP2: an active library framework for solving
unstructured mesh-based applications on multi-core and many-core architectures", InPar 2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.packages import require
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces

__all__ = [
    "AIRFOIL_LINKS",
    "AIRFOIL_VALUES",
    "FAR_FIELD",
    "WALL",
    "AirfoilMesh",
    "AirfoilSlice",
    "airfoil_mesh",
    "airfoil_sizes",
    "airfoil_slice",
    "cut_airfoil",
    "six_decimals",
]

WALL = 1
FAR_FIELD = 2

AIRFOIL_LINKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "cell_nodes": ("cells", "nodes"),
        "edge_nodes": ("edges", "nodes"),
        "edge_cells": ("edges", "cells"),
        "boundary_nodes": ("bedges", "nodes"),
        "boundary_cells": ("bedges", "cells"),
    }
)
"""The maps of the benchmark: name to source and target."""

AIRFOIL_VALUES: Mapping[str, str] = MappingProxyType({"points": "nodes", "boundary_codes": "bedges"})
"""Its values: name to set."""

_CHUNK = 1 << 18
"""Rows that are made at a time, so that intermediate arrays stay in the caches."""

_SURFACE = (0.298222773, -0.127125232, -0.357907906, 0.291984971, -0.105174696)
_SCALE = 0.594689181
_BRANCH = 0.0077
_N_SURFACE = 100


@dataclass(frozen=True, eq=False)
class AirfoilMesh:
    """The arrays of the Airfoil benchmark, in its published order.

    Attributes
    ----------
    points : (n_nodes, 2) float64
        Coordinates, chord 1, equal to the values of their six-decimal text.
    cell_nodes : (n_cells, 4) int32
        Anticlockwise.
    edge_nodes, edge_cells : (n_edges, 2) int32
        Interior edges.
    boundary_nodes : (n_boundary, 2) int32
        Boundary edges.
    boundary_cells : (n_boundary,) int32
        The cell behind each.
    boundary_codes : (n_boundary,) int32
        1 on the wall, 2 on the far field.
    """

    points: FloatArray
    cell_nodes: IntArray
    edge_nodes: IntArray
    edge_cells: IntArray
    boundary_nodes: IntArray
    boundary_cells: IntArray
    boundary_codes: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """The integers ``(i, j)`` the mesh was built with."""
        i = int((self.boundary_codes == WALL).sum())
        return i, len(self.cell_nodes) // (3 * i)

    @property
    def sets(self) -> dict[str, int]:
        """Elements of each set."""
        rows = {"nodes": self.points, "cells": self.cell_nodes, "edges": self.edge_nodes, "bedges": self.boundary_nodes}
        return {name: len(table) for name, table in rows.items()}

    @property
    def tables(self) -> dict[str, IntArray]:
        """The tables of the maps, by the names of `AIRFOIL_LINKS`."""
        return {name: getattr(self, name) for name in AIRFOIL_LINKS}

    @property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """Values on the sets, by the names of `AIRFOIL_VALUES`."""
        return {name: getattr(self, name) for name in AIRFOIL_VALUES}

    def to_mesh_data(self) -> MeshData:
        """Return the mesh with patches ``wall`` and ``far_field``.

        The benchmark stores the nodes of the cut behind the trailing edge twice, and joins the cells across it in
        its edge list.  Here the ``i + 1`` pairs are welded, so that the cut consists of ordinary interior faces
        and the counts of interior and boundary faces are the benchmark's.
        """
        i, _ = self.shape
        number = np.arange(len(self.points), dtype=np.int32)
        number[3 * i + 1 :] -= i + 1
        number[2 * i : 3 * i + 1] = np.arange(i, -1, -1)
        points = np.delete(self.points, np.s_[2 * i : 3 * i + 1], axis=0)
        wall = self.boundary_codes == WALL
        # The benchmark lists boundary edges against the cell's turn; patches are outward like all others.
        outward = number[self.boundary_nodes[:, ::-1]]
        patches = {
            "wall": PatchFaces({"line": outward[wall]}),
            "far_field": PatchFaces({"line": outward[~wall]}),
        }
        return MeshData(points, {"quad": number[self.cell_nodes]}, patches, MeshSource("<airfoil>"))


@dataclass(frozen=True, eq=False)
class AirfoilSlice:
    """One rank's consecutive rows of every table of the Airfoil mesh.

    Attributes
    ----------
    sizes
        Set name to its elements in the whole mesh.
    rows
        This rank's rows; numbers in them are those of the whole mesh.
    """

    sizes: Mapping[str, int]
    rows: AirfoilMesh


def airfoil_mesh(i: int = 400, j: int = 600) -> AirfoilMesh:
    """Build the Airfoil mesh with ``3 i`` by ``j`` cells.

    Parameters
    ----------
    i, j
        Cells along the airfoil (a third of the columns) and away from it; the published mesh has 400 and 600.

    Returns
    -------
    AirfoilMesh
        ``(3 i + 1)(j + 1)`` nodes, ``3 i j`` cells.

    Raises
    ------
    MeshError
        For ``i < 2`` or ``j < 1``.

    Notes
    -----
    A ``(3i+1) x (j+1)`` grid of ``zeta = xi + i eta`` with ``xi`` uniform on [-3, 3] and ``eta`` uniform from the
    airfoil's image (0 outside it) to 3 is mapped by ``z = zeta**2`` and written with six decimals.
    """
    return airfoil_slice(i, j, 0, 1).rows


def airfoil_slice(i: int, j: int, rank: int, ranks: int) -> AirfoilSlice:
    """Build one rank's slice of the Airfoil mesh; the rest of the mesh is never formed.

    Parameters
    ----------
    i, j
        As in `airfoil_mesh`.
    rank, ranks
        Which slice, of how many. Cells, nodes and boundary edges are split evenly; an edge goes with the cell
        that lists it.

    Raises
    ------
    MeshError
        For ``i < 2`` or ``j < 1``, more nodes than 32 bits can number, or a rank that does not exist.
    """
    if i < 2 or j < 1:
        raise MeshError(f"the Airfoil mesh needs i >= 2 and j >= 1, got i = {i}, j = {j}")
    if airfoil_sizes(i, j)["nodes"] > 2**31:
        raise MeshError(f"the Airfoil mesh with i = {i}, j = {j} has more nodes than the {2**31:,} that 32 bits number")
    if not 0 <= rank < ranks:
        raise MeshError(f"the Airfoil mesh has slices 0 ... {ranks - 1}, not {rank}")
    sizes = airfoil_sizes(i, j)
    nodes, cells, bedges = (_block(sizes[name], rank, ranks) for name in ("nodes", "cells", "bedges"))
    cell_nodes, edge_nodes, edge_cells = _cells(i, j, *cells)
    boundary_nodes, boundary_cells, codes = _boundary(i, j)
    bounds = slice(*bedges)
    rows = AirfoilMesh(
        points=_points(i, j, *nodes),
        cell_nodes=cell_nodes,
        edge_nodes=edge_nodes,
        edge_cells=edge_cells,
        boundary_nodes=boundary_nodes[bounds],
        boundary_cells=boundary_cells[bounds],
        boundary_codes=codes[bounds],
    )
    return AirfoilSlice(sizes, rows)


def airfoil_sizes(i: int, j: int) -> dict[str, int]:
    """Return the elements of each set of the Airfoil mesh: ``nodes``, ``cells``, ``edges`` and ``bedges``."""
    return {
        "nodes": (3 * i + 1) * (j + 1),
        "cells": 3 * i * j,
        "edges": i + 3 * i * (j - 1) + (3 * i - 1) * j,
        "bedges": i + 2 * j + 3 * i,
    }


def cut_airfoil(mesh: AirfoilMesh, rank: int, ranks: int) -> AirfoilSlice:
    """Return one rank's slice of an Airfoil mesh that is there as a whole (views)."""

    def rows(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return table[slice(*_block(len(table), rank, ranks))]

    return AirfoilSlice(mesh.sets, AirfoilMesh(**{item.name: rows(getattr(mesh, item.name)) for item in fields(mesh)}))


def _block(total: int, rank: int, ranks: int) -> tuple[int, int]:
    """Return the rows of a rank when a table is split evenly."""
    return total * rank // ranks, total * (rank + 1) // ranks


def six_decimals(values: FloatArray) -> FloatArray:
    """Return the values that writing with ``%.6f`` and reading back gives, bit for bit.

    The text is the correctly rounded decimal of the exact binary value, ties to even, and the quotient of that
    integer by 1e6 is the correctly rounded parse of the text. The product ``value * 1e6`` is itself rounded, which
    matters where it is half of an odd number: its error says on which side of the tie the exact product lies.
    Values are to be below ``2**52 / 1e6``.
    """
    scaled = values * 1e6
    whole = np.rint(scaled)
    tie = np.abs(scaled - whole) == 0.5
    value, product, near = values[tie], scaled[tie], whole[tie]
    # 1e6 has 14 binary digits: products with the upper 39 digits of a value, and with the other 14, are exact.
    upper = (value.view(np.int64) & ~0x3FFF).view(np.float64)
    error = (upper * 1e6 - product) + (value - upper) * 1e6
    side = product - near
    beyond = error * side > 0
    near[beyond] += 2 * side[beyond]
    whole[tie] = near
    whole /= 1e6
    return whole


def _points(i: int, j: int, first: int, last: int) -> FloatArray:
    """Return the mapped and rounded coordinates of the nodes ``first ... last - 1``, ``(nodes, 2)``."""
    s = np.linspace(0.0, 0.5 * np.pi, _N_SURFACE)
    x = np.sin(s) ** 2
    a, b, c, d, e = _SURFACE
    y = _SCALE * (a * np.sqrt(x) + b * x + c * x**2 + d * x**3 + e * x**4)
    y[-1] = 0.0
    upper = np.sqrt((x - _BRANCH) + 1j * y)
    profile: npt.NDArray[np.complex128] = np.concatenate([-np.conj(upper[::-1]), upper[1:]])
    all_xi = np.linspace(-3.0, 3.0, 3 * i + 1)
    low = np.zeros(3 * i + 1)
    on_airfoil = slice(i + 1, 2 * i)
    interpolate = require("scipy.interpolate", "app", "the Airfoil mesh")
    spline = interpolate.CubicSpline(profile.real, profile.imag, bc_type="not-a-knot")
    low[on_airfoil] = spline(all_xi[on_airfoil])
    points = np.empty((last - first, 2))
    for begin in range(first, last, _CHUNK):
        row, column = np.divmod(np.arange(begin, min(begin + _CHUNK, last)), 3 * i + 1)
        xi, foot = all_xi[column], low[column]
        # The operations of numpy.linspace from the foot to 3, whose last value is exactly the end.
        eta = np.where(row == j, 3.0, row * ((3.0 - foot) / j) + foot)
        piece = points[begin - first : begin - first + _CHUNK]
        piece[:, 0] = six_decimals(xi**2 - eta**2)
        piece[:, 1] = six_decimals(2.0 * xi * eta)
    return points


def _cells(i: int, j: int, first: int, last: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the nodes of the cells ``first ... last - 1``, and nodes and cells of the edges that they list."""
    wide = 3 * i

    def listed(cell: int) -> int:
        """Return how many edges the cells before one list: cut line, upper edge, right edge."""
        rows, rest = divmod(cell, wide)
        return min(cell, i) + min(cell, wide * (j - 1)) + rows * (wide - 1) + min(rest, wide - 1)

    cell_nodes = np.empty((last - first, 4), dtype=np.int32)
    edge_nodes = np.empty((listed(last) - listed(first), 2), dtype=np.int32)
    edge_cells = np.empty_like(edge_nodes)
    for begin in range(first, last, _CHUNK):
        end = min(begin + _CHUNK, last)
        row, column = np.divmod(np.arange(begin, end, dtype=np.int32), np.int32(wide))
        corner = row * np.int32(wide + 1) + column
        for leg, offset in enumerate((0, 1, wide + 2, wide + 1)):
            np.add(corner, np.int32(offset), out=cell_nodes[begin - first : end - first, leg])
        edges = slice(listed(begin) - listed(first), listed(end) - listed(first))
        edge_nodes[edges], edge_cells[edges] = _edges(i, j, row, column)
    return cell_nodes, edge_nodes, edge_cells


def _edges(i: int, j: int, row: IntArray, column: IntArray) -> tuple[IntArray, IntArray]:
    """Return the interior edges that cells list, cell by cell: cut line, upper edge, right edge."""
    wide = 3 * i
    corner, cell = row * np.int32(wide + 1) + column, row * np.int32(wide) + column
    slot_nodes = np.empty((len(cell), 3, 2), dtype=np.int32)
    slot_cells = np.empty((len(cell), 3, 2), dtype=np.int32)
    slot_nodes[:, 0, 0], slot_nodes[:, 0, 1] = corner, corner + 1
    slot_cells[:, 0, 0], slot_cells[:, 0, 1] = wide - 1 - column, cell
    slot_nodes[:, 1, 0], slot_nodes[:, 1, 1] = corner + (wide + 1), corner + (wide + 2)
    slot_cells[:, 1, 0], slot_cells[:, 1, 1] = cell, cell + wide
    slot_nodes[:, 2, 0], slot_nodes[:, 2, 1] = corner + 1, corner + (wide + 2)
    slot_cells[:, 2, 0], slot_cells[:, 2, 1] = cell + 1, cell
    present = np.stack([(row == 0) & (column < i), row < j - 1, column < wide - 1], axis=-1)
    # NumPy selects numbers many times faster than rows: a pair is one number of 64 bits
    nodes, cells = (slots.view(np.int64)[..., 0][present].view(np.int32) for slots in (slot_nodes, slot_cells))
    return nodes.reshape(-1, 2), cells.reshape(-1, 2)


def _boundary(i: int, j: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the wall, then the far field: right side upwards, top leftwards, left side downwards."""
    wide, up, across = 3 * i, np.arange(j), np.arange(3 * i)
    wall = np.arange(i, 2 * i)
    right, left, top = up * (wide + 1) + wide, up[::-1] * (wide + 1), j * (wide + 1) + across[::-1]
    parts = [
        (wall + 1, wall, wall),
        (right + wide + 1, right, up * wide + wide - 1),
        (top, top + 1, (j - 1) * wide + across[::-1]),
        (left, left + wide + 1, up[::-1] * wide),
    ]
    nodes = np.concatenate([np.stack(part[:2], axis=-1) for part in parts]).astype(np.int32)
    cells = np.concatenate([part[2] for part in parts]).astype(np.int32)
    codes = np.full(len(cells), FAR_FIELD, dtype=np.int32)
    codes[:i] = WALL
    return nodes, cells, codes
