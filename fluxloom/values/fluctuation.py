r"""Synthetic turbulence: velocities that fluctuate about a mean, as a sum of random Fourier modes.

.. math::

    u'(x, t) = \sum_m a_m\, \sigma_m \cos(\kappa_m \cdot (x - U t) + \omega_m t + \psi_m), \qquad
    \sigma_m \cdot \kappa_m = 0,

with random directions of the wave vectors, so that each mode, and the sum, has no divergence. Amplitudes follow the
energy spectrum of von Karman and Pao without its dissipation range,
:math:`E \propto (\kappa / \kappa_e)^4 / (1 + (\kappa / \kappa_e)^2)^{17 / 6}`, and add up to the intensity.
All numbers come from the seed: the value at a place and a time is the same on any mesh, ranks and device.

References
----------
R. H. Kraichnan: *Diffusion by a random velocity field*, Physics of Fluids 13 (1970) 22-31.
L. Davidson: *Using isotropic synthetic fluctuations as inlet boundary conditions for unsteady simulations*, Advances
and Applications in Fluid Mechanics 1 (2007) 1-35.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import PYTHON_ONLY
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import cos, rolled
from fluxloom.values.value import Slots, Value

__all__ = ["Fluctuation"]

Array = npt.NDArray[np.float64]

_KARMAN = 0.746834
"""``sqrt(pi) Gamma(5/6) / Gamma(1/3)``: the longitudinal integral length times the wave number of the peak."""
_LONGEST, _SHORTEST = 0.2, 20.0
"""Wave numbers of the modes over that of the peak of the spectrum."""


@dataclass(frozen=True)
class Fluctuation:
    """Fluctuations of a velocity.

    Attributes
    ----------
    intensity
        Root of the mean square of each component, m/s.
    length
        Integral length of the eddies, m.
    mean : (d,)
        Velocity with which the eddies are carried, m/s; in case files by default that about which it fluctuates.
    seed
        Of the random numbers.
    modes
        How many there are.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    intensity: float
    length: float
    mean: tuple[float, ...] = ()
    seed: int = 1
    modes: int = 64

    def __post_init__(self) -> None:
        for name in ("intensity", "length"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise SolverError(f"Fluctuation: {name}: a number above 0 is wanted, not {getattr(self, name)!r}")
        if not 1 <= self.modes <= 1000 or self.seed < 0:
            raise SolverError("Fluctuation: 1 to 1000 modes, and a seed of at least 0, are wanted")

    def parts(self, d: int) -> tuple[Value, ...]:
        """Return the components of the velocity in ``d`` dimensions.

        Raises
        ------
        SolverError
            If the mean has other components.
        """
        if self.mean and len(self.mean) != d:
            raise SolverError(f"Fluctuation: mean: {d} numbers are wanted, not {len(self.mean)}")
        return tuple(FluctuationPart(self, k, d) for k in range(d))

    def waves(self, d: int) -> tuple[Array, Array, Array, Array]:
        """Return wave vectors ``(modes, d)``, amplitudes ``(modes, d)``, frequencies and phases ``(modes,)``.

        ``E = (k / k_e)^4 / (1 + (k / k_e)^2)^(17/6) dk``, ``a = intensity sqrt(2 d E / sum E)`` across ``k``, ``omega =
        intensity |k| N(0, 1) - k . U``; see the module.
        """
        rng = np.random.default_rng([self.seed, d])
        peak = _KARMAN / self.length
        edges = peak * np.geomspace(_LONGEST, _SHORTEST, self.modes + 1)
        size = np.sqrt(edges[1:] * edges[:-1])
        energy = (size / peak) ** 4 / (1.0 + (size / peak) ** 2) ** (17.0 / 6.0) * np.diff(edges)
        normal = rng.standard_normal((self.modes, 2, d))
        way = normal[:, 0] / np.linalg.norm(normal[:, 0], axis=1)[:, None]
        if d == 2:
            across = np.stack([-way[:, 1], way[:, 0]], axis=1)
        else:
            across = normal[:, 1] - np.einsum("ij,ij->i", normal[:, 1], way)[:, None] * way
            across /= np.linalg.norm(across, axis=1)[:, None]
        # the mean over time and place of cos^2 is 1/2, and each component has a d-th of the energy
        amplitude = np.sqrt(2.0 * d * energy / energy.sum()) * self.intensity
        vectors = size[:, None] * way
        frequency = self.intensity * size * rng.standard_normal(self.modes)
        if self.mean:
            frequency = frequency - vectors @ np.asarray(self.mean)
        return vectors, amplitude[:, None] * across, frequency, rng.uniform(0.0, 2.0 * np.pi, self.modes)


@dataclass(frozen=True)
class Modes:
    """A component of the sum of modes, as loops compute it.

    Attributes
    ----------
    waves : (modes, 3)
        Wave vectors.
    numbers : (modes, 3)
        Amplitude, frequency, phase.
    """

    waves: tuple[tuple[float, ...], ...]
    numbers: tuple[tuple[float, ...], ...]

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``sum_m a_m cos(kappa_m . x + omega_m t + psi_m)`` of one component."""
        found = 0.0
        for m in rolled(len(self.waves)):
            angle = self.waves[m][0] * x + self.waves[m][1] * y + self.waves[m][2] * z
            found += self.numbers[m][0] * cos(angle + self.numbers[m][1] * now[0] + self.numbers[m][2])
        return found


@dataclass(frozen=True)
class FluctuationPart(Value):
    """A component of a fluctuating velocity.

    Attributes
    ----------
    fluctuation
        Which it is a component of.
    component, dimension
        Which one, and of how many.
    """

    fluctuation: Fluctuation = field(metadata=PYTHON_ONLY)
    component: int = field(metadata=PYTHON_ONLY)
    dimension: int = field(metadata=PYTHON_ONLY)

    @cached_property
    def _waves(self) -> tuple[Array, Array, Array, Array]:
        return self.fluctuation.waves(self.dimension)

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it, ``sum_m a_m cos(kappa_m . x + omega_m t + psi_m)`` of one component."""
        vectors, amplitudes, frequency, phase = self._waves
        return np.cos(places @ vectors.T + frequency * time + phase) @ amplitudes[:, self.component]

    def term(self, slots: Slots) -> Any:
        """Return the sum of modes for loops."""
        vectors, amplitudes, frequency, phase = self._waves
        waves = np.zeros((len(phase), 3))
        waves[:, : self.dimension] = vectors
        numbers = np.stack([amplitudes[:, self.component], frequency, phase], axis=1)
        return Modes(tuple(map(tuple, waves.tolist())), tuple(map(tuple, numbers.tolist())))

    def __str__(self) -> str:
        return f"component {self.component} of a fluctuation"
