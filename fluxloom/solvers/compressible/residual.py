"""The loops that find what changes the states of a compressible flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.plan.cost import entry_memory
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import BoundaryCondition, FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.faces import gathered, through_faces, through_faces_viscous
from fluxloom.fv.compressible.free_stream import FreeStream, PointVortex, vortex_states, wall_lift
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.gradients import gradients, limited_gradients, limited_gradients_of_few, relax_limiter
from fluxloom.fv.compressible.kernels import (
    add_coriolis,
    add_source,
    boundary_flux,
    face_states,
    image_gradients,
    image_number,
    image_state,
    image_states,
)
from fluxloom.fv.compressible.viscous_flux import boundary_viscous_flux, mirror_waves, turbulence
from fluxloom.fv.geometry.cell_faces import CompressibleGeometry, Rotation
from fluxloom.fv.geometry.volumes import Family, spread, warps_of
from fluxloom.solvers.compressible.scheme import CompressibleScheme, OverFaces
from fluxloom.solvers.flow_spaces import Patched, patch_elements
from fluxloom.values.value import has_values

__all__ = ["FarFieldVortices", "ResidualFlow", "ResidualLoops", "SectorLoops"]


class ResidualFlow(Patched, Protocol):
    """A flow as the loops see it that find what changes its states: what it is made of, and its dats on elements."""

    boundaries: Mapping[str, BoundaryCondition]
    gas: Gas
    scheme: CompressibleScheme
    rotation: Rotation | None
    gradients: Family | None
    formulas: Any
    dimension: int
    components: int
    length: float
    open: bool
    turbulent: bool
    mirrors: npt.NDArray[np.int64]
    boundary: Subset
    near: RaggedMap
    sides: RaggedMap
    behind: TableMap
    edge: TableMap
    face: Dat
    sign: Dat
    volume: Dat
    swept: Dat | None
    kind: Dat
    par: Dat
    distance: Dat
    gradient: Dat
    limiter_values: Dat
    outflow: Dat
    res: Dat
    speed: Dat
    scale: Global
    clipped: Global
    source: Dat | None

    @property
    def limiting(self) -> bool:
        """Whether the scheme has a limiter."""
        ...


class SectorLoops:
    """Loops that write what is beyond the sides of sectors (`fluxloom.fv.geometry.sectors`), if there are any.

    Parameters
    ----------
    flow
        With its sets, maps and values.

    Raises
    ------
    SolverError
        If there are such sides, and gradients that do not look across them.
    """

    def __init__(self, flow: ResidualFlow) -> None:
        self.flow, add_coriolis = flow, flow.volumes.turned
        self.present = add_coriolis is not None
        if add_coriolis is None:
            return
        if flow.gradients is not None:
            raise SolverError(
                "sectors: gradients through the nodes of cells do not look across sides that are joined by a rotation: "
                "take those of the cells across the faces, the default"
            )
        context, elements = flow.context, flow.spaces.elements
        partner = np.arange(flow.volumes.elements)
        partner[add_coriolis.elements] = add_coriolis.partners
        table = elements.local(partner[elements.owned])[:, None]
        self._partner = context.map(flow.elements, flow.elements, table, "partner")[0]
        self._images = context.subset(flow.elements, elements.local(add_coriolis.elements), "images")
        self._turns = context.scalar(add_coriolis.rotations.reshape(-1), "turns")
        self._common: dict[str, Any] = {"nv": flow.components, "d": flow.dimension}

    def states(self, w: Dat) -> list[Loop]:
        """Return the loops that write the states of images."""
        if not self.present:
            return []
        return [Loop(image_state, self._images, self.flow.kind, self._turns, w[self._partner], w, **self._common)]

    def gradients(self) -> list[Loop]:
        """Return the loops that write gradients and shares of images, once those of the cells are there."""
        flow = self.flow
        if not self.present:
            return []
        gradient, share = flow.gradient, flow.limiter_values
        return [Loop(image_gradients, self._images, flow.kind, self._turns, gradient[self._partner],
                     share[self._partner], gradient, share, **self._common)]  # fmt: skip

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
        """``sqrt(u^2 + v^2)``, m/s."""
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

    def __init__(self, flow: ResidualFlow) -> None:
        self.flow = flow
        self._vortices: dict[str, _Vortex] = {}
        for name, boundary in flow.boundaries.items():
            if isinstance(boundary, FarField) and boundary.vortex is not None:
                self._vortices[name] = self._vortex(name, boundary, boundary.vortex)
        if self._vortices:
            self._place = flow.spaces.elements.dat(flow.volumes.centres, "place")

    def loops(self, w: Dat) -> list[Loop | Reset]:
        """Return what finds the lift of some states, and fills the table of the far fields.

        Gradients of the cells at walls have to be there, without what is at the boundary.
        """
        return [step for name, vortex in self._vortices.items() for step in self._of(name, vortex, w)]

    def circulations(self) -> dict[str, float]:
        """Return ``Gamma = L / (rho U)`` of each far field with a vortex, m^2/s, in the last states with a residual.

        It is above 0 where the lift is. Collective.
        """
        return {name: float(v.lift.value) / (v.rho * v.speed) for name, v in self._vortices.items()}

    def _of(self, name: str, vortex: _Vortex, w: Dat) -> list[Loop | Reset]:
        flow, speed, (left, low) = self.flow, vortex.speed, vortex.given.centre
        way: dict[str, Any] = {"x": vortex.u / speed, "y": vortex.v / speed}
        cell, walls = flow.behind[0], patch_elements(flow, list(vortex.given.patches))
        return [
            Reset(vortex.lift),
            Loop(wall_lift, walls, flow.face[flow.edge[0]], w[cell], flow.gradient[cell], vortex.lift, d=_PLANE,
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


class ResidualLoops:
    """Loops from states to residuals: gradients, their limits, fluxes and sources.

    Parameters
    ----------
    flow
        With its sets, maps and values.
    found
        Its geometry.

    Attributes
    ----------
    viscous
        Whether there is friction.
    vortices
        Those in far fields.
    common
        Constants that most kernels take: components and dimensions.
    """

    def __init__(self, flow: ResidualFlow, found: CompressibleGeometry) -> None:
        self.flow = flow
        self.viscous = flow.gas.viscosity is not None
        # fluxes see by gradients where shocks are
        self.sloped = flow.scheme.order == 2 or self.viscous or flow.scheme.flux.resolves_contacts
        self.sectors, self.vortices = SectorLoops(flow), FarFieldVortices(flow)
        self.common: dict[str, Any] = {"nv": flow.components, "d": flow.dimension}
        elements, layout = flow.spaces.elements, flow.context.row_layout()
        across = Family(found.signs.offsets, found.signs.columns, found.weights)
        around = across if flow.gradients is None else flow.gradients
        self.around = flow.near if flow.gradients is None else elements.rows(around, elements, "around", layout).pattern
        self.weights = self._along(around, "weights")
        self.inner = elements.rows(found.inner, elements, "inner")
        edge = flow.volumes.faces[flow.volumes.interior :, 0]
        edge = np.unique(edge[edge < flow.volumes.owned])
        mirrors, local = flow.mirrors, elements.local
        self.mirrored = any(flow.context.comm.allgather(mirrors.size > 0))
        self.mirrors = flow.context.subset(flow.elements, local(mirrors), "mirrors")
        rest = np.setdiff1d(flow.volumes.outer, mirrors)
        self.given = flow.context.subset(flow.elements, local(rest), "given") if self.mirrored else flow.boundary
        self.edge_cells = flow.context.subset(flow.elements, elements.local(edge), "edge_cells")
        if flow.limiting:
            ways = across._replace(values=found.ways())
            self.ways = self._along(ways if flow.gradients is None else spread(ways, around), "ways")
            most = int(np.diff(across.offsets).max(initial=1)) + (flow.gradients is not None)
            most = max(flow.context.comm.allgather(most))
            memory = entry_memory(flow.context, most)
            self.few = memory == "registers" and flow.gradients is None
            self.faces = most if self.few or memory == "stack" else 1
        self.warps = self._warps() if flow.scheme.order == 2 and flow.rotation is None else None
        if self._stores:
            self._store()

    def _warps(self) -> Dat | None:
        """Return the tensors of warped faces between cells, 0 of others; None where no rank has any. Collective."""
        cv = self.flow.volumes
        rows, tensors = warps_of(cv)
        inner = rows < cv.interior
        if not any(self.flow.context.comm.allgather(bool(inner.any()))):
            return None
        whole = np.zeros((len(cv.faces), 9))
        whole[rows[inner]] = tensors[inner].reshape(-1, 3, 9)[:, :, :3].reshape(-1, 9)
        return self.flow.spaces.faces.dat(whole, "warps", self.flow.face.layout)

    @property
    def _stores(self) -> bool:
        """Whether faces store their fluxes anyway."""
        return isinstance(self.flow.scheme.loops, OverFaces)

    @property
    def tensors(self) -> Dat:
        """Those of warped faces; where there are none, something that loops over faces do not read."""
        return self.flow.face if self.warps is None else self.warps

    def _store(self) -> None:
        """Make what faces store, and where they find their elements."""
        flow, faces = self.flow, self.flow.spaces.faces
        table = flow.spaces.elements.local(flow.volumes.faces[faces.owned])
        self.across = flow.context.map(faces.set, flow.elements, table, "across")
        numbers = flow.components + (3 if self.viscous else 2)
        self.flux = flow.context.dat(faces.set, name="flux", shape=(numbers,), layout=flow.face.layout)

    def stored(self, w: Dat) -> list[Loop]:
        """Return the loops after which faces store their fluxes, once residuals of some states were found."""
        if self._stores:
            return []
        if not hasattr(self, "flux"):
            self._store()
        return self.over_faces(w)[:-1]

    def _along(self, rows: Family, name: str) -> Any:
        """Return what loops take for numbers of the entries of `around`, as they are stored."""
        values = rows._replace(values=rows.values.astype(self.flow.scheme.storage, copy=False))
        return self.flow.spaces.elements.more(self.around, values, name)[self.around.to_entries]

    def loops(self, w: Dat, limited: bool = True) -> list[Loop | Reset]:
        """Return the loops for some states; not ``limited``, they take the limiter values that are there."""
        flow, common = self.flow, self.common
        over, gamma = flow.elements, flow.gas.gamma
        found: list[Loop | Reset] = [*self.sectors.states(w), *self._images(w), *self._gradients(w, limited)]
        found += [*(self.sectors.gradients() if self.sloped else []), *self._boundary(w)]
        found += flow.scheme.loops.loops(self, w)
        if self.viscous and self.mirrored:
            behind = flow.behind[0]
            found += [Loop(mirror_waves, self.mirrors, flow.face[flow.edge[0]], w, w[behind], flow.volume[behind],
                           flow.speed[behind], gas=flow.gas, closure=flow.scheme.turbulence,
                           **common)]  # fmt: skip
        if flow.turbulent:
            found += [Loop(turbulence, over, w, flow.gradient, flow.distance, flow.volume, flow.res, d=flow.dimension,
                           gas=flow.gas, closure=flow.scheme.turbulence)]  # fmt: skip
        if flow.swept is not None and flow.rotation is not None:
            rate = flow.context.scalar(flow.rotation.vector, "rate")
            found += [Loop(add_coriolis, over, w, rate, flow.volume, flow.swept, flow.res, gamma=gamma, **common)]
        if flow.source is not None:
            found += [Loop(add_source, over, flow.source, flow.volume, flow.res, nv=flow.components)]
        return found

    def _edge(self, w: Dat) -> tuple[Any, ...]:
        """Return what loops over the boundary begin with: what is beyond, the face, and the cell behind."""
        flow = self.flow
        return flow.kind, flow.par, flow.face[flow.edge[0]], w[flow.behind[0]]

    def gradients(self, w: Dat) -> list[Loop | Reset]:
        """Return the loops that find the gradients of some states as `gradient` of the flow, whatever its scheme is.

        They set the states of the boundary elements, as the loops of a residual do.
        """
        return [*self.sectors.states(w), *self._images(w, always=True), *self._gradients(w, limited=False, always=True)]

    def _gradients(self, w: Dat, limited: bool, always: bool = False) -> list[Loop | Reset]:
        flow, common, gradient = self.flow, self.common, self.flow.gradient
        loops: list[Loop | Reset] = []
        if not (self.sloped or always):
            return self.vortices.loops(w)
        if flow.open:
            inner = (w[self.inner.pattern], self.inner.entries)
            loops += [
                Loop(gradients, self.edge_cells, w, *inner, gradient, name="inner_slopes", **common),
                *self.vortices.loops(w),
                Loop(face_states, self.given, *self._edge(w), gradient[flow.behind[0]], w, gamma=flow.gas.gamma,
                     states=flow.formulas, **common),
            ]  # fmt: skip
        if limited and flow.limiting:
            return [*loops, self.limits(w, flow.limiter_values)]
        return [*loops, Loop(gradients, flow.elements, w, w[self.around], self.weights, gradient, **common)]

    def _images(self, w: Dat, always: bool = False) -> list[Loop]:
        """Return the loop that writes the states beyond planes of symmetry, before gradients look at them."""
        flow = self.flow
        if not self.mirrored or (flow.scheme.order == 1 and not self.viscous and not always):
            return []
        return [Loop(image_states, self.mirrors, flow.face[flow.edge[0]], w[flow.behind[0]], w, **self.common)]

    def limits(self, w: Dat, share: Dat) -> Loop:
        """Return the loop that finds the gradients of states, and what share of them the limiter leaves."""
        flow = self.flow
        kernel, more = limited_gradients, {"wide": int(flow.gradients is not None)}
        if self.few:
            kernel, more = limited_gradients_of_few, {}
        limiter = flow.scheme.limiter
        assert limiter is not None
        k_cubed, most = limiter.threshold(flow.length)
        return Loop(kernel, flow.elements, w, w[self.around], self.weights, self.ways, flow.scale, flow.gradient, share,
                    limiter=limiter, k_cubed=k_cubed, most=most, faces=self.faces, name="limited_gradients", **more,
                    **self.common)  # fmt: skip

    def renewal(self, w: Dat, weight: float) -> list[Loop]:
        """Return the loops that move shares a part of the way to what the limiter leaves; see `ResidualFlow`."""
        flow = self.flow
        wanted = flow.context.dat(
            flow.elements, name="wanted", shape=(flow.components,), layout=flow.limiter_values.layout
        )
        return [self.limits(w, wanted),
                Loop(relax_limiter, flow.elements, wanted, flow.limiter_values, weight=weight,
                     nv=flow.components)]  # fmt: skip

    def _boundary(self, w: Dat) -> list[Loop]:
        """Return the loops that put the fluxes out of boundary faces where the shares of their elements would be."""
        flow, gradient = self.flow, self.flow.gradient
        if not flow.open:
            return []
        edge = self._edge(w)
        behind = (gradient[flow.behind[0]], flow.limiter_values[flow.behind[0]])
        loops = [Loop(boundary_flux, flow.boundary, *edge, *behind, flow.outflow, states=flow.formulas,
                      **self._convection())]  # fmt: skip
        if self.viscous:
            kind, par, face, inside = edge
            loops += [Loop(boundary_viscous_flux, flow.boundary, kind, par, face, w, inside, behind[0], flow.outflow,
                           gas=flow.gas, closure=flow.scheme.turbulence,
                           states=flow.formulas, **self.common)]  # fmt: skip
        return loops

    def _convection(self) -> dict[str, Any]:
        scheme = self.flow.scheme
        return {"gas": self.flow.gas, "inviscid": scheme.flux,
                "moving": int(self.flow.rotation is not None), "slow": int(scheme.low_mach),
                **self.common}  # fmt: skip

    def through(self) -> dict[str, Any]:
        """Return what kernels take for fluxes through faces between cells."""
        return {**self._convection(), "warped": int(self.warps is not None)}

    def over_faces(self, w: Dat) -> list[Loop]:
        """Return the loops in which each face stores its flux, and a cell adds up those around it."""
        flow, across, flux = self.flow, self.across, self.flux
        both = (w[across], flow.gradient[across], flow.limiter_values[across], flow.face, self.tensors, flux,
                flow.clipped)  # fmt: skip
        rows, total = (flux[flow.sides], flow.sign), (flow.res, flow.speed)
        faces, nv = flow.spaces.faces.set, flow.components
        if not self.viscous:
            return [Loop(through_faces, faces, *both, **self.through()),
                    Loop(gathered, flow.elements, *rows, None, None, *total, nv=nv)]  # fmt: skip
        return [Loop(through_faces_viscous, faces, *both, **self.through(), closure=flow.scheme.turbulence),
                Loop(gathered, flow.elements, *rows, w, flow.volume, *total, nv=nv)]  # fmt: skip
