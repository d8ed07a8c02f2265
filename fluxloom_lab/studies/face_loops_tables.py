"""What loops over faces need of a mesh: elements, nodes and geometry of each face, in three orders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.ranks.renumber import first_touch, graph_order, sort_by_target

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["ORDERS", "FaceTables", "Order", "Weighted"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Order = Literal["given", "renumbered", "shuffled"]

ORDERS: tuple[Order, ...] = get_args(Order)
"""As the mesh is; cells by reverse Cuthill and McKee, faces and nodes as a walk along the cells meets them; random."""
_SEED = 1


class Weighted(NamedTuple):
    """Rows with a number an entry, as `fluxloom.dsl.declare.maps.RaggedMap` takes them."""

    offsets: Index
    columns: Numbers
    values: npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class FaceTables:
    """See `fluxloom_lab.studies.face_loops`.

    Attributes
    ----------
    cells, nodes
        Numbers of cells and nodes.
    faces : (faces, 2)
        First and second element; faces of boundary elements are the last ones, in the order of the elements.
    corners : (faces, legs)
        Nodes; where a face has fewer than others its last one repeats.
    counts : (faces,)
        Number of its nodes.
    area : (faces, d)
        Area vector.
    arms : (faces, 2 d)
        From the first and from the second element to the face; 0 from a boundary element.
    inverse : (elements,)
        ``1 / V``, 0 of boundary elements.
    element_order, face_order, node_order
        Number in the mesh of each one here.
    """

    cells: int
    nodes: int
    faces: Index
    corners: Index
    counts: Numbers
    area: Array
    arms: Array
    inverse: Array
    element_order: Index
    face_order: Index
    node_order: Index

    @classmethod
    def of(cls, mesh: MeshData, volumes: ControlVolumes) -> FaceTables:
        """Return the tables of a mesh on one rank, in its own order.

        Raises
        ------
        MeshError
            If the control volumes are not all of a mesh without periodic patches.
        """
        links = connectivity(mesh)
        if volumes.shared.comm.size > 1 or len(volumes.faces) != links.n_faces:
            raise MeshError("loops over faces want a whole mesh on one rank, without periodic patches")
        parts = (links.interior_nodes, links.boundary_nodes)
        counts = np.concatenate([part.counts for part in parts])
        starts = np.concatenate([parts[0].offsets[:-1], parts[0].offsets[-1] + parts[1].offsets[:-1]])
        last = starts + counts - 1
        flat = np.concatenate([part.indices for part in parts])
        places = np.minimum(starts[:, None] + np.arange(int(counts.max(initial=1))), last[:, None])
        across = volumes.arms - volumes.ways
        across[volumes.interior :] = 0.0
        inverse = np.zeros(volumes.elements)
        inverse[: volumes.cells] = 1.0 / volumes.volumes
        return cls(
            volumes.cells, links.n_points, volumes.faces, flat[places].astype(np.int64), counts.astype(np.int32),
            volumes.areas, np.concatenate([volumes.arms, across], axis=1), inverse,
            np.arange(volumes.elements), np.arange(len(volumes.faces)), np.arange(links.n_points),
        )  # fmt: skip

    @property
    def elements(self) -> int:
        """Number of cells and boundary elements."""
        return self.inverse.size

    @property
    def interior(self) -> int:
        """Number of faces between two cells."""
        return len(self.faces) - (self.elements - self.cells)

    @property
    def part(self) -> Array:
        """The first element's share of a mean at a face, ``(faces,)``: all of it at a boundary."""
        return np.where(np.arange(len(self.faces)) < self.interior, 0.5, 1.0)

    @property
    def weight(self) -> Array:
        """One over the number of elements that count at a node, ``(nodes,)``: two a face."""
        return 0.5 / np.maximum(np.bincount(self.corners[self._used], minlength=self.nodes), 1)

    @property
    def _used(self) -> npt.NDArray[np.bool_]:
        return np.arange(self.corners.shape[1]) < self.counts[:, None]

    def around_nodes(self) -> Weighted:
        """Return the elements at each node, and how many of their faces are there."""
        return _rows(self._meetings())

    def around_elements(self) -> Weighted:
        """Return the nodes of each element, and how many of its faces are there."""
        from scipy.sparse import csr_array

        return _rows(csr_array(self._meetings().T))

    def _meetings(self) -> csr_array:
        """Return how many faces of an element meet at a node, ``(nodes, elements)``."""
        from scipy.sparse import coo_array, csr_array

        used = self._used
        node = np.repeat(self.corners[used], 2)
        element = np.repeat(self.faces, self.counts, axis=0).reshape(-1)
        return csr_array(coo_array((np.ones(node.size), (node, element)), shape=(self.nodes, self.elements)))

    def neighbours(self) -> Weighted:
        """Return the elements across the faces of each element, of boundary elements their cells."""
        from scipy.sparse import coo_array, csr_array

        first, second = self.faces.T
        pairs = (np.concatenate([first, second]), np.concatenate([second, first]))
        return _rows(csr_array(coo_array((np.ones(pairs[0].size), pairs), shape=(self.elements, self.elements))))

    def ordered(self, order: Order) -> FaceTables:
        """Return the same tables in another order.

        Raises
        ------
        MeshError
            If there is no such order.
        """
        if order not in ORDERS:
            raise MeshError(f"order: {order!r} is unknown{did_you_mean(order, ORDERS)} ({', '.join(ORDERS)})")
        if order == "given":
            return self
        inner, outer = self.interior, len(self.faces) - self.interior
        if order == "shuffled":
            random = np.random.default_rng(_SEED)
            cells, faces, edge = (random.permutation(n) for n in (self.cells, inner, outer))
            return self._moved(cells, np.concatenate([faces, inner + edge]), random.permutation(self.nodes))
        cells = graph_order(self.faces[:inner], self.cells).order.astype(np.int64)
        rank = _inverse(cells)
        faces = sort_by_target(rank[self.faces[:inner]]).order
        edge = sort_by_target(rank[self.faces[inner:, :1]]).order
        walk = np.concatenate([faces, inner + edge])
        nodes = first_touch(self.corners[walk].reshape(-1), self.nodes).order
        return self._moved(cells, walk, nodes.astype(np.int64))

    def _moved(self, cells: Index, faces: npt.NDArray[np.integer[Any]], nodes: Index) -> FaceTables:
        """Return the tables with other numbers: those given are the old ones in their new order."""
        elements = np.concatenate([cells, self.cells + faces[self.interior :] - self.interior])
        return replace(
            self, faces=_inverse(elements)[self.faces[faces]], corners=_inverse(nodes)[self.corners[faces]],
            counts=self.counts[faces], area=self.area[faces], arms=self.arms[faces], inverse=self.inverse[elements],
            element_order=self.element_order[elements], face_order=self.face_order[faces],
            node_order=self.node_order[nodes],
        )  # fmt: skip


def _inverse(order: npt.NDArray[np.integer[Any]]) -> Index:
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank


def _rows(matrix: csr_array) -> Weighted:
    matrix.sum_duplicates()
    return Weighted(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.uint8))
