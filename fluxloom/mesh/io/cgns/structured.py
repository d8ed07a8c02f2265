"""Structured zones of CGNS files, as quadrilaterals and hexahedra.

Source: CGNS "Standard Interface Data Structures", sections 6 (zones), 8 (interfaces; the transformation of indices is
equation 8.1) and 9 (boundary conditions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.ragged import narrowed
from fluxloom.mesh.io.cgns.tree import Node
from fluxloom.mesh.io.cgns.zone import (
    Blocks,
    Index,
    Joint,
    NodeSet,
    Zone,
    conditions,
    coordinates,
    is_periodic,
    location,
)
from fluxloom.mesh.io.tables.collect import add_faces

__all__ = ["Lattice", "read_structured"]

_FACES = ("FaceCenter", "EdgeCenter")


@dataclass(frozen=True)
class Lattice:
    """The points of a structured zone; indices of nodes begin at 0, ``i`` runs fastest.

    Attributes
    ----------
    where
        The node of the zone.
    counts
        Points along each axis.
    """

    where: str
    counts: tuple[int, ...]

    @classmethod
    def of(cls, zone: Node) -> Lattice:
        """Return the lattice of a zone.

        Raises
        ------
        MeshError
            When an axis has fewer than two points, or there are not two or three of them.
        """
        sizes = zone.integers()
        counts = tuple(int(count) for count in sizes.reshape(3, -1)[0]) if sizes.size in (6, 9) else ()
        if not counts or min(counts) < 2:
            raise MeshError(f"{zone.where}: a structured zone needs two or three axes of at least two points each")
        return cls(zone.where, counts)

    @property
    def strides(self) -> Index:
        """Distance of neighbours along each axis in the numbering of the nodes."""
        return np.concatenate([[1], np.cumprod(self.counts[:-1])]).astype(np.int64)

    def number(self, index: Index) -> Index:
        """Return the nodes with indices ``(n, axes)``."""
        return index @ self.strides

    def box(self, lower: Index, upper: Index) -> Index:
        """Return all indices of a box, its corners included, ``i`` running fastest."""
        axes = [np.arange(a, b + 1) for a, b in zip(lower, upper, strict=True)]
        grid = np.meshgrid(*axes[::-1], indexing="ij")
        return np.stack([part.reshape(-1) for part in grid[::-1]], axis=1)

    def cells(self) -> Blocks:
        """Return the cells."""
        upper = np.array(self.counts) - 2
        first = self.number(self.box(np.zeros_like(upper), upper))
        i, j = self.strides[0], self.strides[1]
        base = np.stack([first, first + i, first + i + j, first + j], axis=1)
        if len(self.counts) == 2:
            return {"quad": narrowed(base)}
        return {"hexahedron": narrowed(np.concatenate([base, base + self.strides[2]], axis=1))}

    def faces(self, index: Index, axis: int) -> Blocks:
        """Return faces across an axis; ``index (n, axes)`` are their lowest corners."""
        first = self.number(index)
        along = [stride for k, stride in enumerate(self.strides) if k != axis]
        if len(along) == 1:
            return {"line": narrowed(np.stack([first, first + along[0]], axis=1))}
        a, b = along
        return {"quad": narrowed(np.stack([first, first + a, first + a + b, first + b], axis=1))}

    def span(self, node: Node) -> tuple[Index, Index]:
        """Return begin and end of a range, as they stand in the file (from 1, either may be the larger)."""
        found = node.integers(2 * len(self.counts)).reshape(2, -1)
        return found[0], found[1]

    def check(self, node: Node, lower: Index, upper: Index) -> None:
        """Raise `MeshError` unless indices from 1 lie in the zone."""
        if (lower < 1).any() or (upper > np.array(self.counts)).any():
            size = " x ".join(map(str, self.counts))
            raise MeshError(f"{node.where}: indices {lower.tolist()} to {upper.tolist()} leave the {size} points")


def read_structured(node: Node, families: Mapping[str, str]) -> Zone:
    """Read a structured zone.

    Parameters
    ----------
    node
        The zone.
    families
        Families that belong to another one.

    Raises
    ------
    MeshError
        For boundary conditions and interfaces that cannot be used.
    """
    lattice = Lattice.of(node)
    zone = Zone(node.name, node.where, coordinates(node, lattice.counts), lattice.cells(), counts=lattice.counts)
    for name, condition in conditions(node, families):
        _condition(zone, lattice, name, condition)
    for group in node.all("ZoneGridConnectivity_t"):
        for interface in group.all("GridConnectivity1to1_t"):
            _one_to_one(zone, lattice, interface)
        for interface in group.all("GridConnectivity_t"):
            raise MeshError(
                f"{interface.where}: structured zones are joined by GridConnectivity1to1_t alone; "
                "make their points match, and export one-to-one interfaces"
            )
    return zone


def _condition(zone: Zone, lattice: Lattice, name: str, node: Node) -> None:
    """Add what a boundary condition covers."""
    place = location(node)
    extent, listed = node.child("PointRange") or node.child("ElementRange"), node.child("PointList")
    if extent is not None:
        begin, end = lattice.span(extent)
        add_faces(zone.patches, name, _range(lattice, extent, np.minimum(begin, end), np.maximum(begin, end), place))
    elif listed is not None:
        index = listed.integers()
        if index.size % len(lattice.counts) or not index.size:
            raise MeshError(f"{listed.where}: {index.size} numbers are no indices of {len(lattice.counts)} axes")
        index = index.reshape(-1, len(lattice.counts))
        lattice.check(listed, index.min(axis=0), index.max(axis=0))
        if place == "Vertex":
            zone.sets.append(NodeSet(name, lattice.number(index - 1)))
        else:
            add_faces(zone.patches, name, lattice.faces(index - 1, _axis(listed, place)))
    else:
        raise MeshError(f"{node.where}: a boundary condition needs a PointRange or a PointList")


def _range(lattice: Lattice, node: Node, lower: Index, upper: Index, place: str) -> Blocks:
    """Return the faces of a range of nodes, or of faces; its corners are included and numbered from 1."""
    flat = np.flatnonzero(lower == upper)
    if place == "Vertex":
        lattice.check(node, lower, upper)
        if flat.size != 1:
            raise MeshError(f"{node.where}: {lower.tolist()} to {upper.tolist()} is no face of the zone")
        axis = int(flat[0])
        last = upper - 1
        last[axis] = upper[axis]
        return lattice.faces(lattice.box(lower - 1, last - 1), axis)
    if place in _FACES:
        outer = [k for k in flat.tolist() if lower[k] in (1, lattice.counts[k])]
        if not outer:
            raise MeshError(f"{node.where}: {lower.tolist()} to {upper.tolist()} is no face of the zone")
        # Across an axis of one cell every range is flat; another axis is meant when there is one.
        axis = max(outer, key=lambda k: lattice.counts[k] > 2 or lower[k] == lattice.counts[k])
    else:
        axis = _axis(node, place)
    more = np.ones_like(upper)
    more[axis] = 0
    lattice.check(node, lower, upper + more)
    return lattice.faces(lattice.box(lower - 1, upper - 1), axis)


def _axis(node: Node, place: str) -> int:
    """Return the axis across which faces lie."""
    if place in ("IFaceCenter", "JFaceCenter", "KFaceCenter"):
        return "IJK".index(place[0])
    raise MeshError(f"{node.where}: points at {place!r} are not supported; use Vertex or IFaceCenter, JFaceCenter ...")


def _one_to_one(zone: Zone, lattice: Lattice, node: Node) -> None:
    """Add an interface; a periodic one becomes a patch, because its sides are apart."""
    begin, end = lattice.span(node.need("PointRange"))
    lower, upper = np.minimum(begin, end), np.maximum(begin, end)
    lattice.check(node, lower, upper)
    if is_periodic(node):
        add_faces(zone.patches, node.name, _range(lattice, node, lower, upper, "Vertex"))
        return
    begin_there, _ = lattice.span(node.need("PointRangeDonor"))
    turn = _transform(node, len(lattice.counts))
    mine = lattice.box(lower, upper)
    theirs = begin_there + (mine - begin) @ turn.T
    donor = node.text().rsplit("/", 1)[-1]
    zone.joints.append(Joint(node.where, donor, lattice.number(mine - 1), theirs - 1, paired=True))


def _transform(node: Node, axes: int) -> Index:
    """Return the matrix that turns steps of this zone's indices into steps of the donor's."""
    found = node.child("Transform")
    signed = np.arange(1, axes + 1) if found is None else found.integers().reshape(-1)
    if sorted(np.abs(signed).tolist()) != list(range(1, axes + 1)):
        raise MeshError(f"{node.where}: Transform {signed.tolist()} is no change of {axes} axes")
    matrix = np.zeros((axes, axes), dtype=np.int64)
    matrix[np.abs(signed) - 1, np.arange(axes)] = np.sign(signed)
    return matrix
