"""Dats and arrays of other libraries over the same memory: which forms fit, and where the values are."""

from __future__ import annotations

from typing import Any, Protocol

from fluxloom.core.dtypes import AoS, Blocked, Layout, Scalar, SoA
from fluxloom.core.errors import ExportError
from fluxloom.device.buffer import View, dense, steps
from fluxloom.dsl.sets import Grid, Set

__all__ = ["fitting_layout", "is_ordered", "require_view", "view_of"]


class Stored(Protocol):
    """How values are stored: a dat."""

    name: str
    set: Set
    shape: tuple[int, ...]
    scalar: Scalar
    dim: int
    layout: Layout
    stride: int


def view_of(dat: Stored, *, ghosts: bool = False) -> View:
    """Return where the values of an AoS or SoA dat are in its buffer: an array ``(*set.shape, *shape)``.

    Parameters
    ----------
    dat
        On a set whose elements are stored in order, or on a grid.
    ghosts
        Whether the ghosts of a grid belong to the array: then it is ``(*set.full_shape, *shape)``.
    """
    over, size = dat.set, dat.scalar.size
    full = over.full_shape if isinstance(over, Grid) else over.shape
    element, component = (1, dat.stride) if isinstance(dat.layout, SoA) else (dat.dim, 1)
    outer = [size * element * step for step in steps(full)]
    inner = [size * component * step for step in steps(dat.shape)]
    lead = full if ghosts else over.shape
    skipped = 0 if ghosts or not isinstance(over, Grid) else sum(g * s for g, s in zip(over.ghost, outer, strict=True))
    return View((*lead, *dat.shape), dat.scalar.numpy, (*outer, *inner), skipped)


def is_ordered(dat: Stored) -> bool:
    """Whether the values of a dat are in an order that an array can have."""
    return not isinstance(dat.layout, Blocked) and (dat.set.position is None or isinstance(dat.set, Grid))


def require_view(dat: Stored) -> None:
    """Raise `ExportError` when the values of a dat are in an order that no array has."""
    if not is_ordered(dat):
        raise ExportError(
            f"dat {dat.name!r} is stored in another order than NumPy's: use read() and write(), which copy"
        )


def fitting_layout(over: Set, kind: Scalar, array: Any, wanted: Layout | None) -> tuple[Layout | None, str]:
    """Return the layout in which an array's memory can be that of a dat; or None, and why there is none.

    Parameters
    ----------
    over, kind
        Set and type of the dat.
    array
        Of NumPy or another library, ``(*over.shape, *shape)``.
    wanted
        The layout that was asked for.
    """
    if over.position is not None:
        return None, f"{over.name!r} has ghosts, or elements that are stored in another order"
    if array.dtype != kind.numpy:
        return None, f"it is of {array.dtype}, and the dat of {kind.name}"
    if isinstance(wanted, Blocked):
        return None, f"arrays have no layout {wanted}"
    shape, strides, size, lead = tuple(array.shape), tuple(array.strides), array.dtype.itemsize, len(over.shape)
    if not isinstance(wanted, SoA) and dense(shape, strides, size):
        return AoS(), ""
    by_component = dense(shape[lead:] + shape[:lead], strides[lead:] + strides[:lead], size)
    if not isinstance(wanted, AoS) and by_component:
        return SoA(), ""
    if wanted is None:
        return None, "neither the components of an element nor the elements of a component lie one after the other"
    return None, f"its values are not laid out as {wanted}"
