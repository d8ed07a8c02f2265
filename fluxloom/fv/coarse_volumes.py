"""Control volumes that are groups of finer ones, for groups that are given; on one rank and on several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError
from fluxloom.dsl.parts import refresh_host
from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.fused_faces import FusedFaces, FusedPatches, fused_faces, fused_patches
from fluxloom.fv.shared_volumes import CellTable, FaceTable, OuterTable, assemble
from fluxloom.mesh.rows import fetch, owner_of, together

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
    """Return the control volumes of given groups of cells. Collective if the control volumes are shared.

    Parameters
    ----------
    volumes, wetted
        The fine control volumes, on several ranks those of this one, and the ``wetted`` of their faces if these are
        coarse themselves; by default their areas.
    group : (owned,)
        Of each cell of this rank, from 0 on; no number is left out.

    Raises
    ------
    MeshError
        If numbers of groups are left out, or a boundary element is not in one patch.
    """
    comm = None if volumes.shared is None else volumes.shared.comm
    patches, count = _checked(volumes, group, comm)
    numbers = _Numbers.of(count, comm)
    found = np.empty(volumes.cells, dtype=np.int64)
    found[: volumes.owned] = numbers.begin + group
    if volumes.shared is not None:
        refresh_host(volumes.shared.comm, volumes.shared.cells, found)
    area = volumes.area if wetted is None else wetted
    faces, outer = fused_faces(volumes, found, area, comm), fused_patches(volumes, found, area, patches.place)
    volume, centre = _sums(volumes, group, count)
    if volumes.shared is None:
        return _whole(found, volume, centre, faces, outer, patches)
    return _shared(volumes.shared.comm, found, (volume, centre), numbers, faces, outer, patches)


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

    def spans(self, count: Index, begin: int = 0) -> dict[str, range]:
        """Return the elements of each patch when there are so many of each, one patch behind the other."""
        bounds = begin + np.concatenate([[0], np.cumsum(count)])
        return {name: range(int(bounds[k]), int(bounds[k + 1])) for k, name in enumerate(self.names)}


def _checked(volumes: ControlVolumes, group: npt.NDArray[np.integer[Any]], comm: Comm | None) -> tuple[_Patches, int]:
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

    return _Patches(names, place), check() if comm is None else together(comm, check)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Global numbers of coarse cells, contiguous by rank: ``starts`` of all, ``begin ... end - 1`` of this one."""

    starts: Index
    begin: int
    end: int

    @classmethod
    def of(cls, count: int, comm: Comm | None) -> _Numbers:
        """Number the groups of this rank behind those of lower ones. Collective."""
        counts = [count] if comm is None else comm.allgather(count)
        starts, rank = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), 0 if comm is None else comm.rank
        return cls(starts, int(starts[rank]), int(starts[rank + 1]))


# ------------------------------------------------------------------------------------------ control volumes
def _whole(
    group: Index, volume: Array, centre: Array, faces: FusedFaces, outer: FusedPatches, patches: _Patches
) -> Coarse:
    """Return everything on one rank."""
    n, count = volume.size, outer.cell.size
    centres = np.concatenate([centre, outer.centre])
    edge = np.stack([outer.cell, n + np.arange(count)], axis=1)
    areas = np.concatenate([faces.areas(faces.ways(centre[faces.first], centre[faces.second])), outer.area])
    table = np.concatenate([faces.pairs, edge])
    arms = np.concatenate([faces.centre, outer.centre]) - centre[table[:, 0]]
    spans = patches.spans(np.bincount(outer.patch, minlength=len(patches.names)), n)
    found = ControlVolumes(volume, centres, table, areas, np.zeros(len(areas)), arms, spans, faces.wrapped())
    wetted = np.concatenate([faces.wetted, outer.wetted])
    found = _spaced(found, np.concatenate([faces.conductance, outer.conductance]))
    return Coarse(found, np.concatenate([group, n + outer.place]), wetted)


def _shared(
    comm: Comm, group: Index, terms: tuple[Array, Array], numbers: _Numbers, faces: FusedFaces, outer: FusedPatches,
    patches: _Patches,
) -> Coarse:  # fmt: skip
    """Return what this rank has. Collective."""
    starts = numbers.starts
    asked = np.unique(np.concatenate([group, np.arange(numbers.begin, numbers.end)]))
    rows = fetch(comm, np.concatenate([terms[0][:, None], terms[1]], axis=1), starts, asked)
    near = CellTable(asked, owner_of(asked, starts), rows[:, 0].copy(), rows[:, 1:].copy())
    origin = near.centre[near.place(faces.first)]
    ways = faces.ways(origin, near.centre[near.place(faces.second)])
    number, n_faces = _face_numbers(comm, faces, starts)
    inner = FaceTable(number, faces.first, faces.second, faces.areas(ways), ways, faces.centre - origin,
                      np.empty((len(number), 0)))  # fmt: skip
    counts = np.array(comm.allgather(np.bincount(outer.patch, minlength=len(patches.names))))
    spans, before = patches.spans(counts.sum(axis=0)), counts[: comm.rank].sum(axis=0)
    begin = np.array([spans[name].start for name in patches.names], dtype=np.int64) + before
    mine = counts[comm.rank]
    local = np.arange(outer.cell.size) - np.repeat(np.cumsum(mine) - mine, mine)
    edge = OuterTable(begin[outer.patch] + local, outer.cell, outer.area, outer.centre, np.empty((local.size, 0)))
    found = assemble(comm, near, inner, edge, spans, (int(starts[-1]), n_faces, int(counts.sum())))
    order = np.argsort(number)
    wetted = np.concatenate([faces.wetted[order], outer.wetted])
    found = _spaced(
        replace(found, wrapped=faces.wrapped(order)), np.concatenate([faces.conductance[order], outer.conductance])
    )
    assert found.shared is not None
    stored = found.shared.cells.numbers
    sorted_cells = np.argsort(stored)
    place = sorted_cells[np.searchsorted(stored, group, sorter=sorted_cells)]
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
