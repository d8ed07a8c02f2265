"""Unstructured zones of CGNS files.

Source: CGNS "Standard Interface Data Structures", sections 7.3 (elements), 8.4 (interfaces), 9 (boundary conditions).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import Polyhedra
from fluxloom.mesh.io.cgns.polyhedra import Cells, polyhedra
from fluxloom.mesh.io.cgns.sections import NFACE, Section, read_section, take
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
from fluxloom.mesh.io.tables.collect import add_faces, add_rows

__all__ = ["read_unstructured"]


def read_unstructured(node: Node, dimension: int, families: Mapping[str, str]) -> Zone:
    """Read an unstructured zone.

    Parameters
    ----------
    node
        The zone.
    dimension
        Of its cells, two or three.
    families
        Families that belong to another one.

    Raises
    ------
    MeshError
        For elements, boundary conditions and interfaces that cannot be used.
    """
    points = int(node.integers(3)[0])
    nodes = {item.name: item for item in node.all("Elements_t")}
    sections = sorted((read_section(item, points) for item in nodes.values()), key=lambda item: item.start)
    cells, numbers, more = _cells(nodes, sections, dimension)
    if not cells and more is None:
        raise MeshError(f"{node.where}: no section holds cells of {dimension} dimensions")
    zone = Zone(node.name, node.where, coordinates(node, (points,)), cells, numbers, polyhedra=more)
    faces = _Faces(sections, dimension)
    for name, condition in conditions(node, families):
        _condition(zone, faces, name, condition, points)
    for group in node.all("ZoneGridConnectivity_t"):
        for interface in group.all("GridConnectivity_t"):
            _interface(zone, faces, interface, points)
    for name, blocks in faces.rest().items():
        # A section with the nodes of a boundary condition that lists nodes holds its faces, and tells more.
        nodes = np.unique(np.concatenate([block.reshape(-1) for block in blocks.values()]))
        owner = next((item.name for item in zone.sets if np.array_equal(np.unique(item.nodes), nodes)), None)
        add_faces(zone.sections if owner is None else zone.patches, owner or name, blocks)
    return zone


def _cells(nodes: dict[str, Node], sections: list[Section], dimension: int) -> Cells:
    """Return the cells of a zone, their positions in the file where they do not follow one another, and polyhedra."""
    blocks: Blocks = {}
    listed: dict[str, list[Index]] = {}
    others: list[Polyhedra] = []
    for section in sections:
        found, numbers = section.blocks, section.numbers
        if section.kind == NFACE:
            found, numbers, more = polyhedra(nodes[section.name], section, sections)
            others += [] if more is None else [more]
        for name, part in numbers.items():
            if name == "polyhedron" or element(name).dimension == dimension:
                listed.setdefault(name, []).append(part)
                if name in found:
                    add_rows(blocks, name, found[name])
    names = [*blocks, *(["polyhedron"] if others else [])]
    order = {name: np.concatenate(listed[name]) for name in names}
    joined = Polyhedra.joined(others) if others else None
    every = np.concatenate([np.empty(0, dtype=np.int64), *order.values()])
    if np.array_equal(every, np.arange(1, every.size + 1)):
        return blocks, {}, joined
    return blocks, {name: numbers - 1 for name, numbers in order.items()}, joined


class _Faces:
    """The sections of faces of a zone, and which elements boundary conditions and interfaces have named."""

    def __init__(self, sections: list[Section], dimension: int) -> None:
        self.dimension = dimension
        self.sections = sections
        self.last = max((item.stop - 1 for item in sections), default=0)
        self._named: list[Index] = []

    def _is_face(self, name: str) -> bool:
        return element(name).dimension == self.dimension - 1

    def take(self, node: Node, wanted: Index) -> Blocks:
        """Return the faces with some numbers; nothing when these are all cells."""
        blocks, unknown = take(self.sections, wanted)
        if unknown.size:
            raise MeshError(f"{node.where}: there is no element {int(unknown[0])} ({unknown.size} such numbers)")
        strange = [name for name in blocks if not self._is_face(name)]
        if strange and all(element(name).dimension == self.dimension for name in blocks):
            return {}
        if strange:
            raise MeshError(f"{node.where}: a {strange[0]} is no face in {self.dimension} dimensions")
        self._named.append(wanted)
        return blocks

    def rest(self) -> dict[str, Blocks]:
        """Return the faces that nothing has named, by section."""
        named = np.unique(np.concatenate(self._named)) if self._named else np.empty(0, dtype=np.int64)
        found: dict[str, Blocks] = {}
        for section in self.sections:
            blocks: Blocks = {}
            for name, block in section.blocks.items():
                free = ~np.isin(section.numbers[name], named)
                if self._is_face(name) and free.any():
                    blocks[name] = block[free]
            if blocks:
                found[section.name] = blocks
        return found


def _listed(node: Node, limit: int, prefixes: tuple[str, ...], suffix: str = "") -> tuple[Index, bool] | None:
    """Return the numbers that a node lists, from 1, and whether they are numbers of elements by their name alone."""
    for prefix in prefixes:
        extent, listed = node.child(f"{prefix}Range{suffix}"), node.child(f"{prefix}List{suffix}")
        if extent is not None:
            begin, end = sorted(extent.integers(2).tolist())
            if begin < 1 or end > limit:
                raise MeshError(f"{node.where}: the range {begin} to {end} leaves the numbers 1 to {limit} of the zone")
            return np.arange(begin, end + 1), prefix == "Element"
        if listed is not None:
            return listed.integers().reshape(-1), prefix == "Element"
    return None


def _condition(zone: Zone, faces: _Faces, name: str, node: Node, points: int) -> None:
    """Add what a boundary condition covers; groups of cells, which some programs list there too, are none."""
    found = _listed(node, max(points, faces.last), ("Point", "Element"))
    if found is None:
        raise MeshError(f"{node.where}: a boundary condition needs points or elements: PointList, PointRange ...")
    numbers, elements = found
    if not numbers.size:
        return
    if elements or location(node) != "Vertex":
        blocks = faces.take(node, numbers)
        if blocks:
            add_faces(zone.patches, name, blocks)
    else:
        zone.sets.append(NodeSet(name, _points(node, numbers, points)))


def _points(node: Node, numbers: Index, points: int) -> Index:
    """Return nodes from 0."""
    if int(numbers.min()) < 1 or int(numbers.max()) > points:
        raise MeshError(f"{node.where}: points {numbers.min()} to {numbers.max()}, but the zone has {points}")
    return numbers - 1


def _interface(zone: Zone, faces: _Faces, node: Node, points: int) -> None:
    """Add an interface; a periodic one becomes a patch, because its sides are apart."""
    kind = node.first("GridConnectivityType_t")
    word = "Overset" if kind is None else kind.text()
    if word != "Abutting1to1":
        raise MeshError(
            f"{node.where}: an interface of the type {word!r} is not supported; make the points of both zones match, "
            "and export an interface of the type Abutting1to1"
        )
    mine = _listed(node, max(points, faces.last), ("Point",))
    theirs = _listed(node, np.iinfo(np.int32).max, ("Point", "Cell"), "Donor") if location(node) == "Vertex" else None
    if mine is None:
        raise MeshError(f"{node.where}: an interface needs a PointList or a PointRange")
    if location(node) == "Vertex":
        nodes = _points(node, mine[0], points)
        if is_periodic(node):
            zone.sets.append(NodeSet(node.name, nodes))
            return
        paired = theirs is not None and theirs[0].size == nodes.size
        there = theirs[0] - 1 if theirs is not None and paired else np.empty(0, dtype=np.int64)
    else:
        blocks = faces.take(node, mine[0])
        if is_periodic(node):
            add_faces(zone.patches, node.name, blocks)
            return
        nodes = np.unique(np.concatenate([block.reshape(-1) for block in blocks.values()])).astype(np.int64)
        paired, there = False, np.empty(0, dtype=np.int64)
    zone.joints.append(Joint(node.where, node.text().rsplit("/", 1)[-1], nodes, there, paired))
