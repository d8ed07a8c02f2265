r"""Weights of gradients that look through the nodes of a cell: node-based Green-Gauss, and least squares of all around.

As `fluxloom.fv.geometry.cell_faces` has them for the cells across faces, so that the same loop takes either: gradients
are sums over the elements around,

.. math:: \nabla q_i = \sum_j g_{ij} (q_j - q_i)

with weights made once from the mesh.

*Green and Gauss*: a node has the plain mean of the cells that share it, at a boundary of the boundary elements that
do; an inner face has the mean of its nodes, and the gradients are
:math:`\frac{1}{V} \sum_f n_f A_f q_f`. They are exact for linear fields on meshes of parallelograms; elsewhere they are
some per cent off however fine the mesh is.

*Least squares* over everything that shares a node: exact for linear fields on every mesh. Tetrahedra have some sixty
neighbours in place of four, and what grows at walls where gradients come from four does not grow here.

On several ranks everything that shares a node with a cell is in the halo: the control volumes keep theirs, the cells
across faces, and the set of *elements* has more of other ranks, their cells and boundary elements that gradients look
at, which have no geometry here. Rows keep the order of one rank, and weights are those of one rank bit for bit.

References
----------
D. G. Holmes, S. D. Connell: *Solution of the 2D Navier-Stokes equations on unstructured adaptive grids*. AIAA 89-1932.
E. Sozer, C. Brehm, C. C. Kiris: *Gradient calculation methods on arbitrary polyhedral unstructured meshes for
cell-centered CFD solvers*. AIAA 2014-1440.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import Places, RowExchange
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.declare.parts import Part
from fluxloom.fv.geometry.cell_faces import least_squares
from fluxloom.fv.geometry.node_rows import NodeRows
from fluxloom.fv.geometry.volumes import ControlVolumes, Family, SharedVolumes, Sides
from fluxloom.mesh.data.mesh import MeshData, Ragged
from fluxloom.mesh.ranks.part import WholePart

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["NODE_GRADIENTS", "NodeGradients", "node_gradients", "shared_node_gradients"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

NodeGradients = Literal["green-gauss", "least-squares"]
NODE_GRADIENTS: tuple[NodeGradients, ...] = get_args(NodeGradients)
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


def node_gradients(mesh: MeshData, volumes: ControlVolumes, kind: NodeGradients = "green-gauss") -> Family:
    """Return rows of the cells: the elements around and their weights, ``(entries, d)``.

    Parameters
    ----------
    mesh, volumes
        The mesh, and its control volumes: all of them, on several ranks see `shared_node_gradients`.
    kind
        ``"green-gauss"`` or ``"least-squares"``.

    Raises
    ------
    SolverError
        If the kind is unknown, on several ranks, or where patches are joined: a node would have two places.
    """
    if volumes.shared.comm.size > 1:
        raise SolverError("slopes through nodes of a divided mesh are found by shared_node_gradients")
    _check_kind(kind, volumes)
    return shared_node_gradients(volumes, NodeRows.of_part(WholePart(mesh), volumes), kind)[1]


def shared_node_gradients(
    volumes: ControlVolumes, rows: NodeRows, kind: NodeGradients = "green-gauss"
) -> tuple[ControlVolumes, Family]:
    """Return control volumes with what gradients look at in their halo, and the rows of the owned cells. Collective.

    Parameters
    ----------
    volumes, rows
        Of this rank, and the nodes of what it has.
    kind
        As in `node_gradients`.

    Raises
    ------
    SolverError
        On every rank: if the kind is unknown, or where patches are joined.
    """
    shared = volumes.shared
    raise_on_all_ranks(shared.comm, lambda: _check_kind(kind, volumes))
    found = _around(volumes, shared, rows)
    family = _gradients_around(found.surroundings, volumes, kind)
    owner = found.owner[family.columns]
    away = np.unique(family.columns[owner != shared.comm.rank])
    meets = np.zeros(volumes.owned, dtype=bool)
    meets[np.repeat(np.arange(volumes.owned), np.diff(family.offsets))[owner != shared.comm.rank]] = True
    wider, numbers = _widened(volumes, shared, found.number[away], found.owner[away], meets)
    place = np.full(found.number.size, -1)
    place[found.surroundings.own], place[found.surroundings.edge] = _owned(volumes)
    place[away] = numbers
    return replace(volumes, shared=wider), family._replace(columns=place[family.columns].astype(np.int32))


def _check_kind(kind: str, volumes: ControlVolumes) -> None:
    """Raise `SolverError` if there are no gradients of that kind, or none for such control volumes."""
    if kind not in NODE_GRADIENTS:
        raise SolverError(f"slopes through nodes: {kind!r} is unknown{did_you_mean(kind, NODE_GRADIENTS)}")
    if volumes.wrapped.faces.size:
        raise SolverError("slopes through nodes: periodic patches have two places for a node; take those across faces")
    if volumes.turned is not None:
        raise SolverError(
            "slopes through nodes do not look across sides that are joined by a rotation (sectors): take those of the "
            "cells across the faces, the default"
        )


def _gradients_around(around: Surroundings, volumes: ControlVolumes, kind: NodeGradients) -> Family:
    """Return rows of the cells that have surroundings, with their columns."""
    return _least_squares(around) if kind == "least-squares" else _green_gauss(around, volumes)


def _incidence(rows: Ragged, first: int = 0) -> tuple[Index, Index]:
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


# ------------------------------------------------------------------------------------------ of this rank
def _owned(volumes: ControlVolumes) -> tuple[Index, Index]:
    """Return the numbers of the owned cells and of the boundary elements."""
    return np.arange(volumes.owned), np.arange(volumes.cells, volumes.elements)


def _numbers(volumes: ControlVolumes, shared: SharedVolumes) -> Index:
    """Return the number in the whole mesh of each element."""
    found = np.empty(shared.element_order.size, dtype=np.int64)
    found[shared.element_order] = shared.elements.numbers
    return found


# ------------------------------------------------------------------------------------------ what is around
@dataclass(frozen=True, eq=False)
class _Around:
    """Surroundings of the owned cells, and of each column the number in the whole mesh and the owner."""

    surroundings: Surroundings
    number: Index
    owner: Index


def _around(volumes: ControlVolumes, shared: SharedVolumes, rows: NodeRows) -> _Around:
    """Ask the other ranks what they have at the nodes of this one. Collective."""
    comm, number = shared.comm, _numbers(volumes, shared)
    cells, edge = (number[places] for places in _owned(volumes))
    nodes = np.unique(rows.cells.indices).astype(np.int64)
    ends = zip(_incidence(rows.cells), _incidence(rows.outer, cells.size), strict=True)
    own = [np.concatenate(pair) for pair in ends]
    mine = np.concatenate([cells, edge])
    places = np.concatenate(_owned(volumes))
    pairs = _pairs_of_others(comm, own[0], mine[own[1]], _meeting(comm, nodes, rows.total))
    here = [np.full(own[0].size, comm.rank), own[0], mine[own[1]]]
    rank, node, element = (np.concatenate(column) for column in zip(here, pairs, strict=True))
    every, first = np.unique(np.concatenate([mine, element]), return_index=True)
    owner = np.concatenate([np.full(mine.size, comm.rank), rank])[first]
    centres = np.empty((every.size, volumes.dimension))
    centres[np.searchsorted(every, mine)] = volumes.centres[places]
    away = np.flatnonzero(owner != comm.rank)
    post, own_places = RowExchange(comm, owner[away]), Places(mine)
    centres[away] = post.back(volumes.centres[places][own_places.of(post.forward(every[away]))])
    node, column = np.searchsorted(nodes, node), np.searchsorted(every, element)
    outer = element >= shared.cells.total
    inner = Ragged(rows.inner.offsets, np.searchsorted(nodes, rows.inner.indices).astype(np.int32))
    surroundings = Surroundings(
        nodes.size, node[~outer], column[~outer], node[outer], column[outer], centres,
        np.searchsorted(every, cells), np.searchsorted(every, edge), inner,
    )  # fmt: skip
    return _Around(surroundings, every, owner)


def _meeting(comm: Comm, nodes: Index, total: int) -> list[Index]:
    """Return for each rank the nodes of this one that it has too. Collective.

    Each rank keeps a list of who has some of the nodes; they are dealt out by their numbers.
    """
    mine_of = np.stack([nodes, np.full(nodes.size, comm.rank)], axis=1)
    told = RowExchange(comm, nodes * comm.size // total).forward(mine_of)
    node, rank = told[np.argsort(told[:, 0], kind="stable")].T
    met = [np.empty((0, 3), dtype=np.int64)]
    for step in range(1, comm.size):  # ranks of a node lie side by side, ascending
        same = np.flatnonzero(node[step:] == node[:-step])
        met += [np.stack([rank[one], rank[other], node[one]], axis=1)
                for one, other in ((same, same + step), (same + step, same))]  # fmt: skip
    pairs = np.concatenate(met)
    found = RowExchange(comm, pairs[:, 0]).forward(pairs)
    return [np.unique(found[found[:, 1] == rank, 2]) for rank in range(comm.size)]


def _pairs_of_others(comm: Comm, node: Index, element: Index, meeting: list[Index]) -> list[Index]:
    """Return rank, node and element of what other ranks have at nodes of this one. Collective."""
    chosen = [np.flatnonzero(np.isin(node, nodes)) for nodes in meeting]
    found = comm.exchange([np.stack([node[some], element[some]], axis=1) for some in chosen])
    rank = np.repeat(np.arange(comm.size), [len(part) for part in found])
    return [rank, *np.concatenate(found).T]


# ------------------------------------------------------------------------------------------ the wider halo
def _widened(
    volumes: ControlVolumes, shared: SharedVolumes, away: Index, owner: Index, meets: npt.NDArray[Any]
) -> tuple[SharedVolumes, Index]:
    """Return parts with more elements in the halo, and the numbers that these elements have. Collective.

    Parameters
    ----------
    away, owner
        Elements of other ranks that gradients look at: numbers in the whole mesh, ascending, and who owns them.
    meets : (owned,)
        Whether the row of a cell has some of them.
    """
    comm, elements, number = shared.comm, shared.elements, _numbers(volumes, shared)
    known = number[volumes.owned : volumes.cells]
    new = np.flatnonzero(~np.isin(away, known))
    numbers = np.empty(away.size, dtype=np.int64)
    numbers[new] = volumes.elements + np.arange(new.size)
    old = np.setdiff1d(np.arange(away.size), new)
    numbers[old] = volumes.owned + Places(known).of(away[old])
    inside = np.zeros(volumes.elements, dtype=bool)
    inside[shared.element_order[: elements.inside]] = True
    inside[: volumes.owned] &= ~meets
    places = np.concatenate(_owned(volumes))
    mine = number[places]
    asked = RowExchange(comm, owner).forward(away)
    inside[places[np.isin(mine, asked)]] = False
    within, rest = (places[inside[places] == chosen] for chosen in (True, False))
    within, rest = (some[np.argsort(number[some])] for some in (within, rest))
    halo = np.concatenate([np.arange(volumes.owned, volumes.cells), numbers[new]])
    theirs = np.concatenate([number[volumes.owned : volumes.cells], away[new]])
    holder = np.empty(shared.element_order.size, dtype=np.int64)
    holder[shared.element_order] = elements.owners(comm.rank)
    owners = np.concatenate([holder[volumes.owned : volumes.cells], owner[new]])
    order = np.lexsort((theirs, owners))
    part = Part.of_reads(comm, number[within], number[rest], theirs[order], owners[order], elements.total)
    return replace(shared, elements=part, element_order=np.concatenate([within, rest, halo[order]])), numbers
