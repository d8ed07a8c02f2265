r"""What the gradient of a velocity, ``g_ij = du_i / dx_j``, says of a flow: vorticity, its part in the deformation.

.. math:: \omega = \nabla \times u, \qquad Q = \tfrac12 (\|\Omega\|^2 - \|S\|^2)

with :math:`S` and :math:`\Omega` the symmetric and the antisymmetric part of the gradient. Where :math:`Q > 0` a flow
turns more than it deforms.

Source: J. C. R. Hunt, A. A. Wray, P. Moin, *Eddies, streams, and convergence zones in turbulent flows*. Center for
Turbulence Research, Report CTR-S88, 1988.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.run.fields import Quantity

__all__ = ["curl", "curl_quantities", "gradient_quantities"]

Array = npt.NDArray[Any]


def curl(g: Array) -> Array:
    """Return the vorticity of gradients ``(n, d, d)``: ``(n,)`` in the plane, else ``(n, 3)``."""
    if g.shape[1] == 2:
        return g[:, 1, 0] - g[:, 0, 1]
    return np.stack([g[:, 2, 1] - g[:, 1, 2], g[:, 0, 2] - g[:, 2, 0], g[:, 1, 0] - g[:, 0, 1]], axis=1)


def curl_quantities(vorticity: Callable[[], Array], dimension: int, unit: str) -> dict[str, Quantity]:
    """Return the vorticity as fields: its one number in the plane, else its magnitude and ``vorticity_x`` ...

    Parameters
    ----------
    vorticity
        Finds what `curl` returns; called at most once a field.
    dimension
        2 or 3.
    unit
        ``"1/s"``; empty where the solver has none.
    """
    if dimension == 2:
        return {"vorticity": Quantity(unit, "vorticity", vorticity)}
    found = {"vorticity": Quantity(unit, "magnitude of the vorticity", lambda: np.linalg.norm(vorticity(), axis=1))}
    for k, axis in enumerate("xyz"):
        found[f"vorticity_{axis}"] = Quantity(
            unit, f"vorticity along {axis}", lambda k=k: vorticity()[:, k].copy()
        )  # fmt: skip
    return found


def gradient_quantities(gradient: Callable[[], Array], unit: str) -> dict[str, Quantity]:
    """Return ``q_criterion`` and ``divergence`` of what finds gradients ``(n, d, d)``, with ``"1/s"`` or no unit."""

    def q() -> Array:
        g = gradient()
        strain, turn = 0.5 * (g + g.transpose(0, 2, 1)), 0.5 * (g - g.transpose(0, 2, 1))
        return 0.5 * ((turn**2).sum(axis=(1, 2)) - (strain**2).sum(axis=(1, 2)))

    return {
        "q_criterion": Quantity(f"{unit}^2" if unit else "", "half of rotation less strain, squared", q),
        "divergence": Quantity(unit, "divergence of the velocity", lambda: np.einsum("nii->n", gradient()).copy()),
    }
