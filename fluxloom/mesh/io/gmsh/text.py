"""Rows of numbers of Gmsh meshes in text, versions 2.2 and 4.1."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.text import real, whole
from fluxloom.mesh.io.gmsh.raw import RawMesh, element_type
from fluxloom.mesh.io.tables.scan import PlainScanner

__all__ = ["TextRows"]

_LIMIT = 40  # number, type, count of tags, tags (partitions included), eight nodes


class TextRows:
    """The numbers of a section, whose rows may go on over several lines; `gmsh_binary.ByteRows` has the same in bytes.

    Parameters
    ----------
    scan
        The file.
    """

    def __init__(self, scan: PlainScanner) -> None:
        self.scan, self.section = scan, ""
        self._words: list[str] = []
        self._line = scan.line

    @property
    def line(self) -> int:
        """The line that was read last."""
        return self.scan.last_line

    def begin(self) -> None:
        """Begin a row, on a line of its own."""
        if self._words:
            self._fail()
        self._line = self.scan.line

    def _take(self, count: int) -> list[str]:
        while len(self._words) < count:
            text = self.scan.next_line()
            if text is None or text.lstrip().startswith("$"):
                self._fail()
            self._words += text.split()
        taken, self._words = self._words[: max(count, 0)], self._words[max(count, 0) :]
        return taken

    def _fail(self) -> NoReturn:
        self.scan.fail(f"a row of {self.section} is damaged or missing; the file is truncated", self._line)

    def integers(self, count: int) -> list[int]:
        """Return the next integers of the row."""
        try:
            return [whole(word) for word in self._take(count)]
        except ValueError:
            self._fail()

    sizes = integers

    def pass_reals(self, count: int) -> None:
        """Leave out some reals."""
        self._take(count)

    def counts(self) -> list[int]:
        """Return the four counts at the head of a section."""
        return self.scan.integers(1, 4, f"counts of {self.section}")[0].tolist()

    def head(self) -> list[int]:
        """Return the four numbers at the head of a block, the last one a count."""
        return self.scan.integers(1, 4, f"header of a block of {self.section}")[0].tolist()

    def whole(self, count: int, width: int, what: str) -> npt.NDArray[np.int64]:
        """Return rows of integers, ``(count, width)``."""
        return self._table(count, width, what, integers=True)

    def reals(self, count: int, width: int, more: int, what: str) -> npt.NDArray[np.float64]:
        """Return rows of reals, ``(count, width)``, behind each of which there are ``more`` of them."""
        return self._table(count, width, what, integers=False)

    def _table(self, count: int, width: int, what: str, *, integers: bool) -> npt.NDArray[Any]:
        """Return rows of numbers, also such as go on over several lines, in which case all of them have to fit."""
        scan, position, line = self.scan, self.scan.position, self.scan.line
        try:
            return scan.integers(count, width, what) if integers else scan.reals(count, width, what)
        except MeshError:
            scan.position, scan.line = position, line
            try:
                numbers = [(whole if integers else real)(word) for word in self._take(count * width)]
                self.begin()
                return np.array(numbers).reshape(count, width)
            except (MeshError, ValueError):
                pass
            raise

    def nodes_2(self, raw: RawMesh) -> None:
        """Read rows ``number x y z``; of parametric nodes the parameters follow."""
        table = self.reals(self.scan.count(self.section), 4, 0, "nodes ($Nodes)")
        raw.add_nodes(table[:, 0], table[:, 1:])

    def elements_2(self, raw: RawMesh) -> None:
        """Read rows ``number type n_tags tags... nodes...``."""
        scan, n = self.scan, self.scan.count(self.section)
        counts, flat = scan.ragged(n, _LIMIT, "elements ($Elements)")
        starts = np.zeros(n, dtype=np.int64)
        np.cumsum(counts[:-1], out=starts[1:])
        short = np.flatnonzero(counts < 4)
        if len(short):
            scan.fail("an element needs number, type, count of tags, tags and nodes", scan.first_line + int(short[0]))
        codes, n_tags = flat[starts + 1], flat[starts + 2]
        for code in dict.fromkeys(codes.tolist()):
            rows = np.flatnonzero(codes == code)
            kind = element_type(scan, code, scan.first_line + int(rows[0]))
            short = np.flatnonzero(counts[rows] < 3 + n_tags[rows] + kind.n_nodes)
            if len(short):
                line = scan.first_line + int(rows[short[0]])
                scan.fail(f"a {kind.name} needs {kind.n_nodes} nodes after its tags", line)
            first = starts[rows] + 3
            groups = np.where(n_tags[rows] > 0, flat[np.minimum(first, len(flat) - 1)], 0)
            nodes = flat[(first + n_tags[rows])[:, None] + np.arange(kind.n_nodes)]
            raw.add(kind.name, nodes.astype(np.int64), groups.astype(np.int64))
