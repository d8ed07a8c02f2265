"""Values from tables: series over time, profiles over a coordinate, rasters; and the files that hold them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError, did_you_mean
from fluxloom.core.strategies import PYTHON_ONLY
from fluxloom.core.text import real, without_mark
from fluxloom.values.value import Value

__all__ = ["GridValues", "Profile", "Raster", "TimeSeries", "read_columns", "read_raster", "read_series"]

FloatArray = npt.NDArray[np.float64]

Outside = Literal["error", "hold"]

_ROUNDING = 1e-9
"""Part of the length of a table by which rounding may lead beyond its ends."""

_HEADER = ("ncols", "nrows", "xllcorner", "xllcenter", "yllcorner", "yllcenter", "cellsize", "nodata_value")


_REMARKS = "#%!"
_COMMA = re.compile(r"[+-]?(\d+,\d+([eEdD][+-]?\d+)?|\d{1,3}(,\d{3})+\.\d*)")
_DIGITS = re.compile(r"[-+\d, ]+")


@dataclass(frozen=True, eq=False)
class GridValues:
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
        from scipy.interpolate import RegularGridInterpolator

        found = RegularGridInterpolator((self.x, self.y), self.values)(np.stack([px, py], axis=-1))
        if not np.isfinite(found).all():
            k = int(np.argmin(np.isfinite(found)))
            raise CaseError(f"{self.path}: the grid has no value at the point ({x[k]:g}, {y[k]:g}) of the mesh")
        return found


@dataclass(frozen=True)
class TimeSeries(Value, name="series"):
    """A number over time, the same everywhere: linear between given ones.

    Attributes
    ----------
    file
        Lines of numbers; a heading of words may stand above.
    time, column
        Columns of the file with the times and the values: numbers from 1 on, or words of the heading.
    periodic
        Whether the series begins again behind its last time; the last value has to be the first one.
    outside
        Before the first and behind the last time: ``"error"``, or ``"hold"``: the value there.
    times, numbers : (n,)
        Instead of a file.

    Raises
    ------
    CaseError
        If the file is none, or the times do not increase.
    SolverError
        If arrays do not fit, or a series that is periodic does not close.
    """

    file: str = ""
    time: int | str = 1
    column: int | str = 2
    periodic: bool = False
    outside: Outside = "error"
    times: npt.ArrayLike = field(default=(), metadata=PYTHON_ONLY)
    numbers: npt.ArrayLike = field(default=(), metadata=PYTHON_ONLY)
    in_space = False

    def __post_init__(self) -> None:
        times, numbers = self._table
        if self.periodic and (len(times) < 2 or abs(numbers[-1] - numbers[0]) > 1e-9 * np.abs(numbers).max()):
            raise SolverError(
                f"{self}: a periodic series ends with the value that it begins with, at the time where it begins again;"
                f" it has {numbers[0]:g} first and {numbers[-1]:g} last"
            )

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        if self.file:
            return read_series(self.file, self.time, self.column)
        times, numbers = (np.asarray(given, dtype=np.float64) for given in (self.times, self.numbers))
        if times.ndim != 1 or times.shape != numbers.shape or not times.size:
            raise SolverError(f"a series needs as many times as values, got {times.shape} and {numbers.shape}")
        if not (np.isfinite(times).all() and np.isfinite(numbers).all()):
            raise SolverError("a series has times or values that are not finite")
        for k in np.flatnonzero(np.diff(times) <= 0.0)[:1].tolist():
            raise SolverError(f"the times of a series must increase, got {times[k + 1]:g} after {times[k]:g}")
        return times, numbers

    @property
    def finest(self) -> float:
        """Its shortest interval, seconds; infinite where it has none."""
        return float(np.diff(self._table[0]).min(initial=np.inf))

    def turns(self, begin: float, end: float) -> FloatArray:
        """Return the times of its lines in ``(begin, end]``, ``(n,)``."""
        mine = self._table[0]
        if self.periodic:
            length = mine[-1] - mine[0]
            rounds = np.arange((begin - mine[0]) // length, (end - mine[0]) // length + 1.0)
            mine = np.unique(mine + length * rounds[:, None])
        return mine[(mine > begin) & (mine <= end)]

    def over_time(self, times: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """Return it at times, beyond its ends the values there."""
        mine, numbers = self._table
        return np.interp(times, mine, numbers, period=mine[-1] - mine[0] if self.periodic else None)

    def values(self, places: FloatArray, time: float) -> npt.ArrayLike:
        """Return it, linear between lines, ``q_k + (t - t_k) (q_{k+1} - q_k) / (t_{k+1} - t_k)``."""
        times, numbers = self._table
        if self.periodic:
            time = float(times[0] + (time - times[0]) % (times[-1] - times[0]))
        away = _ROUNDING * (times[-1] - times[0])
        if not self.periodic and self.outside == "error" and not times[0] - away <= time <= times[-1] + away:
            raise SolverError(
                f"{self}: it goes from {times[0]:g} to {times[-1]:g} and has no value at t = {time:g}; give a longer "
                'one, or outside = "hold", or periodic = true'
            )
        return np.interp(time, times, numbers)

    def __str__(self) -> str:
        return f"the series {self.file}" if self.file else "a series"


@dataclass(frozen=True)
class Profile(Value, name="profile"):
    """Values along coordinates, linear between given ones.

    Attributes
    ----------
    file
        Lines of numbers; a heading of words may stand above.
    along
        Coordinates: ``"y"``; ``"yz"``: values at any points of two; ``"r"``: the distance from the line through
        ``centre`` along ``axis`` (of a plane from the point).
    column
        Of the file with the values: a number from 1 on or a word of the heading; by default the one behind the
        coordinates, which are the first ones.
    outside
        Beyond the first and the last point: ``"error"``, or ``"hold"``: the value there.
    centre, axis
        Of ``along = "r"``.
    points : (n,) or (n, 2), numbers : (n,)
        Instead of a file.

    Raises
    ------
    CaseError
        If the file is none, or a point is not finite.
    SolverError
        If arrays do not fit.
    """

    file: str = ""
    along: Literal["x", "y", "z", "r", "xy", "xz", "yz"] = "y"
    column: int | str = 0
    outside: Outside = "error"
    centre: tuple[float, ...] = (0.0, 0.0, 0.0)
    axis: Literal["x", "y", "z"] = "x"
    points: npt.ArrayLike = field(default=(), metadata=PYTHON_ONLY)
    numbers: npt.ArrayLike = field(default=(), metadata=PYTHON_ONLY)
    in_time = False

    def __post_init__(self) -> None:
        if len(self.along) > 1 and self.outside == "hold":
            raise SolverError(f'{self}: outside = "hold" is of one coordinate, not of {len(self.along)}')
        _ = self._table

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """The points ``(n, coordinates)``, of one coordinate ascending, and the values."""
        count = len(self.along)
        if self.file:
            table, _ = read_columns(self.file, [*range(1, count + 1), self.column or count + 1])
            points, numbers = table[:, :-1], table[:, -1]
        else:
            points, numbers = (np.asarray(given, dtype=np.float64) for given in (self.points, self.numbers))
            points = points.reshape(len(points), -1)
        if points.shape != (len(numbers), count) or len(numbers) < 2 * count:
            raise SolverError(f"{self}: {count} coordinates and a value are wanted for each of {2 * count} points or "
                              f"more, got {points.shape} and {numbers.shape}")  # fmt: skip
        if not (np.isfinite(points).all() and np.isfinite(numbers).all()):
            raise SolverError(f"{self}: points and values have to be finite")
        if count == 1:
            order = np.argsort(points[:, 0], kind="stable")
            points, numbers = points[order], numbers[order]
            for k in np.flatnonzero(np.diff(points[:, 0]) <= 0.0)[:1].tolist():
                raise SolverError(f"{self}: there are two values at {self.along} = {points[k, 0]:g}")
        return points, numbers

    def _coordinates(self, places: FloatArray) -> FloatArray:
        """Return the coordinates of places, ``(n, coordinates)``."""
        d = places.shape[1]
        if self.along == "r":
            apart = places - np.asarray([*self.centre, 0.0, 0.0, 0.0][:d])
            if d == 3:
                apart = np.delete(apart, "xyz".index(self.axis), axis=1)
            return np.linalg.norm(apart, axis=1)[:, None]
        columns = ["xyz".index(name) for name in self.along]
        if max(columns) >= d:
            raise SolverError(f'{self}: along = "{self.along}": the places have {d} dimensions')
        return places[:, columns]

    def values(self, places: FloatArray, time: float) -> npt.ArrayLike:
        """Return them."""
        points, numbers = self._table
        at = self._coordinates(places)
        if len(self.along) > 1:
            from scipy.interpolate import LinearNDInterpolator

            found = LinearNDInterpolator(points, numbers)(at)
            outside = ~np.isfinite(found)
        else:
            found = np.interp(at[:, 0], points[:, 0], numbers)
            away = _ROUNDING * (points[-1, 0] - points[0, 0])
            outside = (at[:, 0] < points[0, 0] - away) | (at[:, 0] > points[-1, 0] + away)
        if self.outside == "error" and outside.any():
            k = int(np.argmax(outside))
            least, most = points.min(axis=0), points.max(axis=0)
            spans = ", ".join(
                f"{name} {a:g} to {b:g}" for name, a, b in zip(self.along, least, most, strict=True)
            )
            hint = '; give more points, or outside = "hold"' if len(self.along) == 1 else "; give more points"
            raise SolverError(f"{self}: it covers {spans}, and ({', '.join(f'{x:g}' for x in places[k])}) is outside"
                              f"{hint}")  # fmt: skip
        return found

    def __str__(self) -> str:
        return f"the profile {self.file}" if self.file else "a profile"


@dataclass(frozen=True)
class Raster(Value, name="raster"):
    """Values on a regular grid in x and y, bilinear between its points.

    Attributes
    ----------
    file
        ESRI ASCII grid, or lines ``x y value`` of a regular grid.
    negative
        Whether the file holds them with the other sign, as depths instead of elevations.

    Raises
    ------
    CaseError
        If the file is none.
    """

    file: str
    negative: bool = False
    in_time = False

    def __post_init__(self) -> None:
        _ = self._grid

    @cached_property
    def _grid(self) -> GridValues:
        return read_raster(self.file)

    def values(self, places: FloatArray, time: float) -> npt.ArrayLike:
        """Return them; up to one interval outside the grid those at its rim."""
        found = self._grid(places[:, 0], places[:, 1])
        return -found if self.negative else found

    def __str__(self) -> str:
        return f"the raster {self.file}"


def read_raster(path: str | Path) -> GridValues:
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
    _require_bounded(str(path), table[:, 2])
    x, column = np.unique(table[:, 0], return_inverse=True)
    y, row = np.unique(table[:, 1], return_inverse=True)
    if len(x) * len(y) != len(table) or len(x) < 2 or len(y) < 2:
        raise CaseError(f"{path}: {len(table)} points are not a regular grid ({len(x)} values of x, {len(y)} of y)")
    values, found = np.full((len(x), len(y)), np.nan), np.zeros((len(x), len(y)), dtype=bool)
    values[column, row], found[column, row] = table[:, 2], True
    if not found.all():
        raise CaseError(f"{path}: some points of the grid occur twice and others are missing")
    return GridValues(x, y, values, str(path))


def read_series(path: str | Path, time: int | str = 1, column: int | str = 2) -> tuple[FloatArray, FloatArray]:
    """Read lines ``time value``, separated by blanks, commas or semicolons, with or without a heading.

    Parameters
    ----------
    path
        The file.
    time, column
        Which columns they are: numbers from 1 on, or words of the heading.

    Raises
    ------
    CaseError
        When there is no such file, a line is broken, or the times do not increase.
    """
    table, lines = read_columns(path, [time, column])
    for k in np.flatnonzero(np.diff(table[:, 0]) <= 0.0)[:1].tolist():
        before, after = table[k : k + 2, 0]
        raise CaseError(f"{path}:{lines[k + 1]}: the times must increase, got {after:g} after {before:g}")
    return table[:, 0], table[:, 1]


def read_columns(path: str | Path, columns: Sequence[int | str]) -> tuple[FloatArray, list[int]]:
    """Read some columns of lines of numbers, and which lines they are.

    Parameters
    ----------
    path
        The file: numbers separated by blanks, commas or semicolons, with or without a heading.
    columns
        Numbers from 1 on, or words of the heading.

    Raises
    ------
    CaseError
        When there is no such file or column, or a number is missing or not finite.
    """
    text = _text(path)
    wanted = [one - 1 if isinstance(one, int) else _column(str(path), text, one) for one in columns]
    if min(wanted) < 0:
        raise CaseError(f"{path}: columns are counted from 1 on")
    table, lines = _table(str(path), text, max(wanted) + 1)
    table = table[:, wanted]
    _require_finite(str(path), table, lines)
    return table, lines


def _column(path: str, text: str, name: str) -> int:
    """Return which column a word of the heading names."""
    words: list[str] = []
    for line in text.splitlines():
        bare = line.strip().lstrip(_REMARKS).replace(",", " ").replace(";", " ").replace('"', " ").split()
        if bare and _number(bare[0]):
            break
        words = bare or words
    if name not in words:
        has = f"its heading is {' '.join(words)}" if words else "it has no heading"
        raise CaseError(f"{path}: there is no column {name!r}{did_you_mean(name, words)} ({has})")
    return words.index(name)


def _require_finite(path: str, table: FloatArray, lines: list[int]) -> None:
    """Raise `CaseError` with the line of the first number that is NaN or infinite."""
    for k in np.flatnonzero(~np.isfinite(table).all(axis=1))[:1].tolist():
        raise CaseError(f"{path}:{lines[k]}: finite numbers are expected, got {' '.join(map(str, table[k].tolist()))}")


def _require_bounded(path: str, values: FloatArray) -> None:
    """Raise `CaseError` where a value of a raster is infinite; NaN is none."""
    if np.isinf(values).any():
        raise CaseError(f"{path}: a value is infinite; mend it, or mark it as NODATA_value")


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


def _esri(path: str, text: str) -> GridValues:
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
    _require_bounded(path, data)
    values = data.reshape(ny, nx)[::-1].T.copy()
    if "nodata_value" in head:
        values[values == head["nodata_value"]] = np.nan
    x0, y0 = (head.get(f"{a}llcenter", head.get(f"{a}llcorner", 0.0) + 0.5 * size) for a in "xy")
    x, y = (start + size * np.arange(count, dtype=np.float64) for start, count in ((x0, nx), (y0, ny)))
    for name, axis in (("x", x), ("y", y)):
        if not (np.isfinite(axis).all() and (np.diff(axis) > 0.0).all()):
            raise CaseError(f"{path}: {name} from {axis[0]:g} on by {size:g} is no axis; mend the heading of the grid")
    return GridValues(x, y, values, path)
