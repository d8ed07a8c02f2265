"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.disk import require_writable
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.mesh.io import output_format
from fluxloom.mesh.io import write as write_mesh
from fluxloom.mesh.mesh import MeshData

__all__ = [
    "FULL", "atomic", "fields_name", "prepare_file", "reason_of", "write_fields", "write_json",
    "write_table",
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
