"""Control volumes that one rank has, dealt out to several: for cells of any shape, as polyhedra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.fv.control_volumes import ControlVolumes, check_spacing
from fluxloom.fv.shared_volumes import CellTable, FaceTable, OuterTable, assemble
from fluxloom.graph.partition import as_shares, kway_available, pair_graph, partition_kway, partition_rcb
from fluxloom.mesh.rows import together

__all__ = ["METHODS", "cell_owners", "divided_volumes"]

Index = npt.NDArray[np.int64]
Table = TypeVar("Table", CellTable, FaceTable, OuterTable)

METHODS = ("auto", "kway", "rcb")
"""How cells can be dealt out; ``"auto"``: by METIS where it is installed."""


def divided_volumes(
    comm: Comm,
    whole: ControlVolumes | None,
    *,
    method: str = "auto",
    shares: Sequence[float] | None = None,
    path: str = "control volumes",
) -> ControlVolumes:
    """Return this rank's part of control volumes. Collective.

    The result is that of `fluxloom.fv.shared_volumes.shared_volumes` for the same owners: numbers of cells, faces and
    boundary elements are those of the whole, and so is the order in which loops over them add. Rank 0 has to hold the
    whole; a mesh of elements is better divided before (`fluxloom.mesh.distribute`).

    Parameters
    ----------
    comm
        The ranks.
    whole
        On rank 0, of a mesh that is not divided, with periodic patches or without; ignored elsewhere.
    method
        One of `METHODS`.
    shares
        Fraction of the cells that each rank gets; equal by default.
    path
        What messages call them.

    Raises
    ------
    MeshError
        On every rank: for another method, sectors, more ranks than cells, and when rank 0 has nothing or a part.
    """
    owner = together(comm, lambda: _owners(comm, whole, method, shares, path))
    parts = [] if whole is None or comm.rank else [_part(whole, owner, rank) for rank in range(comm.size)]
    near = _sent(comm, CellTable, [part[0] for part in parts])
    faces = _sent(comm, FaceTable, [part[1] for part in parts])
    outer = _sent(comm, OuterTable, [part[2] for part in parts])
    told = None
    if whole is not None and not comm.rank:
        spans = {
            name: range(p.start - whole.cells, p.stop - whole.cells) if len(p) else range(0)
            for name, p in whole.patches.items()
        }
        told = spans, (whole.cells, whole.interior, whole.elements - whole.cells)
    patches, totals = comm.broadcast(told)
    found = assemble(comm, near, faces, outer, patches, totals)
    together(comm, lambda: check_spacing(path, found.spacing, found.faces))
    return found


def cell_owners(
    whole: ControlVolumes, ranks: int, method: str = "auto", shares: Sequence[float] | None = None
) -> Index:
    """Return which rank gets each cell, ``(cells,)``, such that few faces are between two ranks."""
    fractions = as_shares(np.full(ranks, 1.0 / ranks) if shares is None else list(shares))
    if method == "rcb" or (method == "auto" and not kway_available()):
        return partition_rcb(whole.centres[: whole.cells], fractions).astype(np.int64)
    inner = whole.faces[: whole.interior]
    inner = inner[inner[:, 0] != inner[:, 1]]
    graph = pair_graph(np.ascontiguousarray(inner, dtype=np.int32), whole.cells)
    return partition_kway(graph.offsets, graph.indices, fractions).astype(np.int64)


def _owners(comm: Comm, whole: ControlVolumes | None, method: str, shares: Sequence[float] | None, path: str) -> Index:
    """Check what is given, and return the owners on rank 0."""
    if method not in METHODS:
        raise MeshError(f"{path}: method {method!r}{did_you_mean(method, METHODS)} (allowed: {', '.join(METHODS)})")
    if comm.rank:
        return np.empty(0, dtype=np.int64)
    if whole is None or whole.shared is not None:
        raise MeshError(f"{path}: rank 0 has to hold the control volumes of the whole mesh to deal them out")
    if whole.turned is not None:
        raise MeshError(f"{path}: sectors are not divided among ranks; run on one rank")
    if whole.cells < comm.size:
        raise MeshError(f"{path}: {whole.cells} cells for {comm.size} ranks: start fewer ranks")
    return cell_owners(whole, comm.size, method, shares)


def _part(whole: ControlVolumes, owner: Index, rank: int) -> tuple[CellTable, FaceTable, OuterTable]:
    """Return what a rank gets: faces with a cell of its own, their cells, and the boundary faces of its cells."""
    inner = whole.faces[: whole.interior]
    mine = np.flatnonzero((owner[inner] == rank).any(axis=1))
    behind = whole.faces[whole.interior :, 0]
    edge = np.flatnonzero(owner[behind] == rank)
    near = np.unique(np.concatenate([np.flatnonzero(owner == rank), inner[mine].reshape(-1)]))
    ways = whole.centres[inner[mine, 1]] - whole.centres[inner[mine, 0]]
    place = np.searchsorted(mine, whole.wrapped.faces)
    there = np.flatnonzero(np.take(mine, place, mode="clip") == whole.wrapped.faces) if mine.size else place[:0]
    ways[place[there]] += whole.wrapped.shift[there]
    outer = whole.interior + edge
    return (
        CellTable(near, owner[near], whole.volumes[near], whole.centres[near]),
        FaceTable(mine, inner[mine, 0], inner[mine, 1], whole.areas[mine], ways, whole.arms[mine]),
        OuterTable(edge, behind[edge], whole.areas[outer], whole.centres[whole.faces[outer, 1]]),
    )


def _sent(comm: Comm, kind: type[Table], tables: Sequence[Table]) -> Table:
    """Send each rank its table, of those that rank 0 has; return this rank's. Collective."""
    names = [field.name for field in fields(kind)]
    shapes = (
        [(getattr(tables[0], name).shape[1:], getattr(tables[0], name).dtype) for name in names] if tables else None
    )
    columns: list[npt.NDArray[Any]] = []
    for name, (shape, dtype) in zip(names, comm.broadcast(shapes), strict=True):
        empty = [np.empty((0, *shape), dtype=dtype)] * comm.size
        columns.append(np.array(comm.exchange([getattr(table, name) for table in tables] or empty)[0]))
    return kind(*columns)
