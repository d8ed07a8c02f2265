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

Parameters of the kernels: ``out`` has what left towards the wall (`interpolated`: and the second population), ``back``
what arrives, ``kick`` the term of the moving wall, ``share`` the part of the first population; ``heading`` is
:math:`c_i + 1`, ``u`` the velocity of the wall, ``arm`` the way from the centre of rotation to the wall, ``push`` the
momentum that goes to the wall through the link, ``per`` one over the unit of the populations.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fluxloom.core.access import Inc, Read, Write
from fluxloom.kernel.frontend import Kernel, func, kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["LINKS", "add_push", "add_turn", "copy", "turns_of"]


def turns_of(dimensions: int) -> int:
    """Return the number of components of a torque."""
    return 1 if dimensions == 2 else 3


@func
def between(out, share):
    """Interpolation between two populations."""
    return out[1] + share[0] * (out[0] - out[1])


@func
def push_of(out, back, heading, u, push, per):
    """Set the momentum that goes to the wall through a link."""
    both = per * (out + back)
    less = per * (out - back)
    for a in range(len(push)):
        push[a] = -both * (heading[a] - 1) - less * u[a]


@func
def still_push_of(out, back, heading, push, per):
    """Set the momentum that goes to a wall at rest through a link."""
    both = per * (out + back)
    for a in range(len(push)):
        push[a] = -both * (heading[a] - 1)


@func
def add_push(push, force):
    """Add to the force."""
    for a in range(len(push)):
        force[a] += push[a]


@func
def add_turn(push, arm, torque):
    """Add ``arm x push``: components as the axes of the grid, slowest first; one in two dimensions."""
    if len(push) == 2:
        torque[0] += arm[1] * push[0] - arm[0] * push[1]
    else:
        torque[0] += arm[2] * push[1] - arm[1] * push[2]
        torque[1] += arm[0] * push[2] - arm[2] * push[0]
        torque[2] += arm[1] * push[0] - arm[0] * push[1]


@kernel
def copy(source: Read, target: Write):
    """One population put into the place of another; half-way bounce-back of a wall at rest is that."""
    target[0] = source[0]


@kernel
def half_way(out: Read, kick: Read, back: Write):
    """Half-way bounce-back of a moving wall."""
    back[0] = out[0] + kick[0]


@kernel
def interpolated_still(out: Read, share: Read, back: Write):
    """Interpolated bounce-back of a wall at rest."""
    back[0] = between(out, share)


@kernel
def interpolated(out: Read, share: Read, kick: Read, back: Write):
    """Interpolated bounce-back of a moving wall."""
    back[0] = between(out, share) + kick[0]


@kernel
def half_way_still_force(out: Read, heading: Read, back: Write, force: Inc, *, per: float):
    """Half-way bounce-back of a wall at rest; force on it."""
    value = out[0]
    back[0] = value
    push = zeros(len(heading))
    still_push_of(out[0], value, heading, push, per)
    add_push(push, force)


@kernel
def half_way_force(out: Read, kick: Read, heading: Read, u: Read, back: Write, force: Inc, *, per: float):
    """Half-way bounce-back of a moving wall; force on it."""
    value = out[0] + kick[0]
    back[0] = value
    push = zeros(len(heading))
    push_of(out[0], value, heading, u, push, per)
    add_push(push, force)


@kernel
def interpolated_still_force(out: Read, share: Read, heading: Read, back: Write, force: Inc, *, per: float):
    """Interpolated bounce-back of a wall at rest; force on it."""
    value = between(out, share)
    back[0] = value
    push = zeros(len(heading))
    still_push_of(out[0], value, heading, push, per)
    add_push(push, force)


@kernel
def interpolated_force(
    out: Read, share: Read, kick: Read, heading: Read, u: Read, back: Write, force: Inc, *, per: float
):
    """Interpolated bounce-back of a moving wall; force on it."""
    value = between(out, share) + kick[0]
    back[0] = value
    push = zeros(len(heading))
    push_of(out[0], value, heading, u, push, per)
    add_push(push, force)


