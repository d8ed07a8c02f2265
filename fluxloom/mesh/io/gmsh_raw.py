"""What a Gmsh file holds, before nodes are numbered and patches grouped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.text import real
from fluxloom.mesh.elements import ElementType, by_code
from fluxloom.mesh.io.scan import PlainScanner

__all__ = ["RawMesh", "Row", "Rows", "element_type", "read_entities", "skip_section"]

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
        count = int(scan.integers(1, 1, "count of $PhysicalNames")[0, 0])
        for _ in range(count):
            text = scan.next_line() or ""
            words = text.split(maxsplit=2)
            try:
                self.names[int(words[0]), int(words[1])] = _unquoted(words[2].strip())
            except (IndexError, ValueError):
                scan.fail("a row of $PhysicalNames is damaged or missing; the file is truncated", scan.line - 1)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


class Rows(Protocol):
    """Where the numbers of entities come from: text or bytes."""

    def begin(self) -> None:
        """Begin a row."""
        ...

    def integers(self, count: int) -> list[int]:
        """Return the next integers of the row."""
        ...

    def sizes(self, count: int) -> list[int]:
        """Return the next counts of the row."""
        ...

    def pass_reals(self, count: int) -> None:
        """Leave out some reals."""
        ...


class Row:
    """Rows of text, which may go on over several lines."""

    def __init__(self, scan: PlainScanner, name: str) -> None:
        self._scan, self._name, self._words, self._line = scan, name, [""][:0], scan.line

    def begin(self) -> None:
        """Begin a row, on a line of its own."""
        if self._words:
            self._fail()
        self._line = self._scan.line

    def _take(self, count: int) -> list[str]:
        while len(self._words) < count:
            text = self._scan.next_line()
            if text is None or text.lstrip().startswith("$"):
                self._fail()
            self._words += text.split()
        taken, self._words = self._words[: max(count, 0)], self._words[max(count, 0) :]
        return taken

    def _fail(self) -> NoReturn:
        self._scan.fail(f"a row of {self._name} is damaged or missing; the file is truncated", self._line)

    def integers(self, count: int) -> list[int]:
        """Return the next integers of the row."""
        try:
            return [int(word) for word in self._take(count)]
        except ValueError:
            self._fail()

    sizes = integers

    def pass_reals(self, count: int) -> None:
        """Leave out some reals."""
        self._take(count)

    @classmethod
    def table(cls, scan: PlainScanner, count: int, width: int, what: str, *, whole: bool) -> npt.NDArray[Any]:
        """Return rows of numbers, also such as go on over several lines, in which case all of them have to fit.

        Parameters
        ----------
        scan, what
            The file, and what the numbers are.
        count, width
            Rows, and numbers in each of them.
        whole
            Whether they are integers.
        """
        position, line = scan.position, scan.line
        try:
            return scan.integers(count, width, what) if whole else scan.reals(count, width, what)
        except MeshError:
            scan.position, scan.line = position, line
            try:
                rows = cls(scan, what)
                numbers = [(int if whole else real)(word) for word in rows._take(count * width)]
                rows.begin()
                return np.array(numbers).reshape(count, width)
            except (MeshError, ValueError):
                pass
            raise


def read_entities(rows: Rows, raw: RawMesh, *, divided: bool = False) -> None:
    """Read the physical tags of every entity (4.1).

    Parameters
    ----------
    rows
        The section.
    raw
        Where the tags go.
    divided
        Whether they are those of ``$PartitionedEntities``: parts of others, with the groups of these where they have
        none of their own.
    """
    rows.begin()
    if divided:
        _, ghosts = rows.sizes(2)
        rows.integers(2 * ghosts)
    for dimension, count in enumerate(rows.sizes(4)):
        for _ in range(count):
            rows.begin()
            (tag,), parent = rows.integers(1), (-1, 0)
            if divided:
                above, of = rows.integers(2)
                parent = (above, of)
                rows.integers(rows.sizes(1)[0])
            rows.pass_reals(6 if dimension else 3)
            groups = tuple(dict.fromkeys(abs(group) for group in rows.integers(rows.sizes(1)[0])))
            if dimension:
                rows.integers(rows.sizes(1)[0])
            inherited = raw.groups.get(parent, ()) if parent[0] == dimension else ()
            raw.groups[dimension, tag] = groups or inherited
    rows.begin()


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
