"""Slopes through the nodes of cells on several ranks: everything that shares a node with a cell is in the halo.

The control volumes keep their halo, the cells across faces. The set of *elements* has more of other ranks: their cells
and boundary elements that slopes look at, which have no geometry here. Rows keep the order of one rank, and weights are
those of one rank bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.dsl.parts import Part
from fluxloom.fv.control_volumes import ControlVolumes, SharedVolumes
from fluxloom.fv.node_rows import NodeRows
from fluxloom.fv.node_slopes import NodeSlopes, Surroundings, check_kind, incidence, slopes_around
from fluxloom.fv.sides import Family
from fluxloom.mesh.mesh import Ragged
from fluxloom.mesh.rows import together

__all__ = ["shared_node_slopes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def shared_node_slopes(
    volumes: ControlVolumes, rows: NodeRows, kind: NodeSlopes = "green-gauss"
) -> tuple[ControlVolumes, Family]:
    """Return control volumes with what slopes look at in their halo, and the rows of the owned cells. Collective.

    Parameters
    ----------
    volumes, rows
        Of this rank, and the nodes of what it has.
    kind
        As in `fluxloom.fv.node_slopes.node_slopes`.

    Raises
    ------
    SolverError
        On every rank: if the kind is unknown, on one rank, or where patches are joined.
    """
    shared = volumes.shared
    if shared is None:
        raise SolverError("slopes through nodes: these control volumes are of one rank; take node_slopes(mesh, ...)")
    together(shared.comm, lambda: check_kind(kind, volumes))
    found = _around(volumes, shared, rows)
    family = slopes_around(found.surroundings, volumes, kind)
    owner = found.owner[family.columns]
    away = np.unique(family.columns[owner != shared.comm.rank])
    meets = np.zeros(volumes.owned, dtype=bool)
    meets[np.repeat(np.arange(volumes.owned), np.diff(family.offsets))[owner != shared.comm.rank]] = True
    wider, numbers = _widened(volumes, shared, found.number[away], found.owner[away], meets)
    place = np.full(found.number.size, -1)
    place[found.surroundings.own], place[found.surroundings.edge] = _owned(volumes)
    place[away] = numbers
    return replace(volumes, shared=wider), family._replace(columns=place[family.columns].astype(np.int32))


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
    own = [np.concatenate(ends) for ends in zip(incidence(rows.cells), incidence(rows.outer, cells.size), strict=True)]
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
    centres[away] = _centres_of_others(comm, every[away], owner[away], mine, volumes.centres[places])
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
    keeper = nodes * comm.size // total
    told = comm.exchange([nodes[keeper == rank] for rank in range(comm.size)])
    node = np.concatenate(told)
    rank = np.repeat(np.arange(comm.size), [part.size for part in told])
    order = np.argsort(node, kind="stable")
    node, rank = node[order], rank[order]
    met = [np.empty((0, 2), dtype=np.int64)]
    for step in range(1, comm.size):  # ranks of a node lie side by side, ascending
        same = np.flatnonzero(node[step:] == node[:-step])
        if not same.size:
            break
        for one, other in ((same, same + step), (same + step, same)):
            met.append(np.stack([rank[one] * comm.size + rank[other], node[one]], axis=1))
    pairs = np.concatenate(met)
    found = np.concatenate(comm.exchange([pairs[pairs[:, 0] // comm.size == r] for r in range(comm.size)]))
    return [np.unique(found[found[:, 0] % comm.size == r, 1]) for r in range(comm.size)]


def _pairs_of_others(comm: Comm, node: Index, element: Index, meeting: list[Index]) -> list[Index]:
    """Return rank, node and element of what other ranks have at nodes of this one. Collective."""
    chosen = [np.flatnonzero(np.isin(node, nodes)) for nodes in meeting]
    found = comm.exchange([np.stack([node[some], element[some]], axis=1) for some in chosen])
    rank = np.repeat(np.arange(comm.size), [len(part) for part in found])
    pairs = np.concatenate(found)
    return [rank, pairs[:, 0], pairs[:, 1]]


def _centres_of_others(comm: Comm, asked: Index, owner: Index, mine: Index, centres: Array) -> Array:
    """Return centres of elements that other ranks own; ``asked`` and ``mine`` are numbers. Collective."""
    wanted = comm.exchange([asked[owner == rank] for rank in range(comm.size)])
    order = np.argsort(mine)
    answers = comm.exchange([centres[order[np.searchsorted(mine, some, sorter=order)]] for some in wanted])
    found = np.empty((asked.size, centres.shape[1]))
    for rank, values in enumerate(answers):
        found[owner == rank] = values
    return found


# ------------------------------------------------------------------------------------------ the wider halo
def _widened(
    volumes: ControlVolumes, shared: SharedVolumes, away: Index, owner: Index, meets: npt.NDArray[Any]
) -> tuple[SharedVolumes, Index]:
    """Return parts with more elements in the halo, and the numbers that these elements have. Collective.

    Parameters
    ----------
    away, owner
        Elements of other ranks that slopes look at: numbers in the whole mesh, ascending, and who owns them.
    meets : (owned,)
        Whether the row of a cell has some of them.
    """
    comm, elements, number = shared.comm, shared.elements, _numbers(volumes, shared)
    known = number[volumes.owned : volumes.cells]
    new = np.flatnonzero(~np.isin(away, known))
    numbers = np.empty(away.size, dtype=np.int64)
    numbers[new] = volumes.elements + np.arange(new.size)
    order = np.argsort(known)
    old = np.setdiff1d(np.arange(away.size), new)
    numbers[old] = volumes.owned + order[np.searchsorted(known, away[old], sorter=order)]
    inside = np.zeros(volumes.elements, dtype=bool)
    inside[shared.element_order[: elements.inside]] = True
    inside[: volumes.owned] &= ~meets
    places = np.concatenate(_owned(volumes))
    mine = number[places]
    asked = np.concatenate(comm.exchange([away[owner == rank] for rank in range(comm.size)]))
    inside[places[np.isin(mine, asked)]] = False
    within, rest = (places[inside[places] == chosen] for chosen in (True, False))
    within, rest = (some[np.argsort(number[some])] for some in (within, rest))
    halo = np.concatenate([np.arange(volumes.owned, volumes.cells), numbers[new]])
    theirs = np.concatenate([number[volumes.owned : volumes.cells], away[new]])
    owners = np.concatenate([_owners(comm, shared)[volumes.owned : volumes.cells], owner[new]])
    order = np.lexsort((theirs, owners))
    part = Part.of_reads(comm, number[within], number[rest], theirs[order], owners[order], elements.total)
    return replace(shared, elements=part, element_order=np.concatenate([within, rest, halo[order]])), numbers


def _owners(comm: Comm, shared: SharedVolumes) -> Index:
    """Return who owns each element."""
    owner = np.full(shared.element_order.size, comm.rank, dtype=np.int64)
    for rank, places in zip(shared.elements.neighbours, shared.elements.receive, strict=True):
        owner[shared.element_order[places]] = rank
    return owner
