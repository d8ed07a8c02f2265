"""What the shallow-water kernels know of a mesh, in the precision of the state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.shallow.gradients import arms, boundary_arms, cell_shape, crossings, least_squares, unit_normals
from fluxloom.mesh.ranks.bind import Mesh

__all__ = ["ShallowGeometry"]


class ShallowGeometry:
    """Metric terms of a plane mesh; computed in the precision of the mesh, by loops.

    Parameters
    ----------
    mesh
        In two dimensions.
    dtype
        Of the results.
    gradients
        Whether what gradients need is wanted too.

    Attributes
    ----------
    shape : (2,) on cells
        One over the area, and twice the area over the perimeter.
    faces, boundary : (3,) on faces and boundary faces
        Unit normal and length.
    middles : (2 * sides,) on cells
        From the centroid to the middles of the sides; zero where a cell has fewer.
    points : (2 * sides,) on cells
        From the centroid to where the lines to the neighbours cross the sides; to the middles of those at the boundary.
    neighbours
        Cell to the cells across its sides; itself where there is none.
    weights : (2 * sides,) on cells
        Least-squares weights of the neighbours.
    arms, boundary_arms : (4,) and (2,) on faces and boundary faces
        From the centroids of the cells to the middle of the face.
    total_area
        Of all cells on all ranks.
    """

    neighbours: TableMap
    weights: Dat
    points: Dat
    arms: Dat
    boundary_arms: Dat

    def __init__(self, mesh: Mesh, *, dtype: npt.DTypeLike = "float64", gradients: bool = True) -> None:
        self._mesh, self._dtype = mesh, dtype
        corners = _padded(mesh.cell_nodes, "corners")
        self.shape = self._dat(mesh.cells, 2, "shape")
        self.middles = self._dat(mesh.cells, 2 * corners.legs, "middles")
        Loop(
            cell_shape, mesh.cells, mesh.x[corners], mesh.centroids, mesh.volumes, self.shape, self.middles,
            legs=corners.legs,
        )()  # fmt: skip
        self.faces = self._dat(mesh.faces, 3, "face")
        self.boundary = self._dat(mesh.boundary, 3, "boundary_face")
        Loop(unit_normals, mesh.faces, mesh.face_normals, self.faces)()
        Loop(unit_normals, mesh.boundary, mesh.boundary_normals, self.boundary)()
        areas = mesh.volumes.read().astype(np.float64)
        self.total_area = float(mesh.context.comm.reduce(np.array([areas.sum()]), "sum")[0])
        if gradients:
            self._add_gradients(corners.legs)

    def _add_gradients(self, sides: int) -> None:
        mesh = self._mesh
        self.neighbours = _padded(mesh.cell_cells, "neighbours", sides, own=True)
        self.weights = self._dat(mesh.cells, 2 * sides, "weights")
        centre = mesh.centroids
        Loop(least_squares, mesh.cells, centre, centre[self.neighbours], self.weights, legs=sides)()
        self.arms = self._dat(mesh.faces, 4, "arm")
        self.boundary_arms = self._dat(mesh.boundary, 2, "boundary_arm")
        Loop(arms, mesh.faces, mesh.face_centres, centre[mesh.face_cells], self.arms)()
        self.points = self._dat(mesh.cells, 2 * sides, "points")
        self.points.write(self.middles.read())
        inner = mesh.face_cells
        Loop(
            crossings, mesh.faces, self.faces, self.arms, centre[inner], self.middles[inner], self.points[inner],
            legs=sides,
        )()  # fmt: skip
        edge = mesh.boundary_cell[0]
        Loop(boundary_arms, mesh.boundary, mesh.boundary_centres, centre[edge], self.boundary_arms)()

    def _dat(self, over: Set, components: int, name: str) -> Dat:
        return self._mesh.context.dat(over, name=name, shape=(components,), dtype=self._dtype)


def _padded(rows: TableMap | RaggedMap, name: str, width: int = 0, *, own: bool = False) -> TableMap:
    """Return rows as a table: short ones repeat their last entry, or with ``own`` the element itself.

    Where there are no rows for the halo, those of the table lead to its elements themselves: no loop that reads
    neighbours runs there, as it writes cells directly.
    """
    if isinstance(rows, TableMap):
        return rows
    counts, halo = np.diff(rows.offsets), np.arange(len(rows.offsets) - 1, rows.source.executed)
    width = max(width, int(counts.max(initial=1)))
    place = np.minimum(rows.offsets[:-1, None] + np.arange(width), rows.offsets[1:, None] - 1)
    short = np.arange(width) >= counts[:, None]
    inside = np.clip(place, 0, max(0, rows.indices.size - 1))
    table = rows.indices[inside] if rows.indices.size else np.zeros_like(place)
    if own:
        table = np.where(short, np.arange(len(counts))[:, None], table)
    table = np.concatenate([table, np.repeat(halo[:, None], width, axis=1)])
    return TableMap(rows.source, rows.target, table.astype(np.int32), name)
