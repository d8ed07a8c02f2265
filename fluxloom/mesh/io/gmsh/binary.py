"""Rows of numbers of binary Gmsh meshes, versions 2.2 and 4.1."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.gmsh.raw import RawMesh, element_type
from fluxloom.mesh.io.tables.scan import PlainScanner

__all__ = ["ByteRows"]

_PARAMETRIC = 4 + 3 * 8 + 2 * 4
"""Bytes of a parametric node without parameters: its number, place, and entity."""


class ByteRows:
    """The numbers of a section, as `gmsh_text.TextRows` has them; errors name file and byte.

    Parameters
    ----------
    scan
        The file, behind the line with the version: here the number 1 tells the order of bytes.
    """

    def __init__(self, scan: PlainScanner) -> None:
        self.scan, self.section = scan, ""
        little = scan.data[scan.position : scan.position + 4] == b"\x01\x00\x00\x00"
        self._order: Literal["<", ">"] = "<" if little else ">"
        scan.position += 4

    @property
    def line(self) -> int:
        """The line that comes next."""
        return self.scan.line

    def _take(self, kind: Any, count: int, what: str) -> npt.NDArray[Any]:
        """Return the next ``count`` items of a dtype."""
        dtype = np.dtype(kind).newbyteorder(self._order)
        start, size = self.scan.position, dtype.itemsize * count
        self._require(size, what)
        self.scan.position += size
        return np.frombuffer(self.scan.data, dtype, count=count, offset=start)

    def _require(self, size: int, what: str) -> None:
        """Refuse a number of bytes that the rest of the file does not have."""
        start, total = self.scan.position, len(self.scan.data)
        if size < 0 or start + size > total:
            raise MeshError(
                f"{self.scan.path}: byte {start}: {what} need {size} bytes, the file has {total}; truncated?"
            )

    def begin(self) -> None:
        """Begin a row: nothing, in bytes."""

    def integers(self, count: int) -> list[int]:
        """Return 32-bit integers."""
        return self._take("i4", count, f"numbers of {self.section}").tolist()

    def sizes(self, count: int) -> list[int]:
        """Return 64-bit sizes."""
        return self._take("u8", count, f"counts of {self.section}").tolist()

    def pass_reals(self, count: int) -> None:
        """Leave out some reals."""
        self._take("f8", count, f"numbers of {self.section}")

    def counts(self) -> list[int]:
        """Return the four counts at the head of a section."""
        return self.sizes(4)

    def head(self) -> list[int]:
        """Return the four numbers at the head of a block, the last one a count."""
        return [*self.integers(3), *self.sizes(1)]

    def whole(self, count: int, width: int, what: str) -> npt.NDArray[np.int64]:
        """Return rows of integers, ``(count, width)``."""
        return self._take("u8", count * width, what).reshape(count, width).astype(np.int64)

    def reals(self, count: int, width: int, more: int, what: str) -> npt.NDArray[np.float64]:
        """Return rows of reals, ``(count, width)``, behind each of which there are ``more`` of them."""
        table = self._take("f8", count * (width + more), what)
        return table.reshape(count, width + more)[:, :width].astype(np.float64)

    def nodes_2(self, raw: RawMesh) -> None:
        """Read rows ``number x y z``; parametric nodes have an entity too, and on curves and surfaces parameters."""
        count = self.scan.count(self.section)
        if self.section == "$Nodes":
            table = self._take([("tag", "i4"), ("x", "f8", 3)], count, "nodes")
            raw.add_nodes(table["tag"], table["x"])
            return
        self._require(count * _PARAMETRIC, "nodes")
        tags, points = np.empty(count), np.empty((count, 3))
        for row in range(count):
            tags[row] = self.integers(1)[0]
            points[row] = self._take("f8", 3, "nodes")
            dimension, _ = self.integers(2)
            self.pass_reals(dimension if dimension < 3 else 0)
        raw.add_nodes(tags, points)

    def elements_2(self, raw: RawMesh) -> None:
        """Read blocks of a header (type, count, number of tags) and rows (number, tags, nodes)."""
        left = self.scan.count(self.section)
        while left > 0:
            code, count, n_tags = self.integers(3)
            kind = element_type(self.scan, code, self.line)
            if not 0 < count <= left:
                raise MeshError(f"{self.scan.path}: byte {self.scan.position}: a block of {count} elements is damaged")
            width = 1 + n_tags + kind.n_nodes
            table = self._take("i4", count * width, "elements").reshape(count, width).astype(np.int64)
            raw.add(kind.name, table[:, 1 + n_tags :], table[:, 1] if n_tags else np.zeros(count, dtype=np.int64))
            left -= count
