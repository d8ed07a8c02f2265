"""The Airfoil benchmark mesh: 3I x J quads around NACA 0012 through the complex square root.

Source: OP2 Airfoil (Mudalige, Giles, Reguly et al., "OP2: an active library framework for solving
unstructured mesh-based applications on multi-core and many-core architectures", InPar 2012).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.optional import require
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces

__all__ = ["FAR_FIELD", "WALL", "AirfoilMesh", "airfoil_mesh", "six_decimals"]

WALL = 1
FAR_FIELD = 2

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
    if i < 2 or j < 1:
        raise MeshError(f"the Airfoil mesh needs i >= 2 and j >= 1, got i = {i}, j = {j}")
    node = np.arange((3 * i + 1) * (j + 1), dtype=np.int32).reshape(j + 1, 3 * i + 1)
    cell = np.arange(3 * i * j, dtype=np.int32).reshape(j, 3 * i)
    corners = (node[:-1, :-1], node[:-1, 1:], node[1:, 1:], node[1:, :-1])
    edge_nodes, edge_cells = _edges(i, j, node, cell)
    boundary_nodes, boundary_cells, codes = _boundary(i, j, node, cell)
    return AirfoilMesh(
        points=_points(i, j),
        cell_nodes=np.stack(corners, axis=-1).reshape(-1, 4),
        edge_nodes=edge_nodes,
        edge_cells=edge_cells,
        boundary_nodes=boundary_nodes,
        boundary_cells=boundary_cells,
        boundary_codes=codes,
    )


def six_decimals(values: FloatArray) -> FloatArray:
    """Return the values that writing with ``%.6f`` and reading back gives, bit for bit.

    The text is the correctly rounded decimal of the exact binary value, ties to even; the product
    ``value * 1e6`` is itself rounded, so values within one part in 2**50 of a tie are settled through text.
    The quotient of the rounded integer by 1e6 is the correctly rounded parse of that text.
    """
    scaled = values * 1e6
    whole = np.rint(scaled)
    near_tie = np.abs(np.abs(scaled - whole) - 0.5) <= np.abs(scaled) * 2.0**-50
    result = whole / 1e6
    if near_tie.any():
        result[near_tie] = [float(f"{value:.6f}") for value in values[near_tie]]
    return result


def _points(i: int, j: int) -> FloatArray:
    """Return the mapped and rounded coordinates, ``((3i+1)(j+1), 2)``."""
    s = np.linspace(0.0, 0.5 * np.pi, _N_SURFACE)
    x = np.sin(s) ** 2
    a, b, c, d, e = _SURFACE
    y = _SCALE * (a * np.sqrt(x) + b * x + c * x**2 + d * x**3 + e * x**4)
    y[-1] = 0.0
    upper = np.sqrt((x - _BRANCH) + 1j * y)
    profile: npt.NDArray[np.complex128] = np.concatenate([-np.conj(upper[::-1]), upper[1:]])
    xi = np.linspace(-3.0, 3.0, 3 * i + 1)
    low = np.zeros(3 * i + 1)
    on_airfoil = slice(i + 1, 2 * i)
    interpolate = require("scipy.interpolate", "app", "the Airfoil mesh")
    spline = interpolate.CubicSpline(profile.real, profile.imag, bc_type="not-a-knot")
    low[on_airfoil] = spline(xi[on_airfoil])
    eta = np.linspace(low, np.full_like(low, 3.0), j + 1, axis=0)
    points = np.empty((j + 1, 3 * i + 1, 2))
    points[..., 0] = xi**2 - eta**2
    points[..., 1] = 2.0 * xi * eta
    return six_decimals(points.reshape(-1, 2))


def _edges(i: int, j: int, node: IntArray, cell: IntArray) -> tuple[IntArray, IntArray]:
    """Return the interior edges cell by cell: cut line, upper edge, right edge."""
    rows, columns = cell.shape
    slot_nodes = np.zeros((rows, columns, 3, 2), dtype=np.int32)
    slot_cells = np.zeros((rows, columns, 3, 2), dtype=np.int32)
    present = np.zeros((rows, columns, 3), dtype=bool)
    slot_nodes[0, :i, 0] = np.stack([node[0, :i], node[0, 1 : i + 1]], axis=-1)
    slot_cells[0, :i, 0] = np.stack([cell[0, : -i - 1 : -1], cell[0, :i]], axis=-1)
    present[0, :i, 0] = True
    slot_nodes[:-1, :, 1, 0], slot_nodes[:-1, :, 1, 1] = node[1:-1, :-1], node[1:-1, 1:]
    slot_cells[:-1, :, 1, 0], slot_cells[:-1, :, 1, 1] = cell[:-1], cell[1:]
    present[:-1, :, 1] = True
    slot_nodes[:, :-1, 2, 0], slot_nodes[:, :-1, 2, 1] = node[:-1, 1:-1], node[1:, 1:-1]
    slot_cells[:, :-1, 2, 0], slot_cells[:, :-1, 2, 1] = cell[:, 1:], cell[:, :-1]
    present[:, :-1, 2] = True
    return slot_nodes[present], slot_cells[present]


def _boundary(i: int, j: int, node: IntArray, cell: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the wall, then the far field: right side upwards, top leftwards, left side downwards."""
    wall = slice(i, 2 * i)
    parts: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]] = [
        (node[0, i + 1 : 2 * i + 1], node[0, wall], cell[0, wall]),
        (node[1:, -1], node[:-1, -1], cell[:, -1]),
        (node[-1, -2::-1], node[-1, :0:-1], cell[-1, ::-1]),
        (node[-2::-1, 0], node[:0:-1, 0], cell[::-1, 0]),
    ]
    nodes = np.concatenate([np.stack(part[:2], axis=-1) for part in parts])
    cells = np.concatenate([part[2] for part in parts])
    codes = np.full(len(cells), FAR_FIELD, dtype=np.int32)
    codes[:i] = WALL
    return nodes, cells, codes
