"""The velocity at the faces of one staggered grid, linearly between those of another grid of the same box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.staggered.grid import StaggeredGrid

__all__ = ["between_faces", "same_box"]

Array = npt.NDArray[np.float64]
_CLOSE = 1e-9


def same_box(one: StaggeredGrid, other: StaggeredGrid) -> bool:
    """Return whether two grids are of the same box, with the same axes joined."""
    if one.dimension != other.dimension or tuple(one.periodic) != tuple(other.periodic):
        return False
    ends = [(mine[[0, -1]], theirs[[0, -1]]) for mine, theirs in zip(one.faces, other.faces, strict=True)]
    return all(np.abs(mine - theirs).max() <= _CLOSE * (mine[1] - mine[0]) for mine, theirs in ends)


def between_faces(other: StaggeredGrid, whole: Array, grid: StaggeredGrid) -> list[Array]:
    """Return each component at its faces of a grid, linearly between those of another.

    Beyond the outermost places, half a cell from the sides, the velocity is extrapolated.

    Parameters
    ----------
    other, whole
        That grid, and its velocity as it is stored, ``(*full_shape, d)``.
    grid
        Of the same box.

    Raises
    ------
    SolverError
        If a value is not finite.
    """
    from scipy.interpolate import RegularGridInterpolator

    found: list[Array] = []
    for a in range(grid.dimension):
        given = whole[(*other.face_window(a), a)]
        for k in np.flatnonzero(~np.isfinite(given))[:1].tolist():
            where = ", ".join(f"{line.ravel()[k]:g}" for line in np.broadcast_arrays(*other.places(a)))
            raise SolverError(f"velocity_{'xyz'[a]} is {given.ravel()[k]:g} at ({where})")
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
