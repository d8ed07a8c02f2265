"""Cells and boundary elements, and the faces between two of them: what finite-volume operators are assembled from.

A boundary face is an element of its own behind the cells, without volume, at the centre of the face: every face leads
from one element to another, and a boundary value is a value like any other. Faces of two periodic patches become
one interior face.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.parts import Part
from fluxloom.mesh.check import require_listed
from fluxloom.mesh.connectivity import Connectivity, connectivity
from fluxloom.mesh.geometry import Geometry, face_moments, geometry
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.sound import require_positive, require_sound
from fluxloom.mesh.warped_faces import TENSOR, face_warps

__all__ = [
    "ControlVolumes",
    "SharedVolumes",
    "Turned",
    "Wrapped",
    "check_names",
    "check_spacing",
    "control_volumes",
    "match_faces",
    "warps_of",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_AWAY = 0.5
"""How far a face may leave its plane, as a part of the distance of its elements, and be all that it is."""

_FIT = 1e-6
"""How far a periodic face may be from its partner, as a part of the distance between the patches."""


@dataclass(frozen=True, eq=False)
class SharedVolumes:
    """Which control volumes of several ranks this one has; see `fluxloom.fv.shared_volumes`.

    Attributes
    ----------
    comm
        The ranks.
    cells, elements, faces
        This rank's parts. Cells have the numbers of `ControlVolumes`.
    element_order, face_order
        Number in `ControlVolumes` of each element and face that is stored here, in the order of the part. Elements of
        other ranks that only slopes look at have numbers behind those of `ControlVolumes`, and no geometry.
    """

    comm: Comm
    cells: Part
    elements: Part
    faces: Part
    element_order: Index
    face_order: Index


@dataclass(frozen=True, eq=False)
class Wrapped:
    """Faces across which the second element is the image of a periodic cell.

    Attributes
    ----------
    faces : (n,)
        Their numbers.
    shift : (n, d)
        From the cell to its image.
    """

    faces: Index
    shift: Array

    @classmethod
    def of(cls, centres: Array, faces: Index, ways: Array) -> Wrapped:
        """Return those where the ways ``(faces, d)`` to the second element do not lead to its centre."""
        shift = ways - (centres[faces[:, 1]] - centres[faces[:, 0]])
        found = np.flatnonzero(np.abs(shift).max(axis=1, initial=0.0) > 0.5 * np.abs(ways).max(axis=1, initial=0.0))
        return cls(found, shift[found])


@dataclass(frozen=True, eq=False)
class Turned:
    """Boundary elements that are the images of cells beyond the sides of a sector; see `fluxloom.fv.sectors`.

    Attributes
    ----------
    elements, partners : (n,)
        Their numbers, and the cells whose images they are.
    which : (n,)
        Number of the rotation.
    rotations : (m, d, d)
        What turns the vectors of a partner into those of its image.
    """

    elements: Index
    partners: Index
    which: Index
    rotations: Array


@dataclass(frozen=True, eq=False)
class ControlVolumes:
    """The geometry of collocated finite volumes in ``d`` dimensions.

    Attributes
    ----------
    volumes : (cells,)
        Of the cells.
    centres : (elements, d)
        Centroids of the cells, then centres of the boundary faces.
    faces : (faces, 2)
        First and second element of each face: two cells, or a cell and a boundary element. The faces of boundary
        elements are the last ones, in the order of the elements.
    areas : (faces, d)
        Area vectors, from the first element to the second.
    spacing : (faces,)
        ``|n . v|``: distance of the two elements along the normal ``n``; ``v`` leads to the image of a periodic cell.
    arms : (faces, d)
        From the centroid of the first element to the centroid of the face.
    patches
        Name to the boundary elements of a patch; periodic patches have none.
    wrapped
        Faces between periodic cells.
    shared
        On several ranks, what this one has: its own cells, then those across a face of them or with an image there, in
        ascending order of their global numbers each, boundary elements and faces of its cells. None: everything.
    turned
        Boundary elements that are images of cells, at the centroids of these, in no patch; None: there are none.
    moments
        Returns the second moments of the faces, ``(faces, d, d)``, see `fluxloom.mesh.geometry.face_moments`; None:
        they are not known.
    warps
        Returns which faces are warped, and what their triangles have beside the mean normal, ``(m, 28)``, see
        `fluxloom.mesh.warped_faces`; None: no face is, or it is not known.
    """

    volumes: Array
    centres: Array
    faces: Index
    areas: Array
    spacing: Array
    arms: Array
    patches: Mapping[str, range]
    wrapped: Wrapped
    shared: SharedVolumes | None = None
    turned: Turned | None = None
    moments: Callable[[], Array] | None = None
    warps: Callable[[], tuple[Index, Array]] | None = None

    @property
    def outer(self) -> Index:
        """Numbers of the boundary elements that are no images of cells."""
        found = np.arange(self.cells, self.elements)
        return found if self.turned is None else np.setdiff1d(found, self.turned.elements, assume_unique=True)

    @property
    def ways(self) -> Array:
        """From the first to the second element of each face, or its image, ``(faces, d)``."""
        found = self.centres[self.faces[:, 1]] - self.centres[self.faces[:, 0]]
        found[self.wrapped.faces] += self.wrapped.shift
        return found

    @property
    def cells(self) -> int:
        """Number of cells, on several ranks those of the halo too."""
        return self.volumes.size

    @property
    def owned(self) -> int:
        """Number of cells that this rank owns: the first ones."""
        return self.cells if self.shared is None else self.shared.cells.owned

    @property
    def elements(self) -> int:
        """Number of cells and boundary elements."""
        return len(self.centres)

    @property
    def interior(self) -> int:
        """Number of faces between two cells."""
        return len(self.faces) - (self.elements - self.cells)

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.centres.shape[1]

    @cached_property
    def area(self) -> Array:
        """Area of each face, ``(faces,)``; a length in two dimensions."""
        return np.sqrt(np.einsum("ij,ij->i", self.areas, self.areas))

    @property
    def normals(self) -> Array:
        """Unit normals, ``(faces, d)``."""
        return self.areas / self.area[:, None]


def warps_of(volumes: ControlVolumes) -> tuple[Index, Array]:
    """Return which faces are warped, and what their triangles have, ``(m, 27)``, less of it where cells are thin.

    Where a face leaves its plane by half the distance of its elements along the normal, or more, what is linear in them
    says nothing of its corners, as in layers of thin cells on a twisted wall: there it fades, to nothing at the whole.
    """
    if volumes.warps is None:
        return np.empty(0, np.int64), np.empty((0, TENSOR))
    rows, found = volumes.warps()
    spacing = volumes.spacing[rows] * np.where(rows < volumes.interior, 1.0, 2.0)
    share = np.clip(2.0 - found[:, TENSOR] / (_AWAY * spacing), 0.0, 1.0)
    return rows, found[:, :TENSOR] * share[:, None]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Periodic faces: boundary faces on one side, their partners, and the shift from one side to the other."""

    first: Index
    second: Index
    shift: Array


