"""Pointwise kernels of flows whose components are kept apart, a scalar field each."""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.fv.incompressible_boundary import Boundary
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import sqrt

__all__ = ["bound_2", "bound_3", "boundary_2", "boundary_3", "gather_tensor_2", "gather_tensor_3"]


@kernel
def gather_tensor_2(g00: Read, g01: Read, g10: Read, g11: Read, tensor: Write):
    """``g_ik`` at place ``3 i + k``, of two dimensions; the rest is zero."""
    for m in range(9):
        tensor[m] = 0.0
    tensor[0] = g00[0]
    tensor[1] = g01[0]
    tensor[3] = g10[0]
    tensor[4] = g11[0]


@kernel
def gather_tensor_3(
    g00: Read, g01: Read, g02: Read, g10: Read, g11: Read, g12: Read, g20: Read, g21: Read, g22: Read, tensor: Write
):
    """``g_ik`` at place ``3 i + k``."""
    tensor[0] = g00[0]
    tensor[1] = g01[0]
    tensor[2] = g02[0]
    tensor[3] = g10[0]
    tensor[4] = g11[0]
    tensor[5] = g12[0]
    tensor[6] = g20[0]
    tensor[7] = g21[0]
    tensor[8] = g22[0]


@func
def _beside(formulas, kind, given, inside, normal, through):
    """Return a component at a boundary element; see `fluxloom.fv.incompressible.boundary_values`."""
    value = given
    for k in range(len(formulas)):
        if kind == k:
            value = formulas[k](given, inside, normal, through)
    return value


@kernel
def boundary_2(
    kind: Read, normal: Read, given: Read, iu: Read, iv: Read, u: Write, v: Write, *,
    formulas: Const[tuple[Boundary, ...]],
):  # fmt: skip
    """Velocity of a boundary element of two dimensions; ``iu``, ``iv`` are that of the cell behind."""
    through = iu[0] * normal[0] + iv[0] * normal[1]
    u[0] = _beside(formulas, kind[0], given[0], iu[0], normal[0], through)
    v[0] = _beside(formulas, kind[0], given[1], iv[0], normal[1], through)


@kernel
def boundary_3(
    kind: Read, normal: Read, given: Read, iu: Read, iv: Read, iw: Read, u: Write, v: Write, w: Write, *,
    formulas: Const[tuple[Boundary, ...]],
):  # fmt: skip
    """Velocity of a boundary element of three dimensions."""
    through = iu[0] * normal[0] + iv[0] * normal[1] + iw[0] * normal[2]
    u[0] = _beside(formulas, kind[0], given[0], iu[0], normal[0], through)
    v[0] = _beside(formulas, kind[0], given[1], iv[0], normal[1], through)
    w[0] = _beside(formulas, kind[0], given[2], iw[0], normal[2], through)


@kernel
def bound_2(share: Read, x: Read, y: Read, extra: Write):
    """``b |q|`` of a vector of two dimensions."""
    extra[0] = share[0] * sqrt(x[0] * x[0] + y[0] * y[0])


@kernel
def bound_3(share: Read, x: Read, y: Read, z: Read, extra: Write):
    """``b |q|`` of a vector of three dimensions."""
    extra[0] = share[0] * sqrt(x[0] * x[0] + y[0] * y[0] + z[0] * z[0])
