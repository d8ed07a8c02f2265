"""Abaqus input files: nodes, linear elements, sets of elements and surfaces of element sides, of one part.

Elements one dimension lower that are in sets become patches, and so do surfaces; of several, the first one has a face.

Source: Abaqus "Input Syntax Rules" and "Keywords": *NODE, *ELEMENT, *ELSET, *SURFACE; numbers of element sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import NoReturn

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.core.text import real, whole
from fluxloom.mesh.data.elements import element, face_name
from fluxloom.mesh.data.mesh import IntArray, MeshData
from fluxloom.mesh.io.tables.collect import add_rows, cell_dimension, mesh_of, without_unused
from fluxloom.mesh.io.tables.scan import read_bytes

__all__ = ["read_abaqus"]

_PLANE, _SOLID = (
    r"(?:CPS|CPE|CPEG|CAX|CGAX|S|STRI|M3D|R3D|SFM3D|DS|DC2D|DCAX|AC2D|ACAX|F2D)",
    r"(?:C3D|D?CC3D|DC3D|AC3D|FC3D)",
)
_TYPES = tuple(
    (re.compile(rf"{head}{count}(?!\d)\w*"), name)
    for head, count, name in (
        (_PLANE, 3, "triangle"), (_PLANE, 4, "quad"),
        (_SOLID, 4, "tetra"), (_SOLID, 5, "pyramid"), (_SOLID, 6, "prism"), (_SOLID, 8, "hexahedron"),
        ("(?:T2D|T3D|R2D|RAX|AC1D|DC1D)", 2, "line"), ("(?:B2|B3|PIPE2|PIPE3|SAX|MAX)", 1, "line"),
        ("B[23]", 3, "line"),
    )
)  # fmt: skip
_SIDES = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 1, 2), (0, 3, 1), (1, 3, 2), (2, 3, 0)),
    "pyramid": ((0, 1, 2, 3), (0, 4, 1), (1, 4, 2), (2, 4, 3), (3, 4, 0)),
    "prism": ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0)),
    "hexahedron": ((0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (1, 5, 6, 2), (2, 6, 7, 3), (3, 7, 4, 0)),
}
_SURFACE = "surface "
_MADE = ("INCLUDE", "NGEN", "NFILL", "NCOPY", "NMAP", "ELGEN", "ELCOPY", "SYSTEM")


_Member = tuple[int | range, int]


@dataclass
class _Raw:
    """What the file holds: places of nodes, and kinds and nodes of elements, by label, and groups by a key.

    Groups are sets of elements, under their names in capitals, and surfaces: labels or ranges of them, which may be far
    more than there are elements, and which side, -1 for all of it.
    """

    path: str
    points: dict[int, list[float]] = field(default_factory=dict)
    elements: dict[int, tuple[str, list[int]]] = field(default_factory=dict)
    groups: dict[str, dict[_Member, None]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def fail(self, line: int, message: str) -> NoReturn:
        raise MeshError(f"{self.path}:{line}: {message}")

    def add(self, name: str, members: Iterable[_Member], key: str = "") -> None:
        """Add to a group, whose name is kept as it is written first, what it does not have."""
        key = key or name.upper()
        self.names.setdefault(key, name)
        self.groups.setdefault(key, {}).update(dict.fromkeys(members))

    def listed(self, key: str) -> dict[tuple[int, int], None]:
        """Return the labels of a group and their sides, in order; of ranges those that elements have."""
        found: dict[tuple[int, int], None] = {}
        for labels, side in self.groups[key]:
            if isinstance(labels, int):
                found[labels, side] = None
                continue
            few = labels if len(labels) < len(self.elements) else sorted(filter(labels.__contains__, self.elements))
            found.update(dict.fromkeys((label, side) for label in few if label in self.elements))
        return found


def read_abaqus(path: str | Path) -> MeshData:
    """Read an Abaqus input file.

    Parameters
    ----------
    path
        The file (or ``.inp.gz``): one part, its nodes in Cartesian coordinates of the file.

    Returns
    -------
    MeshData
        Cells of the highest dimension; nodes that no cell uses are dropped with a warning.

    Raises
    ------
    MeshError
        With file and line: for several parts, moved instances, nodes or elements that are to be made, included files,
        curved and unknown elements, and rows that are no numbers.
    """
    raw = _Raw(str(path))
    instances = 0
    for line, word, options, rows in _blocks(read_bytes(path).decode("utf-8", errors="replace").splitlines()):
        instances += word == "INSTANCE"
        if word in _MADE:
            raw.fail(line, f"*{word} is not followed; write one file with all nodes and elements")
        if word == "INSTANCE" and (rows or instances > 1):
            raw.fail(line, "moved or several instances of parts are not put together; write a flat file of one part")
        try:
            if word == "NODE" and options.get("SYSTEM", "R").upper() == "R":
                _nodes(raw, rows)
            elif word == "NODE":
                raw.fail(line, "nodes in other than Cartesian coordinates are not read")
            elif word == "ELEMENT":
                _elements(raw, line, options, rows)
            elif word == "ELSET":
                _set(raw, options, rows)
            elif word == "SURFACE" and options.get("TYPE", "ELEMENT").upper() == "ELEMENT":
                _surface(raw, options, rows)
        except (ValueError, IndexError):
            raw.fail(line, f"a row of *{word} is damaged, or no numbers")
    return _assemble(raw)


def _blocks(lines: list[str]) -> Iterator[tuple[int, str, dict[str, str], list[tuple[int, list[str]]]]]:
    """Yield keywords: their line, word, options and rows of data."""
    starts = [k for k, line in enumerate(lines) if line.startswith("*") and not line.startswith("**")]
    for first, stop in pairwise([*starts, len(lines)]):
        words = [word.strip() for word in lines[first][1:].split(",")]
        begin = first + 1
        while begin < stop and lines[begin - 1].rstrip().endswith(","):  # a keyword may go on
            words += [word.strip() for word in lines[begin].split(",")]
            begin += 1
        options = {
            key.strip().upper(): value.strip().strip('"') for key, _, value in (w.partition("=") for w in words[1:])
        }
        rows = [
            (number + 1, [word.strip() for word in lines[number].split(",") if word.strip()])
            for number in range(begin, stop)
            if lines[number].strip() and not lines[number].startswith("**")
        ]
        yield first + 1, words[0].upper(), options, rows


def _nodes(raw: _Raw, rows: list[tuple[int, list[str]]]) -> None:
    for line, words in rows:
        label = whole(words[0])
        if label in raw.points:
            raw.fail(
                line, f"node {label} is given twice: several parts are not put together; write a flat file of one part"
            )
        raw.points[label] = [real(word) for word in (*words[1:4], "0", "0")[:3]]


def _elements(raw: _Raw, line: int, options: dict[str, str], rows: list[tuple[int, list[str]]]) -> None:
    kind = options.get("TYPE", "").upper()
    name = next((name for pattern, name in _TYPES if pattern.fullmatch(kind)), "")
    if not name:
        raw.fail(line, f"elements of the type {kind!r} (curved, or none of a mesh) are not read; write linear elements")
    width, words = element(name).n_nodes + 1, [word for _, row in rows for word in row]
    if len(words) % width:
        raw.fail(line, f"elements {kind} have {width - 1} nodes each, and there are {len(words)} numbers in all")
    first = len(raw.elements)
    for k in range(0, len(words), width):
        label, *nodes = (whole(word) for word in words[k : k + width])
        if label in raw.elements:
            raw.fail(line, f"element {label} is given twice: several parts are not put together; write a flat file")
        raw.elements[label] = name, nodes
    if "ELSET" in options:
        raw.add(options["ELSET"], ((label, -1) for label in islice(raw.elements, first, None)))


def _labels(raw: _Raw, line: int, word: str) -> list[int | range]:
    """Return the elements that a label or the name of a set stands for."""
    if word.isdecimal():
        return [whole(word)]
    name = word.strip('"').split(".")[-1].upper()
    if name not in raw.groups:
        raw.fail(line, f"there is no set {word!r} before this line")
    return [label for label, _ in raw.groups[name]]


def _set(raw: _Raw, options: dict[str, str], rows: list[tuple[int, list[str]]]) -> None:
    name = options.get("ELSET", "")
    raw.add(name, ())
    for line, words in rows:
        if "GENERATE" in options:
            first, last, step = (whole(word) for word in (*words, "1")[:3])
            raw.add(name, [(range(first, last + 1, step), -1)])
        else:
            raw.add(name, [(label, -1) for word in words for label in _labels(raw, line, word)])


def _surface(raw: _Raw, options: dict[str, str], rows: list[tuple[int, list[str]]]) -> None:
    name = options.get("NAME", "")
    key = f"{_SURFACE}{name.upper()}"
    raw.add(name, (), key)
    for line, words in rows:
        side = words[1].upper() if len(words) > 1 else ""
        if not re.fullmatch(r"S[1-9]", side):
            raw.fail(line, f"the surface {name!r} names no side S1, S2 ... of its elements; name the sides")
        raw.add(name, [(label, int(side[1]) - 1) for label in _labels(raw, line, words[0])], key)


def _assemble(raw: _Raw) -> MeshData:
    """Number the nodes, pick the cells, make patches of sets and surfaces."""
    dimension = cell_dimension(raw.path, [kind for kind, _ in raw.elements.values()], "give elements (*ELEMENT)")
    place = {label: k for k, label in enumerate(raw.points)}
    numbers: dict[int, list[int]] = {}
    cells: dict[str, list[list[int]]] = {}
    for label, (kind, nodes) in raw.elements.items():
        try:
            numbers[label] = [place[node] for node in nodes]
        except KeyError as missing:
            raise MeshError(f"{raw.path}: element {label} has the node {missing}, which is not in *NODE") from None
        if element(kind).dimension == dimension:
            cells.setdefault(kind, []).append(numbers[label])
    patches: dict[str, dict[str, IntArray]] = {}
    for key in sorted(raw.groups, key=lambda key: key.startswith(_SURFACE)):  # stable: sets, then surfaces
        faces = [_face(raw, numbers, dimension, key, *member) for member in raw.listed(key)]
        for width in sorted({len(face) for face in faces} - {0}):
            rows = np.array([face for face in faces if len(face) == width])
            add_rows(patches.setdefault(raw.names[key], {}), face_name(width), rows)
    points = np.array(list(raw.points.values()), dtype=np.float64)
    blocks = {name: np.array(rows, dtype=np.int32) for name, rows in cells.items()}
    return without_unused(mesh_of(raw.path, points, blocks, patches))[0]


def _face(raw: _Raw, numbers: dict[int, list[int]], dimension: int, key: str, label: int, side: int) -> list[int]:
    """Return the nodes of a member of a group that is a face; none where it is a cell, or there is no such element."""
    kind = raw.elements[label][0] if label in raw.elements else "vertex"
    depth, corners = element(kind).dimension, _SIDES.get(kind, ())
    if side < 0:
        return numbers[label] if depth == dimension - 1 else []
    if side >= len(corners) or depth != dimension:
        raise MeshError(f"{raw.path}: the surface {raw.names[key]!r}: element {label} has no side S{side + 1}")
    return [numbers[label][corner] for corner in corners[side]]