@kernel
def half_way_still_push(out: Read, heading: Read, back: Write, push: Write, *, per: float):
    """Half-way bounce-back of a wall at rest; momentum that goes to it."""
    value = out[0]
    back[0] = value
    still_push_of(out[0], value, heading, push, per)


@kernel
def half_way_push(out: Read, kick: Read, heading: Read, u: Read, back: Write, push: Write, *, per: float):
    """Half-way bounce-back of a moving wall; momentum that goes to it."""
    value = out[0] + kick[0]
    back[0] = value
    push_of(out[0], value, heading, u, push, per)


@kernel
def interpolated_still_push(out: Read, share: Read, heading: Read, back: Write, push: Write, *, per: float):
    """Interpolated bounce-back of a wall at rest; momentum that goes to it."""
    value = between(out, share)
    back[0] = value
    still_push_of(out[0], value, heading, push, per)


@kernel
def interpolated_push(
    out: Read, share: Read, kick: Read, heading: Read, u: Read, back: Write, push: Write, *, per: float
):
    """Interpolated bounce-back of a moving wall; momentum that goes to it."""
    value = between(out, share) + kick[0]
    back[0] = value
    push_of(out[0], value, heading, u, push, per)


@kernel
def half_way_still_torque(
    out: Read, heading: Read, arm: Read, back: Write, force: Inc, torque: Inc, *, per: float
):
    """Half-way bounce-back of a wall at rest; force and torque on it."""
    value = out[0]
    back[0] = value
    push = zeros(len(heading))
    still_push_of(out[0], value, heading, push, per)
    add_push(push, force)
    add_turn(push, arm, torque)


@kernel
def half_way_torque(
    out: Read, kick: Read, heading: Read, u: Read, arm: Read, back: Write, force: Inc, torque: Inc, *, per: float
):
    """Half-way bounce-back of a moving wall; force and torque on it."""
    value = out[0] + kick[0]
    back[0] = value
    push = zeros(len(heading))
    push_of(out[0], value, heading, u, push, per)
    add_push(push, force)
    add_turn(push, arm, torque)


@kernel
def interpolated_still_torque(
    out: Read, share: Read, heading: Read, arm: Read, back: Write, force: Inc, torque: Inc, *, per: float
):
    """Interpolated bounce-back of a wall at rest; force and torque on it."""
    value = between(out, share)
    back[0] = value
    push = zeros(len(heading))
    still_push_of(out[0], value, heading, push, per)
    add_push(push, force)
    add_turn(push, arm, torque)


@kernel
def interpolated_torque(
    out: Read, share: Read, kick: Read, heading: Read, u: Read, arm: Read, back: Write, force: Inc, torque: Inc,
    *, per: float,
):  # fmt: skip
    """Interpolated bounce-back of a moving wall; force and torque on it."""
    value = between(out, share) + kick[0]
    back[0] = value
    push = zeros(len(heading))
    push_of(out[0], value, heading, u, push, per)
    add_push(push, force)
    add_turn(push, arm, torque)


LINKS: Mapping[tuple[bool, bool, str], Kernel] = MappingProxyType(
    {
        (False, False, ""): copy,
        (False, True, ""): half_way,
        (True, False, ""): interpolated_still,
        (True, True, ""): interpolated,
        (False, False, "force"): half_way_still_force,
        (False, True, "force"): half_way_force,
        (True, False, "force"): interpolated_still_force,
        (True, True, "force"): interpolated_force,
        (False, False, "push"): half_way_still_push,
        (False, True, "push"): half_way_push,
        (True, False, "push"): interpolated_still_push,
        (True, True, "push"): interpolated_push,
        (False, False, "torque"): half_way_still_torque,
        (False, True, "torque"): half_way_torque,
        (True, False, "torque"): interpolated_still_torque,
        (True, True, "torque"): interpolated_torque,
    }
)
"""Kernels by: interpolated, moving, and what is measured; ``"push"``: by link (`fluxloom.lbm.boundaries.sums`)."""
