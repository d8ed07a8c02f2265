"""Far fields with the vortex of a body that lifts: found anew with every residual, from the pressure on its walls.

So the residual is a function of the states alone, whatever the steps are: those of Newton's method know what the lift
does far away, a run goes on from states without a circulation of its own, and a steady state is one of both.
"""

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
from fluxloom.fv.free_stream import FreeStream
from fluxloom.fv.point_vortex import PointVortex, vortex_states, wall_lift
from fluxloom.solvers.flow_patches import patch_elements
from fluxloom.values.value import has_values

if TYPE_CHECKING:
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["FarFieldVortices"]

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
