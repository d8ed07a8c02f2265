"""A mesh of triangles or tetrahedra as solvers see it that gather at points: on one rank, or divided by its points.

A rank owns points, and has every cell and every boundary face that touches one of them, so that what is gathered at its
own points is complete, and values of points are all that ranks exchange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import to_first
from fluxloom.core.errors import MeshError, SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.sets import Set
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource
from fluxloom.mesh.ranks.bind import Mesh
from fluxloom.mesh.ranks.distribute import Partition, part_of
from fluxloom.mesh.ranks.part import MeshPart
from fluxloom.mesh.ranks.slices import MeshSlice

__all__ = ["POINT_MAPS", "SIMPLEX", "PointMesh", "PointPatch", "point_mesh"]

Long = npt.NDArray[np.int64]
Values = npt.NDArray[Any]

POINT_MAPS = ("cell_nodes", "boundary_nodes")
"""Maps with which a mesh has to be divided."""

SIMPLEX: Mapping[int, str] = MappingProxyType({2: "triangle", 3: "tetra"})
"""The kind of cell of each number of dimensions."""


@dataclass(frozen=True, eq=False)
class PointPatch(PatchPoints):
    r"""The boundary faces of one patch that touch points of this rank, in the order of the whole mesh.

    On several ranks ``faces`` have points of the halo too, in local numbers; ``points`` are those that this rank owns,
    and ``areas`` and ``extents`` are whole, as all faces round an owned point are here. Sums over points take all of
    these.

    Attributes
    ----------
    mine : (m,) bool
        Faces that belong to this rank. Each face of the mesh belongs to one: sums over faces take these.
    """

    mine: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PointMesh:
    """Points, simplices and patches of this rank, in local numbers of points; see `point_mesh` and `of`.

    Attributes
    ----------
    mesh
        The mesh in its context: ``mesh.write(path, point_data=...)`` writes values of points, ``mesh.boundary``,
        ``mesh.boundary_nodes`` and ``mesh.patches`` are for loops over boundary faces.
    coordinates : (stored, d) float64
        Of the owned points and, behind them, of those of the halo; m.
    numbers : (stored,) int64
        Number of each of them in the whole mesh.
    simplices : (m, d + 1) int32
        Points of the cells that touch a point of this rank, the cells in the order of the whole mesh.
    cell_numbers : (m,) int64
        Number of each of these cells in the whole mesh.
    patches
        By name, in the order of the mesh; all patches on every rank, some without faces.
    loose
        Faces of the boundary, of all ranks, that are in no patch.
    """

    mesh: Mesh
    coordinates: FloatArray
    numbers: Long
    simplices: IntArray
    cell_numbers: Long
    patches: Mapping[str, PointPatch]
    loose: int

    @classmethod
    def of(cls, mesh: Mesh) -> PointMesh:
        """Look at a mesh from its points. Collective on several ranks.

        Parameters
        ----------
        mesh
            Triangles in two dimensions or tetrahedra in three; of several ranks with the maps `POINT_MAPS`, divided by
            points, ``distribute_mesh(..., on="nodes")``, or by cells, whose points are less evenly spread then.

        Raises
        ------
        MeshError
            For other cells than simplices of one kind, inverted ones, and a mesh without the maps.
        """
        _check_kind(mesh)
        mesh.cell_geometry()
        part, d = mesh.part, mesh.dimension
        nodes, cells = part.part("nodes"), part.part("cells")
        table = part.table("cell_nodes")[:, : d + 1]
        near = np.flatnonzero((table < nodes.owned).any(axis=1))
        near = near[np.argsort(cells.numbers[near])]
        patches = {name: _patch(part, span) for name, span in part.patches.items()}
        loose = part.part("boundary").total - sum(map(len, part.patches.values()))
        return cls(
            mesh, part.points, nodes.numbers, table[near], cells.numbers[near], MappingProxyType(patches), loose
        )  # fmt: skip

    @property
    def context(self) -> Context:
        """Where it lives."""
        return self.mesh.context

    @property
    def points(self) -> Set:
        """The points as a set: on several ranks, those that this one owns."""
        return self.mesh.nodes

    @property
    def dimension(self) -> int:
        """``d``, 2 or 3."""
        return self.mesh.dimension

    def patch(self, name: str) -> PointPatch:
        """Return a patch.

        Raises
        ------
        MeshError
            If the mesh has none of this name; the message lists those it has.
        """
        if name not in self.patches:
            known = ", ".join(self.patches) or "none"
            raise MeshError(f"{self.mesh.path}: no patch {name!r}{did_you_mean(name, self.patches)} (patches: {known})")
        return self.patches[name]

    def gather(self, values: Values) -> Values | None:
        """Return values of all points in the order of the whole mesh on rank 0, None on the others. Collective.

        Parameters
        ----------
        values : (points.size, ...)
            Of the points that this rank owns.

        Raises
        ------
        SolverError
            For another number of them.
        """
        own, comm = np.asarray(values), self.context.comm
        if own.shape[:1] != (self.points.size,):
            raise SolverError(f"gather: values of shape {own.shape} for {self.points.size} points")
        numbers, found = (np.concatenate(to_first(comm, rows)) for rows in (self.numbers[: len(own)], own))
        if comm.rank:
            return None
        whole = np.empty_like(found)
        whole[numbers] = found
        return whole

    def local_mesh(self) -> tuple[MeshData, Long]:
        """Return the cells of this rank as a mesh of their own, without patches, and the local number of each point.

        Its points are in the order of the whole mesh, so that sums over neighbours that follow it are the same on any
        number of ranks. Cells say in messages which number they have in the whole mesh.

        Raises
        ------
        MeshError
            For points that no cell uses.
        """
        order = np.argsort(self.numbers, kind="stable")
        used = np.zeros(order.size, dtype=bool)
        used[self.simplices] = True
        lonely = self.numbers[: self.points.size][~used[: self.points.size]]
        if lonely.size:
            raise MeshError(
                f"{self.mesh.path}: no cell uses point {int(lonely.min())} ({lonely.size} such points of rank "
                f"{self.context.comm.rank}); remove them from the points and renumber the cells and patches"
            )
        order = order[used[order]]
        place = np.full(self.numbers.size, -1, dtype=np.int32)
        place[order] = np.arange(order.size, dtype=np.int32)
        kind = SIMPLEX[self.dimension]
        source = MeshSource(self.mesh.path, cell_numbers={kind: self.cell_numbers.astype(np.int32)})
        return MeshData(self.coordinates[order], {kind: place[self.simplices]}, {}, source), order


def point_mesh(
    context: Context,
    data: MeshData | MeshSlice | None,
    *,
    method: Partition = "auto",
    shares: Sequence[float] | None = None,
) -> PointMesh:
    """Bind a mesh of simplices, on several ranks divided by its points. Collective.

    Parameters
    ----------
    context
        Where it lives.
    data
        The mesh; on several ranks on every one of them, or on rank 0 and None elsewhere, or each rank's slice.
    method, shares
        How points get their rank, see `fluxloom.mesh.ranks.distribute.distribute_mesh`.

    Raises
    ------
    MeshError
        See `PointMesh.of`; on every rank.
    """
    part = part_of(context.comm, data, on="nodes", method=method, shares=shares, maps=POINT_MAPS)
    return PointMesh.of(Mesh(part, context))


def _check_kind(mesh: Mesh) -> None:
    """Refuse other cells than simplices."""
    found, wanted = [name for name, count in mesh.part.blocks.items() if count], SIMPLEX[mesh.dimension]
    if found != [wanted]:
        raise MeshError(
            f"{mesh.path}: {wanted} cells alone are taken in {mesh.dimension} dimensions, not "
            f"{' and '.join(found) or 'no cells'}: divide the cells, or make the mesh with kind = \"{wanted}\""
        )


def _patch(part: MeshPart, span: range) -> PointPatch:
    """Return what this rank has of a patch."""
    faces, owned = part.part("boundary"), part.part("nodes").owned
    table = part.table("boundary_nodes")[:, : part.dimension]
    numbers, mine = faces.numbers[: len(table)], np.arange(len(table)) < faces.owned
    near = np.flatnonzero((numbers >= span.start) & (numbers < span.stop) & (mine | (table < owned).any(axis=1)))
    near = near[np.argsort(numbers[near])]
    whole = PatchPoints.of(table[near], part.points)
    count = int(np.searchsorted(whole.points, owned))
    return PointPatch(table[near], whole.points[:count], whole.areas[:count], whole.extents[:count], mine[near])