def control_volumes(
    mesh: MeshData, periodic: Sequence[tuple[str, str]] = (), links: Connectivity | None = None
) -> ControlVolumes:
    """Return the control volumes of a mesh.

    Parameters
    ----------
    mesh
        Any mesh; warped faces have the mean normal of their triangles here, and beside it what `warps` tells.
    periodic
        Pairs of patches of which one is the other, moved: translations.
    links
        The connectivity of the mesh, where it is known already.

    Raises
    ------
    MeshError
        If a patch does not exist or is used twice, the faces of a pair do not lie behind each other, a boundary face is
        in no patch, or the mesh is not sound: see `fluxloom.mesh.sound`.
    """
    links = connectivity(mesh) if links is None else links
    terms = geometry(mesh, links)
    require_sound(mesh, links, terms.cell_volumes, terms.cell_parts)
    require_positive(mesh, terms.cell_volumes)
    require_listed(mesh, links)
    check_names(mesh.source.path, links.patches, periodic)
    pairs = [
        match_faces(mesh.source.path, pair, links.patches, terms.boundary_centres, terms.boundary_normals)
        for pair in periodic
    ]
    volumes, cells = terms.cell_volumes, links.n_cells
    kept = np.ones(links.n_boundary, dtype=bool)
    for pair in pairs:
        kept[pair.first] = kept[pair.second] = False
    faces = _elements_of_faces(links, pairs, np.flatnonzero(kept))
    areas, centres, arms = _joined(terms, pairs, np.flatnonzero(kept))
    del terms
    ways = np.empty_like(arms)
    for axis, centre in enumerate(centres.T):
        place = centre[faces[:, 0]]
        arms[:, axis] -= place
        np.subtract(centre[faces[:, 1]], place, out=ways[:, axis])
    start = links.n_interior
    for pair in pairs:
        ways[start : start + pair.first.size] -= pair.shift
        start += pair.first.size
    spacing = np.abs(np.einsum("ij,ij->i", areas, ways)) / np.linalg.norm(areas, axis=1)
    check_spacing(mesh.source.path, spacing, faces)
    numbers = np.cumsum(kept) - 1
    used = {name for pair in periodic for name in pair}
    patches = {
        name: range(cells + int(numbers[p.start]), cells + int(numbers[p.stop - 1]) + 1) if len(p) else range(0)
        for name, p in links.patches.items()
        if name not in used
    }
    wrapped = Wrapped.of(centres, faces, ways) if pairs else Wrapped(np.empty(0, np.int64), np.empty((0, len(ways.T))))
    first = [pair.first for pair in pairs]
    return ControlVolumes(volumes, centres, faces, areas, spacing, arms, patches, wrapped,
                          moments=lambda: _moments(mesh.points, links, [*first, np.flatnonzero(kept)]),
                          warps=lambda: _warps(mesh.points, links, [*first, np.flatnonzero(kept)]))  # fmt: skip


