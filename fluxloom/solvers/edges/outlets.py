"""A uniform force as a part of the pressure of flow on edges, ``p' = p - f . x``, and what holds outflows apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fv.incompressible.boundary import Outflow

__all__ = ["hydrostatic"]

Array = npt.NDArray[np.float64]


def hydrostatic(
    comm: Comm, patches: Mapping[str, PatchPoints], places: Array, boundaries: Mapping[str, object], force: Array
) -> tuple[Array, Array]:
    """Return ``p - p'`` at the points, and ``p'`` where it is given, at outflows, ``(n,)`` each. Collective.

    The mean of ``p`` is zero over outflows that touch, or over all points where there are none. Outflows apart have a
    ``p'`` each, so that the force may drive a flow from one to the other.

    Parameters
    ----------
    comm
        The ranks.
    patches, boundaries
        Points of each patch, and what happens there.
    places : (n, d)
        Of the points.
    force : (d,)
        Acceleration.
    """
    found, given = places @ force, np.zeros(len(places))
    names = [name for name in patches if isinstance(boundaries[name], Outflow)]
    if not names:
        total = comm.reduce(np.array([found.sum(), found.size]), "sum")
        return found - total[0] / total[1], given
    inside = np.zeros((len(names), len(places)))
    moments = np.zeros((len(names), 2))
    for k, name in enumerate(names):
        patch = patches[name]
        inside[k, patch.points] = 1.0
        moments[k] = patch.size @ found[patch.points], patch.size.sum()
    shared = comm.reduce((inside @ inside.T).ravel(), "sum").reshape(len(names), -1)
    touch = np.linalg.matrix_power(np.sign(shared), len(names)) > 0.0
    sums = touch @ comm.reduce(moments.ravel(), "sum").reshape(-1, 2)
    levels = sums[:, 0] / sums[:, 1]
    for name, level in zip(names, levels, strict=True):
        given[patches[name].points] = levels[0] - level
    return found - levels[0], given
