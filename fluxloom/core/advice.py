"""Warnings that point at the line of the user's program, and those of the command line, which are one line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["one_line_warnings", "warn"]

_ROOT = str(Path(__file__).resolve().parents[1])
_OF_NUMBERS = "(overflow|underflow|divide by zero|invalid value) encountered"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package from which it was called, however deep inside it that is.

    Parameters
    ----------
    message, category
        As for `warnings.warn`.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ROOT):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings as ``warning: TEXT`` in one line, without file and code; those of arithmetic not at all.

    What NumPy says of overflows within a diverging run is no news: that the run diverges is told by its status.
    ``python -W`` and ``PYTHONWARNINGS`` keep their meaning.
    """
    usual = warnings.formatwarning

    def formatted(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        """Return a warning in one line."""
        return f"warning: {' '.join(str(message).split())}\n"

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.filterwarnings("ignore", _OF_NUMBERS, RuntimeWarning)
        warnings.formatwarning = formatted
        try:
            yield
        finally:
            warnings.formatwarning = usual