def _moments(points: Array, links: Connectivity, outer: Sequence[Index]) -> Array:
    """Return the second moments of faces between cells, and of some boundary faces."""
    edge = face_moments(points, links.boundary_nodes)
    return np.concatenate([face_moments(points, links.interior_nodes), *(edge[chosen] for chosen in outer)])


def _warps(points: Array, links: Connectivity, outer: Sequence[Index]) -> tuple[Index, Array]:
    """Return which of these faces are warped, and their tensors."""
    inner, tensors = face_warps(points, links.interior_nodes)
    edge, others = face_warps(points, links.boundary_nodes)
    place = np.full(links.n_boundary, -1, dtype=np.int64)
    chosen = np.concatenate(outer)
    place[chosen] = links.n_interior + np.arange(chosen.size)
    used = place[edge] >= 0
    return np.concatenate([inner, place[edge][used]]).astype(np.int64), np.concatenate([tensors, others[used]])


def _elements_of_faces(links: Connectivity, pairs: Sequence[Pairs], kept: Index) -> Index:
    """Return the two elements of each face: of those between cells, of periodic ones, and of the boundary's kept."""
    owner = links.boundary_cells
    joined = [np.stack([owner[pair.first], owner[pair.second]], axis=1) for pair in pairs]
    outer = np.stack([owner[kept], links.n_cells + np.arange(kept.size)], axis=1)
    return np.concatenate([links.interior_cells, *joined, outer], dtype=np.int64)


def _joined(terms: Geometry, pairs: Sequence[Pairs], kept: Index) -> tuple[Array, Array, Array]:
    """Return the area vectors of these faces, the centres of all elements, and the centres of the faces."""
    normals, middles = terms.boundary_normals, terms.boundary_centres
    areas = np.concatenate([terms.face_normals, *(normals[pair.first] for pair in pairs), normals[kept]])
    centres = np.concatenate([terms.cell_centroids, middles[kept]])
    places = np.concatenate([terms.face_centres, *(middles[pair.first] for pair in pairs), middles[kept]])
    return areas, centres, places


def check_names(path: str, patches: Collection[str], periodic: Sequence[tuple[str, str]]) -> None:
    """Raise `MeshError` unless pairs name different patches that exist."""
    seen: set[str] = set()
    for pair in periodic:
        if isinstance(pair, str) or len(pair) != 2:
            raise MeshError(f"periodic: pairs of patches are wanted, not {pair!r}")
        for name in pair:
            if name not in patches:
                known = ", ".join(patches) or "none"
                hint = did_you_mean(name, patches)
                raise MeshError(f"{path}: periodic: no patch {name!r}{hint} (patches: {known})")
            if name in seen:
                raise MeshError(f"{path}: periodic: patch {name!r} is named twice")
            seen.add(name)


def match_faces(path: str, names: tuple[str, str], patches: Mapping[str, range], centres: Array, areas: Array) -> Pairs:
    """Return the faces of the first patch and their partners in the second.

    Parameters
    ----------
    path, names
        Of the mesh and of the patches, for messages.
    patches
        Name to its faces.
    centres, areas
        Of all faces, ``(n, d)``.
    """
    from scipy.spatial import KDTree

    first, second = (np.arange(patches[name].start, patches[name].stop) for name in names)
    what = f"{path}: periodic patches {names[0]!r} and {names[1]!r}"
    if first.size != second.size:
        raise MeshError(f"{what} have {first.size} and {second.size} faces; as many are wanted")
    weight = np.linalg.norm(areas, axis=1)
    middle = [np.average(centres[side], axis=0, weights=weight[side]) for side in (first, second)]
    shift = middle[1] - middle[0]
    reach = float(np.linalg.norm(shift))
    distance, partner = KDTree(centres[second]).query(centres[first] + shift)
    if distance.max() > _FIT * reach or np.unique(partner).size != partner.size:
        raise MeshError(
            f"{what}: moved by {np.round(shift, 6).tolist()} a face is {distance.max():.3g} away from its partner; "
            "the faces on both sides have to be alike"
        )
    second = second[partner]
    opposite = np.linalg.norm(areas[first] + areas[second], axis=1)
    if (opposite > 1e3 * _FIT * weight[first]).any():
        raise MeshError(f"{what}: faces that lie behind each other have different areas or directions")
    return Pairs(first, second, shift)


def check_spacing(path: str, spacing: Array, faces: Index) -> None:
    """Raise `MeshError` unless the elements of each face have a distance."""
    if (flat := np.flatnonzero(~(spacing > 0))).size:
        raise MeshError(f"{path}: the elements {faces[flat[0]].tolist()} of a face lie beside each other")
