"""Degrees of freedom of continuous Lagrange elements: one number a point, shared by all cells that have it.

`fluxloom.fe.cells.cell_dofs` says how the cells round an edge or a face agree on its points,
`fluxloom.fe.cells.dof_numbers` where the numbers of edges and faces come from, and which rank owns what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.rows import Places, compress
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.declare.parts import Part
from fluxloom.fe.cells.cell_dofs import cell_dofs, cell_points, edge_points, element_of, face_points, sides_of
from fluxloom.fe.cells.dof_numbers import DofNumbers, dof_part
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource
from fluxloom.mesh.geometry.jacobians import require_elements_sound
from fluxloom.mesh.ranks.part import MeshPart, WholePart

__all__ = ["Dofs", "lagrange_dofs", "shared_dofs"]

Long = npt.NDArray[np.int64]

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


def lagrange_dofs(mesh: MeshData, order: int) -> Dofs:
    """Number the degrees of freedom of continuous Lagrange elements.

    With ``V`` points, ``E`` edges, ``F`` faces and ``C`` cells there are ``V + (p - 1) E + (p - 1)^2 F + (p - 1)^3 C``
    of them in hexahedra of order ``p``, ``V + (p - 1) E + (p - 1)^2 C`` in quads, ``V + (p - 1) E`` in simplices
    (of order 1 or 2).

    Parameters
    ----------
    mesh
        Triangles, quads, tetrahedra or hexahedra, of one kind. Of a mesh that is divided among ranks see
        `shared_dofs`.
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
    return shared_dofs(WholePart(mesh), order)


def shared_dofs(part: MeshPart, order: int) -> Dofs:
    """Number the degrees of freedom of what a rank has of a mesh. Collective.

    Parameters
    ----------
    part
        All of a mesh; of several ranks with the maps ``cell_nodes`` and ``boundary_nodes``, of hexahedra of order 2
        and more ``face_nodes`` too.
    order
        See `lagrange_dofs`.

    Returns
    -------
    Dofs
        With this rank's ``part``, whose numbers are those of `lagrange_dofs`.

    Raises
    ------
    MeshError
        On every rank: see `lagrange_dofs`; and for a map that is missing.
    SolverError
        For an order that `fluxloom.fe.cells.elements.Lagrange` does not have.
    """
    lagrange = element_of(part.path, [name for name, count in part.blocks.items() if count], order)
    raise_on_all_ranks(part.comm, lambda: _check_points(part, lagrange))
    raise_on_all_ranks(part.comm, lambda: _check_elements(part, lagrange))
    numbers = DofNumbers.of(part, lagrange)
    whole = part.comm.size == 1
    if whole and numbers.ranges.size > _MOST:
        raise MeshError(
            f"{part.path}: order {order} has {numbers.ranges.size} degrees of freedom, and their numbers have 32 bits "
            f"(at most {_MOST}); lower the order or divide the mesh among ranks"
        )
    cells: npt.NDArray[Any] = np.empty((len(numbers.local), lagrange.size), dtype=np.int32 if whole else np.int64)
    cell_dofs(numbers.ranges, numbers.block, numbers.edges, numbers.faces, numbers.cells, cells)
    found, local = (Part.whole(numbers.ranges.size), cells) if whole else dof_part(numbers, cells)
    places, patches = Places(found.numbers), {}
    for name in part.patches:
        on = places.of(_on_patch(numbers, name))
        patches[name] = np.sort(on[on < found.owned]).astype(np.int32)
    return Dofs(lagrange, local, _points(numbers, found.numbers[: found.owned]), patches, found)


def _check_elements(part: MeshPart, lagrange: Lagrange) -> None:
    """Refuse cells that are flat, or whose determinant changes its sign."""
    cells, kind = part.part("cells"), lagrange.kind.name
    block = part.table("cell_nodes")[: cells.owned, : lagrange.corners]
    numbers = cells.numbers[: cells.owned].astype(np.int32)
    mesh = MeshData(part.points, {kind: block}, {}, MeshSource(part.path, cell_numbers={kind: numbers}))
    require_elements_sound(part.data if isinstance(part, WholePart) else mesh, block, kind)


def _check_points(part: MeshPart, lagrange: Lagrange) -> None:
    """Refuse points that no cell uses."""
    nodes = part.part("nodes")
    unused = np.ones(nodes.stored, dtype=bool)
    unused[part.table("cell_nodes")[:, : lagrange.corners]] = False
    lonely = nodes.numbers[: nodes.owned][unused[: nodes.owned]]
    if lonely.size:
        on_rank = f" of rank {part.comm.rank}" * (part.comm.size > 1)
        raise MeshError(
            f"{part.path}: no cell uses point {int(lonely.min())} ({lonely.size} such points{on_rank}); remove them "
            "from the points and renumber the cells and patches"
        )


# ------------------------------------------------------------------------------------------ places, patches
def _points(numbers: DofNumbers, wanted: Long) -> FloatArray:
    """Return the places of some dofs of this rank's cells, see `Dofs`; those of edges and faces depend on no cell."""
    part, ranges, lagrange = numbers.part, numbers.ranges, numbers.ranges.lagrange
    nodes = part.part("nodes").numbers
    known, points = [nodes], [part.points]
    if ranges.inner:
        known.append(ranges.of_edges(numbers.edge_numbers))
        points.append(edge_points(lagrange, part.points[Places(nodes).of(numbers.edge_nodes)]))
    if ranges.face_inner:
        assert numbers.faces is not None
        faces, place = compress(numbers.faces)
        one = np.empty(faces.size, dtype=np.int64)
        one[place.reshape(-1)] = np.arange(place.size)
        corners = numbers.local[:, np.array(lagrange.kind.faces)].reshape(-1, 4)[one]
        known.append(ranges.of_faces(faces))
        points.append(face_points(lagrange, nodes[corners], part.points[corners]))
    known.append(ranges.of_cells(numbers.cells))
    points.append(cell_points(lagrange, part.points[numbers.local]))
    return np.concatenate(points)[Places(np.concatenate(known)).of(wanted)]


def _on_patch(numbers: DofNumbers, name: str) -> Long:
    """Return the dofs on those faces of a patch that this rank has: all that touch a dof of its own.

    Numbers of the whole mesh, ascending.
    """
    part, ranges = numbers.part, numbers.ranges
    span, table = part.patches[name], part.table("boundary_nodes")
    faces = part.part("boundary").numbers[: len(table)]
    chosen = (faces >= span.start) & (faces < span.stop)
    nodes = part.part("nodes").numbers[table[chosen]][:, : len(ranges.lagrange.kind.faces[0])]
    found = [np.unique(nodes)]
    if ranges.inner:
        found.append(ranges.of_edges(np.unique(numbers.edges(sides_of(nodes)))))
    if ranges.face_inner:
        found.append(ranges.of_faces(part.part("faces").total + faces[chosen]))
    return np.concatenate(found)
