"""Elevations on regular grids, and series over time, from files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RegularGridInterpolator

from fluxloom.core.errors import CaseError
from fluxloom.core.text import real, without_mark

__all__ = ["Raster", "read_raster", "read_series"]

FloatArray = npt.NDArray[np.float64]

_HEADER = ("ncols", "nrows", "xllcorner", "xllcenter", "yllcorner", "yllcenter", "cellsize", "nodata_value")


_REMARKS = "#%!"
_COMMA = re.compile(r"[+-]?(\d+,\d+([eEdD][+-]?\d+)?|\d{1,3}(,\d{3})+\.\d*)")
_DIGITS = re.compile(r"[-+\d, ]+")


@dataclass(frozen=True, eq=False)
class Raster:
    """Values at the points of a grid, bilinear between them.

    Attributes
    ----------
    x, y : (nx,), (ny,) float64
        Increasing.
    values : (nx, ny) float64
        NaN where there is none.
    path
        Where they came from.
    """

    x: FloatArray
    y: FloatArray
    values: FloatArray
    path: str

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return values at points; up to one interval outside the grid those at its rim.

        Raises
        ------
        CaseError
            For a point farther away, or one where the grid has no value.
        """
        px, py = (np.clip(p, g[0], g[-1]) for p, g in ((x, self.x), (y, self.y)))
        far = (np.abs(px - x) > self.x[1] - self.x[0]) | (np.abs(py - y) > self.y[1] - self.y[0])
        if far.any():
            k = int(np.argmax(far))
            raise CaseError(
                f"{self.path}: the point ({x[k]:g}, {y[k]:g}) of the mesh lies outside the grid, which covers "
                f"x {self.x[0]:g} to {self.x[-1]:g}, y {self.y[0]:g} to {self.y[-1]:g}"
            )
        found = RegularGridInterpolator((self.x, self.y), self.values)(np.stack([px, py], axis=-1))
        if not np.isfinite(found).all():
            k = int(np.argmin(np.isfinite(found)))
            raise CaseError(f"{self.path}: the grid has no value at the point ({x[k]:g}, {y[k]:g}) of the mesh")
        return found


def read_raster(path: str | Path) -> Raster:
    """Read an ESRI ASCII grid, or lines ``x y z`` of a regular grid in any order, with or without a heading.

    Raises
    ------
    CaseError
        When there is no such file or it is neither.
    """
    text = _text(path)
    words = text.split(maxsplit=1)
    if words and words[0].lower() in _HEADER:
        return _esri(str(path), text)
    table, lines = _table(str(path), text, 3)
    _require_finite(str(path), table[:, :2], lines)
    x, column = np.unique(table[:, 0], return_inverse=True)
    y, row = np.unique(table[:, 1], return_inverse=True)
    if len(x) * len(y) != len(table) or len(x) < 2 or len(y) < 2:
        raise CaseError(f"{path}: {len(table)} points are not a regular grid ({len(x)} values of x, {len(y)} of y)")
    values, found = np.full((len(x), len(y)), np.nan), np.zeros((len(x), len(y)), dtype=bool)
    values[column, row], found[column, row] = table[:, 2], True
    if not found.all():
        raise CaseError(f"{path}: some points of the grid occur twice and others are missing")
    return Raster(x, y, values, str(path))


def read_series(path: str | Path) -> tuple[FloatArray, FloatArray]:
    """Read lines ``time value``, separated by blanks, commas or semicolons, with or without a heading.

    Raises
    ------
    CaseError
        When there is no such file, a line is broken, or the times do not increase.
    """
    table, lines = _table(str(path), _text(path), 2)
    _require_finite(str(path), table, lines)
    for k in np.flatnonzero(np.diff(table[:, 0]) <= 0.0)[:1].tolist():
        before, after = table[k : k + 2, 0]
        raise CaseError(f"{path}:{lines[k + 1]}: the times must increase, got {after:g} after {before:g}")
    return table[:, 0], table[:, 1]


def _require_finite(path: str, table: FloatArray, lines: list[int]) -> None:
    """Raise `CaseError` with the line of the first number that is NaN or infinite."""
    for k in np.flatnonzero(~np.isfinite(table).all(axis=1))[:1].tolist():
        raise CaseError(f"{path}:{lines[k]}: finite numbers are expected, got {' '.join(map(str, table[k].tolist()))}")


