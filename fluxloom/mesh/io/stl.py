"""Triangles of STL files, binary and text, as they are written by any program: the one reader of bodies and lattices.

A text has ``solid NAME``, and per triangle ``facet normal``, ``outer loop`` and three lines ``vertex x y z``, in small
or capital letters. A binary file has 80 bytes of anything, the number of triangles, and 50 bytes for each.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.core.text import real, without_mark
from fluxloom.mesh.data.mesh import FloatArray

__all__ = ["read_stl_corners"]

_HEAD, _TRIANGLE = 84, 50
_NAMES = re.compile(rb"^[ \t]*(?:end[ \t]*)?solid\b[^\r\n]*", re.IGNORECASE | re.MULTILINE)
_LOOP, _END = re.compile(rb"\bouter\s+loop\b", re.IGNORECASE), re.compile(rb"\bend\s*facet\b", re.IGNORECASE)
_WORD = re.compile(rb"\bvertex\b", re.IGNORECASE)
_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


def read_stl_corners(path: str | Path) -> FloatArray:
    """Return the corners of all triangles of an STL file, ``(n, 3, 3)``: triangle, corner, ``(x, y, z)``.

    Raises
    ------
    MeshError
        Where there is no such file, it is no STL, or it has not what it says.
    """
    try:
        data = without_mark(Path(path).read_bytes())
    except OSError as error:
        raise MeshError(f"{path}: cannot be read: {error.strerror or error}") from None
    corners = _text(path, data) if _is_text(data) else _binary(path, data)
    if not len(corners):
        raise MeshError(f"{path}: the file has no triangles; write it anew")
    if not np.isfinite(corners).all():
        raise MeshError(f"{path}: a corner is not finite; write the file anew")
    return corners


def _is_text(data: bytes) -> bool:
    """Whether it begins as a text does; the name in a binary file may do so too, but its number has a zero byte."""
    return data.lstrip()[:5].lower() == b"solid" and b"\0" not in data[:_HEAD]


def _binary(path: str | Path, data: bytes) -> FloatArray:
    count, there = int.from_bytes(data[80:84], "little"), (len(data) - _HEAD) // _TRIANGLE
    if len(data) < _HEAD or there < count:
        raise MeshError(f"{path}: not an STL file, or one that was cut off; write it anew")
    rest = data[_HEAD + _TRIANGLE * count :]
    if there > count and rest.strip(b"\0 \r\n\t\x1a"):
        raise MeshError(f"{path}: the file says {count} triangles, and there is room for {there}; write it anew")
    rows = np.frombuffer(data, dtype=np.uint8, offset=_HEAD, count=_TRIANGLE * count).reshape(-1, _TRIANGLE)[:, 12:48]
    return np.ascontiguousarray(rows).view("<f4").astype(np.float64).reshape(-1, 3, 3)


def _text(path: str | Path, data: bytes) -> FloatArray:
    body = _NAMES.sub(b"", data)
    found = _VERTEX.findall(body)
    words, loops, ends = len(_WORD.findall(body)), len(_LOOP.findall(body)), len(_END.findall(body))
    if not (len(found) == words == 3 * loops and loops == ends):
        raise MeshError(
            f"{path}: {words} corners in {loops} facets of which {ends} end; a facet has three, of three numbers: the "
            "file was cut off, or is none of triangles; write it anew"
        )
    try:
        return np.array(found).astype(np.float64).reshape(-1, 3, 3)
    except ValueError:
        found = [_number(path, body, corner, k) for corner in _VERTEX.finditer(body) for k in (1, 2, 3)]
        return np.array(found).reshape(-1, 3, 3)


def _number(path: str | Path, body: bytes, corner: re.Match[bytes], k: int) -> float:
    text = corner[k].decode("utf-8", errors="replace")
    try:
        return real(text)
    except ValueError:
        line = body.count(b"\n", 0, corner.start(k)) + 1
        raise MeshError(f"{path}:{line}: the coordinate {text!r} is no number; mend the file") from None
