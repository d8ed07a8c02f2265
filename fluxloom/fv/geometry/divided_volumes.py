"""Control volumes that one rank has, dealt out to several: for cells of any shape, as polyhedra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.ranks.decompose_report import PartitionReport, make_report
from fluxloom.fv.geometry.control_volumes import check_spacing
from fluxloom.fv.geometry.volume_tables import (
    Beyond,
    CellTable,
    FaceShapes,
    FaceTable,
    ImageTable,
    OuterTable,
    Table,
    Totals,
    assemble,
)
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.graph.partition import as_shares, kway_available, pair_graph, partition_kway, partition_rcb
from fluxloom.mesh.data.rows import together
from fluxloom.mesh.geometry.metrics import WARPS

__all__ = ["METHODS", "cell_owners", "divided_volumes", "division_report"]

Array = npt.NDArray[np.float64]
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

    The result is that of `fluxloom.fv.geometry.control_volumes.shared_volumes` for the same owners: numbers of cells,
    faces and boundary elements are those of the whole, and so is the order in which loops over them add. Rank 0 has to
    hold the whole; a mesh of elements is better divided before (`fluxloom.mesh.ranks.distribute`).

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
    parts, told = [], None
    if whole is not None and not comm.rank:
        shapes, ways = _shapes(whole), whole.ways
        spans = {name: range(p.start - whole.cells, p.stop - whole.cells) for name, p in whole.patches.items()}
        joined = int(whole.wrapped.faces.min(initial=whole.interior))
        totals = Totals(whole.cells, whole.interior, whole.elements - whole.cells, joined)
        parts = [_part(whole, owner, rank, ways[joined : whole.interior], shapes) for rank in range(comm.size)]
        told = spans, totals, None if whole.turned is None else whole.turned.rotations, shapes is not None
    patches, totals, rotations, shaped = comm.broadcast(told)
    near = _sent(comm, CellTable, [part[0] for part in parts])
    faces = _sent(comm, FaceTable, [part[1] for part in parts])
    outer = _sent(comm, OuterTable, [part[2] for part in parts])
    images = _sent(comm, ImageTable, [part[3] for part in parts])
    across = _column(comm, [part[4] for part in parts])
    table = _column(comm, [part[5] for part in parts]) if shaped else None
    found = assemble(
        comm, near, faces, outer, patches, totals, None if rotations is None else Beyond(images, rotations),
        ways=across, shapes=None if table is None else FaceShapes(near.centre, [table]),
    )  # fmt: skip
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
    """Return how control volumes are divided, by one of `METHODS`. Collective."""
    shared = volumes.shared
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
    if whole is None or whole.shared.comm.size > 1:
        raise MeshError(f"{path}: rank 0 has to hold the control volumes of the whole mesh to deal them out")
    if whole.cells < comm.size:
        raise MeshError(f"{path}: {whole.cells} cells for {comm.size} ranks: start fewer ranks")
    if shares is not None and len(shares) != comm.size:
        raise MeshError(f"{path}: {len(shares)} shares for {comm.size} ranks: give one a rank")
    return cell_owners(whole, comm.size, method, shares)


def _part(
    whole: ControlVolumes, owner: Index, rank: int, ways: Array, shapes: Array | None
) -> tuple[CellTable, FaceTable, OuterTable, ImageTable, Array, Array | None]:
    """Return what a rank gets: faces with a cell of its own, boundary faces of its cells, images beyond, all cells.

    ``ways`` are those across the last of the faces, of which the rank gets its own; so it does of ``shapes``.
    """
    inner = whole.faces[: whole.interior]
    mine = np.flatnonzero((owner[inner] == rank).any(axis=1))
    behind = whole.faces[whole.interior :, 0]
    edge = np.flatnonzero(owner[behind] == rank)
    images = _images(whole, owner, rank)
    near = np.unique(np.concatenate([np.flatnonzero(owner == rank), inner[mine].reshape(-1), images.partner]))
    joined = mine - (whole.interior - len(ways))
    outer = whole.interior + edge
    return (
        CellTable(near, owner[near], whole.volumes[near], whole.centres[near]),
        FaceTable(mine, inner[mine, 0], inner[mine, 1], whole.areas[mine], whole.arms[mine]),
        OuterTable(edge, behind[edge], whole.areas[outer], whole.centres[whole.faces[outer, 1]]),
        images,
        ways[joined[joined >= 0]],
        None if shapes is None else shapes[np.concatenate([mine, outer])],
    )


def _shapes(whole: ControlVolumes) -> Array | None:
    """Return what `FaceShapes` has of the faces in one table, without warps where no face has any; None: not known."""
    if whole.moments is None:
        return None
    found = whole.moments().reshape(len(whole.faces), -1)
    rows, tensors = (np.empty(0, np.int64), np.empty((0, WARPS))) if whole.warps is None else whole.warps()
    warps = np.zeros((len(found), WARPS if rows.size else 0))
    warps[rows] = tensors[:, : warps.shape[1]]
    return np.concatenate([found, warps], axis=1)


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
    return kind(*(_column(comm, [getattr(table, field.name) for table in tables]) for field in fields(kind)))


def _column(comm: Comm, arrays: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[Any]:
    """Send each rank its array, of those that rank 0 has. Collective."""
    found = [array for array in arrays if array is not None]
    shape, dtype = comm.broadcast((found[0].shape[1:], found[0].dtype) if found else None)
    return np.array(comm.exchange(found or [np.empty((0, *shape), dtype=dtype)] * comm.size)[0])
