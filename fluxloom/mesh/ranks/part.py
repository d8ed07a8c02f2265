"""What a rank has of a mesh; on one rank all of it, in the numbers of the mesh, without a halo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.parts import Part
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, Ragged
from fluxloom.mesh.data.once import Once
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity
from fluxloom.mesh.geometry.metrics import cell_measures, face_geometry
from fluxloom.mesh.quality.check import require_listed
from fluxloom.mesh.quality.sound import require_positive, require_sound
from fluxloom.mesh.quality.surface import tell_unnamed

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.decompose_report import PartitionReport

__all__ = ["MAPS", "MeshPart", "WholePart"]

MAPS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "cell_nodes": ("cells", "nodes"),
        "face_cells": ("faces", "cells"),
        "face_nodes": ("faces", "nodes"),
        "boundary_cell": ("boundary", "cells"),
        "boundary_nodes": ("boundary", "nodes"),
        "edge_nodes": ("edges", "nodes"),
    }
)
"""The maps of a divided mesh: name to source and target."""


class MeshPart(ABC):
    """One rank's part of a mesh; on one rank it is all of it (`fluxloom.mesh.ranks.part`), and has no halo.

    Attributes
    ----------
    comm
        The ranks.
    points : (stored nodes, dimension) float64
        Coordinates, those of the halo too.
    blocks
        Element type to its number of cells of all ranks; cells are numbered block after block.
    path
        Where the mesh came from.
    """

    comm: Comm
    points: FloatArray
    blocks: Mapping[str, int]
    path: str

    @property
    @abstractmethod
    def patches(self) -> Mapping[str, range]:
        """Name of each patch to its boundary faces, by their numbers in the whole mesh."""

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.points.shape[1]

    @abstractmethod
    def part(self, name: str) -> Part:
        """Return this rank's part of a set."""

    @abstractmethod
    def rows(self, name: str) -> Ragged:
        """Return the rows of a map that this rank executes, in local numbers.

        Raises
        ------
        MeshError
            When the mesh was divided without the map.
        """

    @abstractmethod
    def table(self, name: str) -> IntArray:
        """Return the same as a table, ``(executed rows, most targets)``; -1 pads short rows."""

    @abstractmethod
    def regular(self, name: str) -> bool:
        """Whether all rows of a map, of all ranks, have equally many targets. Collective."""

    @abstractmethod
    def node_cells(self) -> Ragged:
        """Return the cells that have each owned node, ascending by their numbers in the whole mesh."""

    @abstractmethod
    def cell_geometry(self) -> tuple[FloatArray, FloatArray]:
        """Return volumes ``(owned,)`` and centroids ``(owned, d)`` of the owned cells.

        Raises
        ------
        MeshError
            For a cell without a positive volume.
        """

    def face_geometry(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return area vectors and centres, ``(owned, d)`` each, of the owned rows of a map from faces to nodes."""
        return face_geometry(self.points, self.rows(name).head(self.part(MAPS[name][0]).owned))

    def patch(self, name: str) -> IntArray:
        """Return the owned boundary faces of a patch, in local numbers; there may be none."""
        faces, part = self.patches[name], self.part("boundary")
        owned = part.numbers[: part.owned]
        return np.flatnonzero((owned >= faces.start) & (owned < faces.stop)).astype(np.int32)

    def require_listed(self) -> None:
        """Raise `MeshError` for boundary faces that are in no patch, on every rank."""
        free = self.part("boundary").total - sum(map(len, self.patches.values()))
        if free:
            raise MeshError(
                f"{self.path}: missing patch: {free} boundary faces belong to no patch; add them to a patch (patches: "
                f"{', '.join(self.patches) or 'none'}; fluxloom mesh check names a face)"
            )

    def report(self) -> PartitionReport | None:
        """Return how the mesh is divided, None on one rank. Collective."""
        return None


class WholePart(MeshPart):
    """All of a mesh; what is derived from it is found at its first use, and kept.

    Parameters
    ----------
    data
        Any mesh, with polyhedra or without.
    links
        Its connectivity, where it is known already.

    Raises
    ------
    MeshError
        Of all maps and geometry: for a mesh that is not sound (see `fluxloom.mesh.quality.sound`).
    """

    def __init__(self, data: MeshData, links: Connectivity | None = None) -> None:
        self.comm, self.data, self.points, self.path = SelfComm(), data, data.points, data.source.path
        self.blocks = data.cell_counts
        self._given, self._parts = links, dict[str, Part]()

    @property
    def links(self) -> Connectivity:
        """The connectivity as NumPy arrays."""
        return self._checked[0]

    @Once
    def _checked(self) -> tuple[Connectivity, tuple[FloatArray, FloatArray]]:
        """Connectivity, volumes and centroids of a mesh that was found sound: nothing is derived from another."""
        links = connectivity(self.data) if self._given is None else self._given
        volumes, centroids, parts = cell_measures(self.data)
        tell_unnamed(require_sound(self.data, links, volumes, parts))
        return links, (volumes, centroids)

    @property
    def patches(self) -> Mapping[str, range]:
        """Name of each patch to its boundary faces."""
        return self.links.patches

    def require_listed(self) -> None:
        """Raise `MeshError` with the first boundary face that is in no patch."""
        require_listed(self.data, self.links)

    def part(self, name: str) -> Part:
        """Return all of a set."""
        if name not in self._parts:
            self._parts[name] = Part.whole(self._size(name))
        return self._parts[name]

    def _size(self, name: str) -> int:
        """Return the number of elements of a set; those of the mesh itself are known before it is looked at."""
        if name in ("nodes", "cells"):
            return self.data.n_points if name == "nodes" else self.data.n_cells
        links = self.links
        return {"faces": links.n_interior, "boundary": links.n_boundary}[name] if name != "edges" else len(links.edges)

    def rows(self, name: str) -> Ragged:
        """Return the rows of a map."""
        links = self.links
        if name in ("cell_nodes", "face_nodes", "boundary_nodes"):
            return {
                "cell_nodes": links.cell_nodes, "face_nodes": links.interior_nodes,
                "boundary_nodes": links.boundary_nodes,
            }[name]  # fmt: skip
        return Ragged.from_table(self.table(name))

    def table(self, name: str) -> IntArray:
        """Return a map as a table, -1 behind the end of short rows."""
        links = self.links
        if name == "edge_nodes":
            return links.edges
        if name in ("face_cells", "boundary_cell"):
            return links.interior_cells if name == "face_cells" else links.boundary_cells[:, None]
        rows = self.rows(name)
        if not len(rows):  # no interior faces: as wide as the faces of the cells are
            width = max((element(kind).face_width for kind in self.data.cells), default=1)
            return np.empty((0, width), dtype=np.int32)
        return rows.padded() if rows.arity is None else rows.table

    def regular(self, name: str) -> bool:
        """Whether all rows of a map have equally many targets."""
        rows = self.rows(name)
        return not len(rows) or rows.arity is not None

    def node_cells(self) -> Ragged:
        """Return the cells of each node, ascending."""
        return self.links.node_cells

    def cell_geometry(self) -> tuple[FloatArray, FloatArray]:
        """Return volumes and centroids of the cells, which are positive."""
        volumes, centroids = self._checked[1]
        require_positive(self.data, volumes)
        return volumes, centroids
