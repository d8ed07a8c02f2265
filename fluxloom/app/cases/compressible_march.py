"""Tables of compressible flow for its steps: explicit, implicit, multigrid; and for a mesh that turns."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fluxloom.app.cases.wall_motion import Listed
from fluxloom.app.strategy_tables import Table, strategy_table
from fluxloom.core.errors import SolverError
from fluxloom.flows.compressible_steps import Explicit
from fluxloom.solvers.compressible_cycles import Multigrid
from fluxloom.solvers.compressible_implicit_choices import Implicit

__all__ = ["ImplicitTable", "MarchTable", "MultigridTable", "RotationTable", "SurfaceTable"]


class MarchTable(Table):
    """``[time]``: steps towards a steady flow, or in time.

    Attributes
    ----------
    cfl
        Of explicit steps, ``dt = 2 cfl V / sum A (|u_n| + c)``.
    end
        Time, which the last step hits: all cells have one step. 0: each cell has its own, towards a steady flow.
    drop
        A steady flow has been reached when the residual is this part of the first one of this run, which one that goes
        on from its checkpoint keeps, and one that starts from another result does not; 0: it does not look.
        ``run.iterations`` are the most steps in any case.
    integrator
        ``"explicit"``: stages of Runge and Kutta; towards a steady flow also ``"implicit"``, with ``[implicit]``, and
        ``"multigrid"``, explicit steps on coarser cells too, with ``[multigrid]``.
    dt
        Length of all steps in time; 0: ``cfl`` chooses them. The way to the end has equal steps, no longer than this.
        One that is longer than ``cfl`` allows is refused, and ends the run where it comes to be so.
    ramp, cfl_start
        Explicit steps in which the CFL number grows, by equal amounts, from ``cfl_start`` to ``cfl``; 0: none.
    """

    cfl: Annotated[float, Field(gt=0, le=1e6)] = 0.8
    end: Annotated[float, Field(ge=0)] = 0.0
    drop: Annotated[float, Field(ge=0, lt=1)] = 0.0
    integrator: Literal["explicit", "implicit", "multigrid"] = "explicit"
    ramp: Annotated[int, Field(ge=0, le=10**9)] = 0
    cfl_start: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    dt: Annotated[float, Field(ge=0)] = 0.0

    @property
    def explicit(self) -> Explicit:
        """Explicit steps, in time where there is an end."""
        return Explicit(self.cfl, not self.end, self.cfl_start, self.ramp, self.dt)

    @model_validator(mode="after")
    def _consistent(self) -> MarchTable:
        if self.end and self.drop:
            raise ValueError("drop is of a steady flow, and end of one in time: give only one of them")
        if self.end and self.integrator != "explicit":
            raise ValueError(
                f'end: integrator = "{self.integrator}" makes steps towards a steady flow alone: leave end out, or '
                'take integrator = "explicit"'
            )
        if self.dt and not self.end:
            raise ValueError("dt is of steps in time: give end, or leave dt out: towards a steady flow each cell has "
                             "a step of its own")  # fmt: skip
        for key in self.changed(("ramp", "cfl_start")):
            if self.integrator != "explicit":
                raise ValueError(f'{key} is of integrator = "explicit", not "{self.integrator}"')
        try:
            _ = self.explicit
        except SolverError as error:
            raise ValueError(str(error)) from None
        if self.integrator == "implicit" and self.changed(("cfl",)):
            raise ValueError('cfl is of explicit steps: with integrator = "implicit" give implicit.cfl')
        return self


class ImplicitTable(strategy_table(Implicit)):
    """``[implicit]``: the names and defaults of `fluxloom.solvers.compressible_implicit_choices.Implicit`."""


class MultigridTable(strategy_table(Multigrid)):
    """``[multigrid]``: the names and defaults of `fluxloom.solvers.compressible_cycles.Multigrid`."""

    moved = MappingProxyType(dict.fromkeys(("cfl", "sweeps", "coarse_cfl"), "smoother"))


class RotationTable(Table):
    """``[rotation]``: the mesh turns about an axis, with what is fixed to it.

    Velocities are those where one stands still, along axes that turn with the mesh.

    Attributes
    ----------
    rate
        Angular velocity, rad/s: a number, about z, or in three dimensions one about each axis.
    centre
        A place on the axis; the origin by default.
    """

    rate: Listed
    centre: Annotated[list[float], Field(max_length=3)] = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> RotationTable:
        if len(self.rate) not in (1, 3):
            raise ValueError(f"rate: a number, or one about each of three axes is wanted, not {len(self.rate)}")
        if not any(self.rate):
            raise ValueError("rate is 0: nothing turns; leave the table out")
        return self


class SurfaceTable(Table):
    """``[surface]``: at the end, pressure and friction coefficients along patches.

    Attributes
    ----------
    patches
        ``surface_NAME.csv`` for each of them.
    axis, cuts
        In three dimensions: planes across an axis, ``cut_y_0.44.csv`` for each place along it.
    """

    patches: list[str] = Field(default=[])
    axis: Literal["x", "y", "z"] = "y"
    cuts: list[float] = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> SurfaceTable:
        if not self.patches and (extra := self.changed(("axis", "cuts"))):
            raise ValueError(f"{extra[0]} is there but patches is not: give it, or leave {extra[0]} out")
        if self.changed(("axis",)) and not self.cuts:
            raise ValueError("axis is there but cuts is not: give it, or leave axis out")
        if len(set(self.patches)) < len(self.patches) or len(set(self.cuts)) < len(self.cuts):
            raise ValueError("a patch, or a cut, is named twice")
        return self
