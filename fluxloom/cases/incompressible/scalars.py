"""The scalars of a case of incompressible flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fluxloom.cases.files.strategy_tables import member_of
from fluxloom.cases.incompressible.extras import ScalarBoundaryTable, ScalarTable
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import Outflow, Symmetry
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedFlux, FixedValue, ScalarBoundary
from fluxloom.solvers.incompressible.scalar import Buoyancy, Scalar

__all__ = ["flow_scalars"]


def flow_scalars(tables: Mapping[str, ScalarTable], volumes: ControlVolumes, gravity: Sequence[float]) -> list[Scalar]:
    """Return what the flow carries.

    Raises
    ------
    CaseError
        For a patch without a table or a table without a patch.
    """
    return [_scalar(name, table, volumes, gravity) for name, table in tables.items()]


def _scalar(name: str, table: ScalarTable, volumes: ControlVolumes, gravity: Sequence[float]) -> Scalar:
    _check_patches(f"scalar.{name}.boundary", table.boundary, volumes)
    boundaries = {patch: _boundary(boundary) for patch, boundary in table.boundary.items()}
    buoyancy = Buoyancy(tuple(gravity), table.expansion, table.reference) if table.expansion else None
    return Scalar(
        name, table.diffusivity, boundaries, table.initial, table.source, table.turbulent_prandtl, buoyancy,
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


def _boundary(table: ScalarBoundaryTable) -> ScalarBoundary | Outflow | Symmetry:
    if (own := member_of(table)) is not None:
        return own
    made: dict[str, Callable[[], ScalarBoundary | Outflow | Symmetry]] = {
        "value": lambda: FixedValue(table.value), "flux": lambda: FixedFlux(table.value), "adiabatic": Adiabatic,
        "outflow": Outflow, "symmetry": Symmetry,
    }  # fmt: skip
    return made[table.type]()
