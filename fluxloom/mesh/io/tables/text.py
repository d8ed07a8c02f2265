"""Writing tables of numbers as text, compiled where possible."""

from __future__ import annotations

import ctypes
import gzip
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.tables.scan import native_library, pointer

__all__ = ["TextWriter"]

_CHUNK = 1 << 17


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
        number: int | None = None,
        number_last: bool = False,
    ) -> None:
        """Write rows ``[number] [lead] values... [number]``."""
        rows, head = np.ascontiguousarray(table, dtype=np.int32), [] if lead is None else [lead]
        extra = (-1 if lead is None else lead,)
        self._write("format_integers", rows, number, number_last, extra, lambda row: " ".join(map(str, head + row)))

    def reals(self, table: npt.NDArray[np.float64], *, number: int | None = None, number_last: bool = False) -> None:
        """Write rows ``[number] values... [number]``; every value reads back equal."""
        rows = np.ascontiguousarray(table, dtype=np.float64)
        self._write("format_reals", rows, number, number_last, (), lambda row: " ".join(map(repr, row)))

    def _write(
        self,
        function: str,
        table: npt.NDArray[Any],
        number: int | None,
        last: bool,
        extra: tuple[int, ...],
        plain: Callable[[list[Any]], str],
    ) -> None:
        """Write rows in pieces, by a function of the library or in Python."""
        mode = 0 if number is None else 2 if last else 1
        for start in range(0, len(table), _CHUNK):
            part, count = table[start : start + _CHUNK], start + (number or 0)
            if self._library is None:
                form = ("{1}", "{0} {1}", "{1} {0}")[mode] + "\n"
                rows = (form.format(k, plain(row)) for k, row in enumerate(part.tolist(), count))
                self._file.write("".join(rows).encode())
                continue
            out = np.empty(26 * (part.shape[1] + 3) * len(part), dtype=np.uint8)
            args = map(ctypes.c_int64, (len(part), part.shape[1], *extra, count, mode))
            used = getattr(self._library, function)(pointer(part), *args, pointer(out))
            self._file.write(out[:used].data)
