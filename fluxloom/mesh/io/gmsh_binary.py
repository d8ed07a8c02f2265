"""Binary Gmsh meshes, versions 2.2 and 4.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.gmsh_raw import RawMesh, element_type, read_entities, skip_section
from fluxloom.mesh.io.scan import PlainScanner

__all__ = ["read_binary"]


def read_binary(scan: PlainScanner, raw: RawMesh) -> None:
    """Read the rest of a binary file, from behind the line with the version.

    Raises
    ------
    MeshError
        With file and byte: for truncated sections and unsupported elements.
    """
    one = scan.data[scan.position : scan.position + 4]
    scan.position += 4
    body = _Body(scan, one == b"\x01\x00\x00\x00")
    while (text := scan.next_line()) is not None:
        name = text.strip()
        if not name.startswith("$") or name.startswith("$End"):
            continue
        if name == "$PhysicalNames":
            raw.read_names(scan)
        elif name in ("$Entities", "$PartitionedEntities"):
            read_entities(body, raw, divided=name != "$Entities")
        elif name == "$Nodes":
            _nodes_2(body, raw) if raw.version == "2.2" else _nodes_4(body, raw)
        elif name == "$ParametricNodes":
            _nodes_parametric(body, raw)
        elif name == "$Elements":
            _elements_2(body, raw) if raw.version == "2.2" else _elements_4(body, raw)
        else:
            skip_section(scan, name)


class _Body:
    """Takes arrays from the bytes of a file."""

    def __init__(self, scan: PlainScanner, little: bool) -> None:
        self.scan = scan
        self.little = little

    def take(self, kind: Any, count: int, what: str) -> npt.NDArray[Any]:
        """Return the next ``count`` items of a dtype."""
        dtype = np.dtype(kind).newbyteorder("<" if self.little else ">")
        start, size = self.scan.position, dtype.itemsize * count
        if count < 0 or start + size > len(self.scan.data):
            total = len(self.scan.data)
            raise MeshError(
                f"{self.scan.path}: byte {start}: {what} need {size} bytes, the file has {total}; truncated?"
            )
        self.scan.position += size
        return np.frombuffer(self.scan.data, dtype, count=count, offset=start)

    def sizes(self, count: int, what: str = "entities") -> list[int]:
        """Return 64-bit sizes."""
        return [int(value) for value in self.take("u8", count, what)]

    def integers(self, count: int) -> list[int]:
        """Return 32-bit integers."""
        return [int(value) for value in self.take("i4", count, "entities")]

    def pass_reals(self, count: int) -> None:
        """Leave out some reals."""
        self.take("f8", count, "entities")

    def begin(self) -> None:
        """Begin a row: nothing, in bytes."""


def _nodes_4(body: _Body, raw: RawMesh) -> None:
    n_blocks = body.sizes(4, "counts of $Nodes")[0]
    for _ in range(n_blocks):
        dimension, _, parametric = (int(value) for value in body.take("i4", 3, "$Nodes"))
        (count,) = body.sizes(1, "$Nodes")
        raw.node_tags.append(body.take("u8", count, "node numbers").astype(np.int64))
        width = 3 + (dimension if parametric else 0)
        raw.points.append(body.take("f8", count * width, "coordinates").reshape(count, width)[:, :3].astype(np.float64))


def _elements_4(body: _Body, raw: RawMesh) -> None:
    n_blocks = body.sizes(4, "counts of $Elements")[0]
    for _ in range(n_blocks):
        dimension, tag, code = (int(value) for value in body.take("i4", 3, "$Elements"))
        (count,) = body.sizes(1, "$Elements")
        kind = element_type(body.scan, code, body.scan.line)
        table = body.take("u8", count * (1 + kind.n_nodes), "elements").reshape(count, -1)
        raw.add_of(kind.name, table[:, 1:].astype(np.int64), dimension, tag)


def _nodes_2(body: _Body, raw: RawMesh) -> None:
    count = int(body.scan.integers(1, 1, "count of $Nodes")[0, 0])
    table = body.take([("tag", "i4"), ("x", "f8", 3)], count, "nodes")
    raw.node_tags.append(table["tag"].astype(np.int64))
    raw.points.append(table["x"].astype(np.float64))


def _nodes_parametric(body: _Body, raw: RawMesh) -> None:
    """Read nodes with their place on an entity: its dimension and tag; on curves and surfaces as many parameters."""
    count = int(body.scan.integers(1, 1, "count of $ParametricNodes")[0, 0])
    tags, points = np.empty(count, dtype=np.int64), np.empty((count, 3))
    for row in range(count):
        tags[row] = body.integers(1)[0]
        points[row] = body.take("f8", 3, "nodes")
        dimension, _ = body.integers(2)
        body.pass_reals(dimension if dimension < 3 else 0)
    raw.node_tags.append(tags)
    raw.points.append(points)


def _elements_2(body: _Body, raw: RawMesh) -> None:
    """Read blocks of a header (type, count, number of tags) and rows (number, tags, nodes)."""
    left = int(body.scan.integers(1, 1, "count of $Elements")[0, 0])
    while left > 0:
        code, count, n_tags = (int(value) for value in body.take("i4", 3, "$Elements"))
        kind = element_type(body.scan, code, body.scan.line)
        if not 0 < count <= left:
            raise MeshError(f"{body.scan.path}: byte {body.scan.position}: a block of {count} elements is damaged")
        width = 1 + n_tags + kind.n_nodes
        table = body.take("i4", count * width, "elements").reshape(count, width)
        groups = table[:, 1] if n_tags else np.zeros(count)
        raw.add(kind.name, table[:, 1 + n_tags :].astype(np.int64), groups.astype(np.int64))
        left -= count
