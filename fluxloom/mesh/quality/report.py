"""The description of a sound mesh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import Connectivity
from fluxloom.mesh.geometry.jacobians import concave_cells
from fluxloom.mesh.geometry.metrics import Geometry
from fluxloom.mesh.quality.measures import closure_error, non_orthogonality, volume_ratio
from fluxloom.mesh.quality.sound import hidden_cells

__all__ = ["MeshReport", "make_report"]


@dataclass(frozen=True)
class MeshReport:
    """What `fluxloom.mesh.quality.check` found.

    Attributes
    ----------
    path
        The file.
    dimension, n_points, n_cells, n_interior_faces, n_boundary_faces
        Sizes.
    elements
        Element type to number of cells.
    patches
        Patch to number of faces.
    lower, upper
        Corners of the bounding box.
    volume_min, volume_max, volume_total
        Of the cells (areas in two dimensions).
    edge_ratio_max
        Longest over shortest edge of a cell, the largest of all cells.
    non_orthogonality_max, non_orthogonality_mean
        Angle in degrees between an interior face's normal and the line between the cells' centroids.
    volume_ratio_max
        Of two cells that share a face, the larger volume over the smaller.
    closure_max
        Largest sum of a cell's outward area vectors over the sum of their lengths; round-off in a sound mesh.
    concave, concave_first
        Number of cells that are concave, which finite volumes take and finite elements refuse, and the first one; -1:
        there is none.
    """

    path: str
    dimension: int
    n_points: int
    n_cells: int
    n_interior_faces: int
    n_boundary_faces: int
    elements: Mapping[str, int]
    patches: Mapping[str, int]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    volume_min: float
    volume_max: float
    volume_total: float
    edge_ratio_max: float
    non_orthogonality_max: float
    non_orthogonality_mean: float
    volume_ratio_max: float
    closure_max: float
    concave: int
    concave_first: int

    def __str__(self) -> str:
        word = "area" if self.dimension == 2 else "volume"
        kinds = ", ".join(f"{count} {name}" for name, count in self.elements.items())
        names = ", ".join(f"{name} {count}" for name, count in self.patches.items()) or "none"
        box = " x ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(self.lower, self.upper, strict=True))
        angles = f"{self.non_orthogonality_max:.2f} (mean {self.non_orthogonality_mean:.2f}) degrees"
        rows = (
            ("file", self.path),
            ("points", str(self.n_points)),
            ("cells", f"{self.n_cells} ({kinds})"),
            ("faces", f"{self.n_interior_faces} interior, {self.n_boundary_faces} boundary"),
            ("patches", names),
            ("bounding box", box),
            (f"cell {word}", f"{self.volume_min:.6g} to {self.volume_max:.6g}, total {self.volume_total:.10g}"),
            ("edge ratio", f"at most {self.edge_ratio_max:.4g}"),
            ("non-orthogonality", f"at most {angles}"),
            (f"{word} ratio", f"at most {self.volume_ratio_max:.4g}"),
            ("closure", f"{self.closure_max:.2e}"),
        )
        if self.concave:
            rows += (("concave cells", f"{self.concave}, the first is cell {self.concave_first}"),)
        return "\n".join(f"{name:<18} {text}" for name, text in rows)


def make_report(mesh: MeshData, links: Connectivity, terms: Geometry) -> MeshReport:
    """Return the report of a mesh that has passed the checks."""
    angle = non_orthogonality(links, terms)
    concave = concave_cells(mesh, hidden_cells(mesh.dimension, terms.cell_volumes, terms.cell_parts))
    return MeshReport(
        path=mesh.source.path,
        dimension=mesh.dimension,
        n_points=mesh.n_points,
        n_cells=mesh.n_cells,
        n_interior_faces=links.n_interior,
        n_boundary_faces=links.n_boundary,
        elements=mesh.cell_counts,
        patches={name: len(faces) for name, faces in mesh.patches.items()},
        lower=tuple(mesh.points.min(axis=0).tolist()),
        upper=tuple(mesh.points.max(axis=0).tolist()),
        volume_min=float(terms.cell_volumes.min()),
        volume_max=float(terms.cell_volumes.max()),
        volume_total=float(terms.cell_volumes.sum()),
        edge_ratio_max=max(_edge_ratios(mesh)),
        non_orthogonality_max=float(angle.max(initial=0.0)),
        non_orthogonality_mean=float(angle.mean()) if len(angle) else 0.0,
        volume_ratio_max=float(volume_ratio(links, terms).max(initial=1.0)),
        closure_max=float(closure_error(mesh, links, terms).max()),
        concave=len(concave),
        concave_first=int(concave[0]) if len(concave) else -1,
    )


def _edge_ratios(mesh: MeshData) -> Iterator[float]:
    """Yield the largest ratio of each type of cells."""
    for name, block in mesh.cells.items():
        if len(block):
            yield _edge_ratio(mesh, name)
    if mesh.polyhedra is not None:
        owner, start, end = mesh.polyhedra.sides()
        length, cuts = np.linalg.norm(mesh.points[start] - mesh.points[end], axis=1), np.flatnonzero(np.diff(owner)) + 1
        cuts = np.concatenate([[0], cuts])
        with np.errstate(divide="ignore"):  # nodes of polyhedra may be in one place, if their sides have areas
            yield float((np.maximum.reduceat(length, cuts) / np.minimum.reduceat(length, cuts)).max())


def _edge_ratio(mesh: MeshData, name: str) -> float:
    block = mesh.cells[name]
    longest = np.zeros(len(block))
    shortest = np.full(len(block), np.inf)
    for a, b in element(name).edges:
        length = np.linalg.norm(mesh.points[block[:, a]] - mesh.points[block[:, b]], axis=1)
        np.maximum(longest, length, out=longest)
        np.minimum(shortest, length, out=shortest)
    return float((longest / shortest).max())
