r"""A loop that factors the linearisation of a compressible flow approximately, for sweeps along lines of cells.

Sweeps from no increments, forward and backward once, solve with the matrix :math:`(D' + L) D'^{-1} (D' + U)`, where
``L`` and ``U`` are the blocks ``O_ij`` of `fluxloom.fv.compressible.implicit` to cells before and after in the order of
the sweep. With the blocks

.. math:: D'_i = D_i - \sum_{j < i} O_{ij} D'^{-1}_j O_{ji}

instead of ``D_i`` the diagonal of that product is the linearisation's, and where each cell is coupled to the one before
and the one after only, as along lines through layers, the product *is* the linearisation: a sweep solves lines exactly,
however long they are, where symmetric Gauss and Seidel need as many sweeps as the square of their length.

References
----------
Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, sec. 10.3 (incomplete factors whose only
changed part is the diagonal, D-ILU).
D. J. Mavriplis: J. Comput. Phys. 145, 1998 (implicit lines in stretched layers).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read
from fluxloom.fv.compressible.fluxes import mean_state
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.implicit import invert, layer, outward, side_change
from fluxloom.fv.compressible.viscous_flux import TurbulenceModel
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs, select, sqrt, zeros

__all__ = ["factor"]


@kernel
def factor(
    w: Read, near: Read, face: Read, sign: Read, turn: Read, other: Read, far: Read, block: RW,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], nv: Const[int], d: Const[int],
):  # fmt: skip
    """Replace the inverse of ``D_i`` by that of ``D'_i = D_i - sum_{j < i} O_ij D'_j^{-1} O_ji``.

    ``far`` are the inverses across, ``turn`` and ``other`` the order of the sweep. The number of a model of turbulence,
    behind the block, likewise.
    """
    q = 2 + d
    matrix = zeros((2 + d) * (2 + d))
    z = zeros(nv)
    f = zeros(nv)
    n = zeros(d)
    back = zeros(d)
    u = zeros(d)
    for i in range((2 + d) * (2 + d)):
        matrix[i] = block[i]
    invert(matrix, 2 + d)
    temperature = w[1 + d] / (w[0] * gas.constant)
    model = 0.0
    for j in range(len(near)):
        share = outward(face[j], sign[j], n, d)
        area = select(other[j] < turn[0], face[j][d], 0.0)
        un, kinetic, h, a = mean_state(w, near[j], u, n, gas.gamma, d)
        rho = sqrt(w[0] * near[j][0])
        across = near[j][1 + d] / (near[j][0] * gas.constant)
        mu, conductivity, spread = layer(w, near[j], temperature, across, share, gas, closure, nv, d)  # fmt: skip
        for k in range(d):
            back[k] = -n[k]
        for v in range(2 + d):
            for i in range(nv):
                z[i] = 0.0
            z[v] = 1.0
            side_change(-1.0, w, w, u, z, back, f, rho, -un, kinetic, h, a, mu, conductivity, spread,
                        gas, closure, nv, d)  # fmt: skip
            for i in range(2 + d):
                z[i] = 0.0
                for k in range(2 + d):
                    z[i] += far[j][(2 + d) * i + k] * f[k]
            side_change(-1.0, near[j], near[j], u, z, n, f, rho, un, kinetic, h, a, mu, conductivity, spread,
                        gas, closure, nv, d)  # fmt: skip
            for i in range(2 + d):
                matrix[q * i + v] -= area * area * f[i]
        if nv == d + 3:
            mass = 0.5 * rho * un
            size = fabs(mass) + spread
            model += area * area * (mass - size) * (-mass - size) * far[j][(2 + d) * (2 + d)]
    invert(matrix, 2 + d)
    for i in range((2 + d) * (2 + d)):
        block[i] = matrix[i]
    if nv == d + 3:
        inverse = block[(2 + d) * (2 + d)]
        block[(2 + d) * (2 + d)] = inverse / (1.0 - inverse * model)
