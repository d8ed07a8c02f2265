"""Control volumes that are groups of finer ones, for groups that are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import Places, fetch, owner_of
from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.fv.geometry.fused_faces import FusedFaces, FusedPatches, fused_faces, fused_patches
from fluxloom.fv.geometry.volume_tables import CellTable, FaceTable, OuterTable, Totals, assemble, taken
from fluxloom.fv.geometry.volumes import ControlVolumes

__all__ = ["Coarse", "grouped"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_STIFF = 1 / 3
"""Least part of the conductance of the fine faces that a coarse face has; 1/2 where all cells are squares or cubes."""


@dataclass(frozen=True, eq=False)
class Coarse:
    """Control volumes that are groups of finer ones.

    Attributes
    ----------
    volumes
        The coarse control volumes. Between two cells there is one face, and one more for each periodic image; faces
        across which a group is its own image are left out. ``spacing`` is ``|n . v|`` within bounds: a face conducts,
        by area over spacing, at most what its fine faces do together, and at least a third of it. In layers of cells
        that grow it would be much less, and corrections that are constant in a group would overshoot.
    group : (fine elements,)
        The coarse element of each fine one. Cells of the halo have coarse cells of the halo.
    wetted : (faces,)
        Sum of the areas of the fine faces, at least the area of the coarse face: what bounds the spectral radius.
    """

    volumes: ControlVolumes
    group: Index
    wetted: Array


def grouped(volumes: ControlVolumes, group: npt.NDArray[np.integer[Any]], wetted: Array | None = None) -> Coarse:
    """Return the control volumes of given groups of cells. Collective.

    Parameters
    ----------
    volumes, wetted
        The fine control volumes of this rank, and the ``wetted`` of their faces if these are
        coarse themselves; by default their areas.
    group : (owned,)
        Of each cell of this rank, from 0 on; no number is left out.

    Raises
    ------
    MeshError
        If numbers of groups are left out, or a boundary element is not in one patch.
    """
    comm = volumes.shared.comm
    patches, count = _checked(volumes, group)
    numbers = _Numbers.of(count, comm)
    found = np.empty(volumes.cells, dtype=np.int64)
    found[: volumes.owned] = numbers.begin + group
    refresh_host(comm, volumes.shared.cells, found)
    area = volumes.area if wetted is None else wetted
    faces, outer = fused_faces(volumes, found, area), fused_patches(volumes, found, area, patches.place)
    return _coarse(comm, found, _sums(volumes, group, count), numbers, faces, outer, patches)


def _sums(volumes: ControlVolumes, group: npt.NDArray[np.integer[Any]], count: int) -> tuple[Array, Array]:
    """Return the volume and the centroid of each group."""
    fine = volumes.volumes[: volumes.owned]
    volume = np.bincount(group, fine, count).astype(np.float64)
    moment = [np.bincount(group, fine * volumes.centres[: volumes.owned, k], count) for k in range(volumes.dimension)]
    return volume, np.stack(moment, axis=1) / volume[:, None]


# ------------------------------------------------------------------------------------------ numbers
@dataclass(frozen=True, eq=False)
class _Patches:
    """Names in the order of the boundary elements, and the place among them of each element of this rank."""

    names: list[str]
    place: Index

    def spans(self, count: Index) -> dict[str, range]:
        """Return the elements of each patch when there are so many of each, one patch behind the other."""
        bounds = np.concatenate([[0], np.cumsum(count)])
        return {name: range(int(bounds[k]), int(bounds[k + 1])) for k, name in enumerate(self.names)}


def _checked(volumes: ControlVolumes, group: npt.NDArray[np.integer[Any]]) -> tuple[_Patches, int]:
    """Return the patches, and the number of groups of this rank. Collective."""
    names = list(volumes.patches)
    place = np.full(volumes.elements - volumes.cells, -1, dtype=np.int64)
    for k, name in enumerate(names):
        place[np.asarray(volumes.patches[name], dtype=np.int64) - volumes.cells] = k

    def check() -> int:
        if (place < 0).any() or (np.diff(place) < 0).any() or sum(map(len, volumes.patches.values())) != place.size:
            raise MeshError(
                "agglomeration: boundary elements have to be in one patch each, in the order of the patches"
            )
        if group.shape != (volumes.owned,) or group.min(initial=0) < 0 or not np.bincount(group).all():
            raise MeshError(f"agglomeration: a group of each of {volumes.owned} cells is wanted, numbered from 0 on")
        return int(group.max(initial=-1)) + 1

    return _Patches(names, place), raise_on_all_ranks(volumes.shared.comm, check)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Global numbers of coarse cells, contiguous by rank: ``starts`` of all, ``begin ... end - 1`` of this one."""

    starts: Index
    begin: int
    end: int

    @classmethod
    def of(cls, count: int, comm: Comm) -> _Numbers:
        """Number the groups of this rank behind those of lower ones. Collective."""
        starts = np.concatenate([[0], np.cumsum(comm.allgather(count))]).astype(np.int64)
        return cls(starts, int(starts[comm.rank]), int(starts[comm.rank + 1]))


