"""What is read from one zone of a CGNS file, and what both kinds of zones share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, IntArray, Polyhedra
from fluxloom.mesh.io.cgns.tree import Node

__all__ = [
    "Blocks", "Index", "Joint", "NodeSet", "Zone", "conditions", "coordinates", "families", "is_periodic", "location",
]  # fmt: skip

Index = npt.NDArray[np.int64]
Blocks = dict[str, IntArray]

_AXES = "XYZ"
_NO_FAMILY = ("", "Unspecified", "Null", "UserDefined", "ORPHAN")


@dataclass(frozen=True, eq=False)
class NodeSet:
    """A boundary condition that lists nodes: of the boundary, the faces whose nodes all belong to it."""

    name: str
    nodes: Index


@dataclass(frozen=True, eq=False)
class Joint:
    """A matching interface.

    Attributes
    ----------
    where, donor
        Its node in the file, and the zone on the other side.
    mine : (n,)
        Nodes of this zone.
    theirs : (m,) or (m, axes)
        Nodes of the other zone, or their indices from 0 in a structured one.
    paired
        Whether they are listed pair by pair; else coordinates tell.
    """

    where: str
    donor: str
    mine: Index
    theirs: Index
    paired: bool


@dataclass(frozen=True, eq=False)
class Zone:
    """One zone; its nodes are numbered from 0.

    Attributes
    ----------
    name, where
        Its name, and its node for messages.
    points : (n, d)
        Coordinates.
    cells
        Element type to nodes ``(m, k)``.
    numbers
        Element type to the positions of its cells in the file's list; empty when they are consecutive.
    patches
        Name to blocks of faces that boundary conditions list.
    sections
        Name to blocks of faces that no boundary condition names.
    sets
        Boundary conditions that list nodes.
    joints
        Matching interfaces.
    counts
        Points along each axis of a structured zone.
    polyhedra
        Cells that are no elements; their numbers are those of ``"polyhedron"``.
    """

    name: str
    where: str
    points: FloatArray
    cells: Blocks
    numbers: dict[str, Index] = field(default_factory=dict)
    patches: dict[str, Blocks] = field(default_factory=dict)
    sections: dict[str, Blocks] = field(default_factory=dict)
    sets: list[NodeSet] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    counts: tuple[int, ...] = ()
    polyhedra: Polyhedra | None = None


def coordinates(zone: Node, counts: tuple[int, ...]) -> FloatArray:
    """Return the points of a zone ``(n, d)``, the first index of the standard running fastest.

    Parameters
    ----------
    zone
        The node of the zone.
    counts
        Points along each axis of the standard.

    Raises
    ------
    MeshError
        For absent or cylindrical coordinates, or as many values as do not fit.
    """
    grid = zone.first("GridCoordinates_t")
    if grid is None:
        raise MeshError(f"{zone.where}: the zone holds no GridCoordinates_t")
    rind = grid.first("Rind_t")
    layers = np.zeros(2 * len(counts), dtype=np.int64) if rind is None else rind.integers(2 * len(counts))
    if (layers < 0).any():
        raise MeshError(f"{grid.where}: layers of Rind_t are {layers.tolist()}; they cannot be negative")
    axes = [grid.child(f"Coordinate{axis}") for axis in _AXES]
    present = [axis for axis in axes if axis is not None]
    if len(present) < 2:
        names = ", ".join(child.name for child in grid.all("DataArray_t")) or "none"
        raise MeshError(f"{grid.where}: Cartesian coordinates are wanted: CoordinateX, CoordinateY (found: {names})")
    stored = tuple(count + int(layers[2 * k] + layers[2 * k + 1]) for k, count in enumerate(counts))
    inner = tuple(slice(int(layers[2 * k]), int(layers[2 * k]) + count) for k, count in enumerate(counts))
    columns: list[FloatArray] = []
    for axis in present:
        values = axis.array()
        if values.size != math.prod(stored):
            raise MeshError(
                f"{axis.where}: {values.size} values, but the zone has {' x '.join(map(str, stored))} points"
            )
        columns.append(values.astype(np.float64).reshape(stored[::-1])[inner[::-1]].reshape(-1))
    return np.stack(columns, axis=1)


def families(base: Node) -> dict[str, str]:
    """Return the families of a base that belong to another family, and to which."""
    found: dict[str, str] = {}
    for family in base.all("Family_t"):
        parent = _family(family)
        if parent:
            found[family.name] = parent
    return found


def conditions(zone: Node, families: Mapping[str, str]) -> Iterator[tuple[str, Node]]:
    """Yield the boundary conditions of a zone, and what their faces are called.

    That is the family, and the one that this belongs to; or the name of the condition where it has none.
    """
    for group in zone.all("ZoneBC_t"):
        for condition in group.all("BC_t"):
            family = _family(condition) or condition.name
            yield families.get(family, family), condition


def _family(node: Node) -> str:
    """Return the family that a node names, or nothing."""
    found = node.first("FamilyName_t")
    word = "" if found is None else found.text().rsplit("/", 1)[-1]
    return "" if word in _NO_FAMILY else word


def location(node: Node) -> str:
    """Return where the points of a boundary condition or an interface lie."""
    found = node.first("GridLocation_t")
    return "Vertex" if found is None else found.text()


def is_periodic(interface: Node) -> bool:
    """Whether the two sides of an interface are apart."""
    return any(below.first("Periodic_t") is not None for below in interface.all("GridConnectivityProperty_t"))
