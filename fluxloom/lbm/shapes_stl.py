"""Triangles from STL files, binary or text.

The binary form: 80 bytes of header, the number of triangles, and for each one a normal, three corners (little-endian
single precision) and two bytes (Library of Congress, format fdd000504).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["read_stl"]

_HEADER = 84
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(path: str | Path) -> npt.NDArray[np.float64]:
    """Return the corners of all triangles, ``(n, 3, 3)``: triangle, corner, ``(x, y, z)``, as they are in the file.

    Raises
    ------
    SolverError
        If the file cannot be read, is no STL file, or is cut off.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SolverError(f"{path}: cannot be read: {error.strerror}") from error
    count = int.from_bytes(data[_HEADER - 4 : _HEADER], "little") if len(data) >= _HEADER else 0
    if len(data) >= _HEADER and len(data) == _HEADER + count * _RECORD.itemsize:
        corners = np.frombuffer(data, _RECORD, count, _HEADER)["corners"].astype(np.float64)
    elif data.lstrip()[:5] == b"solid" and b"\0" not in data:
        corners = _text(path, data)
    else:
        raise SolverError(f"{path}: no STL file, or cut off: {len(data)} bytes do not hold {count} triangles")
    if not len(corners) or not np.isfinite(corners).all():
        raise SolverError(f"{path}: " + ("a corner is not finite" if len(corners) else "the file has no triangles"))
    return corners


def _text(path: str | Path, data: bytes) -> npt.NDArray[np.float64]:
    rows = [line.split()[1:] for line in data.decode("latin-1").splitlines() if line.lstrip().startswith("vertex")]
    try:
        numbers = np.array(rows, dtype=np.float64).reshape(-1, 3)
    except ValueError as error:
        raise SolverError(f"{path}: a line with a vertex does not have three numbers: {error}") from error
    if len(numbers) % 3 or not data.rstrip().splitlines()[-1].lstrip().startswith(b"endsolid"):
        raise SolverError(f"{path}: cut off after {len(numbers)} corners, without 'endsolid'")
    return numbers.reshape(-1, 3, 3)
