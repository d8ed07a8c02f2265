"""What a compressible flow does at the sides of sectors: it looks across them, and turns what it sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.task import Reset
from fluxloom.fv.compressible_boundary import FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible_kernels import image_number, image_slopes, image_state
from fluxloom.fv.free_stream import FreeStream
from fluxloom.fv.point_vortex import PointVortex, vortex_states, wall_lift
from fluxloom.solvers.flow_spaces import patch_elements
from fluxloom.values.value import has_values

if TYPE_CHECKING:
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["FarFieldVortices", "SectorLoops"]


class SectorLoops:
    """Loops that write what is beyond the sides of sectors (`fluxloom.fv.sectors`); none where there are no such sides.

    Parameters
    ----------
    flow
        With its sets, maps and values.

    Raises
    ------
    SolverError
        If there are such sides, and slopes that do not look across them.
    """

    def __init__(self, flow: CompressibleFlow) -> None:
        self.flow, turned = flow, flow.volumes.turned
        self.present = turned is not None
        if turned is None:
            return
        if flow.slopes is not None:
            raise SolverError(
                "sectors: slopes through the nodes of cells do not look across sides that are joined by a rotation: "
                "take those of the cells across the faces, the default"
            )
        context, elements = flow.context, flow.spaces.elements
        partner = np.arange(flow.volumes.elements)
        partner[turned.elements] = turned.partners
        table = elements.local(partner[elements.owned])[:, None]
        self._partner = context.map(flow.elements, flow.elements, table, "partner")[0]
        self._images = context.subset(flow.elements, elements.local(turned.elements), "images")
        self._turns = context.scalar(turned.rotations.reshape(-1), "turns")
        self._common: dict[str, Any] = {"nv": flow.components, "d": flow.dimension}

    def states(self, w: Dat) -> list[Loop]:
        """Return the loops that write the states of images."""
        if not self.present:
            return []
        return [Loop(image_state, self._images, self.flow.kind, self._turns, w[self._partner], w, **self._common)]

    def slopes(self) -> list[Loop]:
        """Return the loops that write slopes and shares of images, once those of the cells are there."""
        flow = self.flow
        if not (self.present and flow.balanced.sloped):
            return []
        slope, share = flow.slope, flow.share
        return [Loop(image_slopes, self._images, flow.kind, self._turns, slope[self._partner],
                     share[self._partner], slope, share, **self._common)]  # fmt: skip

    def numbers(self, values: Dat) -> list[Loop]:
        """Return the loops that write one number of images, that of the cells they are of."""
        if not self.present:
            return []
        return [Loop(image_number, self._images, values[self._partner], values)]


_PLANE = 2


@dataclass(frozen=True, eq=False)
class _Vortex:
    """That of a far field: the stream, its speed, what the vortex follows, and the lift in the present state."""

    rho: float
    u: float
    v: float
    p: float
    given: PointVortex
    lift: Global

    @property
    def speed(self) -> float:
        return float(np.hypot(self.u, self.v))


class FarFieldVortices:
    """The vortices in the far fields of a flow; most flows have none.

    Parameters
    ----------
    flow
        With its boundaries.

    Raises
    ------
    SolverError
        If the flow is not one in a plane, the stream not uniform, at rest or faster than sound, a patch that lifts no
        wall, or the far field not round the vortex.
    """

    def __init__(self, flow: CompressibleFlow) -> None:
        self.flow = flow
        self._vortices: dict[str, _Vortex] = {}
        for name, boundary in flow.boundaries.items():
            if isinstance(boundary, FarField) and boundary.vortex is not None:
                self._vortices[name] = self._vortex(name, boundary, boundary.vortex)
        if self._vortices:
            self._place = flow.spaces.elements.dat(flow.volumes.centres, "place")

    def loops(self, w: Dat) -> list[Loop | Reset]:
        """Return what finds the lift of some states, and fills the table of the far fields.

        Slopes of the cells at walls have to be there, without what is at the boundary.
        """
        return [step for name, vortex in self._vortices.items() for step in self._of(name, vortex, w)]

    def circulations(self) -> dict[str, float]:
        """Return ``Gamma`` of each far field with a vortex, m^2/s, in the last states whose residual was found.

        It is above 0 where the lift is. Collective.
        """
        return {name: float(v.lift.value) / (v.rho * v.speed) for name, v in self._vortices.items()}

    def _of(self, name: str, vortex: _Vortex, w: Dat) -> list[Loop | Reset]:
        flow, speed, (left, low) = self.flow, vortex.speed, vortex.given.centre
        way: dict[str, Any] = {"x": vortex.u / speed, "y": vortex.v / speed}
        cell, walls = flow.behind[0], patch_elements(flow, list(vortex.given.patches))
        return [
            Reset(vortex.lift),
            Loop(wall_lift, walls, flow.face[flow.edge[0]], w[cell], flow.slope[cell], vortex.lift, d=_PLANE,
                 order=flow.scheme.order, p=vortex.p, **way),
            Loop(vortex_states, patch_elements(flow, name), self._place, vortex.lift, flow.par, gamma=flow.gas.gamma,
                 rho=vortex.rho, p=vortex.p, speed=speed, left=float(left), low=float(low), **way),
        ]  # fmt: skip

    def _vortex(self, name: str, far: FarField, vortex: PointVortex) -> _Vortex:
        flow, what = self.flow, f"patch {name!r}: vortex"
        if flow.dimension != _PLANE:
            raise SolverError(f"{what}: it is one of flows in a plane; leave it out in three dimensions")
        if flow.rotation is not None:
            raise SolverError(f"{what}: the mesh turns, and with it the lift; leave it out")
        if not isinstance(far.state, FreeStream | Sequence) or has_values(far.state):
            raise SolverError(f"{what}: the state depends on place or time; a uniform stream is wanted")
        self._check_places(what, name, vortex)
        state = far.state.state(flow.gas, _PLANE) if isinstance(far.state, FreeStream) else far.state
        rho, u, v, p = (float(cast(float, x)) for x in state)
        found = _Vortex(rho, u, v, p, vortex, flow.context.scalar(0.0, f"lift.{name}"))
        mach = found.speed / np.sqrt(flow.gas.gamma * p / rho)
        if not 0.0 < mach < 1.0:
            raise SolverError(f"{what}: a stream slower than sound, and not at rest, is wanted, not Mach {mach:g}")
        return found

    def _check_places(self, what: str, name: str, vortex: PointVortex) -> None:
        """Raise if the patches that lift are no walls, or the far field is not round the vortex."""
        flow, cv = self.flow, self.flow.volumes
        try:
            patch_elements(flow, list(vortex.patches))
        except SolverError as error:
            raise SolverError(f"{what}: {error}") from None
        for patch in vortex.patches:
            if not isinstance(flow.boundaries[patch], SlipWall | NoSlipWall):
                raise SolverError(f"{what}: patch {patch!r} is no wall: name those of the body that lifts")
        place, away = cv.patches[name], cv.interior - cv.cells
        ways = cv.centres[place.start : place.stop] - np.asarray(vortex.centre)
        normals = cv.normals[place.start + away : place.stop + away]
        if (np.einsum("ij,ij->i", ways, normals) <= 0.0).any():
            raise SolverError(f"{what}: the far field is not round its centre {tuple(vortex.centre)}: move it")
