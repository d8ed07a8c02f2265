"""Tables of numbers in text files: a native scanner, and a plain Python one for machines without a compiler."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CompileError, FluxloomError, MeshError
from fluxloom.core.sizes import expanded
from fluxloom.core.text import real, whole, without_mark
from fluxloom.mesh.data.mesh import IntArray

__all__ = ["PlainScanner", "Scanner", "native_library", "open_scanner", "pointer", "read_bytes"]

_TOO_FEW, _NOT_NUMBER, _SHORT_ROW, _RANGE, _FULL = 1, 2, 3, 4, 5
_STATE = 6
_COMMAS = re.compile(rb"\d,\d+[ \t]+[-+]?\d+,\d")
"""Two numbers with decimal commas beside each other; commas that part numbers have no blanks between some of them."""

_BLANKS = " \t\r"
"""Between numbers of a row; others, as of Unicode, are part of a word that is no number then."""
_WORD = re.compile(rf"[^{_BLANKS}]+")


def native_library() -> ctypes.CDLL | None:
    """Compile (or find in the cache) the C scanner.

    Returns
    -------
    CDLL or None
        None on a machine without a compiler or a writable cache; meshes are then read in Python.

    Raises
    ------
    CompileError
        When the compiler refuses the scanner.
    """
    try:
        from fluxloom.toolchain import load_library  # at call time: NumPy alone can read meshes
    except ImportError:
        return None
    source = resources.files(__package__ or "fluxloom.mesh.io.tables").joinpath("scan.c").read_text(encoding="utf-8")
    try:
        library = load_library(source, name="mesh_scan")
    except CompileError:
        raise
    except FluxloomError:  # no compiler, or no place for its output: Python reads meshes too
        return None
    library.format_integers.restype = ctypes.c_int64
    library.format_reals.restype = ctypes.c_int64
    return library


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a file without a byte-order mark, decompressed when its name ends in ``.gz``.

    Raises
    ------
    MeshError
        When the file is missing, or its compression is damaged or beyond measure.
    """
    path = Path(path)
    try:
        if path.suffix == ".gz":
            return without_mark(expanded(path.read_bytes()))
        return without_mark(path.read_bytes())
    except FileNotFoundError:
        raise MeshError(f"{path}: no such mesh file; check the path (relative to {Path.cwd()})") from None
    except ValueError as error:
        raise MeshError(f"{path}: {error}") from None
    except OSError as error:
        raise MeshError(f"{path}: cannot be read: {error.strerror or error}") from None


def open_scanner(path: str | Path, *, native: bool = True) -> Scanner | PlainScanner:
    """Return a scanner of a text file: the native one when it can be built and ``native`` allows it."""
    data = read_bytes(path)
    library = native_library() if native else None
    return PlainScanner(str(path), data) if library is None else Scanner(str(path), data, library)


