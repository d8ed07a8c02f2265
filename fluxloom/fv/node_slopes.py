r"""Weights of slopes that look through the nodes of a cell: node-based Green-Gauss, and least squares of all around.

As `fluxloom.fv.compressible_geometry` has them for the cells across faces, so that the same loop takes either: slopes
are sums over the elements around,

.. math:: \nabla q_i = \sum_j g_{ij} (q_j - q_i)

with weights made once from the mesh.

*Green and Gauss*: a node has the plain mean of the cells that share it, at a boundary of the boundary elements that
do; an inner face has the mean of its nodes, and the slopes are
:math:`\frac{1}{V} \sum_f n_f A_f q_f`. They are exact for linear fields on meshes of parallelograms; elsewhere they are
some per cent off however fine the mesh is.

*Least squares* over everything that shares a node: exact for linear fields on every mesh. Tetrahedra have some sixty
neighbours in place of four, and what grows at walls where slopes come from four does not grow here.

References
----------
D. G. Holmes, S. D. Connell: *Solution of the 2D Navier-Stokes equations on unstructured adaptive grids*. AIAA 89-1932.
E. Sozer, C. Brehm, C. C. Kiris: *Gradient calculation methods on arbitrary polyhedral unstructured meshes for
cell-centered CFD solvers*. AIAA 2014-1440.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, vstack

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.fv.compressible_geometry import least_squares
from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.sides import Family, Sides
from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.mesh import MeshData, Ragged

__all__ = ["NODE_SLOPES", "NodeSlopes", "node_slopes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

NodeSlopes = Literal["green-gauss", "least-squares"]
NODE_SLOPES: tuple[NodeSlopes, ...] = get_args(NodeSlopes)
_LARGEST = 1 << 32


def node_slopes(mesh: MeshData, volumes: ControlVolumes, kind: NodeSlopes = "green-gauss") -> Family:
    """Return rows of the cells: the elements around and their weights, ``(entries, d)``.

    Parameters
    ----------
    mesh, volumes
        The mesh, and its control volumes.
    kind
        ``"green-gauss"`` or ``"least-squares"``.

    Raises
    ------
    SolverError
        If the kind is unknown, on several ranks, or where patches are periodic: a node would have two places.
    """
    if kind not in NODE_SLOPES:
        raise SolverError(f"slopes through nodes: {kind!r} is unknown{did_you_mean(kind, NODE_SLOPES)}")
    if volumes.shared is not None:
        raise SolverError("slopes through nodes reach further than the halo of a rank: run them on one rank")
    if volumes.wrapped.faces.size:
        raise SolverError("slopes through nodes: periodic patches have two places for a node; take those across faces")
    links = mesh.connectivity()
    means = _node_means(links, volumes)
    return _least_squares(links, volumes, means) if kind == "least-squares" else _green_gauss(links, volumes, means)


def _incidence(rows: Ragged, count: int, first: int = 0) -> tuple[Index, Index]:
    """Return nodes and numbers, from ``first`` on, of what has them."""
    lengths = np.diff(rows.offsets)
    return rows.indices[: rows.offsets[-1]].astype(np.int64), first + np.repeat(np.arange(count), lengths)


def _node_means(links: Connectivity, volumes: ControlVolumes) -> csr_array:
    """Return the matrix that takes values of elements to means at nodes."""
    node, cell = _incidence(links.cell_nodes, links.n_cells)
    outer_node, outer = _incidence(links.boundary_nodes, links.n_boundary, volumes.cells)
    edge = np.zeros(links.n_points, dtype=bool)
    edge[outer_node] = True
    inside = ~edge[node]
    row, column = np.concatenate([node[inside], outer_node]), np.concatenate([cell[inside], outer])
    found = csr_array(coo_array((np.ones(row.size), (row, column)), shape=(links.n_points, volumes.elements)))
    counts = np.diff(found.indptr)
    found.data /= np.repeat(counts, counts)
    return found


def _green_gauss(links: Connectivity, volumes: ControlVolumes, means: csr_array) -> Family:
    """Return the weights of the sums over the faces of a cell."""
    sides, values = Sides.of(volumes), _face_values(links, volumes, means)

    def summed(push: Array) -> csr_array:
        found = csr_array(
            csr_array((push, sides.face, sides.offsets), shape=(sides.cells, len(volumes.faces))) @ values
        )
        found.sort_indices()
        return found

    pattern = summed(np.ones(sides.face.size))
    where, weights = _keys(pattern), np.zeros((pattern.nnz, volumes.dimension))
    for k in range(volumes.dimension):
        found = summed(sides.sign * volumes.areas[sides.face, k] / volumes.volumes[sides.cell])
        weights[np.searchsorted(where, _keys(found)), k] = found.data  # products leave zeros out
    return _without_own(pattern.indptr.astype(np.int64), pattern.indices, weights)


def _keys(matrix: csr_array) -> Index:
    """Return a number for each entry, ascending: row times columns, and column."""
    rows = np.repeat(np.arange(matrix.indptr.size - 1, dtype=np.int64), np.diff(matrix.indptr))
    return rows * _LARGEST + matrix.indices


def _face_values(links: Connectivity, volumes: ControlVolumes, means: csr_array) -> csr_array:
    """Return the matrix that takes values of elements to those of faces: of inner ones, then of the boundary."""
    nodes, lengths = links.interior_nodes, np.diff(links.interior_nodes.offsets)
    shares = 1.0 / np.repeat(lengths, lengths)
    inner = csr_array((shares, nodes.indices, nodes.offsets), shape=(links.n_interior, links.n_points)) @ means
    edge = np.arange(links.n_boundary)
    outer = coo_array((np.ones(edge.size), (edge, volumes.cells + edge)), shape=(edge.size, volumes.elements))
    return csr_array(vstack([inner, outer]))


def _least_squares(links: Connectivity, volumes: ControlVolumes, means: csr_array) -> Family:
    """Return the weights of the ways to everything that shares a node with a cell, boundary elements included."""
    node, cell = _incidence(links.cell_nodes, links.n_cells)
    around = csr_array(coo_array((np.ones(node.size), (cell, node)), shape=(links.n_cells, links.n_points)))
    outer_node, outer = _incidence(links.boundary_nodes, links.n_boundary, volumes.cells)
    every = coo_array(
        (np.ones(node.size + outer.size), (np.concatenate([node, outer_node]), np.concatenate([cell, outer]))),
        shape=(links.n_points, volumes.elements),
    )
    found = csr_array(around @ csr_array(every))
    found.sort_indices()
    offsets, columns = found.indptr.astype(np.int64), found.indices
    kept = _without_own(offsets, columns, np.zeros((columns.size, 0)))
    row = np.repeat(np.arange(links.n_cells), np.diff(kept.offsets))
    way = volumes.centres[kept.columns] - volumes.centres[row]
    return Family(kept.offsets, kept.columns, least_squares(way, row, links.n_cells))


def _without_own(offsets: Index, columns: npt.NDArray[Any], values: Array) -> Family:
    """Return rows without the entry of the cell itself: differences to it are 0."""
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    kept = columns != row
    ends = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=offsets.size - 1))]).astype(np.int64)
    return Family(ends, columns[kept].astype(np.int32), values[kept])
