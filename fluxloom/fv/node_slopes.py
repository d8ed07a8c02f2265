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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.fv.compressible_geometry import least_squares
from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.sides import Family, Sides
from fluxloom.mesh.connectivity import connectivity
from fluxloom.mesh.mesh import MeshData, Ragged

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "NODE_SLOPES", "NodeSlopes", "Surroundings", "check_kind", "incidence", "node_slopes", "slopes_around",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

NodeSlopes = Literal["green-gauss", "least-squares"]
NODE_SLOPES: tuple[NodeSlopes, ...] = get_args(NodeSlopes)
_LARGEST = 1 << 32


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What shares nodes with the cells that get rows, and which nodes these are.

    Everything around has a *column*; columns ascend as the numbers of elements of the whole mesh do, and so do nodes
    and faces: sums over them are those of one rank, bit for bit.

    Attributes
    ----------
    nodes
        Their number.
    node, cell : (n,)
        Each node of each cell around: the node, and the column of the cell.
    outer_node, outer : (m,)
        Each node of each boundary element around, and its column.
    centres : (columns, d)
        Of everything around.
    own : (cells,)
        Columns of the cells that get rows, in their order.
    edge : (boundary elements,)
        Columns of the boundary elements behind these, in their order.
    inner : (interior faces,)
        Nodes of the interior faces of the control volumes.
    """

    nodes: int
    node: Index
    cell: Index
    outer_node: Index
    outer: Index
    centres: Array
    own: Index
    edge: Index
    inner: Ragged


def node_slopes(mesh: MeshData, volumes: ControlVolumes, kind: NodeSlopes = "green-gauss") -> Family:
    """Return rows of the cells: the elements around and their weights, ``(entries, d)``.

    Parameters
    ----------
    mesh, volumes
        The mesh, and its control volumes: all of them, on several ranks see `fluxloom.fv.shared_node_slopes`.
    kind
        ``"green-gauss"`` or ``"least-squares"``.

    Raises
    ------
    SolverError
        If the kind is unknown, on several ranks, or where patches are joined: a node would have two places.
    """
    check_kind(kind, volumes)
    if volumes.shared is not None:
        raise SolverError("slopes through nodes of a divided mesh are found by fluxloom.fv.shared_node_slopes")
    links = connectivity(mesh)
    node, cell = incidence(links.cell_nodes)
    outer_node, outer = incidence(links.boundary_nodes, volumes.cells)
    around = Surroundings(
        links.n_points, node, cell, outer_node, outer, volumes.centres, np.arange(volumes.cells),
        np.arange(volumes.cells, volumes.elements), links.interior_nodes,
    )  # fmt: skip
    return slopes_around(around, volumes, kind)


def check_kind(kind: str, volumes: ControlVolumes) -> None:
    """Raise `SolverError` if there are no slopes of that kind, or none for such control volumes."""
    if kind not in NODE_SLOPES:
        raise SolverError(f"slopes through nodes: {kind!r} is unknown{did_you_mean(kind, NODE_SLOPES)}")
    if volumes.wrapped.faces.size:
        raise SolverError("slopes through nodes: periodic patches have two places for a node; take those across faces")
    if volumes.turned is not None:
        raise SolverError(
            "slopes through nodes do not look across sides that are joined by a rotation (sectors): take those of the "
            "cells across the faces, the default"
        )


def slopes_around(around: Surroundings, volumes: ControlVolumes, kind: NodeSlopes) -> Family:
    """Return rows of the cells that have surroundings, with their columns."""
    return _least_squares(around) if kind == "least-squares" else _green_gauss(around, volumes)


def incidence(rows: Ragged, first: int = 0) -> tuple[Index, Index]:
    """Return nodes, and numbers from ``first`` on of the rows that have them."""
    return rows.indices[: rows.offsets[-1]].astype(np.int64), first + np.repeat(np.arange(len(rows)), rows.counts)


def _node_means(around: Surroundings) -> csr_array:
    """Return the matrix that takes values of columns to means at nodes."""
    from scipy.sparse import coo_array, csr_array

    edge = np.zeros(around.nodes, dtype=bool)
    edge[around.outer_node] = True
    inside = ~edge[around.node]
    row = np.concatenate([around.node[inside], around.outer_node])
    column = np.concatenate([around.cell[inside], around.outer])
    shape = (around.nodes, len(around.centres))
    found = csr_array(coo_array((np.ones(row.size), (row, column)), shape=shape))
    counts = np.diff(found.indptr)
    found.data /= np.repeat(counts, counts)
    return found


def _green_gauss(around: Surroundings, volumes: ControlVolumes) -> Family:
    """Return the weights of the sums over the faces of a cell."""
    from scipy.sparse import csr_array

    sides, values = Sides.of(volumes), _face_values(around)

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
    return _without_own(around.own, pattern.indptr.astype(np.int64), pattern.indices, weights)


def _keys(matrix: csr_array) -> Index:
    """Return a number for each entry, ascending: row times columns, and column."""
    rows = np.repeat(np.arange(matrix.indptr.size - 1, dtype=np.int64), np.diff(matrix.indptr))
    return rows * _LARGEST + matrix.indices


def _face_values(around: Surroundings) -> csr_array:
    """Return the matrix that takes values of columns to those of faces: of inner ones, then of the boundary."""
    from scipy.sparse import coo_array, csr_array, vstack

    nodes, lengths, edge = around.inner, around.inner.counts, around.edge
    shares, columns = 1.0 / np.repeat(lengths, lengths), len(around.centres)
    inner = csr_array((shares, nodes.indices, nodes.offsets), shape=(len(nodes), around.nodes)) @ _node_means(around)
    outer = coo_array((np.ones(edge.size), (np.arange(edge.size), edge)), shape=(edge.size, columns))
    return csr_array(vstack([inner, outer]))


def _least_squares(around: Surroundings) -> Family:
    """Return the weights of the ways to everything that shares a node with a cell, boundary elements included."""
    from scipy.sparse import coo_array, csr_array

    columns, own = len(around.centres), around.own
    row = np.full(columns, -1)
    row[own] = np.arange(own.size)
    mine = np.flatnonzero(row[around.cell] >= 0)
    ends = row[around.cell[mine]], around.node[mine]
    touched = csr_array(coo_array((np.ones(mine.size), ends), shape=(own.size, around.nodes)))
    node, element = np.concatenate([around.node, around.outer_node]), np.concatenate([around.cell, around.outer])
    every = coo_array((np.ones(node.size), (node, element)), shape=(around.nodes, columns))
    found = csr_array(touched @ csr_array(every))
    found.sort_indices()
    kept = _without_own(own, found.indptr.astype(np.int64), found.indices, np.zeros((found.nnz, 0)))
    cell = np.repeat(np.arange(own.size), np.diff(kept.offsets))
    way = around.centres[kept.columns] - around.centres[own[cell]]
    return Family(kept.offsets, kept.columns, least_squares(way, cell, own.size))


def _without_own(own: Index, offsets: Index, columns: npt.NDArray[Any], values: Array) -> Family:
    """Return rows without the entry of the cell itself: differences to it are 0."""
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    kept = columns != own[row]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=offsets.size - 1))]).astype(np.int64)
    return Family(ends, columns[kept].astype(np.int32), values[kept])
