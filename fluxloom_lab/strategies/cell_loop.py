"""Fluxes of compressible flow in one loop over cells: both cells of a face find its flux, and nothing is stored.

From the same states in the same order, so what one loses the other gains to the last bit. It has twice the arithmetic
and moves less. It was slower than `fluxloom.solvers.compressible.scheme.OverFaces` wherever it was measured
(design/044): it is a chapter of a published system, and an example of loops that touch no file of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.faces import twisted
from fluxloom.fv.compressible.fluxes import Flux
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.kernels import flux_through, kept_physical, steepness
from fluxloom.fv.compressible.viscous_flux import viscous_flux
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, select, sqrt, zeros
from fluxloom.solvers.compressible.scheme import FluxLoops

__all__ = ["OverCells"]


@dataclass(frozen=True)
class OverCells(FluxLoops):
    """Both cells of a face find its flux. Results agree with those over faces to round-off."""

    def loops(self, balance: Any, w: Dat) -> list[Loop]:
        """Return the loops in which both cells of a face find its flux."""
        flow, slope, share = balance.flow, balance.flow.gradient, balance.flow.limiter_values
        near, sides = flow.near, flow.face[flow.sides]
        loops = [Loop(residual, flow.elements, w, slope, share, w[near], slope[near], share[near], sides,
                      balance.tensors[flow.sides], flow.sign, flow.res, flow.speed, flow.clipped,
                      **balance.through())]  # fmt: skip
        if balance.viscous:
            loops += [Loop(viscous_flux, flow.elements, w, slope, w[near], slope[near], sides, flow.sign, flow.volume,
                           flow.res, flow.speed, gas=flow.gas, closure=flow.scheme.turbulence,
                           **balance.common)]  # fmt: skip
        return loops


@func
def both_sides(w, slope, share, near, far, kept, face, into, outer, level, left, right, d):
    """Write the states on both sides of a face, its normal leading from left to right; return whether all is physical.

    They are those of the cells, continued a part ``level`` of the way to the face; see `kept_physical`.
    """
    a = zeros(2 + d)
    b = zeros(2 + d)
    for v in range(2 + d):
        here = 0.0
        there = 0.0
        for k in range(d):
            first = face[d + 1 + k]
            second = face[2 * d + 1 + k]
            here += slope[d * v + k] * select(into, second, first)
            there += far[d * v + k] * select(into, first, second)
        a[v] = w[v] + level * share[v] * here
        b[v] = near[v] + select(outer, 0.0, level * kept[v] * there)
    own = kept_physical(w, a, d)
    other = kept_physical(near, b, d)
    for v in range(2 + d):
        left[v] = select(into, b[v], a[v])
        right[v] = select(into, a[v], b[v])
    return own and other


@kernel
def residual(
    w: Read, slope: Read, share: Read, near: Read, far: Read, kept: Read, face: Read, warp: Read, sign: Read,
    res: Write, speed: Write, fixed: Inc,
    *, gas: Const[Gas], nv: Const[int], d: Const[int], inviscid: Const[Flux], moving: Const[int],
    slow: Const[int], warped: Const[int],
):  # fmt: skip
    """``R`` of each cell, and half the sum over its faces of area times the fastest wave.

    ``near``, ``far`` and ``kept`` are state, slopes and shares of the elements across. Where density or pressure at a
    face were too little (`kept_physical`) ``fixed`` counts. What a model of turbulence transports comes from the cell
    upwind. With ``moving`` 1 faces move along their normals with the speed that is their
    last number: the flux is that seen from the face, and carried back to where one stands still (`from_face`). With
    ``warped`` 1 faces have tensors ``warp`` (`fluxloom.fv.compressible.faces`), else it is not read.
    """
    total = zeros(nv)
    waves = 0.0
    poor = 0.0
    n = zeros(d)
    f = zeros(nv)
    left = zeros(nv)
    right = zeros(nv)
    c = sqrt(gas.gamma * w[1 + d] / w[0])
    for j in range(len(near)):
        into = sign[j] < 0.0
        outer = sign[j] == 0.0
        un = 0.0
        vn = 0.0
        pace = 0.0
        if moving == 1:
            pace = face[j][3 * d + 1]
        for k in range(d):
            n[k] = face[j][k]
            un += n[k] * w[1 + k]
            vn += n[k] * near[j][1 + k]
        steep = 0.0
        if inviscid.resolves_contacts:
            through = 0.5 * (un + vn) - pace
            steep = select(outer, 0.0, steepness(w, near[j], slope, far[j], n, through, face[j][d], gas.gamma, d))
        level = 1.0 - steep
        sound = both_sides(w, slope, share, near[j], far[j], kept[j], face[j], into, outer, level, left, right, d)
        poor += select(sound, 0.0, 1.0)
        flux_through(left, right, n, f, pace, gas.gamma, d, inviscid, steep, moving, slow)
        for v in range(2 + d, nv):
            a = select(into, near[j][v], w[v])
            b = select(into, w[v], near[j][v])
            f[v] = f[0] * select(f[0] > 0.0, a, b)
        area = face[j][d]
        push = select(into, area, -area)
        for v in range(nv):
            total[v] += push * select(outer, kept[j][v], f[v])
        if warped == 1:
            twisted(w, slope, share, near[j], far[j], kept[j], warp[j], f, gas.gamma, nv)
            for v in range(nv):
                total[v] += select(outer, 0.0, select(into, f[v], -f[v]))
        faster = inviscid.sound_factor(un - pace, vn - pace, w, near[j], gas.gamma, d)
        waves += area * (fabs(un - pace) + faster * c)
    for v in range(nv):
        res[v] = total[v]
    speed[0] = 0.5 * waves
    fixed[0] += poor
