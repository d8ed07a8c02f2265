"""Coarse levels of a compressible flow: what is computed on them, and what passes to and from finer ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.fluxes import Rusanov
from fluxloom.fv.compressible.kernels import add_source, boundary_flux, face_states
from fluxloom.fv.compressible.multigrid import (
    coarse_residual,
    corrected,
    emptied,
    forcing,
    handed_down,
    held,
    means,
    restricted,
    smoothed,
    spread,
    stiff_wall,
    wanted,
)
from fluxloom.fv.compressible.viscous_flux import boundary_viscous_flux, viscous_flux
from fluxloom.fv.geometry.agglomeration import Coarse
from fluxloom.fv.geometry.volumes import Family
from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["CoarseResidual", "Passage"]

_WEIGHT = 1.0
"""Of each neighbour in the smoothing of corrections, that of the cell itself is 1."""


class CoarseResidual:
    """The loops that find `res` and `speed` of a coarse level, see `CompressibleFlow.right_hand_side`.

    No gradients: friction and heat come from the differences of two groups over the `spacing` between them. The faces
    of the flow become those that these differences are found with, also for what linearises it.

    Parameters
    ----------
    coarse
        The groups.
    stages
        Whether explicit stages or sweeps are to smooth; see `fluxloom.fv.compressible.multigrid.coarse_residual`.
    """

    def __init__(self, coarse: Coarse, stages: bool) -> None:
        self.coarse, self.stages = coarse, stages
        self._faces: tuple[Dat, Dat] | None = None

    def __call__(self, flow: CompressibleFlow, w: Dat) -> list[Loop]:
        """Return the loops for some states; they set those of the boundary elements."""
        if self._faces is None:
            self._faces = self._tables(flow)
            flow.face = self._faces[1]
        wetted, thin = self._faces
        assert flow.source is not None
        common: dict[str, Any] = {"nv": flow.components, "d": flow.dimension}
        law, viscous, over = {"gamma": flow.gas.gamma}, flow.gas.viscosity is not None, flow.elements
        inside, gradient, face = w[flow.behind[0]], flow.gradient[flow.behind[0]], thin[flow.edge[0]]
        edge = (flow.kind, flow.par, face, inside)
        wet, beyond = {"gas": flow.gas, **common}, {"states": flow.formulas}
        loops: list[Loop] = []
        if flow.open:
            if viscous:
                loops += [Loop(face_states, flow.boundary, *edge, gradient, w, **beyond, **law, **common)]
            loops += [
                Loop(boundary_flux, flow.boundary, *edge, gradient, flow.limiter_values[flow.behind[0]], flow.outflow,
                     moving=0,
                     inviscid=Rusanov(), slow=0, **beyond, **wet),
            ]  # fmt: skip
            if self.stages:
                loops += [Loop(stiff_wall, flow.boundary, *edge, flow.outflow, **beyond, **law, **common)]
            if viscous:
                loops += [Loop(boundary_viscous_flux, flow.boundary, flow.kind, flow.par, face, w, inside, gradient,
                               flow.outflow, closure=flow.scheme.turbulence, **beyond, **wet)]  # fmt: skip
        near, sides, total = w[flow.near], thin[flow.sides], (flow.res, flow.speed)
        loops += [Loop(coarse_residual, over, w, near, flow.outflow[flow.near], sides, wetted[flow.sides], flow.sign,
                       *total, stages=int(self.stages), **law, **common)]  # fmt: skip
        if viscous:
            loops += [Loop(viscous_flux, over, w, flow.gradient, near, flow.gradient[flow.near], sides, flow.sign,
                           flow.volume,
                           *total, closure=flow.scheme.turbulence, **wet)]  # fmt: skip
        loops += [Loop(add_source, over, flow.source, flow.volume, flow.res, nv=flow.components)]
        if flow.turbulent:
            loops += [Loop(held, over, flow.res, nv=flow.components)]
        return loops

    def _tables(self, flow: CompressibleFlow) -> tuple[Dat, Dat]:
        """Return the areas of the fine faces, and the faces with ways along their normals, as long as the spacing."""
        found, faces = self.coarse.volumes, flow.spaces.faces
        half = 0.5 * found.normals * found.spacing[:, None]
        outer = np.arange(len(half)) >= found.interior
        first, second = np.where(outer[:, None], 2.0 * half, half), np.where(outer[:, None], 0.0, -half)
        rows = np.concatenate([found.normals, found.area[:, None], first, second], axis=1)
        return faces.dat(self.coarse.wetted, "wetted"), faces.dat(rows, "thin", flow.face.layout)


class Passage:
    """What passes between a level and the next coarser one: `down`, and what the attributes are.

    Attributes
    ----------
    up
        What the coarse level has changed, smoothed and added to the states of the fine one.
    sources
        Gives the coarse level the sources of the fine one in the place of a forcing.
    hand_down
        Gives the fine level the states of the coarse one.
    lessened
        Counts the corrections of cells that were made smaller.
    """

    def __init__(
        self, fine: CompressibleFlow, coarse: CompressibleFlow, found: Coarse, smoothing: int, change: float
    ) -> None:
        context, nv = fine.context, fine.components
        assert coarse.source is not None
        both: dict[str, Any] = {"gamma": fine.gas.gamma, "nv": nv, "d": fine.dimension}
        self.lessened = context.scalar(0.0, "lessened")
        near, far = fine.spaces.elements, coarse.spaces.elements
        rows = far.rows(_members(found, fine.volumes.owned, coarse.volumes.owned), near, "members").pattern
        group = context.map(fine.elements, coarse.elements, far.local(found.group[near.owned])[:, None], "group")
        over = coarse.elements
        start, total, gain = (context.dat(over, name=name, shape=(nv,)) for name in ("start", "total", "gain"))
        one, two = (context.dat(fine.elements, name=name, shape=(nv,)) for name in ("correction", "smoothed"))
        volumes = (fine.volume[rows], fine.res[rows], coarse.volume)
        self.fine = fine
        self._restriction = [
            Loop(restricted, over, fine.w[rows], *volumes, coarse.w, start, total, coarse.source, **both),
            *coarse.right_hand_side(coarse.w),
            Loop(forcing, over, total, coarse.res, coarse.volume, coarse.source, nv=nv),
        ]
        self._downs = {False: self._chain(limited=True)}
        loops = [Loop(wanted, over, coarse.w, start, gain, **both),
                 Loop(spread, fine.elements, gain[group[0]], one, nv=nv)]  # fmt: skip
        for _ in range(smoothing):
            loops += [Loop(smoothed, fine.elements, one, one[fine.near], fine.sign, two, weight=_WEIGHT, nv=nv)]
            one, two = two, one
        loops += [Loop(corrected, fine.elements, one, fine.volume, fine.w, self.lessened, most=change, **both)]
        self.up = Chain(loops, name="multigrid.up")
        self.hand_down = Loop(handed_down, fine.elements, coarse.w[group[0]], fine.volume, fine.w, nv=nv)
        self.sources = (
            Loop(emptied, over, coarse.source, nv=nv) if fine.source is None else
            Loop(means, over, fine.source[rows], fine.volume[rows], coarse.volume, coarse.source, nv=nv)
        )  # fmt: skip

    def _chain(self, limited: bool) -> Chain:
        """Return what goes down, with the residual of live limiter values, or of those that are there."""
        return Chain([*self.fine.right_hand_side(self.fine.w, limited), *self._restriction], name="multigrid.down")

    def down(self) -> None:
        """Find the residual of the fine level; hand states and residuals to the coarse one, find its forcing."""
        frozen = self.fine.frozen
        if frozen not in self._downs:
            self._downs[frozen] = self._chain(limited=not frozen)
        self._downs[frozen]()


def _members(found: Coarse, fine: int, coarse: int) -> Family:
    """Return the cells of each group, of ``fine`` cells and ``coarse`` groups that this rank owns."""
    group = found.group[:fine]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=coarse))]).astype(np.int64)
    return Family(offsets, np.argsort(group, kind="stable").astype(np.int32), np.ones(fine))
