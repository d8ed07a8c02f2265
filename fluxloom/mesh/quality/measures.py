"""The quality of a mesh: how measures of its cells and faces are distributed, and where they are worst.

Measures, with area vectors ``S`` (lengths in two dimensions), unit normals ``n``, centroids ``c`` of the cells, the way
``d`` from the owner's to the neighbour's, and centres ``f`` of the faces:

- *volume* of a cell (area in two dimensions), signed, in the unit of the coordinates; the worst is the smallest.
- *aspect ratio* of a cell: largest over smallest eigenvalue of ``sum S S^T / |S|`` over its faces, that of its areas as
  seen along the principal axes. It is the ratio of the longest to the shortest side of a box.
- *non-orthogonality* of an interior face: the angle between ``n`` and ``d`` (Jasak, 1996, section 3.3.1.3).
- *skewness* of an interior face: from ``f`` to the point where the line of the centroids meets its plane, over ``|d|``
  (Jasak, 1996, section 3.6).
- *volume ratio* of an interior face: larger over smaller volume of its two cells.
- *warp* of a face with four nodes: angle between the triangles beside a diagonal, the larger of both diagonals.
- *closure* of a cell: length of the sum of its outward area vectors over the sum of their lengths.

Jasak, "Error analysis and estimation for the finite volume method with applications to fluid flows", thesis, 1996.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.data.mesh import FloatArray, MeshData, Ragged
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity
from fluxloom.mesh.geometry.metrics import Geometry, closure, geometry

__all__ = ["Distribution", "Quality", "closure_error", "non_orthogonality", "quality", "volume_ratio"]

_FLAT = 1e-15
"""A face is flat when its area is below this part of that of its cell: a few rounding errors."""

_CHUNK = 1 << 17
"""So many faces at a time, to bound the temporary memory."""


@dataclass(frozen=True)
class Distribution:
    """How one measure is distributed.

    Attributes
    ----------
    name, unit
        The measure and its unit.
    on
        ``"cell"`` or ``"face"``.
    count
        Of how many cells or faces.
    least, mean, most
        Smallest, mean and largest value.
    percentile
        The value that 99 of 100 do not exceed.
    worst
        Number of the worst cell or face; faces count interior ones first, then those of the boundary.
    cells
        The worst cell, or the cells of the worst face.
    place
        Where it is: the centroid.
    """

    name: str
    unit: str
    on: str
    count: int
    least: float
    mean: float
    percentile: float
    most: float
    worst: int
    cells: tuple[int, ...]
    place: tuple[float, ...]


@dataclass(frozen=True)
class Quality:
    """What `quality` found.

    Attributes
    ----------
    path
        The file.
    dimension, n_cells, n_faces
        Sizes; interior and boundary faces together.
    negative_volumes
        Number of cells whose volume is not positive.
    flat_faces
        Number of faces without an area, as where an edge of a structured grid is collapsed to a point.
    measures
        One distribution each; a measure that a mesh has no cells or faces for is left out.
    """

    path: str
    dimension: int
    n_cells: int
    n_faces: int
    negative_volumes: int
    flat_faces: int
    measures: tuple[Distribution, ...]

    def __getitem__(self, name: str) -> Distribution:
        """Return the distribution of a measure.

        Raises
        ------
        MeshError
            When there is none; the message lists those there are.
        """
        found = {item.name: item for item in self.measures}
        if name not in found:
            raise MeshError(f"{self.path}: no measure {name!r}{did_you_mean(name, found)} (known: {', '.join(found)})")
        return found[name]

    @property
    def heads(self) -> tuple[str, ...]:
        """Heads of the columns of `rows`."""
        return ("measure", "least", "mean", "99 %", "most", "worst", "at")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the measures as rows of a table."""
        return [
            (
                f"{item.name} ({item.unit})" if item.unit else item.name,
                *(f"{value:.4g}" for value in (item.least, item.mean, item.percentile, item.most)),
                f"{item.on} {item.worst}",
                "(" + ", ".join(f"{value:.5g}" for value in item.place) + ")",
            )
            for item in self.measures
        ]

    def counts(self) -> list[tuple[str, str]]:
        """Return what is counted, as names and texts."""
        return [
            ("negative volumes", f"{self.negative_volumes} of {self.n_cells} cells"),
            ("flat faces", f"{self.flat_faces} of {self.n_faces}"),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON, the measures by name."""
        found = asdict(self)
        found["measures"] = {item.pop("name"): item for item in found["measures"]}
        return found

    def __str__(self) -> str:
        table = [self.heads, *self.rows()]
        widths = [max(len(row[k]) for row in table) for k in range(len(self.heads))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        return "\n".join([*lines, *(f"{name}: {text}" for name, text in self.counts())])


def quality(mesh: MeshData, links: Connectivity | None = None, terms: Geometry | None = None) -> Quality:
    """Measure the quality of a mesh.

    Parameters
    ----------
    mesh
        The mesh; its cells may be inverted.
    links, terms
        Its connectivity and geometry, when they have been found already.

    Raises
    ------
    MeshError
        When the mesh has no cells, or no connectivity (see `fluxloom.mesh.Connectivity`).
    """
    links = connectivity(mesh) if links is None else links
    terms = geometry(mesh, links) if terms is None else terms
    owners = [links.interior_cells, np.stack([links.boundary_cells] * 2, axis=1)]
    cells, centres = np.concatenate(owners), np.concatenate([terms.face_centres, terms.boundary_centres])
    inside = np.arange(links.n_interior)

    def on_cells(name: str, unit: str, values: FloatArray, *, smallest: bool = False) -> Distribution:
        worst = int(values.argmin() if smallest else values.argmax())
        return _distribution(name, unit, "cell", values, worst, (worst,), terms.cell_centroids[worst])

    def on_faces(name: str, unit: str, values: FloatArray, faces: npt.NDArray[np.integer]) -> list[Distribution]:
        if not values.size:
            return []
        worst = int(faces[values.argmax()])
        beside = tuple(dict.fromkeys(cells[worst].tolist()))
        return [_distribution(name, unit, "face", values, worst, beside, centres[worst])]

    quads, warps = _warps(mesh, links)
    measures = [
        on_cells("volume", "", terms.cell_volumes, smallest=True),
        on_cells("aspect ratio", "", _aspect_ratio(mesh, links, terms)),
        *on_faces("non-orthogonality", "degrees", non_orthogonality(links, terms), inside),
        *on_faces("skewness", "", _skewness(links, terms), inside),
        *on_faces("volume ratio", "", volume_ratio(links, terms), inside),
        *on_faces("warp", "degrees", warps, quads),
        on_cells("closure", "", closure_error(mesh, links, terms)),
    ]
    negative = int(np.count_nonzero(~(terms.cell_volumes > 0.0)))
    flat = _flat_faces(links, terms)
    return Quality(mesh.source.path, mesh.dimension, links.n_cells, links.n_faces, negative, flat, tuple(measures))


def non_orthogonality(links: Connectivity, terms: Geometry) -> FloatArray:
    """Return the angle in degrees between normal and line of centroids, ``(n_interior,)``."""
    way = _ways(links, terms)
    dot = np.einsum("ij,ij->i", terms.face_normals, way)
    lengths = _length(terms.face_normals) * _length(way)
    return np.degrees(np.arccos(np.clip(dot / np.where(lengths > 0.0, lengths, 1.0), -1.0, 1.0)))


def volume_ratio(links: Connectivity, terms: Geometry) -> FloatArray:
    """Return the larger over the smaller volume of the cells of each interior face, ``(n_interior,)``.

    Volumes count without their sign; the ratio is infinite beside a flat cell.
    """
    pairs = np.abs(terms.cell_volumes)[links.interior_cells]
    with np.errstate(divide="ignore", invalid="ignore"):
        return pairs.max(axis=1) / pairs.min(axis=1)


def closure_error(mesh: MeshData, links: Connectivity, terms: Geometry) -> FloatArray:
    """Return the length of the sum of each cell's area vectors over the sum of their lengths, ``(n_cells,)``."""
    inner, outer = _length(terms.face_normals), _length(terms.boundary_normals)
    area = _on_cells(links, inner, outer)
    return _length(closure(mesh, links, terms)) / np.where(area > 0.0, area, 1.0)


def _flat_faces(links: Connectivity, terms: Geometry) -> int:
    """Return how many faces have no area but round-off, measured by that of all faces of their cell."""
    inner, outer = _length(terms.face_normals), _length(terms.boundary_normals)
    area = _on_cells(links, inner, outer)
    flat = np.count_nonzero(inner <= _FLAT * area[links.interior_cells[:, 0]])
    return int(flat + np.count_nonzero(outer <= _FLAT * area[links.boundary_cells]))


def _skewness(links: Connectivity, terms: Geometry) -> FloatArray:
    """Return the offset of the line of centroids from the centre of each interior face over its length."""
    way = _ways(links, terms)
    to_face = terms.face_centres - terms.cell_centroids[links.interior_cells[:, 0]]
    along = np.einsum("ij,ij->i", way, terms.face_normals)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.einsum("ij,ij->i", to_face, terms.face_normals) / along
        offset = _length(share[:, None] * way - to_face) / _length(way)
    return np.where(np.isfinite(offset), offset, np.inf)


def _aspect_ratio(mesh: MeshData, links: Connectivity, terms: Geometry) -> FloatArray:
    """Return the ratio of the eigenvalues of ``sum S S^T / |S|`` over the faces of each cell."""
    dimension = mesh.dimension
    tensor = np.empty((links.n_cells, dimension, dimension))
    normals = (terms.face_normals, terms.boundary_normals)
    sizes = [np.where(length > 0.0, length, 1.0) for length in map(_length, normals)]
    for a in range(dimension):
        for b in range(a + 1):
            inner, outer = (n[:, a] * n[:, b] / size for n, size in zip(normals, sizes, strict=True))
            tensor[:, a, b] = tensor[:, b, a] = _on_cells(links, inner, outer)
    values = np.linalg.eigvalsh(tensor)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = values[:, -1] / values[:, 0]
    return np.where(ratio >= 1.0, ratio, np.inf)  # round-off may leave a flat cell a negative eigenvalue


def _warps(mesh: MeshData, links: Connectivity) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the faces with four nodes and their warp in degrees."""
    found = [_quads(faces) for faces in (links.interior_nodes, links.boundary_nodes)]
    numbers = np.concatenate([found[0][0], links.n_interior + found[1][0]])
    nodes = np.concatenate([found[0][1], found[1][1]])
    warp = np.zeros(len(nodes))
    for start in range(0, len(nodes), _CHUNK):
        part = slice(start, start + _CHUNK)
        corners = mesh.points[nodes[part]]
        for k in range(2):
            a, b, c, d = (corners[:, (k + m) % 4] for m in range(4))
            first, second = np.cross(b - a, c - a), np.cross(c - a, d - a)
            sine, cosine = _length(np.cross(first, second)), np.einsum("ij,ij->i", first, second)
            np.maximum(warp[part], np.degrees(np.arctan2(sine, cosine)), out=warp[part])
    return numbers, warp


def _quads(faces: Ragged) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return which faces have four nodes, and these."""
    rows = np.flatnonzero(faces.counts == 4)
    return rows, faces.indices[faces.offsets[rows][:, None] + np.arange(4)]


def _ways(links: Connectivity, terms: Geometry) -> FloatArray:
    return terms.cell_centroids[links.interior_cells[:, 1]] - terms.cell_centroids[links.interior_cells[:, 0]]


def _on_cells(links: Connectivity, inner: FloatArray, outer: FloatArray) -> FloatArray:
    """Return the sum over the faces of each cell of values of interior and of boundary faces."""
    total = np.zeros(links.n_cells)
    for cells, values in ((links.interior_cells.T, inner), (links.boundary_cells[None], outer)):
        for side in cells:
            total += np.bincount(side, values, minlength=links.n_cells)
    return total


def _length(vectors: FloatArray) -> FloatArray:
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors))


def _distribution(
    name: str, unit: str, on: str, values: FloatArray, worst: int, cells: tuple[int, ...], place: FloatArray
) -> Distribution:
    rank = min(int(np.ceil(0.99 * values.size)) - 1, values.size - 1)
    return Distribution(
        name, unit, on, values.size, float(values.min()), float(values.mean()), float(np.partition(values, rank)[rank]),
        float(values.max()), worst, cells, tuple(place.tolist()),
    )  # fmt: skip
