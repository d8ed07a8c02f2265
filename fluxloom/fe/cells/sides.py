"""Faces of the boundary as cells of one dimension less: their degrees of freedom, points and weights.

The degrees of freedom of a face are those of the cell behind it that lie on it, in the local order of the Lagrange
element of the face, so that nothing has to be numbered: traces of the shape functions of a cell are the shape functions
of its faces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument, TableMap
from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.dofs import Dofs
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.fe.cells.quadrature import Quadrature, gauss, require_rule
from fluxloom.fe.cells.side_kernels import side_load, side_point_load
from fluxloom.mesh.ranks.bind import Mesh

__all__ = ["Places", "Sides", "evaluated", "images"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.integer[Any]]

Places = Callable[[Array], npt.ArrayLike]
"""A function of places: maps points ``(m, d)`` to values ``(m,)``."""

_SIDES = {"quad": "line", "triangle": "line", "hexahedron": "quad", "tetrahedron": "triangle"}


@dataclass(frozen=True, eq=False)
class Sides:
    """The boundary faces of a mesh with the traces of a Lagrange space; see `fluxloom.fe.spaces.LagrangeSpace.sides`.

    Attributes
    ----------
    mesh
        The mesh in a context.
    element
        That of a face: lines in the plane, quads on hexahedra, triangles on tetrahedra.
    rule
        Points and weights of the sums over a face.
    corners
        Boundary face -> its corners among the points of the mesh.
    map
        Boundary face -> its degrees of freedom.
    """

    mesh: Mesh
    element: Lagrange
    rule: Quadrature
    corners: TableMap
    map: TableMap

    @classmethod
    def of(cls, mesh: Mesh, dofs: Dofs, rows: Set) -> Sides:
        """Return the sides of a mesh, with ``order + 1`` points a direction. Collective on several ranks.

        Parameters
        ----------
        mesh
            The mesh; on several ranks with the map ``boundary_cell``.
        dofs
            Degrees of freedom of its cells.
        rows
            These as a set.

        Raises
        ------
        MeshError
            If the mesh was divided among ranks without the maps that are needed.
        """
        element = Lagrange(_SIDES[dofs.element.shape], dofs.element.order)
        nodes, behind, faces = _boundary(mesh, dofs.element)
        local = _faces_of_cells(dofs.element, nodes[behind], faces)
        own = _dofs_of_faces(dofs.element, element)[local]
        corners, context = np.array(dofs.element.kind.faces)[local], mesh.context
        return cls(
            mesh, element, gauss(element.shape, element.order + 1),
            context.map(mesh.boundary, mesh.nodes, np.take_along_axis(nodes[behind], corners, axis=1), "side_nodes"),
            context.map(mesh.boundary, rows, np.take_along_axis(dofs.cells[behind], own, axis=1), "side_dofs"),
        )  # fmt: skip

    def with_rule(self, rule: Quadrature) -> Sides:
        """Return the same faces with other points.

        Raises
        ------
        SolverError
            For a rule of another reference cell than that of a face.
        """
        return replace(self, rule=require_rule(rule, self.element.shape, f"{self.mesh.path}: sides"))

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Constants of kernels, named as those of `fluxloom.fe.cells.side_kernels`."""
        return {
            "phi": self.element.values(self.rule.points).tolist(),
            "corner": Lagrange(self.element.shape, 1).gradients(self.rule.points).tolist(),
            "weight": self.rule.weights.tolist(),
            "n": self.element.size,
            "d": self.mesh.dimension,
        }

    def places(self) -> Array:
        """Return the points of the rule on all boundary faces of this rank, ``(faces, q, d)``. Collective."""
        return images(self.mesh, self.element.shape, self.corners.table[: self.mesh.boundary.size], self.rule)

    def on(self, patches: Sequence[str]) -> Subset:
        """Return the faces of some patches as a subset of ``mesh.boundary``. Collective on several ranks.

        Parameters
        ----------
        patches
            Names of patches, or one name.

        Raises
        ------
        MeshError
            For a name the mesh does not have; the message lists those it has.
        """
        names = [patches] if isinstance(patches, str) else list(patches)
        owned = self.mesh.boundary.size
        parts = [self.mesh.patches[name].indices for name in names]
        chosen = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
        return Subset(self.mesh.boundary, chosen[chosen < owned], ", ".join(names) or "no patch")

    def values(self, faces: Subset, flux: Places, dtype: npt.DTypeLike, name: str) -> Dat:
        """Return the values of a function at the points of some faces, 0 on others. Collective.

        Parameters
        ----------
        faces
            From `on`.
        flux
            The function; it is called with points of these faces alone.
        dtype, name
            Of the dat, of shape ``(q,)`` on ``mesh.boundary``.

        Raises
        ------
        SolverError
            If it does not give a finite number for each point.
        """
        places = self.places()
        own = faces.indices[: faces.size]
        values = np.zeros(places.shape[:2])
        values[own] = raise_on_all_ranks(self.mesh.context.comm, lambda: evaluated(flux, places[own], name))
        return self.mesh.context.dat(self.mesh.boundary, values.astype(dtype), name, shape=(self.rule.size,))

    def load(self, faces: Subset, flux: Dat | Global, free: Argument, b: Argument, name: str) -> Loop:
        """Return the loop ``b_i += free_i int flux phi_i ds`` over some faces.

        Parameters
        ----------
        faces
            From `on`.
        flux
            A scalar, scalars on ``mesh.boundary``, or of shape ``(q,)`` there.
        free, b
            Arguments through `map`.
        name
            Of the loop.
        """
        pointwise = isinstance(flux, Dat) and flux.shape == (self.rule.size,)
        kernel = side_point_load if pointwise else side_load
        corners = self.corners.argument(self.mesh.x)
        return Loop(kernel, faces, corners, flux, free, b, name=name, **self.tables)


