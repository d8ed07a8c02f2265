"""Pieces of a VTK grid, joined: points at one place on two pieces are one, copies of cells of other pieces go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, Polyhedra
from fluxloom.mesh.data.ragged import Ragged, narrowed
from fluxloom.mesh.io.vtk.cells import Array, VtkCells, require_sound

__all__ = ["join_pieces"]

_GHOST = "vtkGhostType"
_COPY = 1
"""The bit of a cell that another piece has too."""

_SAME, _SHIFT = 1e-10, 0.1234567
"""Points nearer to each other than this part of the extent are one; a shift, as many coordinates are round numbers."""

Index = npt.NDArray[np.int64]


def join_pieces(path: str | Path, pieces: Sequence[VtkCells]) -> VtkCells:
    """Return the pieces of a grid as one.

    Points of different pieces that have the same coordinates, to rounding, are one point, so that cells on both sides
    are neighbours; points that one piece has twice stay apart. Cells that a piece has as copies of those of others are
    left out.

    Raises
    ------
    MeshError
        When arrays of a piece do not fit each other, or it is not known which of two points of a piece is meant.
    """
    for number, piece in enumerate(pieces):
        require_sound(str(path) if len(pieces) == 1 else f"{path}: piece {number}", piece)
    some = [_own(piece) for piece in pieces if len(piece.types)] or list(pieces[:1])
    if len(some) == 1:
        return some[0]
    first = np.cumsum([0, *(len(piece.points) for piece in some)])
    points = np.concatenate([piece.points for piece in some])
    kept, number = _same_places(str(path), points, first)
    ends = np.cumsum([0, *(piece.offsets[-1] for piece in some)])
    nodes = [number[start + piece.connectivity] for start, piece in zip(first, some, strict=False)]
    offsets = [piece.offsets[1:] + end for end, piece in zip(ends, some, strict=False)]
    more = [
        piece.polyhedra.renamed(number[start:stop])
        for piece, (start, stop) in zip(some, pairwise(first), strict=True)
        if piece.polyhedra is not None
    ]
    names = next((piece.patch_names for piece in some if piece.patch_names is not None), None)
    return VtkCells(
        points=points[kept],
        connectivity=narrowed(np.concatenate(nodes)),
        offsets=np.concatenate([[0], *offsets]).astype(np.int64),
        types=np.concatenate([piece.types for piece in some]),
        point_data={k: v[kept] for k, v in _joined(path, "points", [piece.point_data for piece in some]).items()},
        cell_data=_joined(path, "cells", [piece.cell_data for piece in some]),
        patch_names=names,
        polyhedra=Polyhedra.joined(more) if more else None,
    )


def _own(piece: VtkCells) -> VtkCells:
    """Return a piece without copies of cells of others, its connectivity without gaps."""
    ghosts = piece.cell_data.get(_GHOST)
    copies = np.zeros(len(piece.types), dtype=bool) if ghosts is None else (ghosts.astype(np.int64) & _COPY) > 0
    data = {name: values for name, values in piece.cell_data.items() if name != _GHOST}
    nodal = {name: values for name, values in piece.point_data.items() if name != _GHOST}
    keep = np.flatnonzero(~copies)
    rows = Ragged(piece.offsets, piece.connectivity).take(keep)
    polyhedra = piece.polyhedra
    if polyhedra is not None and copies.any():
        polyhedra = polyhedra.take(np.flatnonzero(~copies[piece.types == 42]))
    points, connectivity = piece.points, rows.indices
    if copies.any():  # points of copies alone go with them
        used = np.zeros(len(points), dtype=bool)
        used[connectivity] = True
        if polyhedra is not None:
            used[polyhedra.faces.indices] = True
        place = (np.cumsum(used) - 1).astype(np.int32)
        points, connectivity = points[used], place[connectivity]
        nodal = {name: values[used] for name, values in nodal.items()}
        polyhedra = None if polyhedra is None else polyhedra.renamed(place)
    return VtkCells(
        points, connectivity, rows.offsets, piece.types[keep], nodal,
        {name: values[keep] for name, values in data.items()}, piece.patch_names, polyhedra,
    )  # fmt: skip


def _same_places(path: str, points: FloatArray, first: Index) -> tuple[Index, Index]:
    """Return the points that stay, and what each is called among them."""
    piece = np.repeat(np.arange(len(first) - 1), np.diff(first))
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max())
    near = np.round((points - low) / (_SAME * extent or 1.0) + _SHIFT)
    _, leader, place = np.unique(near, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    pieces = np.zeros(len(leader), dtype=np.int64)
    seen = np.unique(np.stack([place, piece], axis=1), axis=0)
    np.add.at(pieces, seen[:, 0], 1)
    count = np.bincount(place, minlength=len(leader))
    doubtful = np.flatnonzero((pieces > 1) & (count > pieces))
    if len(doubtful):
        where = ", ".join(f"{x:.6g}" for x in points[leader[doubtful[0]]])
        raise MeshError(
            f"{path}: a piece has two points at ({where}), and another piece one: it is not known which of them is "
            "meant; merge the pieces (ParaView: Merge Blocks) and save one"
        )
    alone = (pieces == 1)[place]  # also points that one piece has twice
    own = np.where(alone, np.arange(len(points)), leader[place])
    kept = np.unique(own)
    return kept, np.searchsorted(kept, own)


def _joined(path: str | Path, what: str, parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return data of all pieces; those that some piece lacks are left out with a word."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    found = {}
    for name in names:
        values = [part[name] for part in parts if name in part]
        if len(values) < len(parts) or len({value.shape[1:] for value in values}) > 1:
            warn(f"{path}: the data {name!r} on {what} are not the same in all pieces; they are left out")
        else:
            found[name] = np.concatenate(values)
    return found