class PlainScanner:
    """Reads header lines and tables one after the other.

    Attributes
    ----------
    path, data
        The file and its bytes.
    position, line
        The next byte and its 1-based line.
    first_line, last_line
        Lines of the first and last row of the last table read.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.position = 0
        self.line = 1
        self.first_line = 0
        self.last_line = 0

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        """Raise a MeshError located at a line (the current one by default)."""
        raise MeshError(f"{self.path}:{self.line if line is None else line}: {message}")

    def next_line(self) -> str | None:
        """Return the next line without its end, or None at the end of the file."""
        if self.position >= len(self.data):
            return None
        stop = self.data.find(b"\n", self.position)
        stop = len(self.data) if stop < 0 else stop
        text = self.data[self.position : stop].decode("utf-8", errors="replace").rstrip("\r")
        self.position = stop + 1
        self.line += 1
        return text

    def count(self, what: str) -> int:
        """Read a line with one number."""
        return int(self.integers(1, 1, f"count of {what}")[0, 0])

    def reals(self, n: int, width: int, what: str) -> npt.NDArray[np.float64]:
        """Read ``n`` rows of at least ``width`` reals; further columns are ignored."""
        self._bound(n, width, what)
        out, begin = np.empty((n, width)), self.position
        self._read(out, what)
        self._no_commas(begin, what)
        return out

    def integers(self, n: int, width: int, what: str) -> npt.NDArray[np.int64]:
        """Read ``n`` rows of at least ``width`` integers; further columns are ignored."""
        self._bound(n, width, what)
        out = np.empty((n, width), dtype=np.int64)
        self._read(out, what)
        return out

    def ragged(self, n: int, limit: int, what: str) -> tuple[npt.NDArray[np.uint8], IntArray]:
        """Read ``n`` rows of integers, at most ``limit`` of each; return row lengths and flat entries."""
        self._bound(n, 1, what)
        counts = np.empty(n, dtype=np.uint8)
        values: list[float] = []
        for row in range(n):
            words = self._row(row, n, what)[:limit]
            counts[row] = len(words)
            values += self._numbers(words, whole, what)
        flat = np.array(values, dtype=np.int64)
        if flat.size and (flat.max() > np.iinfo(np.int32).max or flat.min() < np.iinfo(np.int32).min):
            self.fail(f"a number in the {what} is too large for 32 bits")
        return counts, flat.astype(np.int32)

    def skip_to(self, mark: bytes) -> None:
        """Move to the next place of a word, or to the end of the file."""
        stop = self.data.find(mark, self.position)
        stop = len(self.data) if stop < 0 else stop
        self.line += self.data.count(b"\n", self.position, stop)
        self.position = stop

    def _read(self, out: npt.NDArray[Any], what: str) -> None:
        """Read a table of reals or of integers."""
        number = real if out.dtype == np.float64 else whole
        for row in range(len(out)):
            words = self._row(row, len(out), what)
            self._need(words, out.shape[1], what)
            out[row] = self._numbers(words[: out.shape[1]], number, what)

    def _numbers(self, words: list[str], number: Callable[[str], float], what: str) -> list[float]:
        try:
            return [number(word) for word in words]
        except ValueError:
            self._bad_number(what)

    def _bound(self, n: int, width: int, what: str) -> int:
        """Refuse counts that the rest of the file cannot hold, before memory is reserved for them.

        Returns how many numbers it can hold: each needs two bytes, itself and what parts it from the next one.
        """
        if n < 0:
            self.fail(f"the count of {what} is negative: {n}")
        left = max(0, len(self.data) - self.position)
        most = (left + 1) // 2
        if n * width > most:
            self.fail(f"expected {n} rows of {what}, but only {left} bytes follow; truncated?")
        return most

    def _row(self, row: int, n: int, what: str) -> list[str]:
        """Return the words of the next row of a table."""
        while True:
            start, line = self.position, self.line
            text = self.next_line()
            stripped = text.split("%")[0].replace(",", " ").strip(_BLANKS) if text is not None else ""
            if text is not None and not stripped:
                continue
            if text is None or stripped[0] == "$" or (stripped[0].isupper() and "=" in stripped):
                self.position, self.line = start, line
                self._too_few(row, n, what)
            self.first_line = line if row == 0 else self.first_line
            self.last_line = line
            return _WORD.findall(stripped)

    def no_more_rows(self, text: str, what: str) -> None:
        """Refuse the line that was read last if it is one more row of a table of which all rows have been read."""
        if text.lstrip()[:1] in tuple("+-.0123456789"):
            self.fail(f"{what} has more rows than it says; mend the count, or remove the row", self.line - 1)

    def _no_commas(self, begin: int, what: str) -> None:
        """Refuse decimal commas in the rows from a byte on, which read as two numbers each."""
        if self.data.find(b",", begin, self.position) < 0:
            return
        if found := _COMMAS.search(self.data, begin, self.position):
            line = self.line - self.data.count(b"\n", found.start(), self.position)
            self.fail(f"decimal commas in the {what}: {self.text_of(line)!r}; write numbers with points", line)

    def _need(self, words: list[str], width: int, what: str) -> None:
        if len(words) < width:
            self.fail(f"a row of the {what} needs {width} numbers, found {len(words)}", self.last_line)

    def _bad_number(self, what: str) -> NoReturn:
        self.fail(f"not a number in the {what}: {self.text_of(self.last_line)!r}", self.last_line)

    def _too_few(self, row: int, n: int, what: str) -> NoReturn:
        ended = "the file ends" if self.position >= len(self.data) else "another section begins"
        self.fail(f"expected {n} rows of {what}, found {row}: {ended} here; the file is truncated or the count wrong")

    def text_of(self, line: int) -> str:
        """Return the text of a line (slow: for messages)."""
        lines = self.data.split(b"\n", line)
        return lines[line - 1].decode("utf-8", errors="replace").strip()[:120] if len(lines) >= line else ""


class Scanner(PlainScanner):
    """The same, with the tables read by compiled code."""

    def __init__(self, path: str, data: bytes, library: ctypes.CDLL) -> None:
        super().__init__(path, data)
        self._library = library

    def _read(self, out: npt.NDArray[Any], what: str) -> None:
        """Read a table of reals or of integers."""
        n, width = out.shape
        real = ctypes.c_int64(out.dtype == np.float64)
        self._call(self._library.scan_table, n, width, what, real, pointer(out))

    def ragged(self, n: int, limit: int, what: str) -> tuple[npt.NDArray[np.uint8], IntArray]:
        """Read ``n`` rows of integers, at most ``limit`` of each; return row lengths and flat entries."""
        most = self._bound(n, 1, what)
        counts = np.empty(n, dtype=np.uint8)
        out = np.empty(min(n * limit, most + limit), dtype=np.int32)  # a row may use all of the limit
        state = self._call(
            self._library.scan_ragged, n, limit, what, ctypes.c_int64(len(out)), pointer(counts), pointer(out)
        )
        return counts, out[: int(state[5])].copy()

    def _call(self, function: Any, n: int, width: int, what: str, *rest: Any) -> npt.NDArray[np.int64]:
        """Call the library, move on, and turn its status into a located error."""
        state = np.zeros(_STATE, dtype=np.int64)
        state[0], state[1] = self.position, self.line
        args = (self.data, ctypes.c_int64(len(self.data)), pointer(state), ctypes.c_int64(n), ctypes.c_int64(width))
        status = function(*args, *rest)
        self.position, self.line = int(state[0]), int(state[1])
        self.first_line, self.last_line = int(state[2]), int(state[3])
        if status == _TOO_FEW:
            self._too_few(int(state[4]), n, what)
        if status == _SHORT_ROW:
            words = self.text_of(self.line).split("%")[0].replace(",", " ").split()
            self._need(words, width, what)
        if status in (_NOT_NUMBER, _SHORT_ROW):
            self.last_line = self.line
            self._bad_number(what)
        if status == _RANGE:
            self.fail(f"a number in the {what} is too large: {self.text_of(self.line)!r}")
        if status == _FULL:
            self.fail(f"the {what} hold more numbers than expected")
        return state


def pointer(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    """Return where an array begins, for compiled code."""
    return ctypes.c_void_p(array.ctypes.data)
