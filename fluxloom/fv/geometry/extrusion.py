"""Whether control volumes are a plane mesh, extruded uniformly and periodically, and which cell is where in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Extrusion", "extrusion_of"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_FIT = 1e-6
"""How far centres, distances and volumes may be from those of the first plane, as a part of the distance of planes."""


@dataclass(frozen=True, eq=False)
class Extrusion:
    """A plane mesh repeated ``planes`` times at equal distances along an axis, the last plane next to the first.

    Attributes
    ----------
    axis
        0, 1 or 2.
    planes, spacing
        Number of planes of cells, and their distance.
    order : (columns, planes)
        The cell of each plane of each column, ascending along the axis.
    areas : (columns,)
        Of the plane cells.
    """

    axis: int
    planes: int
    spacing: float
    order: Index
    areas: Array

    def plane(self, matrix: Any) -> csr_array:
        """Return ``A`` of a matrix ``Omega (x) -L_per + spacing (A (x) I)`` on the cells, ``(columns, columns)``.

        Parameters
        ----------
        matrix
            Of SciPy, such as ``-L`` of a pressure with its boundary conditions.

        Raises
        ------
        MeshError
            If the matrix has another form: boundary conditions or coefficients differ from plane to plane.
        """
        from scipy import sparse
        from scipy.sparse import csr_array

        cells, columns, n = self.order.size, len(self.order), self.planes
        if matrix.shape != (cells, cells):
            raise MeshError(f"extrusion: a matrix of {cells} cells is wanted, not of shape {matrix.shape}")
        flat = self.order.reshape(-1)
        whole = csr_array(csr_array(matrix)[flat][:, flat])
        first = np.arange(columns) * n
        along = self._scale(matrix) * _circulant(n, self.spacing)
        own = whole[first][:, first] - sparse.diags_array(self.areas * along.diagonal()[0])
        found = csr_array(own / self.spacing)
        found.eliminate_zeros()
        again = sparse.kron(sparse.diags_array(self.areas), along) + self.spacing * sparse.kron(
            found, sparse.eye_array(n)
        )
        apart = abs(whole - again).tocoo()
        worst = int(np.argmax(apart.data)) if apart.nnz else 0
        if apart.nnz and not apart.data[worst] <= _FIT * float(np.abs(whole.diagonal()).max()):
            raise MeshError(
                f"extrusion along axis {self.axis}: the row of cell {flat[apart.row[worst]]} of the matrix is not that "
                "of the plane, repeated: coefficients and boundary conditions have to be the same in all planes"
            )
        return found

    def _scale(self, matrix: Any) -> float:
        """Return how many times the two-point coupling along the axis a matrix has.

        Operators of oblique meshes are multiplied by one number (`fluxloom.fv.incompressible.matrices`).
        """
        from scipy.sparse import csr_array

        expected = float(self.areas[0] * _circulant(self.planes, self.spacing)[0, 1]) if self.planes > 1 else 0.0
        first, second = self.order.reshape(-1)[:2]
        return float(csr_array(matrix)[first, second]) / expected if expected else 1.0

    def poisson(self, matrix: Any, b: Dat, x: Dat, **choices: Any) -> ExtrudedPoisson:
        """Return the solver of ``A x = b`` for a matrix as in `plane`, with vectors of scalars on the cells.

        Parameters
        ----------
        matrix, b, x
            The matrix in SciPy; right-hand side and solution.
        **choices
            As in `fluxloom.linalg.direct.extruded.solver.ExtrudedPoisson`: ``stop``, ``method`` ...

        Raises
        ------
        MeshError, SolverError
            If something does not fit.
        """
        areas = self._scale(matrix) * self.areas
        extruded = ExtrudedMatrix(self.plane(matrix), areas, planes=self.planes, spacing=self.spacing)
        return ExtrudedPoisson(b.context, extruded, order=self.order, b=b, x=x, **choices)


def extrusion_of(volumes: ControlVolumes, axis: int | None = None) -> Extrusion:
    """Return how control volumes are an extrusion.

    Parameters
    ----------
    volumes
        Of a mesh in three dimensions, all of it on this rank, periodic along the axis.
    axis
        0, 1 or 2; by default the last one that fits.

    Raises
    ------
    MeshError
        If they are none; says why, for each axis that was looked at.
    """
    if volumes.dimension != 3:
        raise MeshError(f"extrusion: a mesh of three dimensions is wanted, not of {volumes.dimension}")
    if volumes.shared.comm.size > 1:
        raise MeshError("extrusion: control volumes of several ranks are not looked at: columns of cells may be cut")
    if axis not in (None, 0, 1, 2):
        raise MeshError(f"extrusion: axis is 0, 1 or 2, not {axis!r}")
    problems = []
    for one in (2, 1, 0) if axis is None else (axis,):
        found = _along(volumes, one)
        if isinstance(found, Extrusion):
            return found
        problems.append(f"along axis {one} {found}")
    raise MeshError(f"the mesh is no uniform periodic extrusion: {'; '.join(problems)}")


def _along(cv: ControlVolumes, axis: int) -> Extrusion | str:
    """Return the extrusion along an axis, or why there is none."""
    cells = cv.cells
    leaning = np.abs(cv.normals[:, axis])
    upright = leaning > 1 - _FIT
    if not (upright | (leaning < _FIT)).all():
        return "there are faces neither along it nor across it"
    if upright[cv.interior :].any():
        return "there is a boundary across it: make both sides periodic"
    ends = cv.faces[upright]
    if not np.array_equal(np.bincount(ends.ravel(), minlength=cells)[:cells], np.full(cells, 2)):
        return "a cell has not one neighbour on each side"
    spacing = float(np.median(cv.spacing[upright])) if upright.any() else 0.0
    if not spacing > 0:
        return "no face lies across it"
    if np.abs(cv.spacing[upright] - spacing).max() > _FIT * spacing:
        return "the distances of planes differ"
    sorted_cells = _columns(cv.centres[:cells], axis, spacing)
    if isinstance(sorted_cells, str):
        return sorted_cells
    volumes = cv.volumes[sorted_cells]
    areas = volumes.mean(axis=1) / spacing
    if np.abs(volumes / spacing - areas[:, None]).max() > _FIT * areas.max():
        return "volumes differ from plane to plane"
    if (problem := _neighbours(cv, upright, sorted_cells, areas)) != "":
        return problem
    return Extrusion(axis, sorted_cells.shape[1], spacing, sorted_cells, areas)


def _columns(centres: Array, axis: int, spacing: float) -> Index | str:
    """Return the cells of each column, ascending along the axis; or why there are no columns."""
    from scipy.spatial import KDTree

    height = centres[:, axis]
    level = np.rint((height - height.min()) / spacing).astype(np.int64)
    if np.abs(height - height.min() - level * spacing).max() > _FIT * spacing * max(1, level.max()):
        return "centres of cells do not lie in planes at equal distances"
    planes = int(level.max()) + 1
    counts = np.bincount(level, minlength=planes)
    if (counts != counts[0]).any():
        return "planes have different numbers of cells"
    flat = np.delete(centres, axis, axis=1)
    base = np.flatnonzero(level == 0)
    tree, found = KDTree(flat[base]), np.empty((base.size, planes), dtype=np.int64)
    for k in range(planes):
        cells = np.flatnonzero(level == k)
        distance, column = tree.query(flat[cells])
        if distance.max() > _FIT * spacing * planes or np.unique(column).size != cells.size:
            return "cells of different planes do not lie behind each other"
        found[column, k] = cells
    return found


def _neighbours(cv: ControlVolumes, upright: npt.NDArray[np.bool_], order: Index, areas: Array) -> str:
    """Return what is wrong with the faces across the axis, or an empty string."""
    columns, planes = order.shape
    place = np.empty(order.size, dtype=np.int64)
    place[order.reshape(-1)] = np.arange(order.size)
    first, second = place[cv.faces[upright]].T
    if (first // planes != second // planes).any():
        return "a cell has a neighbour in another column"
    step = (first - second) % planes
    if not np.isin(step, (1 % planes, (planes - 1) % planes)).all() or first.size != order.size:
        return "neighbours in a column are not next to each other"
    if np.abs(cv.area[upright] - areas[first // planes]).max() > _FIT * areas.max():
        return f"the faces across it are not those of {columns} prisms"
    return ""


def _circulant(planes: int, spacing: float) -> csr_array:
    """Return ``-L_per = circ(2, -1, 0, ..., 0, -1) / spacing``, entries that meet added."""
    from scipy.sparse import csr_array

    k = np.arange(planes)
    places: Sequence[Index] = (k, (k + 1) % planes, (k - 1) % planes)
    rows, columns = np.concatenate([k, k, k]), np.concatenate(places)
    values = np.repeat([2.0, -1.0, -1.0], planes) / spacing
    return csr_array((values, (rows, columns)), shape=(planes, planes))
