r"""Loops of Newton's method with Krylov spaces (`fluxloom.linalg.krylov.gmres`) for a compressible flow.

The vectors are residuals, their components divided by their sizes: ``rows`` has one number a component by which
residuals are multiplied.

References
----------
D. A. Knoll, D. E. Keyes: *Jacobian-free Newton-Krylov methods: a survey of approaches and applications*. J. Comput.
Phys. 193, 2004, sec. 2.3.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Min, Read, Write
from fluxloom.fv.compressible.implicit import conserved_change
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select, sqrt, zeros

__all__ = [
    "derivative",
    "keep",
    "local_rate",
    "measure",
    "moved",
    "perturb",
    "scaled",
    "shorten",
    "sizes",
    "unsteady",
]  # fmt: skip


@kernel
def keep(res: Read, speed: Read, base: Write, waves: Write, *, nv: Const[int]):
    """Keep residual and waves of the states a step begins with, ``base = R``, ``waves = sum A (|u_n| + c) / 2``."""
    for v in range(nv):
        base[v] = res[v]
    waves[0] = speed[0]


@kernel
def local_rate(waves: Read, even: Read, volume: Read, rate: Write, *, cfl: float):
    """``V / dt = even sum A (|u_n| + c) / (2 cfl)`` of a step of ``cfl``, 0 for boundary elements.

    ``even`` times the waves counts: 1, or less for a thin cell, so that its step is that of a cube of its volume.
    """
    rate[0] = select(volume[0] > 0.0, even[0] * waves[0] / cfl, 0.0)


@kernel
def sizes(w: Read, volume: Read, total: Inc, *, nv: Const[int], d: Const[int]):
    """Sums over the volume, ``sum V (1, rho, p, q^2)`` with a model's variable ``q``."""
    total[0] += volume[0]
    total[1] += volume[0] * w[0]
    total[2] += volume[0] * w[1 + d]
    total[3] += volume[0] * (w[nv - 1] * w[nv - 1] if nv == d + 3 else 0.0)


@kernel
def scaled(base: Read, rows: Read, y: Write, square: Inc, *, nv: Const[int]):
    """The residual with its components divided by their sizes, ``y = rows R``; and ``|y|^2``."""
    for v in range(nv):
        x = base[v] * rows[v]
        y[v] = x
        square[0] += x * x


@kernel
def measure(z: Read, columns: Read, square: Inc, *, nv: Const[int]):
    """Add up the squares of increments over the sizes of the variables, ``sum (columns z)^2``."""
    for v in range(nv):
        square[0] += z[v] * z[v] * columns[v] * columns[v]


@func
def difference(square, count, part):
    """Return the factor that makes the root of the mean square of increments ``part`` of the variables' sizes.

    ``eps = part sqrt(count / |z|^2)`` (Knoll and Keyes, sec. 2.3).
    """
    return part * sqrt(count / max(square, 1.0e-300))


@kernel
def perturb(w: Read, z: Read, square: Read, out: Write, *, count: float, part: float, nv: Const[int]):
    """States off by an increment, ``w + eps z``."""
    eps = difference(square[0], count, part)
    for v in range(nv):
        out[v] = w[v] + eps * z[v]


@func
def time_term(w, z, f, rate, gamma, nv, d):
    """Write ``V / dt dU/dw z``, of a model's variable ``V / dt rho z``."""
    conserved_change(w, z, f, gamma, d)
    for v in range(2 + d):
        f[v] = rate * f[v]
    if nv == d + 3:
        f[2 + d] = rate * w[0] * z[2 + d]


@kernel
def derivative(
    w: Read, z: Read, base: Read, res: Read, rate: Read, rows: Read, square: Read, y: Write,
    *, gamma: float, count: float, part: float, nv: Const[int], d: Const[int],
):  # fmt: skip
    """``y = V / dt dU/dw z - (R(w + eps z) - R(w)) / eps``, its components over their sizes."""
    eps = difference(square[0], count, part)
    f = zeros(nv)
    time_term(w, z, f, rate[0], gamma, nv, d)
    for v in range(nv):
        y[v] = rows[v] * (f[v] - (res[v] - base[v]) / eps)


@kernel
def moved(w: Read, z: RW, out: Write, share: Min, *, most: float, nv: Const[int], d: Const[int]):
    """State after an increment, ``w + s z``, ``s = min(1, most rho / |z_rho|, most p / |z_p|)``; the least ``s``."""
    rho = most * w[0] / max(fabs(z[0]), 1.0e-300)
    p = most * w[1 + d] / max(fabs(z[1 + d]), 1.0e-300)
    part = min(1.0, min(rho, p))
    for v in range(nv):
        change = part * z[v]
        z[v] = change
        out[v] = w[v] + change
    share[0] = min(share[0], part)


@kernel
def shorten(z: RW, *, factor: float, nv: Const[int]):
    """Increments times a factor, ``z = factor z``."""
    for v in range(nv):
        z[v] = factor * z[v]


@kernel
def unsteady(
    w: Read, z: Read, res: Read, rate: Read, rows: Read, norm: Inc, left: Inc,
    *, gamma: float, nv: Const[int], d: Const[int],
):  # fmt: skip
    """Squares of a new residual ``R``, and of ``R - V / dt dU/dw z``, over the sizes of its components."""
    f = zeros(nv)
    time_term(w, z, f, rate[0], gamma, nv, d)
    for v in range(nv):
        norm[v] += res[v] * res[v]
        rest = rows[v] * (res[v] - f[v])
        left[0] += rest * rest
