"""What a Gmsh file holds, before nodes are numbered and patches grouped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.elements import ElementType, by_code
from fluxloom.mesh.io.tables.scan import PlainScanner

__all__ = ["RawMesh", "element_type"]

Integers = npt.NDArray[np.int64]


@dataclass
class RawMesh:
    """Sections of a Gmsh file.

    Attributes
    ----------
    version
        ``"2.2"`` or ``"4.1"``; empty before the header has been read.
    names
        (dimension, physical tag) to name.
    groups
        (dimension, entity tag) to physical tags.
    node_tags, points
        Blocks of node tags and coordinates.
    elements
        Element type to blocks of (node tags, physical tags).
    shared
        (dimension, physical tag, that of the first group) to how many elements both have.
    """

    version: str = ""
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    groups: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    node_tags: list[Integers] = field(default_factory=list)
    points: list[npt.NDArray[np.float64]] = field(default_factory=list)
    elements: dict[str, list[tuple[Integers, Integers]]] = field(default_factory=dict)
    shared: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def add_nodes(self, tags: npt.NDArray[Any], points: npt.NDArray[Any]) -> None:
        """Add a block of nodes: their numbers, and coordinates ``(n, 3)``."""
        self.node_tags.append(tags.astype(np.int64))
        self.points.append(points.astype(np.float64))

    def add(self, name: str, nodes: Integers, groups: Integers) -> None:
        """Add a block of elements; a negative tag is that of a group which turns the other way."""
        if len(nodes):
            self.elements.setdefault(name, []).append((nodes, np.abs(groups)))

    def add_of(self, name: str, nodes: Integers, dimension: int, entity: int) -> None:
        """Add the elements of an entity; they belong to its first group."""
        first, *others = self.groups.get((dimension, entity), ()) or (0,)
        self.add(name, nodes, np.full(len(nodes), first, dtype=np.int64))
        for other in others:
            self.share(dimension, other, first, len(nodes))

    def share(self, dimension: int, other: int, first: int, count: int) -> None:
        """Count elements that another group has too."""
        self.shared[dimension, other, first] = self.shared.get((dimension, other, first), 0) + count

    def name(self, dimension: int, group: int) -> str:
        """Return the name of a group, by default its tag."""
        return self.names.get((dimension, group), str(group))

    def read_names(self, scan: PlainScanner) -> None:
        """Read ``$PhysicalNames``, which is text in binary files too."""
        for _ in range(scan.count("$PhysicalNames")):
            text = scan.next_line() or ""
            words = text.split(maxsplit=2)
            try:
                self.names[int(words[0]), int(words[1])] = _unquoted(words[2].strip())
            except (IndexError, ValueError):
                scan.fail("a row of $PhysicalNames is damaged or missing; the file is truncated", scan.line - 1)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def element_type(scan: PlainScanner, code: int, line: int) -> ElementType:
    """Return a linear element type by its Gmsh code.

    Raises
    ------
    MeshError
        For curved and unknown elements.
    """
    known = by_code("gmsh")
    if code not in known:
        scan.fail(f"Gmsh element type {code} (curved or unknown) is not supported; set Mesh.ElementOrder = 1", line)
    return known[code]
