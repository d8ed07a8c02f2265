r"""Springs between the markers of elastic bodies, and how stiff they may be.

Markers are pulled, the fluid around them is moved by that in the next step, and markers go with it: springs are
explicit. With the matrices ``W`` of interpolation and ``K`` of the springs' forces, ``F = -K X``, a step changes the
velocity at the markers by :math:`-W W^T K X` (density one): as little fluid as a delta function covers moves at once.
Without losses, steps would be stable up to four for

.. math:: \kappa = \max \operatorname{eig}(W W^T K).

What is seen is less, as moments and markers are half a step apart and staggered modes of the lattice are hardly damped.
Largest :math:`\kappa / \sqrt{\nu}` without a blow-up in 1500 steps from noise, rings of radius 5, 8 and 12, a cell
between markers, viscosities from 0.005 to 0.5, one relaxation time and two:

============ ============ ============
delta        springs      bending
============ ============ ============
roma         0.62 to 0.89 0.37 to 0.53
peskin       2.2 to 3.5   2.6 to 5.8
============ ============ ============

A little beyond there are still stiffnesses here and there that live; from 1.2 and 8.5 on there were none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.lbm.immersed.markers.deltas import Delta, Peskin
from fluxloom.lbm.immersed.motion import Elastic, ImmersedBody

__all__ = ["bends_of", "check_springs", "edges_of", "strain_on_step"]

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

_ROUNDS = 60


def edges_of(body: ImmersedBody) -> tuple[Numbers, Values]:
    """Return the pairs of markers that springs of an elastic body join, ``(m, 2)``, and lengths at rest, ``(m,)``.

    Lengths that are not given are ``|X_j - X_i|`` at the start.
    """
    e = _elastic(body)
    pairs, x = _table(body, e.edges, (0, 1)), body.markers.positions
    if e.lengths is None:
        return pairs, np.linalg.norm(x[pairs[:, 1]] - x[pairs[:, 0]], axis=1)
    return pairs, np.broadcast_to(np.asarray(e.lengths, dtype=np.float64), (len(pairs),))


def bends_of(body: ImmersedBody) -> Numbers:
    """Return the markers side by side of an elastic body that resist bending, ``(b, 3)``; none without stiffness."""
    e = _elastic(body)
    return _table(body, e.triples, (-1, 0, 1)) if e.bending else np.zeros((0, 3), dtype=np.int64)


def strain_on_step(body: ImmersedBody, delta: Delta, viscosity: float) -> tuple[float, bool]:
    """Return how much stiffer an elastic body is than what steps follow safely, and whether it is certain to blow up.

    ``kappa / (sqrt(nu) limit)`` with the least of the measured limits; the body is lost beyond the largest.

    The number is one where nothing blew up, and grows with the stiffness, and with the length of a step to the power
    of 1.5. It is zero with a delta function that was not measured.
    """
    if delta.elastic_limits is None:
        return 0.0, False
    safe, lost = delta.elastic_limits
    found = _kappa(body, delta) / float(np.sqrt(viscosity))
    return found / safe, found > lost


def check_springs(bodies: Sequence[ImmersedBody], delta: Delta, viscosity: float) -> None:
    """Refuse elastic bodies that are so stiff that they blow up; warn where they may.

    Raises
    ------
    SolverError
        Naming the body, and by how much it is too stiff.
    """
    for body in bodies:
        if not isinstance(body.motion, Elastic):
            continue
        strain, lost = strain_on_step(body, delta, viscosity)
        if strain <= 1.0:
            continue
        e = body.motion
        said = (
            f"body {body.name!r}: Elastic(stiffness={float(e.stiffness):.4g}, bending={float(e.bending):.4g}) is "
            f"{strain:.3g} times as stiff as steps follow safely with the delta function {strategy_name(delta)!r} and "
            f"a viscosity of {viscosity:.4g}"
        )
        other = "" if isinstance(delta, Peskin) else ", or take delta=Peskin()"
        if lost:
            raise SolverError(f"{said}, and blows up: divide both by that{other}, or take shorter steps")
        logging.getLogger("fluxloom").warning("%s: it may blow up", said)


def _elastic(body: ImmersedBody) -> Elastic:
    assert isinstance(body.motion, Elastic)
    return body.motion


def _table(body: ImmersedBody, given: npt.ArrayLike | None, ring: Sequence[int]) -> Numbers:
    """Return markers that belong together: as given, or each one with its neighbours in a ring."""
    count = body.markers.count
    if given is None:
        return np.stack([(np.arange(count) + shift) % count for shift in ring], axis=1)
    table = np.asarray(given, dtype=np.int64).reshape(-1, len(ring))
    if table.size and (table.min() < 0 or table.max() >= count):
        raise SolverError(f"body {body.name!r}: its springs lead to markers {table.min()} ... {table.max()} of {count}")
    return table


def _kappa(body: ImmersedBody, delta: Delta) -> float:
    """Return the largest eigenvalue of ``W W^T K``, by iteration from noise, for markers as they start."""
    e, x, n = _elastic(body), body.markers.positions, body.markers.count
    pairs, rest = edges_of(body)
    bends = bends_of(body)
    differ, curve = _combined(pairs, (-1.0, 1.0), n), _combined(bends, (1.0, -2.0, 1.0), n)
    way = x[pairs[:, 1]] - x[pairs[:, 0]]
    length = np.linalg.norm(way, axis=1)
    way /= np.maximum(length, 1e-300)[:, None]
    tight = np.maximum(1.0 - rest / np.maximum(length, 1e-300), 0.0)[:, None]  # what holds markers across a spring

    def pulls(v: Values) -> Values:
        change = differ @ v
        along = np.sum(change * way, axis=1, keepdims=True) * way
        return e.stiffness * (differ.T @ (along + tight * (change - along))) + e.bending * (curve.T @ (curve @ v))

    w = _weights(x, delta)
    v, found = np.random.default_rng(0).standard_normal(x.shape), 0.0
    for _ in range(_ROUNDS):
        f = pulls(v)
        energy = float(np.sum(v * f))
        if not energy > 0.0:
            return found
        v = w @ (w.T @ f)
        found = float(np.sum(f * v)) / energy
        v /= np.linalg.norm(v)
    return found


def _combined(table: Numbers, factors: Sequence[float], count: int) -> csr_array:
    """Return the matrix whose rows are sums of the values of some markers, with factors."""
    rows = np.repeat(np.arange(len(table)), len(factors))
    return csr_array((np.tile(factors, len(table)), (rows, table.ravel())), shape=(len(table), count))


def _weights(positions: Values, delta: Delta) -> csr_array:
    """Return the matrix of interpolation to markers, of a lattice without ends: a column a cell that is met."""
    first, each = delta.weights(positions)
    n, d = positions.shape
    values, cells = np.ones((n, 1)), np.zeros((n, 1, 0), dtype=np.int64)
    for axis in range(d):
        values = (values[:, :, None] * each[:, axis, None, :]).reshape(n, -1)
        ahead = np.repeat(cells, delta.points, axis=1)
        places = first[:, axis, None] + np.arange(delta.points)
        cells = np.concatenate([ahead, np.tile(places, (1, cells.shape[1]))[..., None]], axis=2)
    _, columns = np.unique(cells.reshape(-1, d), axis=0, return_inverse=True)
    columns = columns.reshape(-1)
    rows = np.repeat(np.arange(n), values.shape[1])
    return csr_array((values.ravel(), (rows, columns)), shape=(n, int(columns.max()) + 1))
