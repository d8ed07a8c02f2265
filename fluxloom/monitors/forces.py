r"""Forces and moments of a flow on patches or bodies, and their coefficients, over time.

.. math:: C_D = \frac{F \cdot e_D}{q A}, \quad C_L = \frac{F \cdot e_L}{q A}, \quad
          C_M = \frac{M \cdot e_M}{q A L}, \quad q = \tfrac12 \rho U^2

with the force ``F`` and the moment ``M`` about a point that the flow finds for its patches (`fluxloom.run.flow.Flow`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CheckpointError, SolverError
from fluxloom.run.flow import Flow
from fluxloom.run.measures import Loads, Surface
from fluxloom.run.monitor import Monitor, Watched

if TYPE_CHECKING:
    from fluxloom.solvers.flow_signals import Signal

__all__ = ["Coefficients", "ForceHistory", "Forces", "Reference"]

Array = npt.NDArray[np.float64]

_AXES = "xyz"
_FEW = 8
"""Samples, below which there are no means."""
_NOISE = 1e-3
"""Amplitude of the coefficient of lift, below which it does not oscillate."""
_TIME, _FORCE, _MOMENT, _COEFFICIENTS = 0, 1, 4, 7
_WIDTH = 10
"""Where the values of a sample are in its row."""


@dataclass(frozen=True)
class Coefficients:
    """Drag and lift over ``q A``, the pitching moment over ``q A L``: positive where it lifts the nose."""

    drag: float
    lift: float
    pitch: float


@dataclass(frozen=True)
class Reference:
    """What coefficients refer to.

    Attributes
    ----------
    speed
        ``U``, m/s.
    area
        ``A``, m^2; a length in two dimensions, as the chord of an airfoil or the diameter of a cylinder.
    length
        ``L``, of the coefficient of the moment and of the Strouhal number, m.
    density
        ``rho``; 1 for the forces of a flow that are over its density.
    drag, lift
        Directions, of any length.
    pitch
        Axis of the coefficient of the moment; by default lift x drag: it is positive if it lifts the nose.
    dynamic_pressure
        ``q``; by default ``rho U^2 / 2``.

    Raises
    ------
    SolverError
        If a number is not positive.
    """

    speed: float
    area: float = 1.0
    length: float = 1.0
    density: float = 1.0
    drag: Sequence[float] = (1.0, 0.0, 0.0)
    lift: Sequence[float] = (0.0, 1.0, 0.0)
    pitch: Sequence[float] = ()
    dynamic_pressure: float | None = None

    def __post_init__(self) -> None:
        for name in ("speed", "area", "length", "density", "dynamic_pressure"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise SolverError(f"forces: reference: {name}: a positive number is wanted, not {value!r}")

    @property
    def q(self) -> float:
        """Dynamic pressure, Pa; m^2/s^2 for a density of 1."""
        return 0.5 * self.density * self.speed**2 if self.dynamic_pressure is None else self.dynamic_pressure

    def directions(self, dimension: int) -> tuple[Array, Array, Array]:
        """Return unit vectors of drag and lift, ``(d,)``, and the axis of the moment, ``(3,)``.

        Raises
        ------
        SolverError
            If one is none in so many dimensions, or lift is along drag.
        """
        drag, lift = (_direction(name, getattr(self, name), dimension) for name in ("drag", "lift"))
        whole = np.zeros((2, 3))
        whole[:, :dimension] = lift, drag
        pitch = np.asarray(self.pitch, dtype=np.float64) if len(self.pitch) else np.cross(whole[0], whole[1])
        if pitch.shape != (3,) or not np.isfinite(pitch).all() or not pitch.any():
            raise SolverError(
                f"forces: reference: pitch: an axis of 3 components across drag {self.drag} and lift {self.lift} is "
                f"wanted, not {pitch.tolist()}"
            )
        return drag, lift, pitch / np.linalg.norm(pitch)


def _direction(what: str, given: Sequence[float], d: int) -> Array:
    """Return a unit vector; components beyond ``d`` that are 0 are left out."""
    way = np.asarray(given, dtype=np.float64)
    fits = way.ndim == 1 and way.size >= d and not way[d:].any()
    if not fits or not np.isfinite(way).all() or not way.any():
        raise SolverError(f"forces: reference: {what}: a direction of {d} components is wanted, not {given!r}")
    return way[:d] / np.linalg.norm(way[:d])


@dataclass(frozen=True, eq=False)
class ForceHistory:
    """Forces at ``n`` moments.

    Attributes
    ----------
    time : (n,)
        When; of a run towards a steady flow in how many steps.
    force : (n, d)
        N; in two dimensions for a span of 1.
    moment : (n, 3)
        N m.
    drag, lift : (n,)
        Coefficients; NaN without a `Reference`.
    """

    time: Array
    force: Array
    moment: Array
    drag: Array
    lift: Array


class Forces(Monitor):
    """The force and the moment of a flow on some patches or bodies.

    Parameters
    ----------
    name
        Of the columns, ``NAME.force_x``, ``NAME.moment_z``, and with a reference ``NAME.drag``, ``NAME.lift``,
        ``NAME.pitch``.
    patches
        By default the one of that name.
    reference
        For coefficients.
    about
        Point that the moment is about, ``(d,)``; by default the origin.
    every
        Steps between two samples of `series`; 0: there is the last one only.
    balance
        Whether the force is that of the terms of the discrete equations, where a flow knows another one too.
    """

    kind, looks_back, remembers = "forces", True, ("memory",)

    _flow: Flow
    _surface: Surface

    def __init__(
        self, name: str, patches: Sequence[str] = (), reference: Reference | None = None,
        about: Sequence[float] = (), *, every: int = 10, balance: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.reference, self.every = name, reference, every
        self.patches = (patches,) if isinstance(patches, str) else tuple(patches) or (name,)
        self.about, self.balance = tuple(about), balance
        self._directions: tuple[Array, Array, Array] | None = None
        self._loads: Loads | None = None
        self._at, self._asked = -1, (-1, 0.0)
        self._rows: list[Array] = []
        self._early = False
        """Whether the last sample is there only because the run ended."""

    # ------------------------------------------------------------------------------------- what is looked at
    def attach(self, run: Watched) -> None:
        """Find the patches.

        Raises
        ------
        SolverError
            If there is no such patch, the flow finds no force there, or directions do not fit.
        """
        self._flow, flow = run.flow, run.flow
        flow.check_forces(self.patches)
        if self.reference is not None:
            self._directions = self.reference.directions(flow.dimension)
        self._surface = (flow.balance if self.balance else flow.surface)(self.patches, self.about)
        self._loads, self._at, self._asked = None, -1, (-1, 0.0)

    def stepped(self) -> None:
        """Let the device find the force, where a sample is due; it is fetched with the next one."""
        self._settle()
        if self.every and self._flow.steps % self.every == 0:
            self._drop_early()
            self._surface.take()
            self._asked = self._flow.steps, self._flow.now

    def _settle(self) -> None:
        """Fetch the sample that the device was asked for. Collective."""
        steps, time = self._asked
        if steps >= 0:
            self._asked = -1, 0.0
            self._loads, self._at = self._surface.collect(), steps
            self._rows.append(self._row(time))

    def now(self) -> Loads:
        """Return what acts now. Collective."""
        if self._loads is None or self._at != self._flow.steps:
            self._settle()
        if self._loads is None or self._at != self._flow.steps:
            self._surface.take()
            self._loads, self._at = self._surface.collect(), self._flow.steps
        return self._loads

    def _row(self, time: float) -> Array:
        """Return the row of a sample."""
        row = np.full(_WIDTH, np.nan)
        row[_TIME] = time
        force = self.force
        row[_FORCE : _FORCE + force.size] = force
        row[_MOMENT:_COEFFICIENTS] = self.moment
        if (found := self.coefficients()) is not None:
            row[_COEFFICIENTS:] = found.drag, found.lift, found.pitch
        return row

    def _drop_early(self) -> None:
        """Forget the sample of an end that was none."""
        if self._early:
            self._early = False
            self._rows.pop()

    # --------------------------------------------------------------------------------------------- results
    @property
    def _last(self) -> Loads:
        if self._loads is None:
            raise SolverError(f"forces {self.name}: nothing has been found yet: they are there after a run")
        return self._loads

    @property
    def force(self) -> Array:
        """The force that was found last, ``(d,)``, N; over the density where the flow has none of its own."""
        return self._last.force

    @property
    def moment(self) -> Array:
        """The moment that was found last, ``(3,)``, N m."""
        return self._last.moment

    def coefficients(self) -> Coefficients | None:
        """Return the coefficients of what was found last; None without a reference."""
        reference, ways = self.reference, self._directions
        if reference is None or ways is None:
            return None
        drag, lift, pitch = ways
        scale = 1.0 / (reference.q * reference.area)
        force = self.force
        return Coefficients(
            float(scale * force @ drag), float(scale * force @ lift),
            float(scale / reference.length * (self.moment @ pitch)),
        )  # fmt: skip

    def _coefficient(self, what: str) -> float:
        if (found := self.coefficients()) is None:
            raise SolverError(f"forces {self.name}: there are no coefficients: give a reference")
        return getattr(found, what)

    @property
    def cd(self) -> float:
        """Coefficient of drag that was found last."""
        return self._coefficient("drag")

    @property
    def cl(self) -> float:
        """Coefficient of lift that was found last."""
        return self._coefficient("lift")

    @property
    def cm(self) -> float:
        """Coefficient of the pitching moment that was found last: positive where it lifts the nose."""
        return self._coefficient("pitch")

    @property
    def series(self) -> ForceHistory:
        """All samples. Collective where the last one has not been fetched."""
        self._settle()
        rows, d = self._table(), self._flow.dimension
        return ForceHistory(
            rows[:, _TIME], rows[:, _FORCE : _FORCE + d], rows[:, _MOMENT:_COEFFICIENTS], rows[:, _COEFFICIENTS],
            rows[:, _COEFFICIENTS + 1],
        )  # fmt: skip

    def _table(self) -> Array:
        return np.array(self._rows).reshape(-1, _WIDTH)

    def columns(self) -> dict[str, float]:
        """Return force and moment, and the coefficients."""
        loads, d = self.now(), self._flow.dimension
        found = {f"{self.name}.force_{_AXES[k]}": float(value) for k, value in enumerate(loads.force)}
        axes = () if not loads.turns else range(3) if d == 3 else (2,)
        found |= {f"{self.name}.moment_{_AXES[k]}": float(loads.moment[k]) for k in axes}
        if (values := self.coefficients()) is not None:
            found |= {f"{self.name}.drag": values.drag, f"{self.name}.lift": values.lift}
            found |= {f"{self.name}.pitch": values.pitch} if loads.turns else {}
        return found

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return coefficients, force and moment, and of a flow in time what the last half of the samples says."""
        loads = self.now()
        text = self._loaded(loads.force, loads.moment, loads.turns, 7)
        if (found := self.coefficients()) is None:
            return ((self.name, text), *self._means())
        coefficients = f"drag {found.drag:.7g}, lift {found.lift:.7g}"
        coefficients += f", pitch {found.pitch:.7g}" if loads.turns else ""
        return ((self.name, coefficients), (f"{self.name}, force", text), *self._means())

    def _loaded(self, force: Array, moment: Array, turns: bool, digits: int) -> str:
        """Return a force and a moment in words; of a plane flow that about z."""
        found = (", ".join(f"{value:.{digits}g}" for value in values) for values in (
            force, moment[2:] if self._flow.dimension == 2 else moment))  # fmt: skip
        return "force {}; moment {}".format(*found) if turns else f"force {next(found)}"

    def _means(self) -> Sequence[tuple[str, str]]:
        """Return the mean coefficients, or the mean force and moment, of the last half of a flow in time."""
        rows = self._table()
        rows = rows[np.isfinite(rows[:, _FORCE])]
        if self._flow.time is None or len(rows) < _FEW:
            return ()
        late = rows[rows[:, _TIME] >= 0.5 * (rows[0, _TIME] + rows[-1, _TIME])].mean(axis=0)
        turns = bool(np.isfinite(late[_MOMENT]))
        text = self._loaded(late[_FORCE : _FORCE + self._flow.dimension], late[_MOMENT:_COEFFICIENTS], turns, 6)
        if self.reference is not None:
            text = f"drag {late[_COEFFICIENTS]:.6g}, lift {late[_COEFFICIENTS + 1]:.6g}"
            text += f", pitch {late[_COEFFICIENTS + 2]:.6g}" if turns else ""
        found = [(f"{self.name}, mean", f"{text} (last half of the run)")]
        if (lift := self._oscillating_lift()) is not None and self.reference is not None:
            from fluxloom.monitors.power_spectra import oscillating

            found.append((f"{self.name}, lift", oscillating(lift, self.reference.length, self.reference.speed)))
        return found

    def _oscillating_lift(self) -> Signal | None:
        """Return the coefficient of lift over the last half of the run, if it oscillates."""
        from fluxloom.monitors.power_spectra import signal_of

        rows = self._table()
        if self.reference is None or self._flow.time is None or not len(rows):
            return None
        signal = signal_of(rows[:, _TIME], rows[:, _COEFFICIENTS + 1])
        found = signal.oscillation()
        return signal if found is not None and found.amplitude > _NOISE else None

    @property
    def strouhal(self) -> tuple[float, float] | None:
        """Strouhal number of the lift in the last half of the run, and its uncertainty; None: it does not oscillate."""
        signal, reference = self._oscillating_lift(), self.reference
        found = None if signal is None else signal.oscillation()
        return None if found is None or reference is None else found.strouhal(reference.length, reference.speed)

    def finish(self) -> None:
        """Take the last sample, where it is not there yet; a solution that is lost has none."""
        try:
            self.now()
        except SolverError:
            return
        if not self._rows or self._rows[-1][_TIME] != self._flow.now:
            self._rows.append(self._row(self._flow.now))
            self._early = True

    # ----------------------------------------------------------------------------------------- checkpoints
    @property
    def memory(self) -> dict[str, Any]:
        """The samples of a run that goes on: one of its end alone is left out. Collective."""
        self._settle()
        rows = self._table()
        return {"rows": rows[:-1] if self._early else rows}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        rows = np.asarray(memory["rows"], dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != _WIDTH:
            raise CheckpointError(f"forces {self.name}: samples of {_WIDTH} numbers are wanted, not {rows.shape}")
        self._rows, self._early, self._loads, self._at, self._asked = list(rows), False, None, -1, (-1, 0.0)
