"""The scalars of a case of incompressible flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.incompressible_extras import ScalarBoundaryTable, ScalarTable
from fluxloom.app.strategy_tables import member_of
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.fv.incompressible_boundary import Outflow, Symmetry
from fluxloom.fv.scalar_sides import Adiabatic, FixedFlux, FixedValue, ScalarBoundary
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.solvers.flow_scalar import Buoyancy, Scalar
from fluxloom.values.expressions import formula

__all__ = ["flow_scalars"]

Array = npt.NDArray[np.float64]


def flow_scalars(tables: Mapping[str, ScalarTable], volumes: ControlVolumes, gravity: Sequence[float]) -> list[Scalar]:
    """Return what the flow carries.

    Raises
    ------
    CaseError
        For a patch without a table or a table without a patch, and for formulas that do not fit the mesh.
    """
    return [_scalar(name, table, volumes, gravity) for name, table in tables.items()]


def _scalar(name: str, table: ScalarTable, volumes: ControlVolumes, gravity: Sequence[float]) -> Scalar:
    key, d = f"scalar.{name}", volumes.dimension
    _check_patches(f"{key}.boundary", table.boundary, volumes)
    boundaries = {
        patch: _boundary(boundary, f"{key}.boundary.{patch}", d) for patch, boundary in table.boundary.items()
    }
    buoyancy = Buoyancy(tuple(gravity), table.expansion, table.reference) if table.expansion else None
    return Scalar(
        name, table.diffusivity, boundaries, _field(table.initial, f"{key}.initial", d),
        _field(table.source, f"{key}.source", d), table.turbulent_prandtl, buoyancy,
        table.bounded,
    )  # fmt: skip


def _check_patches(key: str, given: Mapping[str, ScalarBoundaryTable], volumes: ControlVolumes) -> None:
    """Raise unless each patch that is not periodic has a table, and each table is that of a patch."""
    known = list(volumes.patches)
    for patch in given:
        if patch not in known:
            hint = did_you_mean(patch, known)
            raise CaseError(f"{key}: the mesh has no patch {patch!r}{hint} (patches: {', '.join(known) or 'none'})")
    for patch in known:
        if patch not in given:
            raise CaseError(
                f"{key}: the patch {patch!r} has none; add a table [{key}.{patch}] with a type (value, flux, "
                "adiabatic, outflow or symmetry)"
            )


def _boundary(table: ScalarBoundaryTable, key: str, d: int) -> ScalarBoundary | Outflow | Symmetry:
    if (own := member_of(table)) is not None:
        return own
    values = _field(table.value, f"{key}.value", d)
    made: dict[str, ScalarBoundary | Outflow | Symmetry] = {
        "value": FixedValue(values), "flux": FixedFlux(values), "adiabatic": Adiabatic(), "outflow": Outflow(),
        "symmetry": Symmetry(),
    }  # fmt: skip
    return made[table.type]


def _field(text: str, key: str, d: int) -> Callable[[Array], Array]:
    """Return what a formula describes, as a function of places ``(n, d)``; nothing is zero."""
    values = formula(text or "0", key, ("x", "y", "z")[:d])
    return lambda places: values(*places.T)
