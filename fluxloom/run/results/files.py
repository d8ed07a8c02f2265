"""Files that are written whole or not at all.

And text files that grow line by line while a run advances: they stand for themselves whatever becomes of the run.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from fluxloom.comm.disk import require_writable
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.io import output_format
from fluxloom.mesh.io import write as write_mesh

__all__ = [
    "FULL", "PART", "Lines", "ResidualLog", "atomic", "fields_name", "prepare_file", "read_residuals", "reason_of",
    "write_fields", "write_json", "write_table",
]  # fmt: skip

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of the system that mean that there is no room."""


def prepare_file(path: Path) -> None:
    """Make sure that a file can be written, before work begins whose result would be lost; its directory is made.

    Raises
    ------
    CaseError
        When it cannot.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaseError(f"{path}: the directory {path.parent} cannot be made: {error.strerror or error}") from None
    if problem := require_writable(path):
        raise CaseError(f"{path}: cannot be written: {problem}")


def reason_of(error: BaseException) -> str:
    """Return why a file could not be written, in a line."""
    if isinstance(error, OSError):
        return "the disk is full" if error.errno in FULL else error.strerror or str(error)
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if isinstance(error, FluxloomError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` and move it there when the block ends well.

    The temporary name keeps the suffix, which tells writers the format.

    Raises
    ------
    FluxloomError
        When the file cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.stem}-{os.getpid()}-{time.time_ns():x}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise FluxloomError(f"{path}: cannot be written: {reason_of(error)}") from None
    except FluxloomError as error:
        if str(temporary) not in str(error):
            raise
        raise FluxloomError(str(error).replace(str(temporary), str(path))) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all; NaN and infinity become null."""
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(_plain(value), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)


def write_table(path: Path, columns: Mapping[str, npt.NDArray[np.float64]]) -> None:
    """Write columns of equal length under their names, whole or not at all."""
    with atomic(path) as temporary:
        table = np.stack(list(columns.values()), axis=1)
        np.savetxt(temporary, table, fmt="%.9g", delimiter=",", header=",".join(columns), comments="")


def fields_name(format: str, stem: str = "final") -> str:
    """Return the name of a file of fields for ``[output] format``; empty for ``"none"``."""
    if format == "none":
        return ""
    if format == "auto":
        format = "vtkhdf" if find_spec("h5py") is not None else "vtu"
    return f"{stem}{output_format(format).suffixes[0]}"


def write_fields(
    path: Path,
    mesh: MeshData,
    fields: Mapping[str, npt.NDArray[Any]],
    *,
    format: str = "auto",
    nodal: bool = False,
    time: float | None = None,
    units: Mapping[str, str] | None = None,
) -> None:
    """Write a mesh with values of cells, or of nodes, at a time; with ``"auto"`` the suffix tells the format.

    Units of fields, by name, are written where the format holds them.
    """
    padded = {name: _spatial(np.asarray(values)) for name, values in fields.items()}
    with atomic(path) as temporary:
        on_cells, on_points = (None, padded) if nodal else (padded, None)
        chosen = None if format == "auto" else format
        write_mesh(
            temporary, mesh, cell_data=on_cells, point_data=on_points, format=chosen, time=time, units=units
        )  # fmt: skip


def _spatial(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return vectors of two components with a zero third, which is what VTK takes for a vector."""
    if values.ndim == 2 and values.shape[1] == 2:
        return np.concatenate([values, np.zeros((len(values), 1), dtype=values.dtype)], axis=1)
    return np.ascontiguousarray(values)


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
