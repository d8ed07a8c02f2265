"""The acceleration of the fluid of a lattice Boltzmann flow, given in space and time, in physical units, x first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.lattice.given.sides import Given
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.naming import KeyedError
from fluxloom.lbm.body_force import ForceField
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom.values.given_on import Term, evaluate
from fluxloom.values.value import Constant, Product, Slots, Value, vector_of

__all__ = ["Acceleration"]

Array = npt.NDArray[np.float64]


class Acceleration:
    """An acceleration, as a solver is told of it, and kept up to date while it runs.

    What is the same everywhere is given to the solver as a number in every step; what differs by cell is a field, which
    one loop computes where it changes.

    Parameters
    ----------
    given
        A value a dimension; empty: none.
    units
        Of the flow.

    Raises
    ------
    SolverError
        If there are not as many as dimensions.
    """

    def __init__(self, given: Sequence[Given], units: Units) -> None:
        d = units.dimension
        if len(given) not in (0, d):
            raise KeyedError("fluid.force", f"{d} numbers are wanted, one a dimension, not {len(given)}")
        self.values = vector_of(given, d, "fluid.force") if len(given) else ()
        self._units, self._unit = units, units.dx / units.dt**2
        self._flow: LatticeBoltzmann | None = None
        self._field: _Field | None = None

    @property
    def none(self) -> bool:
        """Whether there is none."""
        return all(isinstance(value, Constant) and not value.number for value in self.values)

    @property
    def in_space(self) -> bool:
        """Whether it differs by cell."""
        return any(value.in_space for value in self.values)

    @property
    def in_time(self) -> bool:
        """Whether it changes."""
        return any(value.in_time for value in self.values)

    def at(self, time: float) -> tuple[float, ...]:
        """Return what is the same everywhere, on the lattice, slowest axis first."""
        nowhere = np.zeros((1, self._units.dimension))
        return self._units.vector([float(v.at(nowhere, time, "fluid.force")[0]) for v in self.values], self._unit)

    def start(self, field: bool) -> Sequence[float] | ForceField:
        """Return what the solver is made with; ``field``: each cell needs room for its own in any case.

        Raises
        ------
        SolverError
            If cells differ though immersed bodies have taken that room.
        """
        if self.none:
            return ForceField(()) if field else ()
        if not self.in_space:
            return ForceField(self.at(0.0)) if field else self.at(0.0)
        if field:
            raise KeyedError("fluid.force", "with immersed bodies it is the same everywhere: leave x, y and z out")
        return ForceField()

    def attach(self, flow: LatticeBoltzmann) -> None:
        """Hear of the solver, before it starts. Collective."""
        self._flow = flow
        if self.in_space:
            self._field = _Field(flow, self.values, self._units, self._unit)

    def prepare(self, step: int) -> None:
        """Make it that of the end of a step; those before it are so many. Collective."""
        if not self.in_time or self._flow is None:
            return
        time = (step + 1) * self._units.dt
        if self._field is None:
            self._flow.set_force(self.at(time))
        else:
            self._field.update(time)

    def check(self) -> None:
        """Raise `SolverError` where a value was not finite in the last steps. Collective."""
        if self._field is not None:
            self._field.check()


class _Field:
    """The acceleration of each cell, on the lattice."""

    def __init__(self, flow: LatticeBoltzmann, values: Sequence[Value], units: Units, unit: float) -> None:
        self._flow, self._units = flow, units
        shape, d = flow.box.shape, units.dimension
        at = np.stack([x.ravel() for x in np.indices(shape, dtype=np.float64)], axis=1)
        places = np.stack(units.points(at), axis=1)
        found = np.stack([value.at(places, 0.0, "fluid.force") for value in reversed(values)], axis=1) / unit
        flow.memory.write(flow.force_field, found.reshape(*shape, d))
        self._over = places.reshape(*shape, d)
        self._loop: Loop | None = None
        if any(value.in_time for value in values):
            self._make([Product(Constant(1.0 / unit), value) for value in values])

    def _make(self, values: Sequence[Value]) -> None:
        """Make the loop of all components."""
        flow, d, slots = self._flow, self._units.dimension, Slots()
        terms = tuple(Term(d - 1 - k, -1, -np.inf, value.term(slots)) for k, value in enumerate(values))
        kind = "float32" if flow.context.device.refuses_double else "float64"
        self._columns, self._numbers = slots.columns, slots.numbers
        place = flow.memory.dat("places", d, dtype=kind, values=self._over)
        self._held: Dat | None = None
        if self._columns:
            self._held = flow.memory.dat("force of the host", len(self._columns), dtype=kind, values=0.0)
        self._now = flow.context.scalar(np.zeros(1 + len(self._numbers)), "force now", dtype=kind)
        self._wrong = flow.context.scalar(0.0, "force wrong", dtype=kind)
        self._loop = Loop(
            evaluate, flow.memory.set, place, self._now, place if self._held is None else self._held, place,
            flow.force_field, self._wrong, terms=terms, d=d, name="force given",
        )  # fmt: skip

    def update(self, time: float) -> None:
        """Make it that of a time."""
        assert self._loop is not None
        d, shape = self._units.dimension, self._flow.box.shape
        nowhere = np.zeros((1, d))
        numbers = [float(value.at(nowhere, time, "fluid.force")[0]) for value in self._numbers]
        self._now.value = np.array([time, *numbers])
        if self._held is not None:
            places = self._over.reshape(-1, d)
            found = np.stack([value.at(places, time, "fluid.force") for value in self._columns], axis=1)
            self._flow.memory.write(self._held, found.reshape(*shape, -1))
        self._loop()

    def check(self) -> None:
        """Raise where a value was not finite. Collective."""
        if self._loop is not None and float(self._wrong.value):
            self._wrong.value = 0.0
            raise SolverError("fluid.force: a value was not finite in the last steps")
