"""Scalars that an incompressible flow carries, and that may drive it by their buoyancy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.given import changes, given_values, parts_of
from fluxloom.fv.incompressible.boundary import Outflow, Symmetry
from fluxloom.fv.incompressible.kernels import extrapolate, predict, relax, time_limit, transport
from fluxloom.fv.incompressible.scalar_boundary import Field, ScalarBoundary, boundary_sides, scalar_table
from fluxloom.fv.incompressible.scalar_transport import (
    NOTHING_YET,
    scalar_boundary,
    scalar_content,
    scalar_diffusivity,
    scalar_flux,
)
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.flow_spaces import Rows, patch_elements
from fluxloom.solvers.incompressible.buoyancy import Buoyancy, FlowBuoyancy, check_buoyancy, potential_part
from fluxloom.solvers.incompressible.scalar_bounded import BoundedScalar, starts_with_a_jump
from fluxloom.solvers.incompressible.scalar_corrections import CarryingFlow, ScalarCorrections
from fluxloom.values.given_on import GivenOn

__all__ = ["Buoyancy", "FlowScalar", "FlowScalars", "Scalar", "ScalarContent", "ScalarFlux"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scalar:
    """A scalar of a flow, ``d theta/dt + div(u theta) = div((alpha + nu_t / Pr_t) grad theta) + s``.

    Attributes
    ----------
    name
        By which it is known: `flow.scalars[name]`.
    diffusivity
        ``alpha``, of molecules: ``nu / Pr``.
    boundaries
        Patch to `FixedValue`, `FixedFlux`, `Adiabatic`, `Outflow` or `Symmetry`; each patch needs one.
    initial, source
        At the start, and ``s``: a number, a value, or a function of the centres ``(cells, d)`` that returns
        ``(cells,)``.
    turbulent_prandtl
        ``Pr_t``, by which an eddy viscosity is divided.
    buoyancy
        How it drives the flow, if it does.
    bounded
        Whether steps make no new extremum (`fluxloom.fv.incompressible.scalar_bounded`), by default where the start is
        as steep as a cell (`fluxloom.fv.steep_start`).
    """

    name: str
    diffusivity: float
    boundaries: Mapping[str, ScalarBoundary | Outflow | Symmetry] = field(default_factory=dict)
    initial: Field = 0.0
    source: Field = 0.0
    turbulent_prandtl: float = 0.85
    buoyancy: Buoyancy | None = None
    bounded: bool | None = None


@dataclass(frozen=True)
class ScalarFlux:
    """What enters a flow through a patch in a unit of time.

    Attributes
    ----------
    diffusive
        ``sum alpha A (theta_b - theta_c) / delta``.
    convective
        ``-sum u_s A theta_b``.
    area
        ``sum A``; a length in two dimensions.
    mean
        Of the scalar over the area.
    """

    diffusive: float
    convective: float
    area: float
    mean: float


@dataclass(frozen=True)
class ScalarContent:
    """What a flow has of a scalar.

    Attributes
    ----------
    total, square
        ``sum Omega theta`` and ``sum Omega theta^2``.
    least, largest
        Of the cells.
    """

    total: float
    square: float
    least: float
    largest: float


class FlowScalar:
    """A scalar on the sets of a flow; made by `Incompressible`.

    Attributes
    ----------
    theta, ahead : (elements, 1)
        Values of cells and boundary elements; those of the cells carried to the middle of the step.
    alpha : (faces,)
        Diffusivity.
    source : (elements, 1)
        ``s``; may be written between steps.
    given : (elements,)
        What is given at boundary elements, a value or a flux; may be written between steps.
    conditions
        Of boundary elements.
    bounded
        The loops of bounded steps; None: steps are not.

    Raises
    ------
    SolverError
        If a number is out of range or a boundary does not fit.
    """

    forgets = ("entering",)

    def __init__(self, flow: CarryingFlow, scalar: Scalar) -> None:
        self.what = f"scalar {scalar.name!r}"
        self._check(scalar, flow.dimension)
        self.flow, self.scalar = flow, scalar
        cv, elements = flow.volumes, flow.spaces.elements
        kinds, given = np.zeros(cv.elements, dtype=np.int32), np.zeros(cv.elements)
        self.conditions = scalar_table(self.what, cv, scalar.boundaries, scalar.diffusivity)
        kinds[cv.cells :], given[cv.cells :] = self.conditions.kinds, self.conditions.given
        self.kind, self.given = elements.dat(kinds, f"{scalar.name}.kind"), elements.dat(given, f"{scalar.name}.given")
        self.theta, self.old, self.ahead, self.source = (
            flow.context.dat(flow.elements, name=f"{scalar.name}{end}", shape=(1,))
            for end in ("", "_old", "_ahead", ".source")
        )
        self.alpha = flow.spaces.faces.dat(np.full(len(cv.faces), scalar.diffusivity), f"{scalar.name}.alpha")
        self.source.write(self._of_cells(f"{self.what}: source", scalar.source))
        self._given, self._sources = self._changing(), self._source()
        pattern = flow.transport.pattern
        self.transport = Rows(pattern, flow.context.dat(pattern.entries, name=f"{scalar.name}.transport"))
        self.sides: Rows = elements.rows(boundary_sides(cv), flow.spaces.faces, f"{scalar.name}.sides")
        self._bounded = any(flow.context.comm.allgather(flow.boundary.size > 0))
        self.corrections: ScalarCorrections | None = None
        if flow.corrections is not None:
            self.corrections = ScalarCorrections(self, scalar.name, flow, flow.corrections)
        jump = starts_with_a_jump(self, scalar.initial, scalar.source) if scalar.bounded is None else scalar.bounded
        self.bounded = BoundedScalar(self, scalar.name) if jump else None
        self._fluxes: dict[str, Loop] = {}
        self._surveys()

    @staticmethod
    def _check(scalar: Scalar, d: int) -> None:
        for what, value, good in (
            ("diffusivity", scalar.diffusivity, scalar.diffusivity >= 0),
            ("turbulent_prandtl", scalar.turbulent_prandtl, scalar.turbulent_prandtl > 0),
        ):
            if not np.isfinite(value) or not good:
                least = "at least" if what == "diffusivity" else "above"
                raise SolverError(f"scalar {scalar.name!r}: {what}: a number {least} 0 is wanted, not {value!r}")
        if scalar.buoyancy is not None:
            check_buoyancy(f"scalar {scalar.name!r}", scalar.buoyancy, d)

    def _of_cells(self, what: str, values: Field) -> Array:
        """Return values of the owned elements, ``(n, 1)``; zero at the boundary."""
        cv, found = self.flow.volumes, np.zeros((self.flow.volumes.elements, 1))
        found[: cv.owned, 0] = given_values(what, values, cv.centres[: cv.owned])
        return found[self.flow.spaces.elements.owned]

    def _changing(self) -> list[GivenOn]:
        """Return what changes in time at the boundary: that ahead, where a step finds fluxes, and that at its end."""
        flow, elements = self.flow, self.flow.spaces.elements
        places = flow.volumes.centres[elements.owned]
        return [
            GivenOn(flow.context, patch_elements(flow, patch), places, parts_of(one.prescribed),
                    f"{self.what}: patch {patch!r}", out=self.given, moments=2)
            for patch, one in self.scalar.boundaries.items() if changes(one.prescribed) and one.prescribed is not None
        ]  # fmt: skip

    def _source(self) -> GivenOn | None:
        """Return the source where it changes in time."""
        flow, elements = self.flow, self.flow.spaces.elements
        if not changes(self.scalar.source):
            return None
        inside = flow.context.subset(flow.elements, flow.spaces.inside, "inside")
        return GivenOn(flow.context, inside, flow.volumes.centres[elements.owned], parts_of(self.scalar.source),
                       f"{self.what}: source", out=self.source)  # fmt: skip

    def prepare(self, rates: float, end: float) -> None:
        """Say at which times a step or stage finds what is given: that of its rates, and its end."""
        for given in self._given:
            given.prepare([rates, end])
        if self._sources is not None:
            self._sources.prepare([rates])

    @property
    def moving(self) -> list[Dat]:
        """What is given at boundaries, and the source, if any of them change in time."""
        return [self.given, self.source] if self._given or self._sources is not None else []

    def check(self) -> None:
        """Raise where what was given last is not finite. Collective."""
        for given in (*self._given, *([self._sources] if self._sources is not None else [])):
            given.check()

    def boundary(self, theta: Dat) -> list[Loop]:
        """Return the loop that sets values at the boundary from those of the cells."""
        flow, sides = self.flow, self.sides
        if not self._bounded:
            return []
        return [Loop(scalar_boundary, flow.boundary, self.kind, self.given, sides.entries, self.alpha[sides.pattern],
                     theta[flow.behind[0]], theta, formulas=self.conditions.formulas)]  # fmt: skip

    # ------------------------------------------------------------------------------ parts of a step
    def explicit(self) -> list[Loop]:
        """Return the loops of a step or stage, between the prediction of the velocity and its boundaries."""
        flow = self.flow
        ahead, end = ([loop for given in self._given for loop in given.loops(k)] for k in range(2))
        return [
            Loop(extrapolate, flow.elements, self.theta, flow.share, self.old, self.ahead, d=1),
            *ahead,
            *self.boundary(self.ahead),
            *(self.boundary(self.theta) if ahead and self.bounded is not None else ()),  # whose fluxes begin with it
            *end,
            *(self._sources.loops() if self._sources is not None else ()),
            *(self._central() if self.bounded is None else self.bounded.explicit()),
            *self._relaxed(),
            *self.boundary(self.theta),
        ]

    def _central(self) -> list[Loop]:
        """Return the loops from the values ahead to new values of cells, by symmetric operators."""
        flow, rows, corrections = self.flow, self.flow.entry_faces, self.corrections
        alpha = self.alpha if corrections is None else corrections.raised
        return [
            *(corrections.fluxes() if corrections is not None else ()),
            Loop(transport, flow.transport.pattern.entries, rows.entries, flow.us_ahead[rows.pattern],
                 alpha[rows.pattern], self.transport.values),
            Loop(predict, flow.elements, self.transport.entries, self.ahead[self.transport.pattern], flow.inverse,
                 self.source, flow.step_length, self.theta, d=1),
            *(corrections.sums() if corrections is not None else ()),
        ]  # fmt: skip

    def _relaxed(self) -> list[Loop]:
        flow = self.flow
        return [] if len(flow.scheme.shares) == 1 else [
            Loop(relax, flow.elements, self.start, flow.blend, self.theta, d=1)]  # fmt: skip

    def kept(self) -> list[Loop]:
        """Return the loops that keep the values for the stages of a step."""
        self.start = self.flow.context.dat(self.flow.elements, name=f"{self.scalar.name}_n", shape=(1,))
        return [Loop(copy, self.flow.elements, self.theta, self.start, systems=1)]

    def diffusivity(self) -> list[Loop]:
        """Return the loops from an eddy viscosity to the diffusivity."""
        alpha, prandtl = float(self.scalar.diffusivity), float(self.scalar.turbulent_prandtl)
        return [Loop(scalar_diffusivity, self.flow.faces, self.flow.nus, self.alpha, molecular=alpha,
                     nu=self.flow.viscosity, prandtl=prandtl)]  # fmt: skip

    def limit(self, out: Rows, step: Global, worst: Global) -> Loop:
        """Return the loop that limits steps by the diffusion of the scalar, see `time_limit`."""
        flow = self.flow
        raised = self.alpha if self.corrections is None else self.corrections.raised
        return Loop(time_limit, flow.cells, out.entries, flow.us[out.pattern], self.alpha[out.pattern],
                    raised[out.pattern], flow.volume, step, worst, c1=0.35, c2=0.2,
                    name=f"{self.scalar.name}.limit")  # fmt: skip

    # ------------------------------------------------------------------------------ values
    def _surveys(self) -> None:
        flow, ctx = self.flow, self.flow.context
        self._sums, self._flux = ctx.scalar(np.zeros(2), "content"), ctx.scalar(np.zeros(4), "flux")
        self.entering = ctx.dat(flow.elements, name=f"{self.scalar.name}.entering")
        """What diffuses in through boundary elements, of the patches that `flux` was asked for last."""
        self._low, self._high = ctx.scalar(NOTHING_YET, "least"), ctx.scalar(-NOTHING_YET, "largest")
        content = Loop(scalar_content, flow.elements, self.theta, flow.weight, self._sums, self._low, self._high)
        resets = [Reset(self._sums), Reset(self._low, NOTHING_YET), Reset(self._high, -NOTHING_YET)]
        self._content = Chain([*resets, content], name=f"{self.scalar.name}.content")

    def initialise(self, values: Field | None = None, time: float = 0.0) -> None:
        """Set the values of the cells, by default to those that `Scalar` says, and those of the boundary at a time."""
        self.theta.write(self._of_cells(f"{self.what}: initial", self.scalar.initial if values is None else values))
        for given in self._given:
            given.update(time)
        for loop in self.boundary(self.theta):
            loop()

    def values(self) -> Array:
        """Return the values of the owned cells, ``(cells,)``."""
        return self.theta.read()[self.flow.spaces.inside, 0]

    def content(self) -> ScalarContent:
        """Return sums and extrema over all cells now.

        Raises
        ------
        SolverError
            If they are not finite.
        """
        self._content()
        total, square = (float(v) for v in self._sums.value)
        if not np.isfinite(square):
            raise SolverError(f"{self.what}: not finite at time {self.flow.time:.6g}; take dt smaller")
        return ScalarContent(total, square, float(self._low.value), float(self._high.value))

    def flux(self, patch: str) -> ScalarFlux:
        """Return what enters a patch now, ``sum alpha A (theta_b - theta_c) / delta`` and ``-sum u_s A theta_b``.

        Raises
        ------
        SolverError
            If there is no such patch.
        """
        flow, sides = self.flow, self.sides
        if patch not in self._fluxes:
            over = patch_elements(flow, patch)
            self._fluxes[patch] = Loop(
                scalar_flux, over, sides.entries, self.alpha[sides.pattern], flow.us[sides.pattern],
                self.theta[flow.behind[0]], self.theta, self.entering, self._flux, name=f"{self.scalar.name}.flux",
            )  # fmt: skip
        self._flux.value = np.zeros(4)
        self._fluxes[patch]()
        if self.corrections is not None:
            self.corrections.add_flux(patch, patch_elements(flow, patch), self.entering, self._flux)
        diffusive, convective, area, total = (float(v) for v in self._flux.value)
        return ScalarFlux(diffusive, convective, area, total / area if area else float("nan"))


class FlowScalars:
    """All scalars of a flow, and their parts of its steps.

    Attributes
    ----------
    all
        Name to scalar.
    buoyancy
        Of those that drive the flow, and of a uniform force on walls and outflows; None: there are none.

    Raises
    ------
    SolverError
        If two have one name.
    """

    def __init__(self, flow: CarryingFlow, scalars: Sequence[Scalar]) -> None:
        names = [scalar.name for scalar in scalars]
        if len(set(names)) < len(names):
            raise SolverError(f"scalars: {next(n for n in names if names.count(n) > 1)!r} is there twice")
        self.all = {scalar.name: FlowScalar(flow, scalar) for scalar in scalars}
        found = [(made, made.scalar.buoyancy) for made in self.all.values()]
        driving = [(made, force) for made, force in found if force is not None]
        uniform, given = potential_part(flow, flow.force), flow.given_forces
        given = given if given is not None and given.through_faces else None
        acts = driving or uniform.any() or given is not None
        self.buoyancy = FlowBuoyancy(flow, driving, uniform, given) if acts else None
        if uniform.any():
            flow.acceleration.value = flow.force - uniform

    def __getitem__(self, name: str) -> FlowScalar:
        """Return a scalar by its name."""
        if name not in self.all:
            known = ", ".join(self.all) or "none"
            raise SolverError(f"no scalar {name!r}{did_you_mean(name, self.all)} (scalars: {known})")
        return self.all[name]

    def explicit(self) -> list[Loop]:
        """Return the loops of a step or stage."""
        loops = [loop for scalar in self.all.values() for loop in scalar.explicit()]
        return loops if self.buoyancy is None else [*loops, *self.buoyancy.explicit]

    def source(self) -> list[Loop]:
        """Return the loops behind the right-hand side of the pressure."""
        return [] if self.buoyancy is None else [self.buoyancy.source()]

    def faces(self) -> list[Loop]:
        """Return the loops behind the velocities at faces."""
        return [] if self.buoyancy is None else [self.buoyancy.faces()]

    def cells(self) -> list[Loop]:
        """Return the loops behind the correction of the velocities of cells."""
        return [] if self.buoyancy is None else [self.buoyancy.cells()]

    def prepare(self, rates: float, end: float) -> None:
        """Say at which times a step or stage finds what is given: that of its rates, and its end."""
        for scalar in self.all.values():
            scalar.prepare(rates, end)

    def check(self) -> None:
        """Raise where what was given last is not finite. Collective."""
        for scalar in self.all.values():
            scalar.check()

    def act(self, time: float) -> None:
        """Say for how long forces act in the next step or stage."""
        for scalar in self.all.values():
            if scalar.bounded is not None:
                scalar.bounded.check()
        if self.buoyancy is not None:
            self.buoyancy.act(time)

    def kept(self) -> list[Loop]:
        """Return the loops that keep what stages start from."""
        return [loop for scalar in self.all.values() for loop in scalar.kept()]

    def diffusivity(self) -> list[Loop]:
        """Return the loops from an eddy viscosity to diffusivities."""
        return [loop for scalar in self.all.values() for loop in scalar.diffusivity()]

    def limits(self, out: Rows, step: Global, worst: Global) -> list[Loop]:
        """Return the loops that limit steps."""
        return [scalar.limit(out, step, worst) for scalar in self.all.values()]

    def bounds(self, out: Rows, step: Global) -> list[Loop]:
        """Return the loops that limit steps to those that keep bounds."""
        bounded = [scalar.bounded for scalar in self.all.values() if scalar.bounded is not None]
        return [loop for one in bounded for loop in one.limit(out, step)]

    def initialise(self, values: Mapping[str, Array], time: float = 0.0) -> None:
        """Set all to what they start from at a time: values of the cells by name, else those that `Scalar` says."""
        for name, scalar in self.all.items():
            given = values.get(name)
            scalar.initialise(None if given is None else lambda _places, given=given: given, time)
