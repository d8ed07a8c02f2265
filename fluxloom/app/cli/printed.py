"""What a process prints, whatever the encoding of the terminal and wherever it goes."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

__all__ = ["Printed"]


class _Kept(io.FileIO):
    """A file whose writes may fail: the first error is kept, and what could not be written is lost."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self.error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader is gone: there is nobody to write for
                raise
            self.error = self.error or error
            return memoryview(data).nbytes


class Printed:
    """Stands for the standard output of a process: a full disk ends neither a run nor anything else.

    Characters that its encoding lacks become question marks. What is printed where it is closed (``>&-``) is lost.
    """

    def __init__(self) -> None:
        self._file: _Kept | None = None
        self._closed = sys.stdout is None
        if self._closed:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the life of the process)
            return
        try:
            number, encoding = sys.stdout.fileno(), sys.stdout.encoding
            self._file = _Kept(number)
        except (AttributeError, OSError, ValueError):  # closed, or no file
            return
        sys.stdout = self._text(self._file, encoding)
        for stream in (sys.stderr,):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    @staticmethod
    def _text(file: _Kept, encoding: str) -> TextIO:
        return io.TextIOWrapper(
            io.BufferedWriter(file), encoding=encoding, errors="replace", line_buffering=file.isatty()
        )  # fmt: skip

    def lost(self) -> OSError | None:
        """Return why something could not be written; None: all was."""
        if self._closed:
            return OSError(errno.EBADF, os.strerror(errno.EBADF))
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            return None
        return None if self._file is None else self._file.error
