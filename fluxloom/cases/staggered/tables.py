"""The tables of case files of incompressible flow on a staggered grid."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import Field, model_validator

from fluxloom.cases.files.strategy_tables import Chosen, GivenVector, Table, Vector
from fluxloom.cases.incompressible.tables import FlowBoundary, InitialVelocityTable
from fluxloom.cases.shared.monitors import FlowCase
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, StaggeredTimeScheme

__all__ = [
    "StaggeredCase", "StaggeredFluidTable",
    "StaggeredMeshTable", "StaggeredPressureTable", "StaggeredTimeTable",
]  # fmt: skip

Range = Annotated[list[float], Field(min_length=2, max_length=2)]
Count = Annotated[int, Field(ge=2, le=50_000)]
Number = Annotated[float, Field(ge=0)]
Stretch = Annotated[float, Field(ge=0, le=10)]
Ends = Annotated[list[str], Field(min_length=2, max_length=2)]

_PAIRS = (["xmin", "xmax"], ["ymin", "ymax"], ["zmin", "zmax"])


class StaggeredMeshTable(Table):
    """``[mesh]``: a box, whose sides are xmin, xmax, ymin, ymax, and zmin, zmax.

    Attributes
    ----------
    x, y, z
        Ends.
    nx, ny, nz
        Cells; with ``nz`` there are three dimensions.
    stretch_x, stretch_y, stretch_z
        Of one direction at most: cells get smaller towards both ends, places are ``tanh(s (2 t - 1)) / tanh(s)``.
    periodic
        Pairs of sides that are joined, as ``[["xmin", "xmax"]]``.
    """

    x: Range = Field(default=[0.0, 1.0])
    y: Range = Field(default=[0.0, 1.0])
    z: Range = Field(default=[0.0, 1.0])
    nx: Count = 32
    ny: Count = 32
    nz: Annotated[int, Field(ge=0, le=50_000)] = 0
    stretch_x: Stretch = 0.0
    stretch_y: Stretch = 0.0
    stretch_z: Stretch = 0.0
    periodic: list[Ends] = Field(default=[])

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return 3 if self.nz else 2

    @property
    def joined(self) -> tuple[bool, ...]:
        """Whether the ends of each axis are joined."""
        return tuple(any(set(pair) == set(ends) for ends in self.periodic) for pair in _PAIRS[: self.dimension])

    @model_validator(mode="after")
    def _consistent(self) -> StaggeredMeshTable:
        if not self.nz and (extra := self.changed(("z", "stretch_z"))):
            raise ValueError(f"{extra[0]} is there but nz is not: give nz, the cells along z, or leave {extra[0]} out")
        if self.nz == 1:
            raise ValueError("nz is at least 2, or 0 for a plane flow")
        if any(low >= high for low, high in (self.x, self.y, self.z)):
            raise ValueError("x, y and z are the lower and the upper end")
        known = _PAIRS[: self.dimension]
        for ends in self.periodic:
            if sorted(ends) not in [sorted(pair) for pair in known]:
                raise ValueError(f"periodic: {ends} are no opposite sides (allowed: {', '.join(map(str, known))})")
        stretched = self.changed(("stretch_x", "stretch_y", "stretch_z"))
        if len(stretched) > 1:
            raise ValueError(f"give only one of {stretched[0]} and {stretched[1]}: the pressure is transformed")
        if stretched and self.joined["xyz".index(stretched[0][-1])]:
            raise ValueError(f"{stretched[0]}: a periodic direction has equal cells; leave it out")
        return self


class StaggeredFluidTable(Table):
    """``[fluid]``: what flows.

    Attributes
    ----------
    viscosity
        Kinematic.
    force
        Acceleration, a value a dimension: numbers, formulas in x, y, z and t, or tables; empty: none.
    mean_velocity
        Of the whole volume, a number a dimension, of which one is not zero, along a periodic direction: the force keeps
        it. Empty: the force is ``force``.
    """

    viscosity: Number
    force: GivenVector = Field(default=[])
    mean_velocity: Vector = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> StaggeredFluidTable:
        if self.force and self.mean_velocity:
            raise ValueError("give only one of force and mean_velocity")
        if self.mean_velocity and sum(value != 0.0 for value in self.mean_velocity) != 1:
            raise ValueError("mean_velocity: one component differs from zero, that along which the flow is driven")
        return self


class StaggeredPressureTable(Table):
    """``[pressure]``: how Poisson's equation is solved.

    Attributes
    ----------
    library
        Of the transforms; ``"auto"``: what the device has.
    """

    library: str = "auto"


class StaggeredTimeTable(Table):
    """``[time]``: the steps.

    Attributes
    ----------
    dt
        Length of each; 0: the largest stable one, chosen anew every ``residual_interval`` steps.
    end
        The run ends at this time: steps of a given length are a little shorter such that a whole number of them hits
        it, of others the last ones; with ``steady`` the last step goes past it. 0: after ``run.iterations`` steps,
        which are the most that are made in any case.
    steady
        The run ends when the residual, the root mean square of du/dt, is below this part of its largest value so far;
        0: it does not look.
    courant, diffusion
        What the largest stable step may make of ``dt max sum |u| / dx`` and of ``nu dt sum 1 / dx^2``; 0: 0.3 and 0.2,
        of Runge-Kutta 1.2 and 0.5.
    scheme
        ``"adams-bashforth"``, of second order, or ``"runge-kutta"``, of third.
    residual_interval
        Steps from one measurement of the residual to the next.
    """

    dt: Number = 0.0
    end: Number = 0.0
    steady: Number = 0.0
    courant: Annotated[float, Field(ge=0, le=5)] = 0.0
    diffusion: Annotated[float, Field(ge=0, le=5)] = 0.0
    scheme: Annotated[StaggeredTimeScheme, Chosen(StaggeredTimeScheme)] = AdamsBashforth()
    renamed = MappingProxyType({"projection": "scheme.projection", "look": "residual_interval"})
    residual_interval: Annotated[int, Field(ge=1, le=10**6)] = 10

    @model_validator(mode="after")
    def _consistent(self) -> StaggeredTimeTable:
        if self.dt and (extra := self.changed(("courant", "diffusion"))):
            raise ValueError(f"give only one of dt and {extra[0]}")
        return self




class StaggeredCase(FlowCase):
    """A case file of incompressible flow on a staggered grid."""

    fluid: StaggeredFluidTable
    mesh: StaggeredMeshTable = StaggeredMeshTable()
    initial: InitialVelocityTable = InitialVelocityTable()
    boundary: dict[str, FlowBoundary] = Field(default={})
    pressure: StaggeredPressureTable = StaggeredPressureTable()
    time: StaggeredTimeTable = StaggeredTimeTable()

    @model_validator(mode="after")
    def _supported(self) -> StaggeredCase:
        """Refuse what would otherwise be passed over."""
        if self.statistics.profile == "z" and not self.mesh.nz:
            raise ValueError('statistics.profile = "z" needs mesh.nz')
        for key in self.partition.changed(("method", "shares")):
            raise ValueError(f"partition.{key}: this solver runs on one rank; leave the key out")
        self.run.leave_choices()
        return self
