"""Values that a condition sets: one for all, an array over a side, or a function of the position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError

__all__ = ["Places", "Reals", "Scalars", "Vectors", "agreed", "scalars_at", "speeds_at"]

Reals: TypeAlias = npt.NDArray[np.float64]
Scalars: TypeAlias = float | npt.NDArray[Any] | Callable[[Reals], npt.ArrayLike]
"""A number, an array over the cells of a side, or a function of positions ``(n, d)`` that returns ``(n,)``."""

Vectors: TypeAlias = Sequence[float] | npt.NDArray[Any] | Callable[[Reals], npt.ArrayLike]
"""``(d,)``, an array over the cells of a side ``(..., d)``, or a function of positions that returns ``(n, d)``."""


@dataclass(frozen=True)
class Places:
    """Where values are wanted.

    Attributes
    ----------
    name
        Of the side or body, for messages.
    positions
        ``(n, d)``, in cells, slowest axis first; the centre of cell ``(k, j, i)`` is at ``(k, j, i)``.
    shape
        Of the side in cells; None for a body, which takes no arrays.
    cells
        ``(n,)``: numbers of the cells of the side, for each place.
    comm
        Ranks, each with places of its own: what does not fit on one is an error on all.
    """

    name: str
    positions: Reals
    shape: tuple[int, ...] | None = None
    cells: npt.NDArray[np.int64] | None = None
    comm: Comm | None = None

    @property
    def dimensions(self) -> int:
        """Number of axes."""
        return int(self.positions.shape[1])


def speeds_at(values: Vectors, places: Places) -> Reals:
    """Return velocities ``(n, d)``. Collective.

    Raises
    ------
    SolverError
        If their shape does not fit, or one is not finite or not below the speed of sound.
    """
    return agreed(places, lambda: _speeds(values, places))


def scalars_at(values: Scalars, places: Places) -> Reals:
    """Return densities ``(n,)``. Collective.

    Raises
    ------
    SolverError
        If their shape does not fit, or one is not finite or not positive.
    """
    return agreed(places, lambda: _densities(values, places))


def agreed(places: Places, find: Callable[[], Reals]) -> Reals:
    """Return values, or raise on every rank what is wrong on one. Collective."""
    found, problem = np.zeros(0), ""
    try:
        found = find()
    except SolverError as error:
        problem = str(error)
    texts = [problem] if places.comm is None else places.comm.allgather(problem)
    for text in filter(None, texts):
        raise SolverError(text)
    return found


def _speeds(values: Vectors, places: Places) -> Reals:
    found = _at(values, places, (places.dimensions,), "velocity")
    fastest = np.sqrt((found**2).sum(axis=1).max(initial=0.0))
    if not fastest < np.sqrt(1.0 / 3.0):
        raise SolverError(
            f"{places.name}: a velocity of {fastest:.3g} is not below the speed of sound, 0.577 cells a step; "
            "velocities are in lattice units, and should be at most 0.1 or so"
        )
    return found


def _densities(values: Scalars, places: Places) -> Reals:
    found = _at(values, places, (), "density")
    if not found.min(initial=1.0) > 0:
        raise SolverError(f"{places.name}: a density of {found.min():.3g} is not positive; at rest it is one")
    return found


def _at(values: Any, places: Places, components: tuple[int, ...], what: str) -> Reals:
    n = len(places.positions)
    if callable(values) and not n:  # a rank without places
        return np.zeros((0, *components))
    found = np.asarray(values(places.positions.copy()) if callable(values) else values, dtype=np.float64)
    if callable(values):
        if found.shape not in ((n, *components), components):
            raise SolverError(
                f"{places.name}: the function of the {what} returns an array of shape {found.shape} for positions "
                f"{places.positions.shape}; {(n, *components)} is wanted"
            )
    elif found.shape != components:
        found = _over_side(found, places, components, what)
    found = np.broadcast_to(found, (n, *components))
    if not np.all(np.isfinite(found)):
        raise SolverError(f"{places.name}: the {what} is not finite everywhere")
    return found


def _over_side(found: Reals, places: Places, components: tuple[int, ...], what: str) -> Reals:
    allowed = [str(components) if components else "a number"]
    if places.shape is not None and places.cells is not None:
        if found.shape == (*places.shape, *components):
            return found.reshape(-1, *components)[places.cells]
        allowed.append(f"{(*places.shape, *components)} over the side")
    raise SolverError(
        f"{places.name}: the {what} has the shape {found.shape}; it can be {', '.join(allowed)}, or a function of the "
        "position"
    )
