"""What a Gmsh file holds, before nodes are numbered and patches grouped."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.elements import ElementType, by_code
from fluxloom.mesh.io.scan import PlainScanner

__all__ = ["RawMesh", "element_type", "skip_section"]

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
        (dimension, entity tag) to physical tag, 0 for none.
    node_tags, points
        Blocks of node tags and coordinates.
    elements
        Element type to blocks of (node tags, physical tags).
    """

    version: str = ""
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    groups: dict[tuple[int, int], int] = field(default_factory=dict)
    node_tags: list[Integers] = field(default_factory=list)
    points: list[npt.NDArray[np.float64]] = field(default_factory=list)
    elements: dict[str, list[tuple[Integers, Integers]]] = field(default_factory=dict)

    def add(self, name: str, nodes: Integers, groups: Integers) -> None:
        """Add a block of elements."""
        if len(nodes):
            self.elements.setdefault(name, []).append((nodes, groups))

    def read_names(self, scan: PlainScanner) -> None:
        """Read ``$PhysicalNames``, which is text in binary files too."""
        count = int(scan.integers(1, 1, "count of $PhysicalNames")[0, 0])
        for _ in range(count):
            text = scan.next_line() or ""
            words = text.split(maxsplit=2)
            try:
                self.names[int(words[0]), int(words[1])] = words[2].strip().strip('"')
            except (IndexError, ValueError):
                scan.fail("a row of $PhysicalNames is damaged or missing; the file is truncated", scan.line - 1)


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


def skip_section(scan: PlainScanner, name: str) -> None:
    """Move behind the end of a section."""
    end = b"$End" + name[1:].encode()
    stop = scan.data.find(end, scan.position)
    stop = len(scan.data) if stop < 0 else stop
    scan.line += scan.data.count(b"\n", scan.position, stop)
    scan.position = stop