def _text(path: str | Path) -> str:
    try:
        return without_mark(Path(path).read_bytes()).decode("utf-8", errors="replace")
    except FileNotFoundError:
        raise CaseError(f"{path}: no such file; paths in case files are relative to {Path.cwd()}") from None
    except OSError as error:
        raise CaseError(f"{path}: cannot be read: {error.strerror or error}") from None


def _table(path: str, text: str, columns: int) -> tuple[FloatArray, list[int]]:
    """Return rows of numbers and their lines; a heading, whose words are no numbers, is passed over."""
    lines = [(k, line.strip()) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(k, line) for k, line in lines if line[0] not in _REMARKS]
    rows = [(k, line.replace(",", " ").replace(";", " ").split()) for k, line in lines]
    heading = bool(rows) and not any(_number(word) for word in rows[0][1][:columns])
    lines, rows = lines[heading:], rows[heading:]
    _refuse_decimal_commas(path, lines, columns)
    for number, words in rows:
        if len(words) < columns or not all(_number(word) for word in words[:columns]):
            raise CaseError(
                f"{path}:{number}: {columns} numbers are expected, got {' '.join(words)[:60]!r}; one heading may stand "
                "above, and remarks behind #"
            )
    if not rows:
        raise CaseError(f"{path}: there are no numbers in it")
    return np.array([[real(word) for word in words[:columns]] for _, words in rows]), [k for k, _ in rows]


def _refuse_decimal_commas(path: str, lines: list[tuple[int, str]], columns: int) -> None:
    """Raise `CaseError` where a comma stands for the point: within a word among others, or between digits alone."""
    for number, line in lines:
        words = line.split("#")[0].replace(";", " ").split()
        if len(words) > 1 and (word := next((word for word in words if _COMMA.fullmatch(word)), "")):
            raise CaseError(f"{path}:{number}: a decimal comma in {word!r}; write points, and blanks between columns")
    counts = {line.count(",") for _, line in lines}
    digits = all(_DIGITS.fullmatch(line) for _, line in lines)
    if digits and max(counts, default=0) >= columns and (len(counts) > 1 or counts == {2 * columns - 1}):
        raise CaseError(
            f"{path}:{lines[0][0]}: {lines[0][1][:60]!r}: {columns} numbers are expected, and commas between digits "
            "alone may be decimal commas; write points, or leave out the other columns"
        )


def _number(word: str) -> bool:
    try:
        real(word)
    except ValueError:
        return False
    return True


def _esri(path: str, text: str) -> Raster:
    """Read an ESRI ASCII grid: rows from north to south."""
    head: dict[str, float] = {}
    lines = text.splitlines()
    count = 0
    for line in lines:
        words = line.split()
        if len(words) != 2 or words[0].lower() not in _HEADER or not _number(words[1]):
            break
        head[words[0].lower()] = real(words[1])
        count += 1
    missing = [name for name in ("ncols", "nrows", "cellsize") if name not in head]
    missing += [f"{a}llcorner" for a in "xy" if f"{a}llcorner" not in head and f"{a}llcenter" not in head]
    if missing:
        raise CaseError(f"{path}: the heading of the grid has no {missing[0]}")
    for name in ("ncols", "nrows"):
        if not head[name].is_integer():
            raise CaseError(f"{path}: {name} in the heading of the grid is {head[name]:g}, not a whole number")
    nx, ny, size = int(head["ncols"]), int(head["nrows"]), head["cellsize"]
    if not 0.0 < size < np.inf:
        raise CaseError(f"{path}: cellsize in the heading of the grid is {size:g}, not a positive number")
    rows: list[FloatArray] = []
    for number, line in enumerate(lines[count:], count + 1):
        try:
            rows.append(np.array(line.split(), dtype=np.float64))
        except ValueError:
            raise CaseError(f"{path}:{number}: numbers are expected, got {line.strip()[:60]!r}") from None
    data = np.concatenate([np.empty(0), *rows])
    if data.size != nx * ny or nx < 2 or ny < 2:
        raise CaseError(f"{path}: {data.size} values for {ny} rows of {nx}")
    values = data.reshape(ny, nx)[::-1].T.copy()
    if "nodata_value" in head:
        values[values == head["nodata_value"]] = np.nan
    x0, y0 = (head.get(f"{a}llcenter", head.get(f"{a}llcorner", 0.0) + 0.5 * size) for a in "xy")
    x, y = (start + size * np.arange(count, dtype=np.float64) for start, count in ((x0, nx), (y0, ny)))
    return Raster(x, y, values, path)
