"""Right-hand side and solution on the cells of an extruded mesh, as one row of planes a column of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import AoS
from fluxloom.device.transforms.fft import RealTransform
from fluxloom.dsl.declare.dats import Dat, view_of
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.matrix.local_rows import refuse
from fluxloom.linalg.vectors import copy

__all__ = ["Columns", "readable", "writable"]


def readable(dat: Dat, transform: RealTransform) -> Any:
    """Return the values as an array ``(elements, components)`` to look at, where the transform wants it."""
    if not transform.on_device:
        return dat.data_ro.reshape(dat.set.size, dat.dim)
    dat.context.settle(dat)
    dat.viewed = True
    return dat.buffer.array(view_of(dat), write=False).reshape(dat.set.size, dat.dim)


def writable(dat: Dat, transform: RealTransform) -> Any:
    """Return the values as an array ``(elements, components)`` to change, where the transform wants it."""
    return (dat.array if transform.on_device else dat.data).reshape(dat.set.size, dat.dim)


class Columns:
    """Two vectors of one value a cell, and where FFTs find them: ``(columns, planes)``, planes next to each other.

    Parameters
    ----------
    context
        Of the vectors.
    numbers
        Global numbers of the columns of this rank.
    planes
        Number of planes.
    b, x
        Vectors of shape ``(planes,)`` on a set of the columns, or scalars on one of the cells; None: made here, on a
        new set.
    order : (columns, planes)
        For scalars, the cell of each plane of each column; None: ``i planes + k``.
    name
        Of loops and messages.

    Raises
    ------
    SolverError
        If they do not fit each other; on every rank if on one of them.
    """

    def __init__(
        self,
        context: Runtime,
        numbers: npt.NDArray[np.int64],
        planes: int,
        b: Dat | None,
        x: Dat | None,
        order: npt.ArrayLike | None,
        name: str,
    ) -> None:
        self.context, self.planes, self.name, self.count = context, planes, name, int(numbers.size)
        refuse(context.comm, self._problem(b, x, order))
        if b is None or x is None:
            rows = local_set(context, self.count, f"{name}.columns", numbers)
            self.b, self.x = (Dat(rows, name=f"{name}.{what}", shape=(planes,)) for what in "bx")
        else:
            self.b, self.x = b, x
        self.gather: Chain | None = None
        self.gather_x: Chain | None = None
        self.scatter: Chain | None = None
        self._b, self._x = self.b, self.x
        if order is not None:
            self._ordered(np.asarray(order), numbers)

    def _problem(self, b: Any, x: Any, order: npt.ArrayLike | None) -> str:
        """Return why vectors and order do not fit, or an empty string."""
        name, size = self.name, self.count * self.planes
        if (b is None) != (x is None):
            return f"{name}: give both b and x, or neither"
        if b is None:
            return "" if order is None else f"{name}: order is for scalars on cells: give b and x"
        if not isinstance(b, Dat) or not isinstance(x, Dat):
            return f"{name}: b and x are dats, not {type(b).__name__} and {type(x).__name__}"
        if b is x or b.set is not x.set or b.context is not self.context:
            return f"{name}: b and x are two dats on one set of the solver's context"
        if b.scalar is not x.scalar or b.scalar.name not in ("float64", "float32"):
            return f"{name}: b is of {b.scalar.name} and x of {x.scalar.name}: float64 or float32 is wanted"
        if not isinstance(b.layout, AoS) or not isinstance(x.layout, AoS):
            return f"{name}: b and x are wanted in the layout AoS, planes next to each other"
        fits = {(): size, (self.planes,): self.count}
        if b.shape != x.shape or fits.get(b.shape) != b.set.size:
            return (
                f"{name}: {self.count} columns of {self.planes} planes: b and x have {size} scalars, or {self.count} "
                f"values of shape ({self.planes},), not {b.set.size} of {b.shape} and {x.shape}"
            )
        given = None if order is None else np.asarray(order)
        shape = (self.count, self.planes)
        if given is None or (
            given.shape == shape and not b.shape and np.array_equal(np.sort(given, axis=None), np.arange(size))
        ):
            return ""
        return f"{name}: order has each of {size} cells once, {self.count} rows of {self.planes} planes"

    def _ordered(self, order: npt.NDArray[Any], numbers: npt.NDArray[np.int64]) -> None:
        """Make vectors in the order of the transform, and the loops between them and those that were given."""
        context, cells, name = self.context, self.b.set, self.name
        size = self.count * self.planes
        flat = order.reshape(-1)
        places = (numbers[:, None] * self.planes + np.arange(self.planes)).ravel()
        points = local_set(context, size, f"{name}.points", places)
        there = TableMap(points, cells, flat[:, None].astype(np.int32), f"{name}.order")
        inverse = np.empty(size, dtype=np.int32)
        inverse[flat] = np.arange(size, dtype=np.int32)
        back = TableMap(cells, points, inverse[:, None], f"{name}.place")
        dtype = self.b.scalar.numpy
        self._b, self._x = (Dat(points, name=f"{name}.{what}'", dtype=dtype, shape=()) for what in "bx")

        def moved(source: Set, given: Any, target: Dat, what: str) -> Chain:
            return Chain([Loop(copy, source, given, target, systems=1, name=f"{name}.{what}")], name=f"{name}.{what}")

        self.gather = moved(points, self.b[there[0]], self._b, "gather")
        self.gather_x = moved(points, self.x[there[0]], self._x, "gather x")
        self.scatter = moved(cells, self._x[back[0]], self.x, "scatter")

    def right_hand_side(self, transform: RealTransform) -> Any:
        """Return ``b`` as ``(columns, planes)``, to look at."""
        if self.gather is not None:
            self.gather()
        return readable(self._b, transform).reshape(self.count, self.planes)

    def guess(self, transform: RealTransform) -> Any:
        """Return ``x`` as ``(columns, planes)``, to look at."""
        if self.gather_x is not None:
            self.gather_x()
        return readable(self._x, transform).reshape(self.count, self.planes)

    def solution(self, transform: RealTransform) -> Any:
        """Return an array ``(columns, planes)`` for ``x``; call `deliver` when it is filled."""
        return writable(self._x, transform).reshape(self.count, self.planes)

    def deliver(self) -> None:
        """Bring ``x`` to where it was asked for."""
        if self.scatter is not None:
            self.scatter()
