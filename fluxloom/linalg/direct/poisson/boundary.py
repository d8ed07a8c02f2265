"""Boundary conditions of a Poisson problem: their names, their data, and what a user may give for all axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean

__all__ = ["Condition", "Dirichlet", "Neumann", "Side", "each_axis", "read_conditions"]

NAMES = ("periodic", "dirichlet", "neumann")


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """The value of the solution on a side.

    Attributes
    ----------
    value
        A number, or an array over the side: of the shape of the unknowns without the axis across it.
    """

    value: npt.ArrayLike = 0.0


@dataclass(frozen=True, eq=False)
class Neumann:
    """The derivative of the solution on a side, along the normal that points out of the domain.

    Attributes
    ----------
    derivative
        A number, or an array over the side: of the shape of the unknowns without the axis across it.
    """

    derivative: npt.ArrayLike = 0.0


Condition = str | Dirichlet | Neumann
"""``"periodic"``, ``"dirichlet"``, ``"neumann"`` (both with zero data), or an object with data."""


@dataclass(frozen=True, eq=False)
class Side:
    """The condition at one end of an axis.

    Attributes
    ----------
    kind
        ``"periodic"``, ``"dirichlet"`` or ``"neumann"``.
    data
        Values over the side, or one number; None: zero.
    """

    kind: str
    data: npt.NDArray[np.float64] | None = None


T = TypeVar("T")


def each_axis(given: Any, dimensions: int, what: str, single: tuple[type, ...]) -> list[Any]:
    """Return one entry an axis of what is given once for all axes or in a sequence of that length.

    Raises
    ------
    SolverError
        If there are more or fewer entries than axes.
    """
    if isinstance(given, single) or not isinstance(given, Sequence | np.ndarray) or getattr(given, "ndim", 1) == 0:
        return [given] * dimensions
    if len(given) != dimensions:
        raise SolverError(f"poisson: {what} has {len(given)} entries for {dimensions} axes: give one an axis, or one")
    return list(given)


def read_conditions(bc: Any, shape: tuple[int, ...]) -> list[tuple[Side, Side]]:
    """Return the conditions at the low and the high end of each axis.

    Parameters
    ----------
    bc
        A condition for all sides; or for each axis a condition, or a pair for its low and its high end. In one
        dimension the pair alone will do.
    shape
        Of the unknowns.

    Raises
    ------
    SolverError
        For an unknown name, a number of entries that does not fit, one periodic end, or data of a wrong shape.
    """
    found = []
    if len(shape) == 1 and isinstance(bc, Sequence) and not isinstance(bc, str) and len(bc) == 2:
        bc = [bc]
    for axis, given in enumerate(each_axis(bc, len(shape), "bc", (str, Dirichlet, Neumann))):
        pair = (given, given) if isinstance(given, str | Dirichlet | Neumann) else given
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise SolverError(f"poisson: bc of axis {axis} is a condition or a pair of them, not {given!r}")
        over = tuple(n for k, n in enumerate(shape) if k != axis)
        low, high = (_side(one, f"bc of axis {axis}", over) for one in pair)
        if (low.kind == "periodic") != (high.kind == "periodic"):
            raise SolverError(f"poisson: bc of axis {axis}: one end cannot be periodic alone; say 'periodic' once")
        found.append((low, high))
    return found


def _side(given: Any, what: str, over: tuple[int, ...]) -> Side:
    if isinstance(given, str):
        if given not in NAMES:
            raise SolverError(
                f"poisson: {what}: {given!r} is none of {', '.join(NAMES)}, nor Dirichlet(value) or "
                f"Neumann(derivative){did_you_mean(given.lower(), NAMES)}"
            )
        return Side(given)
    if not isinstance(given, Dirichlet | Neumann):
        raise SolverError(
            f"poisson: {what}: a condition is one of {', '.join(NAMES)}, Dirichlet(value) or Neumann(derivative), "
            f"not {given!r}"
        )
    kind = "dirichlet" if isinstance(given, Dirichlet) else "neumann"
    return Side(kind, _data(given.value if isinstance(given, Dirichlet) else given.derivative, what, over))


def _data(given: Any, what: str, over: tuple[int, ...]) -> npt.NDArray[np.float64] | None:
    """Return the data of a side as one number or an array over it; None where they are zero."""
    if isinstance(given, np.ma.MaskedArray):
        raise SolverError(f"poisson: {what}: data are a masked array: fill the masked values, data.filled(value)")
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SolverError(f"poisson: {what}: data are numbers in host memory, not {type(given).__name__}") from None
    if values.shape not in ((), over):
        raise SolverError(f"poisson: {what}: data of shape {values.shape}; the side takes a number or shape {over}")
    if not np.isfinite(values).all():
        raise SolverError(f"poisson: {what}: data that are not finite")
    return values if values.any() else None
