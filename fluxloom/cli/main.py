"""The command ``fluxloom``: one line for an expected error, a traceback for a mistake of ours.

What is printed is printed whatever the encoding of the terminal and wherever it goes.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from fluxloom.core.advice import one_line_warnings
from fluxloom.core.errors import FluxloomError, OutOfMemory

__all__ = ["Printed", "main"]

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


ERROR_CODE = 2
"""Exit status after an error that the message explains."""

LOST_CODE = 3
"""Exit status where what was printed could not be written."""

INTERRUPTED_CODE = 130
"""Exit status after SIGINT."""

_NO_THREAD = "can't start new thread"
"""What Python says, with a `RuntimeError`, where a system has no memory for another thread or forbids it."""

_COLLECT = (20_000, 10, 10)
"""When a process of ours looks for garbage: modules and kernels are a hundred thousand objects that stay."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Parameters
    ----------
    arguments
        By default those of the process.

    Returns
    -------
    int
        0: done; 1: a run did not converge or diverged, or a check of ``verify`` or ``doctor`` failed; 2: an error
        the message explains, before anything was changed; 3: outputs of a run, or what it printed, were lost; 130,
        143: interrupted.
    """
    if arguments is not None:
        return _done(list(arguments))
    gc.set_threshold(*_COLLECT)
    printed = Printed()
    if (columns := os.environ.get("COLUMNS", "")).isdigit() and not int(columns):
        del os.environ["COLUMNS"]  # a terminal of unknown width; nothing at all would be printed within 0
    status = _done(sys.argv[1:])
    if error := printed.lost():
        print(f"error: what was to be printed could not be written: {error.strerror}", file=sys.stderr)
        return status or LOST_CODE
    return status


def _done(words: list[str]) -> int:
    """Do what the words say; return the exit status: 130 after an interruption, while modules are imported too."""
    try:
        return _command(words)
    except KeyboardInterrupt:
        return INTERRUPTED_CODE


def _command(words: list[str]) -> int:
    """Do what the words say; return the exit status."""
    try:
        from fluxloom.cli.commands import build
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich", "pydantic", "pydantic_core", "scipy"):
            raise
        print(f"fluxloom: the command line needs {error.name}: pip install 'fluxloom[app]'", file=sys.stderr)
        return ERROR_CODE
    from fluxloom.cli.console import show_error

    try:
        with one_line_warnings():
            build(words)(args=words, prog_name="fluxloom")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except FluxloomError as error:
        show_error(error)
        return error.exit_code
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and str(error) != _NO_THREAD:
            raise
        show_error(OutOfMemory(f"the memory of this machine is exhausted: {error}"))
        return ERROR_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main())
