"""Text files that grow line by line while a run advances, and stand for themselves whatever becomes of the run."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError
from fluxloom.run.files import reason_of

__all__ = ["PART", "Lines", "ResidualLog", "read_residuals"]

PART = ".part"
"""Behind the name of a table that is to replace one of the same name."""


class Lines:
    """A text file that is written line by line while a run advances: a line is there whole or not at all.

    Where a file of that name stands already, the new one grows beside it, as ``NAME.part``. It takes the place when it
    is closed; in a run that goes on as soon as it has come as far as the old one.

    Parameters
    ----------
    path
        The file; None: nothing is written.
    heading
        Its first line.
    rows
        Lines of before, in a run that goes on.
    lose
        Is told the name and the reason when the file cannot be written any more; the run goes on without it.
    """

    def __init__(
        self, path: Path | None, heading: str, rows: Iterable[str] = (), lose: Callable[[str, str], None] | None = None
    ) -> None:
        self._path, self._lose = path, lose
        self._file: TextIO | None = None
        self._beside: Path | None = None
        self._size = self._target = 0
        if path is None:
            return
        before = list(rows)
        real = path.resolve()  # a link stays one
        self._place = real
        self._beside = real.with_name(real.name + PART) if real.is_file() else None
        try:
            self._target = real.stat().st_size if self._beside is not None and before else -1
            self._file = (self._beside or real).open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            self._fail(error)
        self._put("".join(f"{line}\n" for line in [heading, *before]))

    @property
    def whole(self) -> bool:
        """Whether every line so far is in the file."""
        return self._path is not None and self._file is not None

    def add(self, *lines: str) -> None:
        """Append lines; they are on disk when this returns, or the file is given up and `lose` was told."""
        self._put("".join(f"{line}\n" for line in lines))

    def _put(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(text)
            self._file.flush()
            self._size += len(text.encode())
            if 0 <= self._target <= self._size:
                self._publish()
        except OSError as error:
            self._fail(error)

    def _publish(self) -> None:
        """Take the place of the file of that name; what comes later goes on here."""
        if self._beside is not None:
            os.replace(self._beside, self._place)
        self._beside, self._target = None, -1

    def _fail(self, error: OSError) -> None:
        """Keep the lines that are whole, and say that there will be no more."""
        place = self._beside or self._place
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
            if place.is_file():
                with contextlib.suppress(OSError):
                    os.truncate(place, self._size)  # no half of a line stays
        if self._lose is not None and self._path is not None:
            self._lose(self._path.name, reason_of(error))

    def close(self) -> bool:
        """Close the file and let it take its place; return whether it is there, with all lines."""
        if self._file is None:
            return False
        try:
            self._file.close()
            self._publish()
        except OSError as error:
            self._fail(error)
            return False
        self._file = None
        return True


class ResidualLog:
    """``residual.csv``, written line by line while a run advances.

    Parameters
    ----------
    path
        The file; None keeps the values in memory only, until `begin`.
    """

    monitor = True
    remembers = ("memory",)

    def __init__(self, path: Path | None = None) -> None:
        self.iterations: list[int] = []
        self.values: list[float] = []
        self.seconds: list[float] = []
        self._lines: Lines | None = None
        if path is not None:
            self.begin(path)

    @property
    def memory(self) -> dict[str, list[Any]]:
        """What a run that goes on has."""
        return {"iterations": self.iterations, "values": self.values, "seconds": self.seconds}

    @memory.setter
    def memory(self, memory: Mapping[str, Sequence[Any]]) -> None:
        """Take back what a checkpoint has kept."""
        self.iterations = [int(number) for number in memory["iterations"]]
        self.values = [float(value) for value in memory["values"]]
        self.seconds = [float(value) for value in memory["seconds"]]

    def begin(self, path: Path, lose: Callable[[str, str], None] | None = None) -> None:
        """Open the file and write what there is; ``lose`` as for `Lines`."""
        rows = zip(self.iterations, self.values, self.seconds, strict=True)
        self._lines = Lines(path, "iteration,residual,seconds", [self._line(*row) for row in rows], lose)

    @staticmethod
    def _line(iteration: int, value: float, seconds: float) -> str:
        return f"{iteration},{value:.13e},{seconds:.6f}"

    def add(self, iteration: int, value: float, seconds: float) -> None:
        """Append a value; it is on disk when this returns."""
        self.iterations.append(iteration)
        self.values.append(value)
        self.seconds.append(seconds)
        if self._lines is not None:
            self._lines.add(self._line(iteration, value, seconds))

    def close(self) -> bool:
        """Close the file; return whether it is there."""
        return self._lines is not None and self._lines.close()


def read_residuals(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Read ``residual.csv``.

    Returns
    -------
    iterations, residuals
        Arrays of equal length.

    Raises
    ------
    CaseError
        When there is no such file, or it is not one of a run.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows: Sequence[dict[str, str]] = list(csv.DictReader(file))
        pairs = [(int(row["iteration"]), float(row["residual"])) for row in rows]
    except FileNotFoundError:
        raise CaseError(f"{path}: no such file; name the output directory of a finished run") from None
    except (KeyError, ValueError, TypeError) as error:
        raise CaseError(f"{path}: not the residual of a run: {error}") from None
    return np.array([a for a, _ in pairs], dtype=np.int64), np.array([b for _, b in pairs], dtype=np.float64)
