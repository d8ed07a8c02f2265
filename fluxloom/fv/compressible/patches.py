"""The faces of a patch as boundaries of compressible flow see them: what is given there, checked and spread out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary_states import PARAMETERS
from fluxloom.fv.compressible.free_stream import FreeStream, FreeStreamInTime
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.given import sliding
from fluxloom.values.value import Direction, Function, Given, Value, value_of, vector_of

__all__ = ["Changing", "Number", "PatchFaces", "State", "Vector"]

Array = npt.NDArray[np.float64]
Number = Given
Vector = Sequence[Given] | Function

_ALONG = 1e-6
"""Sine of the smallest angle between a direction that leads through a face, and the face."""
_AT_LEAST_0 = -1e-300
"""What a number that may be 0 is above."""


State = FreeStream | FreeStreamInTime | Sequence[Given] | Function


@dataclass(frozen=True, eq=False)
class Changing:
    """Numbers at the faces of a patch that depend on the time, in place of an array of them.

    Attributes
    ----------
    about
        How messages begin.
    values
        One a column.
    now : (n, columns)
        At the start, weights included.
    least
        Of each column, what the value is above.
    weights : (n, columns)
        What multiplies the values.
    weighted
        Whether they are other than 1; the same on all ranks.
    sliding
        Whether they are the velocity of a wall that moves along itself.
    """

    about: str
    values: tuple[Value, ...]
    now: Array
    least: tuple[float, ...]
    weights: Array
    weighted: bool = False
    sliding: bool = False

    __array_ufunc__ = None  # of an array and this, Python asks this one

    def __array__(self, *given: Any, **options: Any) -> Array:
        raise SolverError(
            f"{self.about}: it depends on the time, and what the boundary condition computes of it is known at the "
            "start alone: multiply it by numbers or give it to faces.row as it is, or give a steady value"
        )

    def __mul__(self, factor: float | Array) -> Changing:
        """Return it times a number, or one at each face, ``(n,)``."""
        factor = np.asarray(factor, dtype=np.float64).reshape(-1, 1)
        return replace(self, now=self.now * factor, weights=self.weights * factor, weighted=True)

    __rmul__ = __mul__

    def __truediv__(self, factor: float | Array) -> Changing:
        """Return it over a number, or one at each face, ``(n,)``."""
        return self * (1.0 / np.asarray(factor, dtype=np.float64))

    def along(self, ways: Array) -> Changing:
        """Return a number times vectors ``(n, d)``, ``q_k = q v_k``."""
        d = ways.shape[1]
        return replace(self, values=self.values * d, least=self.least * d, now=self.now * ways,
                       weights=self.weights * ways, weighted=True)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PatchFaces:
    """The faces of a patch.

    What is given is a value (`fluxloom.values.value.value_of`), or one for each component. All raise `SolverError`,
    with the name of the patch, if there is not one finite value in range for each face. What depends on the time is a
    `Changing`, in range at the start.

    Attributes
    ----------
    name
        Of the patch, for messages.
    places, normals : (n, d)
        Centres and outward unit normals.
    gas
        What flows.
    changing
        What `row` was given that depends on the time, and the parameter it begins with.
    """

    name: str
    places: Array
    normals: Array
    gas: Gas
    changing: list[tuple[int, Changing]] = field(default_factory=list)

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.places.shape[1]

    def number(self, what: str, given: Number, *, zero: bool = False, least: float = 0.0) -> Array | Changing:
        """Return a given number at each face, ``(n,)``; above ``least``, or with ``zero`` at least 0."""
        about = self._about(what)
        value = value_of(given, about)
        found = value.at(self.places, what=about)
        if not (found >= 0.0 if zero else found > least).all():
            bound = "at least 0" if zero else f"above {least:g}"
            raise SolverError(f"{about}: {bound} is wanted, not {found.min():g}")
        if not value.in_time:
            return found
        bound = _AT_LEAST_0 if zero else least
        return Changing(about, (value,), found[:, None], (bound,), np.ones((len(found), 1)))

    def thermal(self, temperature: Number) -> Array | Changing:
        """Return ``R_g T = p / rho`` of a given temperature at each face, ``(n,)``."""
        return self.gas.constant * self.number("temperature", temperature)

    def vector(self, what: str, given: Vector, *, slides: bool = False) -> Array | Changing:
        """Return a given vector at each face, ``(n, d)``; an empty one is zero.

        With ``slides`` it is the velocity of a wall that moves along itself, see `fluxloom.fv.given.sliding`.
        """
        d = self.dimension
        about = self._about(what)
        values = vector_of(given, d, about)
        found = np.stack([value.at(self.places, what=about) for value in values], axis=1)
        found = sliding(about, found, self.normals) if slides else found
        if not any(value.in_time for value in values):
            return found
        return Changing(about, values, found, (-np.inf,) * d, np.ones_like(found), sliding=slides)

    def entering(self, what: str, given: Vector) -> Array | Changing:
        """Return given velocities ``(n, d)`` that do not lead out."""
        found = self.vector(what, given)
        now = found.now if isinstance(found, Changing) else found
        self._inward(what, given, self._through(now) > _ALONG * np.linalg.norm(now, axis=1))
        return found

    def inward(self, given: Vector) -> Array | Changing:
        """Return given directions as unit vectors ``v / |v|``, ``(n, d)``, that lead in; ``-n`` if there are none."""
        if not callable(given) and not len(given):
            return -self.normals
        found = self.vector("direction", given)
        way = found.now if isinstance(found, Changing) else found
        size = np.linalg.norm(way, axis=1)
        self._inward("direction", given, self._through(way) >= -_ALONG * size)
        if not isinstance(found, Changing):
            return way / size[:, None]
        parts = tuple(Direction(found.values, k) for k in range(self.dimension))
        return replace(found, values=parts, now=way / size[:, None])

    def along(self, ways: Array, number: Array | Changing) -> Array | Changing:
        """Return numbers ``(n,)`` times vectors ``(n, d)``, ``q_k = q v_k``."""
        return number.along(ways) if isinstance(number, Changing) else ways * number[:, None]

    def state(self, given: State | None) -> Array | Changing:
        """Return given primitive states, ``(n, d + 2)``."""
        d, about = self.dimension, self._about("state")
        parts: Any = given
        if isinstance(given, FreeStream):
            parts = tuple(given.state(self.gas, d).tolist())
        elif isinstance(given, FreeStreamInTime):
            parts = given.states_in_time(self.gas, d)
        whole = isinstance(parts, Sequence | np.ndarray) and np.shape(parts)[-1:] == (d + 2,)
        if not (callable(parts) or whole):
            raise SolverError(
                f"{about}: a FreeStream is wanted, or density, {d} velocities and pressure, or a function that returns "
                f"{(len(self.places), d + 2)} numbers for the places {self.places.shape}, not {given!r}"
            )
        values = vector_of(parts, d + 2, about)
        found = np.stack([value.at(self.places, what=about) for value in values], axis=1)
        if not (found[:, [0, -1]] > 0.0).all():
            raise SolverError(f"{about}: finite numbers, density and pressure above 0, are wanted, not {given!r}")
        if not any(value.in_time for value in values):
            return found
        return Changing(about, values, found, (0.0, *(-np.inf,) * d, 0.0), np.ones_like(found))

    def supersonic(self, given: State | None) -> Array | Changing:
        """Return given primitive states, ``(n, d + 2)``, that are faster than sound and do not lead out."""
        whole = self.state(given)
        found = whole.now if isinstance(whole, Changing) else whole
        sound, speed = self.gas.sound(found), np.linalg.norm(found[:, 1:-1], axis=1)
        mach, through = speed / sound, -self._through(found[:, 1:-1]) / sound
        out = through < -_ALONG * mach
        for wrong, what in ((mach < 1.0, "is slower than sound"), (out, "leads out of the domain")):
            if wrong.any():
                worst = int(np.argmax(np.where(wrong, -through, -np.inf)))
                raise SolverError(
                    f"{self._about('state')}: at {np.count_nonzero(wrong)} of {wrong.size} faces it {what}: Mach "
                    f"{mach[worst]:.3g}, {through[worst]:.3g} along the normal into the domain; a supersonic inlet "
                    "takes flow that enters with more than 1: take a far field, a total inlet or a velocity inlet, or "
                    "turn the velocity round"
                )
        return whole

    def parts(self, state: Array | Changing) -> tuple[Array | Changing, Array | Changing, Array | Changing]:
        """Return density, velocity and pressure of states as `row` takes them."""
        if not isinstance(state, Changing):
            return state[:, 0], state[:, 1:-1], state[:, -1]

        def part(columns: slice) -> Changing:
            return replace(state, values=state.values[columns], least=state.least[columns], now=state.now[:, columns],
                           weights=state.weights[:, columns])  # fmt: skip

        return part(slice(0, 1)), part(slice(1, -1)), part(slice(-1, None))

    def row(
        self,
        first: npt.ArrayLike | Changing,
        vector: npt.ArrayLike | Changing,
        last: npt.ArrayLike | Changing,
        turbulence: Number | None = None,
    ) -> Array:
        """Return parameters, ``(n, PARAMETERS)``: see the table in `fluxloom.fv.compressible.boundary_states`."""
        d = self.dimension
        found = np.zeros((len(self.places), PARAMETERS))
        entering = self.number("turbulence", 0.0 if turbulence is None else turbulence, zero=True)
        for place, part in ((0, first), (slice(1, 1 + d), vector), (1 + d, last), (PARAMETERS - 1, entering)):
            if not isinstance(part, Changing):
                found[:, place] = part
                continue
            begin = place.start if isinstance(place, slice) else place
            found[:, begin : begin + len(part.values)] = part.now
            if any(value.in_time for value in part.values):
                self.changing.append((begin, part))
        return found

    def _about(self, what: str) -> str:
        """Return how a message begins."""
        return f"patch {self.name!r}: {what}"

    def _through(self, vectors: Array) -> Array:
        return np.einsum("ij,ij->i", vectors, self.normals)

    def _inward(self, what: str, given: Vector, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            raise SolverError(
                f"{self._about(what)}: at {np.count_nonzero(wrong)} of {wrong.size} faces {given!r} does not lead into "
                "the domain: turn it round, or split the patch"
            )
