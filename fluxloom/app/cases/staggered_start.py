"""The velocity at the start of flow on a staggered grid, from the checkpoint of a run on another grid of the box."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import CaseError, CheckpointError
from fluxloom.dsl.memory_values import decoded
from fluxloom.dsl.state import StateFile
from fluxloom.fv.staggered_grid import StaggeredGrid

__all__ = ["interpolated"]

Array = npt.NDArray[np.float64]
_CLOSE = 1e-9
_BOX, _VELOCITY = "run.flow.solver.box", "run.flow.solver.fields.u"


def _read(path: Path) -> tuple[StaggeredGrid, Array]:
    """Return the grid of a checkpoint, and what is stored of its velocity, ``(*full_shape, d)``."""
    if not path.exists():
        raise CaseError(f"initial.file: there is no file {path}")
    if path.suffix == ".npz":
        raise CaseError(f"{path}: was written by an older version of fluxloom; give checkpoint.h5 of a run of this one")
    try:
        file = StateFile(path, SelfComm())
    except CheckpointError as error:
        raise CaseError(f"initial.file: {error}") from None
    try:
        box: dict[str, Any] = decoded(file.numbers[_BOX], file.tables)
        grid = StaggeredGrid(tuple(np.asarray(line) for line in box["faces"]), tuple(box["periodic"]))
        return grid, file.read(_VELOCITY).reshape(*grid.full_shape, grid.dimension)
    except (KeyError, CheckpointError):
        raise CaseError(f"{path}: is no checkpoint of a staggered grid") from None
    finally:
        file.close()


def interpolated(path: Path, grid: StaggeredGrid) -> list[Array]:
    """Return each component at its faces of a grid, linearly interpolated from a file.

    Beyond the outermost places of the file, half a cell from the sides, the velocity is extrapolated.

    Raises
    ------
    CaseError
        If the file is of another box, or a value of it is not finite.
    """
    from scipy.interpolate import RegularGridInterpolator

    (other, whole), d = _read(path), grid.dimension
    names, words = "xyz"[:d], {2: "two", 3: "three"}
    if other.dimension != d:
        raise CaseError(f"{path}: has {words[other.dimension]} dimensions, the mesh {words[d]}")
    for name, mine, theirs in zip(names, grid.faces, other.faces, strict=True):
        length = mine[-1] - mine[0]
        if np.abs(mine[[0, -1]] - theirs[[0, -1]]).max() > _CLOSE * length:
            raise CaseError(
                f"{path}: the box is from {theirs[0]:g} to {theirs[-1]:g} along {name}, that of the mesh from "
                f"{mine[0]:g} to {mine[-1]:g}"
            )
    found: list[Array] = []
    for a in range(d):
        given = whole[(*other.face_window(a), a)]
        for k in np.flatnonzero(~np.isfinite(given))[:1].tolist():
            where = ", ".join(f"{line.ravel()[k]:g}" for line in np.broadcast_arrays(*other.places(a)))
            raise CaseError(f"{path}: velocity_{names[a]} is {given.ravel()[k]:g} at ({where})")
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
