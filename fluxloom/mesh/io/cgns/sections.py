"""Sections of elements of CGNS files: of one type, mixed, and polygons.

Source: CGNS "Standard Interface Data Structures", sections 3.3 (numbering of elements) and 7.3 (``Elements_t``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element, face_name
from fluxloom.mesh.data.mesh import IntArray
from fluxloom.mesh.data.ragged import Ragged, narrowed
from fluxloom.mesh.geometry.connectivity import places_of
from fluxloom.mesh.io.cgns.tree import Node
from fluxloom.mesh.io.cgns.zone import Blocks, Index
from fluxloom.mesh.io.tables.collect import add_rows

__all__ = ["NFACE", "NGON", "Section", "find", "ragged", "read_section", "take"]

Numbered = tuple[Blocks, dict[str, Index]]
MIXED, NGON, NFACE = 20, 22, 23

_LINEAR: Mapping[int, str] = MappingProxyType(
    {2: "vertex", 3: "line", 5: "triangle", 7: "quad", 10: "tetra", 12: "pyramid", 14: "prism", 17: "hexahedron"}
)
_WORDS: Mapping[int, str] = MappingProxyType(
    {4: "BAR_3", 6: "TRI_6", 8: "QUAD_8", 9: "QUAD_9", 11: "TETRA_10", 13: "PYRA_14", 15: "PENTA_15", 16: "PENTA_18",
     18: "HEXA_20", 19: "HEXA_27", 21: "PYRA_13"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Section:
    """Some elements with consecutive numbers.

    Attributes
    ----------
    name, where
        Of the section.
    kind
        Type of the elements, a number of the standard.
    start, stop
        Number of the first element, from 1, and that of the last one plus one.
    blocks
        Element type to nodes ``(m, k)`` from 0; nothing for polyhedra.
    numbers
        Element type to the numbers of its elements, ascending.
    """

    name: str
    where: str
    kind: int
    start: int
    stop: int
    blocks: Blocks
    numbers: dict[str, Index]

    @property
    def dimension(self) -> int:
        """The largest dimension of its elements."""
        if self.kind == NFACE:
            return 3
        return max((element(name).dimension for name in self.blocks), default=0)


def read_section(node: Node, points: int) -> Section:
    """Read a section.

    Parameters
    ----------
    node
        The ``Elements_t``.
    points
        How many points the zone has.

    Raises
    ------
    MeshError
        For curved elements, polygons of less than two nodes, and numbers out of range.
    """
    kind = int(node.integers(2)[0])
    start, last = (int(number) for number in node.need("ElementRange").integers(2))
    size = node.need("ElementConnectivity").array().size
    if start < 1 or not 0 <= last + 1 - start <= size:
        raise MeshError(f"{node.where}: {size} numbers do not make the elements {start} to {last}")
    if kind == NFACE:
        return Section(node.name, node.where, kind, start, last + 1, {}, {})
    if kind in _LINEAR:
        name = _LINEAR[kind]
        flat, width = node.need("ElementConnectivity").integers().reshape(-1), element(name).n_nodes
        if flat.size != (last + 1 - start) * width:
            raise MeshError(f"{node.where}: {flat.size} nodes do not make {last + 1 - start} elements of type {name}")
        blocks = {name: narrowed(flat).reshape(-1, width)}
        numbers = {name: np.arange(start, last + 1)}
    elif kind == MIXED:
        blocks, numbers = _mixed(node, start, last + 1 - start)
    elif kind == NGON:
        blocks, numbers = _polygons(node, start, last + 1 - start)
    else:
        raise MeshError(f"{node.where}: {_unknown(kind)}")
    for name, block in blocks.items():
        if block.size and (int(block.min()) < 1 or int(block.max()) > points):
            row = int(np.flatnonzero(((block < 1) | (block > points)).any(axis=1))[0])
            raise MeshError(
                f"{node.where}: the {name} {int(numbers[name][row])} has the nodes {block[row].tolist()}, but the zone "
                f"has {points} points; mend the file"
            )
    zero = {name: block - 1 for name, block in blocks.items()}
    return Section(node.name, node.where, kind, start, last + 1, zero, numbers)


def ragged(node: Node, count: int) -> tuple[Index, Index]:
    """Return offsets ``(count + 1,)`` and entries of polygons or polyhedra.

    Files of CGNS 4 hold offsets; older ones put the length before each row.
    """
    flat = node.need("ElementConnectivity").integers().reshape(-1)
    offsets = node.child("ElementStartOffset")
    if offsets is not None:
        starts = offsets.integers().reshape(-1)
        _check_offsets(node, starts, count, flat.size)
        return starts, flat
    lengths = _walk(node, flat, count, lambda length: length)
    offsets_found = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    heads = offsets_found[:-1] + np.arange(count)
    return offsets_found, np.delete(flat, heads)


def find(sections: Iterable[Section], wanted: Index) -> Iterator[tuple[str, npt.NDArray[np.bool_], IntArray]]:
    """Yield the types of elements with some numbers: which of the numbers are theirs, and the nodes of these."""
    for section in sections:
        for name, numbers in section.numbers.items():
            place = places_of(wanted, numbers)
            yield name, place >= 0, section.blocks[name][place[place >= 0]]


def take(sections: list[Section], wanted: Index) -> tuple[Blocks, Index]:
    """Return the elements with some numbers, type by type, and those numbers that do not exist."""
    wanted = np.unique(wanted)
    blocks: Blocks = {}
    known = np.zeros(wanted.size, dtype=bool)
    for name, hit, rows in find(sections, wanted):
        known |= hit
        if len(rows):
            add_rows(blocks, name, rows)
    return blocks, wanted[~known]


def _unknown(kind: int) -> str:
    word = _WORDS.get(kind, f"number {kind}")
    return f"elements of the type {word} are not supported; export linear elements"


def _mixed(node: Node, start: int, count: int) -> Numbered:
    """Return the elements of a mixed section: each is its type, then its nodes."""
    flat = node.need("ElementConnectivity").integers().reshape(-1)
    offsets = node.child("ElementStartOffset")
    if offsets is not None:
        starts = offsets.integers().reshape(-1)
        _check_offsets(node, starts, count, flat.size)
        starts = starts[:-1]
    else:
        widths = _walk(node, flat, count, lambda kind: element(_LINEAR[kind]).n_nodes if kind in _LINEAR else -kind)
        starts = np.concatenate([[0], np.cumsum(widths + 1)[:-1]]).astype(np.int64)
    kinds = flat[starts]
    blocks: Blocks = {}
    numbers: dict[str, Index] = {}
    for kind in np.unique(kinds).tolist():
        if kind not in _LINEAR:
            raise MeshError(f"{node.where}: {_unknown(kind)}")
        rows = np.flatnonzero(kinds == kind)
        name = _LINEAR[kind]
        places = starts[rows][:, None] + 1 + np.arange(element(name).n_nodes)
        if places.size and int(places.max()) >= flat.size:
            raise MeshError(f"{node.where}: the nodes of the last element are missing")
        blocks[name], numbers[name] = narrowed(flat[places]), start + rows
    return blocks, numbers


def _polygons(node: Node, start: int, count: int) -> Numbered:
    """Return polygons by their numbers of nodes; those with two are edges, in two dimensions."""
    offsets, flat = ragged(node, count)
    blocks: Blocks = {}
    numbers: dict[str, Index] = {}
    for rows, table in Ragged(offsets, narrowed(flat)).by_width():
        if table.shape[1] < 2:
            raise MeshError(f"{node.where}: a polygon has {table.shape[1]} nodes; mend the file")
        name = face_name(table.shape[1])
        blocks[name], numbers[name] = table, start + rows
    return blocks, numbers


def _check_offsets(node: Node, offsets: Index, count: int, size: int) -> None:
    if offsets.size != count + 1 or offsets[0] != 0 or int(offsets[-1]) > size or (np.diff(offsets) < 1).any():
        raise MeshError(f"{node.where}: ElementStartOffset does not fit the {count} elements of the section")


def _walk(node: Node, flat: Index, count: int, width: Callable[[int], int]) -> Index:
    """Return how many numbers follow the head of each row."""
    widths = np.empty(count, dtype=np.int64)
    heads = flat.tolist()
    table = {head: width(head) for head in np.unique(flat).tolist()}
    place = 0
    for row in range(count):
        if place >= len(heads):
            raise MeshError(f"{node.where}: there are fewer than {count} elements")
        found = table[heads[place]]
        if found <= 0:
            raise MeshError(f"{node.where}: {_unknown(-found)}")
        widths[row] = found
        place += 1 + found
    if place != len(heads):
        raise MeshError(f"{node.where}: {len(heads) - place} numbers are left over after {count} elements")
    return widths
