"""The faces of a patch as boundaries of compressible flow see them: what is given there, checked and spread out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible_outside import PARAMETERS
from fluxloom.fv.free_stream import FreeStream
from fluxloom.fv.gas import Gas
from fluxloom.fv.given import Along, given_values, sliding

__all__ = ["Number", "PatchFaces", "Profile", "State", "Vector"]

Array = npt.NDArray[np.float64]
Profile = Callable[[Array], npt.ArrayLike]
Number = float | Profile
Vector = Sequence[float] | Profile
State = FreeStream | Sequence[float] | Profile

_ALONG = 1e-6
"""Sine of the smallest angle between a direction that leads through a face, and the face."""


@dataclass(frozen=True, eq=False)
class PatchFaces:
    """The faces of a patch.

    What is given is one value for all, or a function of the places ``(n, d)``. All raise `SolverError`, with the name
    of the patch, if there is not one finite value in range for each face.

    Attributes
    ----------
    name
        Of the patch, for messages.
    places, normals : (n, d)
        Centres and outward unit normals.
    gas
        What flows.
    """

    name: str
    places: Array
    normals: Array
    gas: Gas

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.places.shape[1]

    def number(self, what: str, given: Number, *, zero: bool = False) -> Array:
        """Return a given number at each face, ``(n,)``; above 0, or with ``zero`` at least 0."""
        found = given_values(self._about(what), given, self.places)
        if not (found >= 0.0 if zero else found > 0.0).all():
            least = "at least 0" if zero else "above 0"
            raise SolverError(f"{self._about(what)}: {least} is wanted, not {found.min():g}")
        return found

    def thermal(self, temperature: Number) -> Array:
        """Return ``R T`` of a given temperature at each face, ``(n,)``."""
        return self.gas.constant * self.number("temperature", temperature)

    def vector(self, what: str, given: Vector) -> Array:
        """Return a given vector at each face, ``(n, d)``; an empty one is zero."""
        d = self.dimension
        about = self._about(what)
        found = given_values(about, given if callable(given) or len(given) else (0.0,) * d, self.places, d)
        return sliding(about, found, self.normals) if isinstance(given, Along) else found

    def entering(self, what: str, given: Vector) -> Array:
        """Return given velocities ``(n, d)`` that do not lead out."""
        found = self.vector(what, given)
        self._inward(what, given, self._through(found) > _ALONG * np.linalg.norm(found, axis=1))
        return found

    def inward(self, given: Vector) -> Array:
        """Return given directions as unit vectors ``(n, d)``, that lead in; against the normals if there are none."""
        if not callable(given) and not len(given):
            return -self.normals
        way = self.vector("direction", given)
        size = np.linalg.norm(way, axis=1)
        self._inward("direction", given, self._through(way) >= -_ALONG * size)
        return way / size[:, None]

    def state(self, given: State | None) -> Array:
        """Return given primitive states, ``(n, d + 2)``."""
        d = self.dimension
        shape = (len(self.places), d + 2)
        values = given.state(self.gas, d) if isinstance(given, FreeStream) else given
        try:
            found = np.asarray(values(self.places) if callable(values) else values, dtype=np.float64)
            found = np.broadcast_to(found, shape)
        except (TypeError, ValueError):
            raise SolverError(
                f"{self._about('state')}: a FreeStream is wanted, or density, {d} velocities and pressure, or a "
                f"function that returns {shape} numbers for the places {self.places.shape}, not {given!r}"
            ) from None
        if not (np.isfinite(found).all() and (found[:, [0, -1]] > 0.0).all()):
            raise SolverError(
                f"{self._about('state')}: finite numbers, density and pressure above 0, are wanted, not {given!r}"
            )
        return found

    def supersonic(self, given: State | None) -> Array:
        """Return given primitive states, ``(n, d + 2)``, that are faster than sound and do not lead out."""
        found = self.state(given)
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
        return found

    def row(
        self, first: npt.ArrayLike, vector: npt.ArrayLike, last: npt.ArrayLike, turbulence: float | None = None
    ) -> Array:
        """Return parameters, ``(n, PARAMETERS)``: see the table in `fluxloom.fv.compressible_outside`."""
        d = self.dimension
        found = np.zeros((len(self.places), PARAMETERS))
        found[:, 0], found[:, 1 : 1 + d], found[:, 1 + d] = first, vector, last
        found[:, -1] = self.number("turbulence", turbulence or 0.0, zero=True)
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
