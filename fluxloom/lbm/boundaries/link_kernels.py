r"""Kernels of walls: one element is a link, along which a population arrives at a cell from a wall.

Of a link from a fluid cell :math:`x` to a wall, let ``o`` be the direction to the wall and ``i`` the opposite one,
along which a population comes back. With :math:`q` the share of the link that is fluid and :math:`u` the velocity of
the wall,

.. math:: f_i(x) = f_o(x) + 6 w_i\, c_i u \quad\text{(half-way)}, \qquad
   f_i(x) = 2 q f_o(x) + (1 - 2 q) f_o(x + c_i) + 6 w_i\, c_i u \quad (q < 1/2), \qquad
   f_i(x) = \frac{f_o(x) + (2 q - 1) f_i(x) + 6 w_i\, c_i u}{2 q} \quad (q \ge 1/2)

with populations after collision on the right: A. J. C. Ladd, *Journal of Fluid Mechanics* 271 (1994) 285, eq. 4.12;
M. Bouzidi, M. Firdaouss, P. Lallemand, *Physics of Fluids* 13 (2001) 3452, eqs. 5 and 12. All are sums of one or two
populations with shares that sum to one, so that they hold for ``g = f - w`` in any unit as they stand.

The density in the moving term is one. The flow is weakly compressible, and what that neglects is of the order of its
compressibility; in return a wall that moves along itself adds no mass, to the last bit, at whatever density, and a link
costs no sum over the populations of its cell.

Force of the fluid on a wall, by the exchange of momentum in the frame of the wall (B. Wen, C. Zhang, Y. Tu, C. Wang,
H. Fang, *Journal of Computational Physics* 266 (2014) 161, eq. 13), which for a wall at rest is that of Ladd and of R.
Mei, D. Yu, W. Shyy, L.-S. Luo, *Physical Review E* 65 (2002) 041203:

.. math:: F = \sum (c_o - u) f_o - (c_i - u) f_i = -\sum (f_o + f_i)\, c_i + (f_o - f_i)\, u

Summed are ``g``, not ``f``: the pressure of the fluid at rest with density one, which cancels around a body in any
case, is left out.

Parameters of the kernels: ``out`` has what left towards the wall (with ``share``, the part of the first population: and
the second one), ``back`` what arrives, ``kick`` the term of the moving wall; ``heading`` is :math:`c_i + 1`, ``u`` the
velocity of the wall, ``arm`` the way from the centre of rotation to the wall, ``push`` the momentum that goes to the
wall through the link, ``per`` one over the unit of the populations. What a wall does not need a loop leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["Momentum", "add_push", "add_turn", "book", "bounce", "copy", "turns_of"]


@dataclass(frozen=True)
class Momentum:
    """What loops are told that find the momentum through links: ``per``."""

    per: float


def turns_of(dimensions: int) -> int:
    """Return the number of components of a torque."""
    return 1 if dimensions == 2 else 3


@func
def returned(out, share, kick):
    """``f_i = f_o + kick``, with a share ``s`` interpolated: ``f_i = s f_1 + (1 - s) f_2 + kick``.

    ``kick`` may be None. ``s = 2 q``, ``f_2 = f_o(x + c_i)`` for ``q < 1/2``; else ``s = 1 / 2 q``, ``f_2 = f_i(x)``.
    ``f_1 = f_o(x)``.
    """
    if share is None and kick is None:
        return out[0]
    if share is None:
        return out[0] + kick[0]
    if kick is None:
        return between(out, share)
    return between(out, share) + kick[0]


@func
def between(out, share):
    """``s f_1 + (1 - s) f_2 = f_2 + s (f_1 - f_2)`` of two populations; the share is ``s``."""
    return out[1] + share[0] * (out[0] - out[1])


@func
def set_push(out, back, heading, u, push, per):
    """``p = -(f_o + f_i) c_i - (f_o - f_i) u``, which goes to the wall through a link.

    ``c_i = heading - 1``; without ``u`` the wall is at rest.
    """
    both = per * (out + back)
    if u is None:
        for a in range(len(push)):
            push[a] = -both * (heading[a] - 1)
    else:
        less = per * (out - back)
        for a in range(len(push)):
            push[a] = -both * (heading[a] - 1) - less * u[a]


@func
def add_push(push, force):
    """``F += p``."""
    for a in range(len(push)):
        force[a] += push[a]


@func
def add_turn(push, arm, torque):
    """``T += r x p``: components as the axes of the grid, slowest first; one in two dimensions."""
    if len(push) == 2:
        torque[0] += arm[1] * push[0] - arm[0] * push[1]
    else:
        torque[0] += arm[2] * push[1] - arm[1] * push[2]
        torque[1] += arm[0] * push[2] - arm[2] * push[0]
        torque[2] += arm[1] * push[0] - arm[0] * push[1]


@func
def add(out, back, heading, u, arm, force, torque, per):
    """``F += p``, ``T += r x p`` with ``p = -(f_o + f_i) c_i - (f_o - f_i) u`` of a link."""
    push = zeros(len(heading))
    set_push(out, back, heading, u, push, per)
    add_push(push, force)
    if torque is not None:
        add_turn(push, arm, torque)


@kernel
def copy(source: Read, target: Write):
    """``f_i = f_o``: one population in the place of another; half-way bounce-back of a wall at rest is that."""
    target[0] = source[0]


@kernel
def bounce(
    out: Read, share: Read | None, kick: Read | None, heading: Read | None, u: Read | None, arm: Read | None,
    back: Write, push: Write | None, force: Inc | None, torque: Inc | None, *, momentum: Const[Momentum | None],
):  # fmt: skip
    """``f_i = s f_1 + (1 - s) f_2 + kick``: of a wall at rest or one that moves, half-way (``s = 1``) or interpolated.

    Its force ``-(f_o + f_i) c_i - (f_o - f_i) u`` is added to ``force``, and where there is a ``torque`` to that; or
    what goes through a link is kept in ``push``, for many walls (`fluxloom.lbm.boundaries.sums`).
    """
    value = returned(out, share, kick)
    back[0] = value
    if push is not None and momentum is not None:
        set_push(out[0], value, heading, u, push, momentum.per)
    elif force is not None and momentum is not None:
        add(out[0], value, heading, u, arm, force, torque, momentum.per)


@kernel
def book(
    out: Read, back: Read, heading: Read, u: Read | None, arm: Read | None, force: Inc, torque: Inc | None,
    *, per: float,
):  # fmt: skip
    """``F += p``, ``T += r x p`` of a link of another side, ``p = -(f_o + f_i) c_i - (f_o - f_i) u``."""
    add(out[0], back[0], heading, u, arm, force, torque, per)
