"""Checks of a mesh of which every rank holds a slice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import RowExchange, owner_of
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import MeshData, MeshSource, unknown_patch
from fluxloom.mesh.data.whole import check_finite, require_whole
from fluxloom.mesh.quality.check import check_cells, check_orphans
from fluxloom.mesh.quality.orient import orient as orient_cells
from fluxloom.mesh.ranks.slices import MeshSlice

__all__ = ["check_cells_of", "check_slice", "require_patches"]


def require_patches(part: MeshSlice, required: Iterable[str]) -> None:
    """Raise `MeshError` (on all ranks alike) when a patch is missing."""
    for name in required:
        if name not in part.listed.names:
            raise unknown_patch(part.path, name, part.listed.names, "the required patch {} is missing")


def check_slice(part: MeshSlice) -> None:
    """Look at what can be seen without other ranks: element types, and node numbers in range. Not collective.

    Raises
    ------
    MeshError
        Naming the element.
    """
    if not isinstance(part, MeshSlice):
        raise MeshError(f"each rank of several gives a slice of a mesh, as cut() makes it, not {type(part).__name__}")
    if not part.n_cells:
        raise MeshError(f"{part.path}: the mesh has no cells")
    for name, numbers in part.numbers().items():
        block = part.cells[name]
        if element(name).dimension != part.dimension:
            raise MeshError(
                f"{part.path}: a {name} cannot be a cell of a mesh in {part.dimension} dimensions; mend the file"
            )
        wrong = np.argwhere((block < 0) | (block >= part.n_points))
        if len(wrong):
            row, column = wrong[0]
            raise MeshError(
                f"{part.path}: {name} element {numbers.start + row}: node {block[row, column]} is outside "
                f"0 ... {part.n_points - 1}; mend the file"
            )


def check_cells_of(
    comm: Comm, part: MeshSlice, corners: MeshData, nodes: npt.NDArray[np.int64], *, check: bool, orient: bool
) -> tuple[MeshSlice, MeshData]:
    """Turn cells the right way round and check them. Collective.

    Parameters
    ----------
    comm
        The ranks.
    part
        This rank's slice.
    corners, nodes
        Its cells as a mesh of their own and the global numbers of its points.
    check
        Whether to look for duplicate cells in a slice, inverted cells and nodes without cells.
    orient
        Whether cells with negative volume are turned round first.

    Returns
    -------
    part, corners
        As given, or with cells turned.
    """
    first, last = part.point_starts[comm.rank : comm.rank + 2]
    points = MeshData(part.points, {}, {}, MeshSource(part.path, point_numbers=np.arange(first, last)))
    raise_on_all_ranks(comm, lambda: check_finite(points))
    raise_on_all_ranks(comm, lambda: require_whole(corners))
    if orient:
        turned, count = raise_on_all_ranks(comm, lambda: orient_cells(corners))
        if count:
            cells = {name: nodes[block].astype(np.int32) for name, block in turned.cells.items()}
            part, corners = replace(part, cells=cells), turned
    if check:
        raise_on_all_ranks(comm, lambda: check_cells(corners))
        post = RowExchange(comm, owner_of(nodes, part.point_starts))
        used = np.zeros(len(part.points), dtype=bool)
        used[post.forward(nodes) - first] = True
        raise_on_all_ranks(comm, lambda: check_orphans(points, used))
    return part, corners
