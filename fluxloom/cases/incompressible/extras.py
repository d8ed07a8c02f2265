"""Tables of incompressible flow for what is carried and looked at: scalars, averages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from fluxloom.cases.files.strategy_tables import GivenOrNone, OrOthers, Table, ValueKey
from fluxloom.fv.incompressible.scalar_boundary import ScalarBoundary

__all__ = ["ScalarBoundaryTable", "ScalarTable"]

Kind = Literal["value", "flux", "adiabatic", "outflow", "symmetry"]


class ScalarBoundaryTable(Table):
    """``[scalar.NAME.boundary.PATCH]``: what happens to a scalar at a patch.

    Attributes
    ----------
    type
        ``"value"``, ``"flux"`` (into the fluid, its diffusivity times the slope), ``"adiabatic"``, ``"outflow"`` or
        ``"symmetry"``.
    value
        Of the scalar, or of the flux: a number, a formula in x, y, z and t, or a table.
    """

    type: Kind
    value: GivenOrNone = None

    @model_validator(mode="after")
    def _consistent(self) -> ScalarBoundaryTable:
        if self.type in ("value", "flux") and self.value is None:
            raise ValueError('give value, a formula in quotes as "sin(t)", or a number')
        if self.type not in ("value", "flux") and self.value is not None:
            raise ValueError(f'type = "{self.type}" has no value')
        return self


class ScalarTable(Table):
    """``[scalar.NAME]``: something that the flow carries, and that may drive it.

    Attributes
    ----------
    diffusivity
        Of molecules.
    initial, source
        At the start, and what comes in unit time: numbers, formulas in x, y and z, that of the source in t too, or
        tables.
    turbulent_prandtl
        By which an eddy viscosity is divided.
    expansion, reference
        Buoyancy: ``-g expansion (theta - reference)`` accelerates, with the gravity of ``[fluid]``.
    boundary
        Patch to a table; each patch that is not periodic needs one.
    bounded
        Whether steps make no new extremum, by flux correction; by default where it starts discontinuous, or what flows
        in has another value than the start.
    """

    diffusivity: Annotated[float, Field(ge=0)]
    initial: Annotated[Any, ValueKey(variables=("x", "y", "z"), blank=True)] = 0.0
    source: Annotated[Any, ValueKey(blank=True)] = 0.0
    turbulent_prandtl: Annotated[float, Field(gt=0)] = 0.85
    expansion: float = 0.0
    reference: float = 0.0
    boundary: dict[str, Annotated[ScalarBoundaryTable, OrOthers(ScalarBoundary, get_args(Kind))]] = Field(default={})
    bounded: bool | None = None

    @model_validator(mode="after")
    def _consistent(self) -> ScalarTable:
        if self.reference and not self.expansion:
            raise ValueError("reference is there but expansion is not: give expansion, or leave reference out")
        return self
