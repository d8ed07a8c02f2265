"""The vortices of Taylor and Green: in the plane they decay as ``exp(-2 nu t)`` and keep their form.

References
----------
G. I. Taylor, A. E. Green: "Mechanism of the production of small eddies from large ones", Proc. R. Soc. Lond. A 158
(1937) 499-521.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["lattice_vortices", "plane_vortices", "space_vortices"]

Array = npt.NDArray[np.float64]


def plane_vortices(points: Array) -> Array:
    """Return the velocity ``(sin x cos y, -cos x sin y)`` at points ``(n, 2)``, ``(n, 2)``; its period is ``2 pi``."""
    x, y = points[:, 0], points[:, 1]
    return np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)], axis=1)


def space_vortices(points: Array) -> Array:
    """Return the velocity ``(sin x cos y cos z, -cos x sin y cos z, 0)`` at points ``(n, 3)``, ``(n, 3)``."""
    x, y, z = points.T
    return np.stack([np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0.0 * x], axis=1)


def lattice_vortices(n: int, speed: float) -> tuple[Array, Array]:
    """Return density ``(n, n)`` and velocity ``(u_y, u_x)`` ``(n, n, 2)`` in a periodic box of ``n`` cells a side.

    Units are those of lattices: the density is 1 and what the pressure adds, three times as much.
    """
    k = 2.0 * np.pi / n
    y, x = np.meshgrid(k * np.arange(n), k * np.arange(n), indexing="ij")
    velocity = np.stack([speed * np.sin(x) * np.cos(y), -speed * np.cos(x) * np.sin(y)], axis=-1)
    return 1.0 - 0.75 * speed**2 * (np.cos(2 * x) + np.cos(2 * y)), velocity
