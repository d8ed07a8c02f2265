"""Pointwise kernels of flows whose components are kept apart, a scalar field each.

F. X. Trias et al., J. Comput. Phys. 258, 2014, section 4 (the fractional step); X. Alvarez et al., Comput. Fluids 173,
2018 (its sub-steps by component).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import sqrt

__all__ = ["bound", "boundary_components", "gather_tensor"]


@func
def _there(x):
    """Return a number, ``value = x``, 0 where there is none."""
    value = 0.0
    if x is not None:
        value = x[0]
    return value


@kernel
def gather_tensor(
    g00: Read, g01: Read, g02: Read | None, g10: Read, g11: Read, g12: Read | None, g20: Read | None, g21: Read | None,
    g22: Read | None, tensor: Write,
):  # fmt: skip
    """The velocity gradient, ``g_ik = du_i/dx_k`` at place ``3 i + k``; of two dimensions the rest is zero."""
    tensor[0] = g00[0]
    tensor[1] = g01[0]
    tensor[2] = _there(g02)
    tensor[3] = g10[0]
    tensor[4] = g11[0]
    tensor[5] = _there(g12)
    tensor[6] = _there(g20)
    tensor[7] = _there(g21)
    tensor[8] = _there(g22)


@func
def _beside(formulas, kind, given, inside, normal, through):
    """A component at a boundary element, ``u_b = formula(given, u, n, u . n)``.

    See `fluxloom.fv.incompressible.kernels.boundary_values`.
    """
    value = given
    for k in range(len(formulas)):
        if kind == k:
            value = formulas[k](given, inside, normal, through)
    return value


@kernel
def boundary_components(
    kind: Read, normal: Read, given: Read, iu: Read, iv: Read, iw: Read | None, u: Write, v: Write, w: Write | None, *,
    formulas: Const[tuple[Boundary, ...]],
):  # fmt: skip
    """Velocity of a boundary element, ``u_b = formula(given, u, n, u . n)``; ``iu, iv, iw`` are ``u`` inside."""
    through = iu[0] * normal[0] + iv[0] * normal[1]
    if iw is not None and w is not None:
        through += iw[0] * normal[2]
        w[0] = _beside(formulas, kind[0], given[2], iw[0], normal[2], through)
    u[0] = _beside(formulas, kind[0], given[0], iu[0], normal[0], through)
    v[0] = _beside(formulas, kind[0], given[1], iv[0], normal[1], through)


@kernel
def bound(share: Read, x: Read, y: Read, z: Read | None, extra: Write):
    """Part of the size of a vector, ``b |q| = b sqrt(x^2 + y^2 + z^2)``."""
    square = x[0] * x[0] + y[0] * y[0]
    if z is not None:
        square += z[0] * z[0]
    extra[0] = share[0] * sqrt(square)
