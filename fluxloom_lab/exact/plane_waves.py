"""Sums of plane waves, with their derivatives: smooth fields that are periodic in a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["PlaneWaves"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlaneWaves:
    r"""The field :math:`q(x) = q_0 + \sum_m a_m \sin(k_m \cdot x + \varphi_m)` in ``d`` dimensions.

    Attributes
    ----------
    mean
        ``q_0``.
    amplitudes : (m,)
        ``a``.
    vectors : (m, d)
        Wave vectors ``k``, radians per unit of length.
    phases : (m,)
        Angles, radians.

    Raises
    ------
    SolverError
        Unless there are as many amplitudes, vectors and phases.
    """

    mean: float
    amplitudes: tuple[float, ...]
    vectors: tuple[tuple[float, ...], ...]
    phases: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.amplitudes) == len(self.vectors) == len(self.phases):
            raise SolverError("plane waves: as many amplitudes, vectors and phases are wanted")

    @property
    def least(self) -> float:
        """A bound from below: the mean less all amplitudes."""
        return self.mean - sum(abs(a) for a in self.amplitudes)

    def _angles(self, points: Array) -> tuple[Array, Array]:
        """Return the wave vectors ``(m, d)`` and the angles ``(n, m)``."""
        vectors = np.array(self.vectors, dtype=np.float64).reshape(-1, points.shape[1])
        return vectors, points @ vectors.T + np.array(self.phases)

    def value(self, points: Array) -> Array:
        """Return the field ``(n,)`` at points ``(n, d)``."""
        return self.mean + np.sin(self._angles(points)[1]) @ np.array(self.amplitudes)

    def gradient(self, points: Array) -> Array:
        """Return ``d q / d x_j``, ``(n, d)``."""
        vectors, angles = self._angles(points)
        return (np.cos(angles) * np.array(self.amplitudes)) @ vectors

    def curvature(self, points: Array) -> Array:
        """Return the second derivatives, ``(n, d, d)``."""
        vectors, angles = self._angles(points)
        return -np.einsum("nm,mi,mj->nij", np.sin(angles) * np.array(self.amplitudes), vectors, vectors)