def images(mesh: Mesh, shape: str, nodes: Index, rule: Quadrature) -> Array:
    """Return the points of a rule on cells or faces, ``x_q = sum_c N_c(xi_q) x_c``, ``(m, q, d)``. Collective.

    Parameters
    ----------
    mesh
        The mesh.
    shape
        Of the cells or faces.
    nodes : (m, corners)
        Their corners in local numbers.
    rule
        Points of the reference cell.
    """
    points = mesh.x.read()
    points = np.concatenate([points, np.zeros((mesh.nodes.stored - len(points), mesh.dimension))])
    refresh_host(mesh.context.comm, mesh.part.part("nodes"), points)
    return np.einsum("qc,ecd->eqd", Lagrange(shape, 1).values(rule.points), points[nodes])


def evaluated(function: Places, places: Array, name: str) -> Array:
    """Return the values of a function at places ``(m, q, d)``, ``(m, q)``.

    Parameters
    ----------
    function
        Maps points ``(k, d)`` to ``(k,)`` numbers.
    places
        Where.
    name
        Used in messages.

    Raises
    ------
    SolverError
        If it gives something else, or no finite numbers.
    """
    points = places.reshape(-1, places.shape[-1])
    if not len(points):
        return np.zeros(places.shape[:-1])
    wanted = f"{name}: the function has to give one finite number for each of {len(points)} points {points.shape}"
    found = np.asarray(function(points))
    if found.shape != (len(points),) or found.dtype.kind not in "fiu":
        hint = "; np.full(len(x), value) is a constant" if found.shape == () else ""
        raise SolverError(f"{wanted}, an array of shape ({len(points)},), not {found.dtype} of {found.shape}{hint}")
    if not np.isfinite(found).all():
        bad = int(np.argmin(np.isfinite(found)))
        raise SolverError(f"{wanted}, and it gives {found[bad]} at {points[bad].tolist()}")
    return found.astype(np.float64).reshape(places.shape[:-1])


def _boundary(mesh: Mesh, cell: Lagrange) -> tuple[Index, Index, Index]:
    """Return points of cells ``(cells, corners)``, the cell behind each boundary face, and points of that face."""
    width, part = len(cell.kind.faces[0]), mesh.part
    faces = part.table("boundary_nodes")[:, :width]
    return part.table("cell_nodes")[:, : cell.corners], part.table("boundary_cell")[: len(faces), 0], faces


def _faces_of_cells(cell: Lagrange, nodes: Index, faces: Index) -> Index:
    """Return which face of its cell each face is: the one with the same corners."""
    there = np.sort(nodes[:, np.array(cell.kind.faces)], axis=2)
    same = (there == np.sort(faces, axis=1)[:, None, :]).all(axis=2)
    if not same.any(axis=1).all():
        raise MeshError(f"boundary face {int(np.argmin(same.any(axis=1)))} is no face of the cell behind it")
    return same.argmax(axis=1)


def _dofs_of_faces(cell: Lagrange, side: Lagrange) -> Index:
    """Return the local dofs of a cell on each of its faces, in the local order of the face, ``(faces, n)``."""
    corners = Lagrange(cell.shape, 1).points[np.array(cell.kind.faces)]
    places = Lagrange(side.shape, 1).values(side.points) @ corners
    gaps = np.abs(places[:, :, None, :] - cell.points).sum(axis=3)
    return gaps.argmin(axis=2)
