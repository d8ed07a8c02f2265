"""Writing tables of numbers as text, compiled where possible."""

from __future__ import annotations

import ctypes
import gzip
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TypeVar, cast

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.scan import native_library

__all__ = ["TextWriter"]

_CHUNK = 1 << 17
_T = TypeVar("_T", bound=np.generic)


class TextWriter:
    """A text file that tables are written to; compressed when its name ends in ``.gz``.

    Parameters
    ----------
    path
        The file to write.
    native
        False keeps to Python even where there is a compiler.

    Raises
    ------
    MeshError
        When the file cannot be created.
    """

    def __init__(self, path: str | Path, *, native: bool = True) -> None:
        self._library = native_library() if native else None
        path = Path(path)
        try:
            if path.suffix == ".gz":
                self._file = cast(BinaryIO, gzip.GzipFile(path, "wb", compresslevel=4))
            else:
                self._file = path.open("wb")
        except OSError as error:
            raise MeshError(f"{path}: cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> TextWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def line(self, text: str) -> None:
        """Write one line."""
        self._file.write(f"{text}\n".encode())

    def integers(
        self,
        table: npt.NDArray[np.int32],
        *,
        lead: int | None = None,
        shift: int = 0,
        number: int | None = None,
        number_last: bool = False,
    ) -> None:
        """Write rows ``[number] [lead] values... [number]``, with ``shift`` added to the values."""
        table = np.ascontiguousarray(table, dtype=np.int32)
        for start, part in _parts(table):
            count = 0 if number is None else number + start
            mode = 0 if number is None else 2 if number_last else 1
            if self._library is None:
                head = "" if lead is None else f"{lead} "
                rows = (head + " ".join(map(str, row)) for row in (part.astype(np.int64) + shift).tolist())
                self._plain(list(rows), count, mode)
                continue
            out = ctypes.create_string_buffer(21 * (part.shape[1] + 3) * len(part))
            args = (len(part), part.shape[1], shift, -1 if lead is None else lead, count, mode)
            used = self._library.format_integers(_pointer(part), *map(ctypes.c_int64, args), out)
            self._file.write(memoryview(out)[:used])

    def reals(self, table: npt.NDArray[np.float64], *, number: int | None = None, number_last: bool = False) -> None:
        """Write rows ``[number] values... [number]``; every value reads back equal."""
        table = np.ascontiguousarray(table, dtype=np.float64)
        for start, part in _parts(table):
            count = 0 if number is None else number + start
            mode = 0 if number is None else 2 if number_last else 1
            if self._library is None:
                self._plain([" ".join(map(repr, row)) for row in part.tolist()], count, mode)
                continue
            out = ctypes.create_string_buffer(26 * (part.shape[1] + 2) * len(part))
            args = (len(part), part.shape[1], count, mode)
            used = self._library.format_reals(_pointer(part), *map(ctypes.c_int64, args), out)
            self._file.write(memoryview(out)[:used])

    def _plain(self, rows: list[str], count: int, mode: int) -> None:
        if mode == 1:
            rows = [f"{count + k} {row}" for k, row in enumerate(rows)]
        elif mode == 2:
            rows = [f"{row} {count + k}" for k, row in enumerate(rows)]
        self._file.write(("\n".join(rows) + "\n").encode())


def _parts(table: npt.NDArray[_T]) -> Iterator[tuple[int, npt.NDArray[_T]]]:
    for start in range(0, len(table), _CHUNK):
        yield start, table[start : start + _CHUNK]


def _pointer(array: npt.NDArray[np.int32] | npt.NDArray[np.float64]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
