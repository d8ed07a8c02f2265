"""The output directory of a run, and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import errno
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.disk import require_writable
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.mesh.io import write as write_mesh
from fluxloom.mesh.mesh import MeshData

__all__ = [
    "Lines", "ResidualLog", "atomic", "clear_directory", "prepare_directory", "prepare_file", "read_residuals",
    "vtk_name", "write_json", "write_vtk",
]  # fmt: skip

_OWN = (
    "residual.csv", "final.vtkhdf", "final.vti", "final.vtu", "gauges.csv", "history.csv", "probes.csv", "profile.csv",
    "snapshot_*.vtkhdf", "snapshot_*.vtu",
)  # fmt: skip
_SUFFIXES = (".csv", ".gif", ".mp4", ".png", ".vtkhdf", ".vti", ".vtu")
_FULL = (errno.ENOSPC, errno.EDQUOT)


def prepare_directory(path: Path, needed: int) -> Path:
    """Make an output directory ready: it exists, can be written, and has room. What lies in it stays.

    Parameters
    ----------
    path
        The directory.
    needed
        Bytes that the run will write, roughly.

    Raises
    ------
    CaseError
        When it cannot be used; the message says why and what to do.
    """
    advice = "choose another with --output or [output] directory"
    trial = path / f".trial-{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        try:
            trial.write_bytes(b"fluxloom")
        finally:
            trial.unlink(missing_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise CaseError(f"output directory {path}: there is a file of that name in the way; {advice}") from None
    except OSError as error:
        if error.errno in _FULL:
            raise CaseError(f"output directory {path}: the disk is full; free some space or {advice}") from None
        raise CaseError(f"output directory {path} cannot be written: {error.strerror or error}; {advice}") from None
    free = shutil.disk_usage(path).free
    if free < needed:
        raise CaseError(
            f"output directory {path}: the run will write about {_size(needed)} but only {_size(free)} are "
            f'free; free some space, set [output] vtk = "none", or {advice}'
        )
    return path


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 10 << 20 else f"{count >> 10} KiB"


def clear_directory(path: Path) -> None:
    """Remove the results of an earlier run, so that files of two runs are never mixed; other files stay.

    Parameters
    ----------
    path
        Where ``run.json`` of that run may lie, which names its files.

    Raises
    ------
    CaseError
        When one cannot be removed.
    """
    record = path / "run.json"
    if not record.exists():
        return
    try:
        named = json.loads(record.read_text(encoding="utf-8")).get("files", ())
        names = [name for name in named if isinstance(name, str) and Path(name).name == name]
        listed = [path / name for name in names if Path(name).suffix in _SUFFIXES]
    except (OSError, ValueError, AttributeError, TypeError):
        listed = []  # cut off, or not of a run: there are still the usual names
    try:
        for old in {*listed, *(found for pattern in _OWN for found in path.glob(pattern)), record}:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise CaseError(f"output directory {path}: old results cannot be removed: {error.strerror or error}") from None


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
        what = "the disk is full" if error.errno in _FULL else error.strerror or str(error)
        raise FluxloomError(f"{path}: cannot be written: {what}") from None
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


def vtk_name(format: str) -> str:
    """Return the name of the file of final fields for ``[output] vtk``; empty for ``"none"``."""
    if format == "none":
        return ""
    if format == "auto":
        format = "vtkhdf" if find_spec("h5py") is not None else "vtu"
    return f"final.{format}"


def write_vtk(path: Path, mesh: MeshData, fields: Mapping[str, npt.NDArray[Any]], *, nodal: bool = False) -> None:
    """Write a mesh with values of cells, or of nodes, as a VTK file; the suffix tells the format."""
    padded = {name: _spatial(np.asarray(values)) for name, values in fields.items()}
    with atomic(path) as temporary:
        write_mesh(temporary, mesh, cell_data=None if nodal else padded, point_data=padded if nodal else None)


def _spatial(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return vectors of two components with a zero third, which is what VTK takes for a vector."""
    if values.ndim == 2 and values.shape[1] == 2:
        return np.concatenate([values, np.zeros((len(values), 1), dtype=values.dtype)], axis=1)
    return np.ascontiguousarray(values)


class Lines:
    """A text file that is written line by line while a run advances: a line is there whole or not at all.

    Parameters
    ----------
    path
        The file; None: nothing is written.
    heading
        Its first line.

    Raises
    ------
    FluxloomError
        When the file cannot be written.
    """

    def __init__(self, path: Path | None, heading: str) -> None:
        self._path = path
        self._file = None
        self._size = 0
        if path is not None:
            try:
                self._file = path.open("w", encoding="utf-8", newline="\n")
            except OSError as error:
                raise FluxloomError(f"{path}: cannot be written: {error.strerror or error}") from None
            self.add(heading)

    def add(self, line: str) -> None:
        """Append a line; it is on disk when this returns.

        Raises
        ------
        FluxloomError
            When it is not; the file ends with the line before.
        """
        if self._file is None:
            return
        try:
            self._file.write(line + "\n")
            self._file.flush()
            self._size += len(line) + 1
        except OSError as error:
            self.close()
            if self._path is not None:
                with contextlib.suppress(OSError):
                    os.truncate(self._path, self._size)  # no half of a line stays
            what = "the disk is full" if error.errno in _FULL else error.strerror or str(error)
            raise FluxloomError(f"{self._path}: cannot be written: {what}; the run was stopped") from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


class ResidualLog:
    """``residual.csv``, written line by line while a run advances.

    Parameters
    ----------
    path
        The file, which `begin` makes; None keeps the values in memory only.
    """

    remembers = ("rows",)

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.iterations: list[int] = []
        self.values: list[float] = []
        self._seconds: list[float] = []
        self._lines: Lines | None = None

    @property
    def rows(self) -> list[tuple[float, float, float]]:
        """All lines so far, also those of the run that this one goes on from."""
        return [(float(k), value, s) for k, value, s in zip(self.iterations, self.values, self._seconds, strict=True)]

    @rows.setter
    def rows(self, rows: Sequence[Sequence[float]]) -> None:
        self.iterations = [int(row[0]) for row in rows]
        self.values, self._seconds = [row[1] for row in rows], [row[2] for row in rows]

    @property
    def seconds(self) -> float:
        """Of the last line; 0 before there is one."""
        return self._seconds[-1] if self._seconds else 0.0

    def begin(self) -> None:
        """Open the file, and write the lines that there are."""
        self._lines = Lines(self._path, "iteration,residual,seconds")
        for k, row in enumerate(self.rows):
            self._write(self.iterations[k], *row[1:])

    def add(self, iteration: int, value: float, seconds: float) -> None:
        """Append a value; it is on disk when this returns."""
        if self._lines is None:
            self.begin()
        self.iterations.append(iteration)
        self.values.append(value)
        self._seconds.append(seconds)
        self._write(iteration, value, seconds)

    def _write(self, iteration: int, value: float, seconds: float) -> None:
        if self._lines is not None:
            self._lines.add(f"{iteration},{value:.13e},{seconds:.6f}")

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()


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
