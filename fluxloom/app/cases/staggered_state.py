"""``checkpoint.npz`` of flow on a staggered grid: what is in it, and velocities from it on other grids."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.files import atomic
from fluxloom.core.errors import CaseError
from fluxloom.fv.staggered_grid import StaggeredGrid

__all__ = ["CHECKPOINT", "interpolated", "read_state", "write_state"]

Array = npt.NDArray[np.float64]
CHECKPOINT = "checkpoint.npz"
_CLOSE = 1e-9


def write_state(path: Path, values: Mapping[str, npt.ArrayLike]) -> None:
    """Write named arrays; a file that was there stays whole until the new one is."""
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{name: np.asarray(value) for name, value in values.items()})  # pyright: ignore[reportArgumentType]


def read_state(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file.

    Raises
    ------
    CaseError
        If it cannot be read, or is none of a staggered grid.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CaseError(f"{path}: no checkpoint of a staggered grid can be read: {error}") from None
    if "faces_x" not in found or "velocity_x" not in found:
        raise CaseError(f"{path}: is no checkpoint of a staggered grid: it has no faces_x and velocity_x")
    return found


def interpolated(path: Path, grid: StaggeredGrid) -> list[Array]:
    """Return each component at its faces of a grid, linearly interpolated from a file.

    Beyond the outermost places of the file, half a cell from the sides, the velocity is extrapolated.

    Raises
    ------
    CaseError
        If the file is of another box, or a value of it is not finite.
    """
    from scipy.interpolate import RegularGridInterpolator

    state, d = read_state(path), grid.dimension
    names = "xyz"[:d]
    if "velocity_z" in state and d == 2:
        raise CaseError(f"{path}: has three dimensions, the mesh two")
    if any(f"velocity_{name}" not in state for name in names):
        raise CaseError(f"{path}: has two dimensions, the mesh three")
    faces = tuple(np.asarray(state[f"faces_{name}"], dtype=np.float64) for name in names)
    periodic = tuple(bool(value) for value in state["periodic"])
    for name, mine, theirs in zip(names, grid.faces, faces, strict=True):
        length = mine[-1] - mine[0]
        if np.abs(mine[[0, -1]] - theirs[[0, -1]]).max() > _CLOSE * length:
            raise CaseError(
                f"{path}: the box is from {theirs[0]:g} to {theirs[-1]:g} along {name}, that of the mesh from "
                f"{mine[0]:g} to {mine[-1]:g}"
            )
    other = StaggeredGrid(faces, periodic)
    found: list[Array] = []
    for a, name in enumerate(names):
        given = np.asarray(state[f"velocity_{name}"], dtype=np.float64)
        for k in np.flatnonzero(~np.isfinite(given))[:1].tolist():
            where = ", ".join(f"{line.ravel()[k]:g}" for line in np.broadcast_arrays(*other.places(a)))
            raise CaseError(f"{path}: velocity_{name} is {given.ravel()[k]:g} at ({where})")
        lines, values = _wrapped(other, a, given)
        interpolate = RegularGridInterpolator(lines[::-1], values, bounds_error=False, fill_value=None)  # pyright: ignore[reportArgumentType]
        places = np.stack(np.broadcast_arrays(*reversed(grid.places(a))), axis=-1)
        found.append(np.asarray(interpolate(places)))
    return found


def _wrapped(grid: StaggeredGrid, component: int, values: Array) -> tuple[Sequence[Array], Array]:
    """Return places, x first, and values with one more at both ends of periodic axes."""
    lines: list[Array] = []
    for k in range(grid.dimension):
        line = grid.places(component)[k].ravel()
        axis, length = grid.dimension - 1 - k, float(grid.faces[k][-1] - grid.faces[k][0])
        if grid.periodic[k]:
            line = np.concatenate([line[-1:] - length, line, line[:1] + length])
            values = np.concatenate([values.take([-1], axis), values, values.take([0], axis)], axis=axis)
        lines.append(line)
    return lines, values
