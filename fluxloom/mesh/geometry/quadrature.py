"""Rules of quadrature on simplices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError

__all__ = ["simplex_rule"]

Array = npt.NDArray[np.float64]


def simplex_rule(dimension: int, points: int) -> tuple[Array, Array]:
    r"""Return a rule on a simplex, exact for polynomials of the degree ``2 points - 1``.

    A simplex of ``k + 1`` dimensions is one of ``k`` drawn towards a new corner at ``t = 1``,

    .. math:: \int_{k+1} g = \int_0^1 (1 - t)^k \int_k g((1 - t) y, t)\, dy\, dt,

    with the rule of Gauss and Jacobi for the weight ``(1 - t)^k``: all weights are positive and all places inside.

    Parameters
    ----------
    dimension
        ``d``.
    points
        Along each of its directions, at least 1.

    Returns
    -------
    places : (points^d, d + 1)
        Barycentric coordinates.
    weights : (points^d,)
        With the sum 1.

    Raises
    ------
    MeshError
        For fewer points.

    References
    ----------
    A. H. Stroud: *Approximate Calculation of Multiple Integrals*, 1971, chapter 2 (conical products of rules).
    """
    from scipy.special import roots_jacobi

    if points < 1:
        raise MeshError(f"a rule of at least 1 point is wanted, not {points!r}")
    places, weights = np.ones((1, 1)), np.ones(1)
    for k in range(dimension):
        node, weight = roots_jacobi(points, k, 0)
        t, w = 0.5 * (1.0 + np.asarray(node)), np.asarray(weight) / np.sum(weight)
        # the simplex of one dimension less, drawn towards a new corner
        shrunk = (places[None, :, :] * (1.0 - t)[:, None, None]).reshape(-1, k + 1)
        places = np.hstack([shrunk, np.repeat(t, len(places))[:, None]])
        weights = np.outer(w, weights).ravel()
    return places, weights