# ------------------------------------------------------------------------------------------ control volumes
def _coarse(
    comm: Comm, group: Index, terms: tuple[Array, Array], numbers: _Numbers, faces: FusedFaces, outer: FusedPatches,
    patches: _Patches,
) -> Coarse:  # fmt: skip
    """Return what this rank has. Collective."""
    starts = numbers.starts
    asked = np.unique(np.concatenate([group, np.arange(numbers.begin, numbers.end)]))
    rows = fetch(comm, np.concatenate([terms[0][:, None], terms[1]], axis=1), starts, asked)
    near = CellTable(asked, owner_of(asked, starts), rows[:, 0].copy(), rows[:, 1:].copy())
    origin = near.centre[near.place(faces.first)]
    areas = faces.areas(faces.ways(origin, near.centre[near.place(faces.second)]))
    number, n_faces = _face_numbers(comm, faces, starts)
    order = np.argsort(number)
    inner = taken(FaceTable(number, faces.first, faces.second, areas, faces.centre - origin), order)
    counts = np.array(comm.allgather(np.bincount(outer.patch, minlength=len(patches.names))))
    spans, before = patches.spans(counts.sum(axis=0)), counts[: comm.rank].sum(axis=0)
    begin = np.array([spans[name].start for name in patches.names], dtype=np.int64) + before
    mine = counts[comm.rank]
    local = np.arange(outer.cell.size) - np.repeat(np.cumsum(mine) - mine, mine)
    edge = OuterTable(begin[outer.patch] + local, outer.cell, outer.area, outer.centre)
    found = assemble(comm, near, inner, edge, spans, Totals(int(starts[-1]), n_faces, int(counts.sum()), n_faces))
    wetted = np.concatenate([faces.wetted[order], outer.wetted])
    found = _spaced(
        replace(found, wrapped=faces.wrapped(order)), np.concatenate([faces.conductance[order], outer.conductance])
    )
    place = Places(found.shared.cells.numbers).of(group)
    return Coarse(found, np.concatenate([place, found.cells + outer.place]), wetted)


def _face_numbers(comm: Comm, faces: FusedFaces, starts: Index) -> tuple[Index, int]:
    """Return the global numbers of faces, and how many there are.

    The rank of its first cell numbers a face. Two ranks have the faces between them in the same order, so numbers
    alone are sent. Collective.
    """
    first, second = owner_of(faces.first, starts), owner_of(faces.second, starts)
    own = first == comm.rank
    counts = comm.allgather(int(np.count_nonzero(own)))
    number = np.empty(own.size, dtype=np.int64)
    number[own] = sum(counts[: comm.rank]) + np.arange(counts[comm.rank])
    none = np.zeros(0, dtype=np.int64)
    sent = [number[own & (second == rank)] if rank != comm.rank else none for rank in range(comm.size)]
    for rank, came in enumerate(comm.exchange(sent)):
        if rank != comm.rank:
            number[first == rank] = came
    return number, sum(counts)


def _spaced(volumes: ControlVolumes, conductance: Array) -> ControlVolumes:
    """Return control volumes with their ``spacing``, for the sums of the areas over the spacings of fine faces."""
    thick = volumes.area / conductance
    straight = np.abs(np.einsum("ij,ij->i", volumes.normals, volumes.ways))
    return replace(volumes, spacing=np.clip(straight, thick, thick / _STIFF))
