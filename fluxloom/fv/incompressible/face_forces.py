"""Forces that act through the faces, as the gradient of the pressure does: what is at rest stays at rest.

A force ``f = f(theta)`` in the cells gives the faces the acceleration

::

    f_s = (f_i + f_j) / 2 . v_ij / delta_ij

with the way ``v`` between two cells and their distance ``delta`` along the normal: the two-point slope ``G_s psi`` of a
potential, exact for potentials of second degree (a fluid whose density falls linearly with height) on any mesh. At a
boundary there is none, as the pressure has no slope there, but for outflows. Faces get ``dt f_s``, and cells the mean
of their faces that makes ``G`` of ``G_s``, so that ``L phi = dt M_s f_s`` leaves neither cells nor faces a velocity:

::

    [R f_s]_i = sum (delta / 2) A n f_s / Omega_i,   R G_s = G

J. Mencinger, I. Zun, *On the finite volume discretization of discontinuous body force field on collocated grid*. J.
Comput. Phys. 221, 2007, for forces that are balanced by the pressure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.fv.geometry.volumes import Family
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = [
    "accelerate_cells",
    "accelerate_faces",
    "across_walls",
    "along_faces",
    "face_buoyancy",
    "face_levers",
    "face_to_cells",
    "gradient_at_walls",
    "join_forces",
    "outlet_level",
    "outlet_push",
    "outward_areas",
    "push_outlets",
    "source_of_faces",
]  # fmt: skip

Array = npt.NDArray[np.float64]


@kernel
def face_buoyancy(lever: Read, theta: Read, force: RW, *, reference: float, first: Const[int]):
    """``f_s = sum lever (theta - theta_0)`` of both sides of a face, beside that of other scalars but the first."""
    total = 0.0
    for j in range(len(lever)):
        total += lever[j] * (theta[j][0] - reference)
    if first == 1:
        force[0] = total
    else:
        force[0] = force[0] + total


@kernel
def join_forces(beside: Read, force: RW):
    """``f_s = f_s + g_s``."""
    force[0] = force[0] + beside[0]


@kernel
def along_faces(way: Read, force: Read, base: Read, beside: Write, *, d: Const[int]):
    """``g_s = base + way . f``: a force through a face, beside what stays."""
    total = base[0]
    for k in range(d):
        total += way[k] * force[k]
    beside[0] = total


@kernel
def across_walls(force: Read, part: Read, rest: Write, *, d: Const[int]):
    """What of a force in a cell does not act through the faces: ``f - P f``."""
    for k in range(d):
        total = force[k]
        for m in range(d):
            total -= part[d * k + m] * force[m]
        rest[k] = total


@kernel
def outlet_level(height: Read, force: Read, base: Read, given: Read, level: Write, *, d: Const[int]):
    """Pressure along outflows: the column of fluid under a uniform force, ``p_b = height . f + base + given``."""
    total = base[0] + given[0]
    for k in range(d):
        total += height[k] * force[k]
    level[0] = total


@kernel
def push_outlets(given: Read, spacing: Read, beside: RW):
    """``g_s = g_s - p_b / delta`` at a face of an outflow."""
    beside[0] = beside[0] - given[0] / spacing[0]


@kernel
def outlet_push(side: Read, normal: Read, level: Read, acting: Read, load: RW, total: Inc, *, d: Const[int]):
    """Force of the pressure on a boundary element of an outflow, ``F = dt p_b n A``; ``side`` is ``(A, delta)``.

    ``acting`` is ``dt``. ``load`` gets the force and ``dt p_b`` too, see
    `fluxloom.fv.incompressible.wall_forces.wall_force`.
    """
    for j in range(len(side)):
        load[d + d] += acting[0] * level[0]
        for k in range(d):
            push = acting[0] * level[0] * normal[k] * side[j][0]
            total[k] += push
            load[k] += push


@kernel
def gradient_at_walls(unbalanced: Read, force: Read, dt: Read, slope: Write, *, d: Const[int]):
    """Slope of ``phi`` from a cell to a wall: what a force does not balance, and the force, ``unbalanced + dt f``."""
    for k in range(d):
        slope[k] = unbalanced[k] + dt[0] * force[k]


@kernel
def source_of_faces(out: Read, force: Read, dt: Read, b: RW):
    """One row of ``b = b - dt M_s f_s``; ``out`` is the signed area outward of each face."""
    total = 0.0
    for j in range(len(force)):
        total += out[j] * force[j]
    b[0] = b[0] - dt[0] * total


@kernel
def accelerate_faces(force: Read, dt: Read, us: RW):
    """``u_s = u_s + dt f_s``."""
    us[0] = us[0] + dt[0] * force[0]


@kernel
def accelerate_cells(mean: Read, force: Read, dt: Read, u: RW, *, d: Const[int]):
    """One row of ``u = u + dt R f_s``; boundary elements have an empty one and stay."""
    total = zeros(d)
    for j in range(len(force)):
        for k in range(d):
            total[k] += mean[j][k] * force[j]
    for k in range(d):
        u[k] = u[k] + dt[0] * total[k]


def face_levers(matrices: FlowMatrices, lift: Array) -> Family:
    """Return what a unit of a scalar on either side gives a face, faces by elements: ``lift . v / (2 delta)``.

    Parameters
    ----------
    matrices
        Of the flow.
    lift : (d,)
        Acceleration of a unit of the scalar.
    """
    cv = matrices.volumes
    slope = cv.ways @ lift / cv.spacing
    slope[cv.interior :] *= matrices.conditions.open
    inner = np.arange(len(cv.faces)) < cv.interior
    return matrices.operators.two_sided(np.where(inner, 0.5, 1.0) * slope, np.where(inner, 0.5, 0.0) * slope)


def outward_areas(matrices: FlowMatrices) -> Family:
    """Return ``M_s``, cells by faces."""
    found = matrices.operators.outward()
    return found._replace(values=np.ascontiguousarray(found.values[:, 0]))


def face_to_cells(matrices: FlowMatrices) -> Family:
    """Return ``R_k``, cells by faces, ``R f = sum (delta / 2) A n f / Omega``: ``R G_s`` is that of the cells."""
    operators, cv = matrices.operators, matrices.volumes
    sides = operators.sides
    values = (operators.outward_areas * sides.sign[:, None]) * cv.spacing[sides.face][:, None]
    values[matrices.flat[sides.cell]] = 0.0
    return operators.per_volume(Family(sides.offsets, sides.face, values))
