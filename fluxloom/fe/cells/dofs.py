"""Degrees of freedom of continuous Lagrange elements: one number a point, shared by all cells that have it.

`fluxloom.fe.cells.cell_dofs` says how the cells round an edge or a face agree on its points,
`fluxloom.fe.cells.shared_dofs` how a mesh is numbered that is divided among ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.declare.parts import Part
from fluxloom.fe.cells.cell_dofs import (
    DofRanges,
    cell_dofs,
    cell_points,
    edge_points,
    element_of,
    face_points,
    sides_of,
)
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity, pair_keys
from fluxloom.mesh.geometry.jacobians import require_elements_sound
from fluxloom.mesh.quality.sound import require_no_hanging, require_sides, require_unfolded
from fluxloom.mesh.quality.surface import Surface, require_no_overlaps, tell_unnamed

__all__ = ["Dofs", "lagrange_dofs"]

LongArray = npt.NDArray[np.int64]

_MOST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Dofs:
    """The degrees of freedom (dofs) of one Lagrange element on one mesh.

    Numbers go up from the corners, which keep the numbers of the mesh's points, over the inner points of edges (edges
    in the order of `Connectivity.edges`) and of faces (in the order of the mesh's faces, in three dimensions) to those
    of cells.

    Attributes
    ----------
    element
        The element; ``n`` is its size.
    cells : (n_cells, n) int32
        Cell to dofs, in the local order of the element.
    points : (n_dofs, d) float64
        Place of each dof, in the unit of the mesh: images under the map of the element of order one.
    patches
        Name of each patch of the mesh to the dofs on its faces, ascending, int32.
    part
        What this rank has of them, whose numbers are those above: on one rank all. Of several ranks ``cells`` are those
        that it executes, in local numbers, and ``points`` and ``patches`` are about the dofs that it owns.
    """

    element: Lagrange
    cells: IntArray
    points: FloatArray
    patches: Mapping[str, IntArray]
    part: Part

    @property
    def size(self) -> int:
        """Number of dofs; of several ranks, of those that this one owns."""
        return len(self.points)

    def on(self, patches: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which dofs lie on faces of patches, their corners and edges included.

        Parameters
        ----------
        patches
            Names of patches of the mesh; none is allowed.

        Returns
        -------
        (n_dofs,) bool

        Raises
        ------
        MeshError
            For a name the mesh does not have; the message lists those it has.
        """
        mask = np.zeros(self.size, dtype=bool)
        for name in [patches] if isinstance(patches, str) else patches:
            if name not in self.patches:
                known = ", ".join(self.patches) or "none"
                raise MeshError(f"no patch {name!r}{did_you_mean(name, self.patches)} (patches: {known})")
            mask[self.patches[name]] = True
        return mask


@dataclass(frozen=True, eq=False)
class _Numbering:
    """Where the dofs of the edges, faces and cells of a mesh begin.

    Attributes
    ----------
    mesh
        Their mesh.
    block
        Nodes of the cells.
    graph
        Faces and edges of the mesh.
    edge_keys
        Keys of the edges, ascending.
    ranges
        First dof of each class of entities, and the number of dofs.
    """

    mesh: MeshData
    block: IntArray
    graph: Connectivity
    edge_keys: LongArray
    ranges: DofRanges

    def edges(self, pairs: npt.NDArray[np.integer]) -> LongArray:
        """Return the edge of each pair of nodes ``(m, 2)``."""
        return np.searchsorted(self.edge_keys, pair_keys(pairs, self.mesh.n_points)).astype(np.int64)


def lagrange_dofs(mesh: MeshData, order: int) -> Dofs:
    """Number the degrees of freedom of continuous Lagrange elements.

    With ``V`` points, ``E`` edges, ``F`` faces and ``C`` cells there are ``V + (p - 1) E + (p - 1)^2 F + (p - 1)^3 C``
    of them in hexahedra of order ``p``, ``V + (p - 1) E + (p - 1)^2 C`` in quads, ``V + (p - 1) E`` in simplices
    (of order 1 or 2).

    Parameters
    ----------
    mesh
        Triangles, quads, tetrahedra or hexahedra, of one kind. Of a mesh that is divided among ranks see
        `fluxloom.fe.cells.shared_dofs.shared_dofs`.
    order
        ``p``: 1 to 4, of simplices 1 or 2.

    Returns
    -------
    Dofs
        Equal places have equal numbers, however the cells that share them are turned.

    Raises
    ------
    MeshError
        For cells of several kinds or another kind, points that no cell uses, broken patches and cells, cells that are
        flat, concave, tangled or turned over, hanging nodes, and more than 2^31 - 1 dofs.
    SolverError
        For an order that `Lagrange` does not have.
    """
    numbering = _numbering(mesh, order)
    return Dofs(
        numbering.ranges.lagrange,
        _cells(numbering),
        _points(numbering),
        {name: _on_faces(numbering, faces) for name, faces in numbering.graph.patches.items()},
        Part.whole(numbering.ranges.size),
    )


def _numbering(mesh: MeshData, order: int) -> _Numbering:
    """Check the mesh and count."""
    lagrange = element_of(mesh.source.path, [name for name, count in mesh.cell_counts.items() if count], order)
    block, graph = mesh.cells[lagrange.kind.name], connectivity(mesh)
    unused = np.ones(mesh.n_points, dtype=bool)
    unused[block] = False
    if unused.any():
        raise MeshError(
            f"{mesh.source.path}: no cell uses point {int(np.argmax(unused))} ({int(unused.sum())} such points); "
            "remove them from the points and renumber the cells and patches"
        )
    require_sides(mesh)
    size = require_elements_sound(mesh, block, lagrange.kind.name)
    require_unfolded(mesh, graph.interior_cells, graph.alike, size)
    surface = Surface.of(mesh, graph, size)
    require_no_hanging(surface)
    require_no_overlaps(surface)
    tell_unnamed(surface)
    keys = pair_keys(graph.edges, mesh.n_points)
    ranges = DofRanges.of(lagrange, mesh.n_points, len(keys), graph.n_faces, len(block))
    if ranges.size > _MOST:
        raise MeshError(
            f"{mesh.source.path}: order {order} has {ranges.size} degrees of freedom, and their numbers have 32 bits "
            f"(at most {_MOST}); lower the order or divide the mesh among ranks"
        )
    return _Numbering(mesh, block, graph, keys, ranges)


def _cells(numbering: _Numbering) -> IntArray:
    """Return cell to dofs."""
    block, ranges = numbering.block, numbering.ranges
    cells = np.empty((len(block), ranges.lagrange.size), dtype=np.int32)
    faces = numbering.graph.cell_faces.indices.reshape(len(block), -1)
    cell_dofs(ranges, block, numbering.edges, faces, np.arange(len(block)), cells)
    return cells


def _points(numbering: _Numbering) -> FloatArray:
    """Return the places of all dofs; those of edges and faces do not depend on a cell, so are the same to the bit."""
    mesh, graph, ranges = numbering.mesh, numbering.graph, numbering.ranges
    lagrange = ranges.lagrange
    points = np.empty((ranges.size, mesh.dimension))
    points[: mesh.n_points] = mesh.points
    points[ranges.edges : ranges.faces] = edge_points(lagrange, mesh.points[graph.edges])
    if ranges.face_inner:
        nodes = np.concatenate([graph.interior_nodes.indices, graph.boundary_nodes.indices]).reshape(-1, 4)
        points[ranges.faces : ranges.cells] = face_points(lagrange, nodes, mesh.points[nodes])
    points[ranges.cells :] = cell_points(lagrange, mesh.points[numbering.block])
    return points


def _on_faces(numbering: _Numbering, faces: range) -> IntArray:
    """Return the dofs on a range of boundary faces, ascending."""
    graph, ranges = numbering.graph, numbering.ranges
    width = len(ranges.lagrange.kind.faces[0])
    nodes = graph.boundary_nodes.indices.reshape(-1, width)[faces.start : faces.stop]
    edges = np.unique(numbering.edges(sides_of(nodes)))
    numbers = graph.n_interior + np.arange(faces.start, faces.stop)
    parts = [np.unique(nodes), ranges.of_edges(edges), ranges.of_faces(numbers)]  # in ascending order of numbers
    return np.concatenate(parts).astype(np.int32)
