"""Values on a set, kept up to date in time by loops.

What depends on place and time is computed on the device by one loop, whose kernel is made of the formulas; the time and
the numbers that are the same everywhere are read by it from a global, so that no kernel and no chain is ever made anew.
What the host alone can find, a Python function, is written before. What does not depend on time is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import isfinite, select
from fluxloom.values.value import Slots, Value

__all__ = ["GivenOn", "Term", "evaluate"]

Array = npt.NDArray[np.float64]

STEEP = 0.3
"""Part of the velocity of a wall that may be along the normal of its face, which is not that of a curved surface."""


@dataclass(frozen=True)
class Term:
    """A value as loops compute it.

    Attributes
    ----------
    component
        Of the dat that is written.
    weight
        Column of the weights that multiplies it; -1: none does.
    least
        A value at most as large is wrong.
    value
        A record with a ``__call__``, see `fluxloom.values.value.Value.term`.
    """

    component: int
    weight: int
    least: float
    value: Any


@kernel
def evaluate(
    x: Read, now: Read, held: Read, weights: Read, out: RW, wrong: Inc, *, terms: Const[tuple[Term, ...]], d: Const[int]
):
    """Write values at a place: ``out[component] = weight * value(x, t)``, and count those that are not finite."""
    z = 0.0
    if d > 2:
        z = x[2]
    for k in range(len(terms)):
        found = terms[k].value(x[0], x[1], z, now, held)
        wrong[0] += select(isfinite(found) and found > terms[k].least, 0.0, 1.0)
        if terms[k].weight >= 0:
            found *= weights[terms[k].weight]
        out[terms[k].component] = found


@kernel
def tangential(normals: Read, out: RW, wrong: Inc, *, first: Const[int], d: Const[int]):
    """Take from a vector, ``v = out[first ...]``, what is along a normal, ``v -= (v . n) n``.

    Count where that is a large part of it, ``(v . n)^2 > STEEP^2 |v|^2``.
    """
    through = 0.0
    square = 0.0
    for k in range(d):
        through += out[first + k] * normals[k]
        square += out[first + k] * out[first + k]
    wrong[0] += select(through * through > STEEP * STEEP * square, 1.0, 0.0)
    for k in range(d):
        out[first + k] -= through * normals[k]


class GivenOn:
    """Given values on a set, at any time.

    Parameters
    ----------
    context
        Where the set lives.
    over
        The set, or a subset of it.
    places : (n, d)
        Of all elements of the whole set that this rank owns, in its order: of a subset, those of the set it is of. An
        array, or a dat, which several may share.
    values
        A component each.
    name
        What messages and loops call it.
    out
        A dat on the whole set that has the components; a new one by default.
    components
        Which of its components they are; by default the first ones.
    least
        For each value, what it has to be above.
    weights : (n, values)
        What multiplies each value at each element; ``least`` is of the value alone.
    normals : (n, d)
        Unit normals of a wall that moves along itself: the values are its velocity, less what is along them.
    moments
        At how many times the values are wanted in a step, at most; see `prepare`.
    time
        That of the values at the start.

    Attributes
    ----------
    dat
        The values.
    depends_on_time
        Whether any of them changes.
    wrong
        How many values were not finite, or too small, since `check` has looked; None where none changes.

    Raises
    ------
    SolverError
        If a value at the start is not finite, or too small; says where.
    """

    def __init__(
        self, context: Context, over: Set, places: Array | Dat, values: Sequence[Value], name: str, *,
        out: Dat | None = None, components: Sequence[int] | None = None, least: Sequence[float] | None = None,
        weights: Array | None = None, normals: Array | None = None, moments: int = 1, time: float = 0.0,
    ) -> None:  # fmt: skip
        self.context, self.over, self.name, self.values = context, over, name, tuple(values)
        self._kind = np.dtype("float32" if context.device.refuses_double else "float64")
        self._rows = getattr(over, "indices", np.arange(over.size))[: over.size]
        whole = places.read() if isinstance(places, Dat) else places
        self._places = np.asarray(whole, dtype=np.float64)[self._rows]
        self._least = tuple(least) if least is not None else (-np.inf,) * len(self.values)
        self._components = tuple(components) if components is not None else tuple(range(len(self.values)))
        self.dat = context.dat(over.parent, name=name, shape=(len(self.values),), dtype=self._kind) if (
            out is None) else out  # fmt: skip
        self._times: Sequence[float] = (time,)
        self._write_all(weights, normals, time)
        changing = [k for k, value in enumerate(self.values) if value.in_time]
        if changing and normals is not None:
            changing = list(range(len(self.values)))  # each component has a part of the others along the normal
        self.depends_on_time = bool(changing)
        self.wrong: Global | None = None
        if changing:
            self.place = places if isinstance(places, Dat) else self._dat(places, "places")
            self._make(changing, weights, moments)
            self._slide(normals)
            self.prepare([time])

    def _dat(self, numbers: Array, name: str) -> Dat:
        """Return numbers of all elements as a dat."""
        return self.context.dat(self.over.parent, np.asarray(numbers).astype(self._kind), f"{self.name}.{name}")

    def _write_all(self, weights: Array | None, normals: Array | None, time: float) -> None:
        """Write the values at a time, by the host."""
        whole = self.dat.read()
        table = whole.reshape(len(whole), int(np.prod(whole.shape[1:])))
        found = np.stack(self._heard(lambda: self._at(time)), axis=1)
        if weights is not None:
            found = found * weights[self._rows]
        if normals is not None:
            mine = normals[self._rows]
            found = found - np.einsum("ij,ij->i", found, mine)[:, None] * mine
        table[np.ix_(self._rows, np.array(self._components))] = found
        self.dat.write(whole)

    def _at(self, time: float) -> list[Array]:
        """Return the values at a time; raise `SolverError` where one is wrong."""
        return [
            self._checked(value, value.at(self._places, time, self.name), least, time)
            for value, least in zip(self.values, self._least, strict=True)
        ]

    def _checked(self, value: Value, found: Array, least: float, time: float) -> Array:
        for k in np.flatnonzero(found <= least)[:1].tolist():
            raise SolverError(f"{self.name}: {value} is {found[k]:g} {value.where(self._places[k], time)}: above "
                              f"{least:g} is wanted")  # fmt: skip
        return found

    def _slide(self, normals: Array | None) -> None:
        """Add the loop that takes from a velocity what is along the normals of a wall."""
        if normals is None:
            return
        assert self.wrong is not None
        first, d = min(self._components), len(self._components)
        slide = Loop(tangential, self.over, self._dat(normals, "normals"), self.dat, self.wrong, first=first, d=d,
                     name=f"along.{self.name}")  # fmt: skip
        self._loops = [[*loops, slide] for loops in self._loops]

    def _make(self, changing: Sequence[int], weights: Array | None, moments: int) -> None:
        """Make the loop of each moment, and what the host gives it."""
        context, whole = self.context, self.over.parent
        self._slots = Slots()
        terms = tuple(
            Term(self._components[k], -1 if weights is None else column, float(self._least[k]),
                 self.values[k].term(self._slots))
            for column, k in enumerate(changing)
        )  # fmt: skip
        weight = self.place if weights is None else self._dat(weights[:, list(changing)], "weights")
        self.wrong = context.scalar(0.0, f"{self.name}.wrong", dtype=self._kind)
        columns = self._slots.columns
        self._steady = not any(value.in_time for value in columns)
        start = np.zeros(1 + len(self._slots.numbers))
        self.now = [context.scalar(start, f"{self.name}.now", dtype=self._kind) for _ in range(moments)]
        self.held = [
            context.dat(whole, name=f"{self.name}.held", shape=(len(columns),), dtype=self._kind)
            for _ in range(1 if self._steady else moments) if columns
        ]  # fmt: skip
        if columns and self._steady:
            self._write_columns(0, 0.0)
        self._loops = [
            [Loop(evaluate, self.over, self.place, now,
                  self.held[0 if self._steady else k] if columns else self.place, weight, self.dat, self.wrong,
                  terms=terms, d=self._places.shape[1], name=f"given.{self.name}")]
            for k, now in enumerate(self.now)
        ]  # fmt: skip

    def _write_columns(self, moment: int, time: float) -> None:
        """Write what the host finds at the places. Collective."""
        columns = self._slots.columns
        found = self._heard(lambda: [value.at(self._places, time, self.name) for value in columns])
        self.held[moment].data[self._rows] = np.stack(found, axis=1)

    def _heard(self, action: Callable[[], list[Array]]) -> list[Array]:
        """Return what an action returns; all ranks hear of what is wrong on one. Collective."""
        found, mine = [], ""
        try:
            found = action()
        except (SolverError, CaseError) as error:
            mine = str(error)
        if told := [text for text in self.context.comm.allgather(mine) if text]:
            raise SolverError(told[0])
        return found

    # ------------------------------------------------------------------------------------------- in time
    def loops(self, moment: int = 0) -> list[Loop]:
        """Return what computes the values of a moment, for a chain; nothing where none changes."""
        return self._loops[moment] if self.depends_on_time else []

    def prepare(self, times: Sequence[float]) -> None:
        """Say the time of each moment of a step: its loops compute the values then.

        Raises
        ------
        SolverError
            If a value of the host is not finite, or a table has none at a time.
        """
        self._times = tuple(times)
        if not self.depends_on_time:
            return
        for moment, time in enumerate(times):
            nowhere = self._places[:1] if len(self._places) else np.zeros((1, self._places.shape[1]))
            numbers = [float(value.at(nowhere, time, self.name)[0]) for value in self._slots.numbers]
            self.now[moment].value = np.array([time, *numbers])
            if not self._steady:
                self._write_columns(moment, time)

    def update(self, time: float) -> None:
        """Make the values those of a time; where none depends on it, that costs nothing."""
        if self.depends_on_time:
            self.prepare([time])
            for loop in self._loops[0]:
                loop()

    def check(self) -> None:
        """Raise where a value was wrong since the last look. Collective.

        Raises
        ------
        SolverError
            Says where and when, as far as that is so at the times of `prepare`.
        """
        if self.wrong is None or not float(self.wrong.value):
            return
        self.wrong.value = 0.0
        for time in self._times:
            self._heard(lambda time=time: self._at(time))
        times = ", ".join(f"{time:g}" for time in self._times)
        raise SolverError(
            f"{self.name}: at t = {times} or before, a value was not finite or out of range, or a wall that moves "
            "along itself has a part along its normal; an inflow lets fluid through"
        )
