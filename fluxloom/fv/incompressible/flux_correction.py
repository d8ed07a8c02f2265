r"""Kernels of flux-corrected transport: a bounded step, and as much more as the neighbours allow.

A step of low order, with coefficients that make each new value a mean of old ones, gives ``low``. What a scheme of
higher order adds is written as fluxes between pairs, ``f_ij = -f_ji``, and each is taken in part,

.. math:: c_i = c^L_i + \frac{\Delta t}{m_i} \sum_j \alpha_{ij} f_{ij}

with the same ``alpha`` on both sides: the largest for which no value leaves the range of the low values and the old
ones of a cell or point and its neighbours (Zalesak 1979, section 3). There is no new extremum, and sums stay.

References
----------
S. T. Zalesak: *Fully multidimensional flux-corrected transport algorithms for fluids*. J. Comput. Phys. 31, 1979.
D. Kuzmin, R. Loehner, S. Turek (eds.): *Flux-corrected transport*. Springer, 2012, chapter "Algebraic flux correction".
"""

from __future__ import annotations

from fluxloom.core.access import Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import max, min

__all__ = ["allowances", "corrected", "unlimited"]

_NOTHING = 1.0e-300
"""What is added up to less is no flux."""


@func
def part(room, wanted):
    """What part of a sum of fluxes fits into the room that there is, ``min(1, room / wanted)``."""
    return min(1.0, room / wanted) if wanted > _NOTHING else 1.0


@kernel
def allowances(
    flux: Read, low: Read, low_own: Read, before: Read, before_own: Read, inverse: Read, dt: Read, allowed: Write
):
    """``R+`` and ``R-``: what part of all that comes, and of all that goes, leaves a value within its range (Zalesak).

    ``R+ = min(1, (c_max - c_L) / (dt / m sum max(f, 0)))``, ``R- = min(1, (c_L - c_min) / (-dt / m sum min(f, 0)))``,
    with the extremes of low and old values, ``low`` and ``before``, of a cell or point and its neighbours.
    """
    gain = 0.0
    loss = 0.0
    top = max(low_own[0], before_own[0])
    bottom = min(low_own[0], before_own[0])
    for j in range(len(flux)):
        gain += max(0.0, flux[j])
        loss -= min(0.0, flux[j])
        top = max(top, max(low[j], before[j]))
        bottom = min(bottom, min(low[j], before[j]))
    scale = dt[0] * inverse[0]
    allowed[0] = part(top - low_own[0], scale * gain)
    allowed[1] = part(low_own[0] - bottom, scale * loss)


@kernel
def corrected(flux: Read, allowed: Read, allowed_own: Read, low: Read, inverse: Read, dt: Read, c: Write):
    """``c = low + dt / m sum alpha f``: ``alpha = min(R+_i, R-_j)`` for ``f > 0``, else ``min(R-_i, R+_j)``."""
    total = 0.0
    for j in range(len(flux)):
        share = min(allowed_own[0], allowed[j][1]) if flux[j] > 0.0 else min(allowed_own[1], allowed[j][0])
        total += share * flux[j]
    c[0] = low[0] + dt[0] * inverse[0] * total


@kernel
def unlimited(allowed: Write):
    """All of it, ``R+ = R- = 1``, where the value is given anyway."""
    allowed[0] = 1.0
    allowed[1] = 1.0
