"""Control volumes that one rank has, dealt out to several: for cells of any shape, as polyhedra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.decompose_report import PartitionReport, make_report
from fluxloom.fv.control_volumes import ControlVolumes, check_spacing
from fluxloom.fv.shared_sectors import Beyond
from fluxloom.fv.shared_volumes import assemble
from fluxloom.fv.volume_tables import CellTable, FaceTable, ImageTable, OuterTable, Table, face_tensors
from fluxloom.graph.partition import as_shares, kway_available, pair_graph, partition_kway, partition_rcb
from fluxloom.mesh.rows import together

__all__ = ["METHODS", "cell_owners", "divided_volumes", "division_report"]

Index = npt.NDArray[np.int64]

METHODS = ("auto", "kway", "rcb", "block")
"""How cells can be dealt out: ``"auto"`` is METIS where it is installed, ``"block"`` the order of their numbers."""


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
        On rank 0, of a mesh that is not divided, with periodic patches and sectors or without; ignored elsewhere.
    method
        One of `METHODS`.
    shares
        Fraction of the cells that each rank gets; equal by default.
    path
        What messages call them.

    Raises
    ------
    MeshError
        On every rank: for another method, more ranks than cells, shares that are not one a rank, and when rank 0 has
        nothing or a part.
    """
    owner = together(comm, lambda: _owners(comm, whole, method, shares, path))
    parts = []
    if whole is not None and not comm.rank:
        moments = face_tensors(whole)
        parts = [_part(whole, owner, rank, moments) for rank in range(comm.size)]
    near = _sent(comm, CellTable, [part[0] for part in parts])
    faces = _sent(comm, FaceTable, [part[1] for part in parts])
    outer = _sent(comm, OuterTable, [part[2] for part in parts])
    images = _sent(comm, ImageTable, [part[3] for part in parts])
    told = None
    if whole is not None and not comm.rank:
        spans = {
            name: range(p.start - whole.cells, p.stop - whole.cells) if len(p) else range(0)
            for name, p in whole.patches.items()
        }
        rotations = None if whole.turned is None else whole.turned.rotations
        told = spans, (whole.cells, whole.interior, whole.elements - whole.cells), rotations
    patches, totals, rotations = comm.broadcast(told)
    beyond = None if rotations is None else Beyond(images, rotations)
    found = assemble(comm, near, faces, outer, patches, totals, beyond)
    together(comm, lambda: check_spacing(path, found.spacing, found.faces))
    return found


def cell_owners(
    whole: ControlVolumes, ranks: int, method: str = "auto", shares: Sequence[float] | None = None
) -> Index:
    """Return which rank gets each cell, ``(cells,)``, such that few faces are between two ranks."""
    fractions = as_shares(np.full(ranks, 1.0 / ranks) if shares is None else list(shares))
    method = _settled(method)
    if method == "block":
        ends = np.cumsum(fractions)
        place = np.searchsorted(ends[:-1] * whole.cells / ends[-1], np.arange(whole.cells) + 0.5, side="right")
        return place.astype(np.int64)
    if method == "rcb":
        return partition_rcb(whole.centres[: whole.cells], fractions).astype(np.int64)
    inner = whole.faces[: whole.interior]
    inner = inner[inner[:, 0] != inner[:, 1]]
    graph = pair_graph(np.ascontiguousarray(inner, dtype=np.int32), whole.cells)
    return partition_kway(graph.offsets, graph.indices, fractions).astype(np.int64)


def _settled(method: str) -> str:
    """Return the method that ``"auto"`` is."""
    return method if method != "auto" else "kway" if kway_available() else "rcb"


def division_report(volumes: ControlVolumes, method: str, shares: Sequence[float] | None = None) -> PartitionReport:
    """Return how control volumes of several ranks are divided, by one of `METHODS`. Collective.

    Raises
    ------
    MeshError
        If there is one rank.
    """
    shared = volumes.shared
    if shared is None:
        raise MeshError("control volumes of one rank are not divided")
    comm, cells = shared.comm, shared.cells
    due = as_shares(np.full(comm.size, 1.0) if shares is None else list(shares))
    load = np.array(comm.allgather(cells.owned), dtype=np.float64)
    parts = {"cells": cells, "elements": shared.elements, "faces": shared.faces}
    return make_report(
        comm, parts, on="cells", method=comm.broadcast(_settled(method)), through="faces",
        edge_cut=sum(comm.allgather(shared.faces.halo)),
        unbalanced=float((load / due).max() * due.sum() / load.sum()) - 1.0,
    )  # fmt: skip


def _owners(comm: Comm, whole: ControlVolumes | None, method: str, shares: Sequence[float] | None, path: str) -> Index:
    """Check what is given, and return the owners on rank 0."""
    if method not in METHODS:
        raise MeshError(f"{path}: method {method!r}{did_you_mean(method, METHODS)} (allowed: {', '.join(METHODS)})")
    if comm.rank:
        return np.empty(0, dtype=np.int64)
    if whole is None or whole.shared is not None:
        raise MeshError(f"{path}: rank 0 has to hold the control volumes of the whole mesh to deal them out")
    if whole.cells < comm.size:
        raise MeshError(f"{path}: {whole.cells} cells for {comm.size} ranks: start fewer ranks")
    if shares is not None and len(shares) != comm.size:
        raise MeshError(f"{path}: {len(shares)} shares for {comm.size} ranks: give one a rank")
    return cell_owners(whole, comm.size, method, shares)


def _part(
    whole: ControlVolumes, owner: Index, rank: int, moments: npt.NDArray[np.float64]
) -> tuple[CellTable, FaceTable, OuterTable, ImageTable]:
    """Return what a rank gets: faces with a cell of its own, boundary faces of its cells, images beyond, all cells."""
    inner = whole.faces[: whole.interior]
    mine = np.flatnonzero((owner[inner] == rank).any(axis=1))
    behind = whole.faces[whole.interior :, 0]
    edge = np.flatnonzero(owner[behind] == rank)
    images = _images(whole, owner, rank)
    near = np.unique(np.concatenate([np.flatnonzero(owner == rank), inner[mine].reshape(-1), images.partner]))
    ways = whole.centres[inner[mine, 1]] - whole.centres[inner[mine, 0]]
    place = np.searchsorted(mine, whole.wrapped.faces)
    there = np.flatnonzero(np.take(mine, place, mode="clip") == whole.wrapped.faces) if mine.size else place[:0]
    ways[place[there]] += whole.wrapped.shift[there]
    outer = whole.interior + edge
    return (
        CellTable(near, owner[near], whole.volumes[near], whole.centres[near]),
        FaceTable(mine, inner[mine, 0], inner[mine, 1], whole.areas[mine], ways, whole.arms[mine], moments[mine]),
        OuterTable(edge, behind[edge], whole.areas[outer], whole.centres[whole.faces[outer, 1]], moments[outer]),
        images,
    )


def _images(whole: ControlVolumes, owner: Index, rank: int) -> ImageTable:
    """Return the images beyond boundary faces of a rank."""
    turned = whole.turned
    if turned is None:
        none = np.empty(0, dtype=np.int64)
        return ImageTable(none, none, none, np.empty((0, whole.dimension)))
    number = turned.elements - whole.cells
    mine = np.flatnonzero(owner[whole.faces[whole.interior + number, 0]] == rank)
    arms = whole.arms[whole.interior + number[mine]]
    return ImageTable(number[mine], turned.partners[mine], turned.which[mine].astype(np.int64), arms)


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
