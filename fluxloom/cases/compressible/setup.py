"""From the tables of compressible flow to what the solver takes: gas, free stream, scheme, boundaries, start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.cases.compressible.tables import (
    SOURCE_KEYS,
    STREAM_KEYS,
    BoundaryTable,
    CompressibleCase,
    FreeStreamTable,
    InitialTable,
)
from fluxloom.cases.files.strategy_tables import StrategyTable, member_of
from fluxloom.cases.shared.mesh import check_length
from fluxloom.cases.shared.wall_motion import VELOCITY_KEYS, velocity_values
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.flows.compressible.given import START_NAMES, Start, normals_of
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    FarField,
    MassFlowInlet,
    NoSlipWall,
    PressureOutlet,
    SlipWall,
    SupersonicInlet,
    SupersonicOutlet,
    SymmetryPlane,
    TotalInlet,
    VelocityInlet,
)
from fluxloom.fv.compressible.free_stream import FreeStream, FreeStreamInTime, PointVortex
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.patches import State
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.gradients.limiters import Venkatakrishnan
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.values.value import Value, has_values, value_of

__all__ = [
    "boundaries_of", "free_stream_of", "rotation_of", "scheme_of", "source_of", "start_of", "up_of",
]  # fmt: skip

_SPACE = 3
_ACROSS = 1e-6
"""Cosine of the angle between a direction and the normal of a plane along it, at most."""

SEA_LEVEL = 101325.0
"""Pressure of the standard atmosphere at the level of the sea, Pa."""

Array = npt.NDArray[np.float64]


def up_of(case: CompressibleCase, volumes: ControlVolumes, comm: Comm) -> int:
    """Return the number of the axis that leads up. Collective.

    In three dimensions it is by default ``z``, but ``y`` where the mesh is a profile extruded along ``z``, or where
    there are planes of symmetry (or periodic ones) across ``z`` and none across ``y``.

    Raises
    ------
    CaseError
        If there is none.
    """
    given, dimension = case.flow.up, volumes.dimension
    if given:
        axis = "xyz".index(given)
        if axis >= dimension:
            raise CaseError(f'flow.up: "{given}" is no axis of a mesh with {dimension} dimensions; leave it out')
        return axis
    if dimension == _SPACE and (case.mesh.shape == "airfoil" or _flat_across(case, volumes, comm)):
        return 1
    return dimension - 1


def free_stream_of(table: FreeStreamTable, gas: Gas, dimension: int, up: int) -> FreeStream:
    """Return the free stream of a case; given a Reynolds number its pressure follows, ``rho U L = Re mu``.

    Raises
    ------
    CaseError
        If angles do not fit the dimension.
    """
    try:
        found = _stream_of(table, dimension, up).at(0.0)
    except SolverError as error:
        raise CaseError(f"flow: {error}") from None
    if not table.reynolds:
        return replace(found, nu_tilde=table.turbulence)
    assert gas.viscosity is not None
    density = table.reynolds * float(gas.viscosity.at(table.temperature)) / (found.speed(gas) * table.length)
    return replace(found, pressure=density * gas.constant * found.temperature, nu_tilde=table.turbulence)


def _stream_of(table: FreeStreamTable, dimension: int, up: int, pressure: float = SEA_LEVEL) -> FreeStreamInTime:
    """Return the free stream of a case at any time; where it says no pressure, with this one."""
    numbers = {key: value_of(getattr(table, key) or (pressure if key == "pressure" else 0.0)) for key in STREAM_KEYS}
    return FreeStreamInTime(**numbers, dimension=dimension, up=up)


def scheme_of(case: CompressibleCase) -> CompressibleScheme:
    """Return the scheme of a case."""
    flow, scheme = case.flow, replace(case.scheme.value, cfl=case.time.cfl)
    limiter = scheme.limiter
    if isinstance(limiter, Venkatakrishnan) and not limiter.length and (flow.reynolds or flow.changed(("length",))):
        return replace(scheme, limiter=replace(limiter, length=flow.length))
    return scheme


def source_of(case: CompressibleCase, dimension: int) -> tuple[Value, ...] | None:
    """Return what the gas gains of each component; None: nothing.

    Raises
    ------
    CaseError
        If a component does not fit the dimension.
    """
    table = case.source
    if table is None:
        return None
    for key in table.changed(SOURCE_KEYS[1 + dimension : -1]):
        raise CaseError(f"source.{key}: the mesh has {dimension} dimensions; leave it out")
    keys = (*SOURCE_KEYS[: 1 + dimension], SOURCE_KEYS[-1])
    turbulence = [0.0] if case.scheme.value.turbulence is not None else []
    return tuple(value_of(one) for one in (*(getattr(table, key) for key in keys), *turbulence))


def rotation_of(case: CompressibleCase, dimension: int) -> Rotation | None:
    """Return how the mesh turns; None: it stands still.

    Raises
    ------
    CaseError
        If numbers do not fit the dimension.
    """
    table = case.rotation
    if table is None:
        return None
    if len(table.rate) > 1 and dimension == 2:
        raise CaseError("rotation.rate: a mesh with 2 dimensions turns about z alone: one number is wanted")
    check_length("rotation.centre", len(table.centre), dimension)
    return Rotation(tuple(table.rate), tuple(table.centre) or (0.0, 0.0, 0.0))


def boundaries_of(
    case: CompressibleCase, gas: Gas, stream: FreeStream, dimension: int, up: int
) -> dict[str, BoundaryCondition]:
    """Return what is beyond each patch.

    Raises
    ------
    CaseError
        If a vector or a state does not fit the dimension.
    """
    turns = rotation_of(case, dimension)
    moving = _stream_of(case.flow, dimension, up, stream.pressure) if case.flow.in_time else None
    return {
        name: _boundary(
            table, f"boundary.{name}", _beyond(table, f"boundary.{name}", moving, stream, gas), dimension, turns
        )
        for name, table in case.boundary.items()
    }  # fmt: skip


def _beyond(
    table: BoundaryTable, key: str, moving: FreeStreamInTime | None, stream: FreeStream, gas: Gas
) -> State | None:  # fmt: skip
    """Return the state that a table gives, with what fluctuates; None: it is the stream of the flow."""
    d = len(stream.direction)
    state: Any = tuple(table.state) or moving
    if table.state:
        _checked_state(f"{key}.state", table.state, d)
    if table.fluctuation is None or table.type == "velocity-inlet":
        return state
    if isinstance(state, FreeStreamInTime):
        state = state.states_in_time(gas, d)
    elif state is None:
        state = tuple(stream.state(gas, d).tolist())
    return (state[0], *_fluctuating(table.fluctuation, key, state[1:-1], d), state[-1])


def _fluctuating(table: StrategyTable, key: str, mean: Sequence[float | Value], d: int) -> tuple[Value, ...]:
    """Return velocities with what fluctuates about them."""
    about = table.value
    if not about.mean:
        if any(isinstance(part, Value) for part in mean):
            raise CaseError(f"{key}.fluctuation: give mean, the velocity that carries the eddies: {key} has formulas")
        about = replace(about, mean=tuple(mean))
    try:
        return tuple(value_of(part) + more for part, more in zip(mean, about.parts(d), strict=True))
    except SolverError as error:
        raise CaseError(f"{key}.fluctuation: {error}") from None


def _boundary(
    table: BoundaryTable, key: str, state: State | None, d: int, rotation: Rotation | None
) -> BoundaryCondition:  # fmt: skip
    if (own := member_of(table)) is not None:
        return own
    turning = rotation.velocity if rotation is not None and table.velocity == "mesh" else None
    velocity: Any = turning or velocity_values(table, key, d)
    check_length(f"{key}.direction", len(table.direction), d)
    way = tuple(table.direction)
    if table.type == "velocity-inlet" and table.fluctuation is not None:
        velocity = _fluctuating(table.fluctuation, key, velocity, d)
    vortex = PointVortex(tuple(table.vortex), tuple(table.centre)) if table.vortex else None
    made: Mapping[str, Callable[[], BoundaryCondition]] = {
        "slip": lambda: SlipWall(velocity, bool(table.spin)),
        "symmetry": SymmetryPlane,
        "wall": lambda: NoSlipWall(table.temperature, velocity, table.heat_flux, has_values(velocity)),
        "far-field": lambda: FarField(state, vortex=vortex),
        "supersonic-inlet": lambda: SupersonicInlet(state),
        "supersonic-outlet": SupersonicOutlet,
        "total-inlet": lambda: TotalInlet(table.pressure or 0.0, table.temperature or 0.0, way),
        "velocity-inlet": lambda: VelocityInlet(velocity, table.density, table.temperature),
        "mass-inlet": lambda: MassFlowInlet(table.mass_flux or 0.0, table.temperature or 0.0, way),
        "outlet": lambda: PressureOutlet(table.pressure or 0.0),
    }
    return made[table.type]()


def _flat_across(case: CompressibleCase, volumes: ControlVolumes, comm: Comm) -> bool:
    """Return whether planes of symmetry, or periodic ones, are across ``z`` and none across ``y``. Collective."""
    planes = [name for name, table in case.boundary.items() if table.type == "symmetry" and name in volumes.patches]
    shift = volumes.wrapped.shift
    ways = [shift / np.linalg.norm(shift, axis=1)[:, None], *(normals_of(volumes, name) for name in planes)]
    here = np.abs(np.concatenate(ways)).max(axis=0, initial=0.0)
    _, y, z = np.max(comm.allgather(here), axis=0)
    return bool(z > 1.0 - _ACROSS and y < _ACROSS)


def start_of(case: CompressibleCase, dimension: int) -> Start:
    """Return the states at the start: two states, or formulas by name; those that are left out are of the free stream.

    Raises
    ------
    CaseError
        If states or formulas do not fit the dimension.
    """
    table = case.initial
    if table.left:
        return _sides(table, dimension)
    check_length("initial.velocity", len(table.velocity), dimension)
    whole: dict[str, Any] = dict(zip(VELOCITY_KEYS, table.velocity, strict=False))
    return {key: one for key in START_NAMES if (one := whole.get(key, getattr(table, key))) is not None}


def _sides(table: InitialTable, d: int) -> Callable[[Array], Array]:
    left, right = (_checked_state(f"initial.{key}", getattr(table, key), d) for key in ("left", "right"))
    axis = "xyz".index(table.axis)
    if axis >= d:
        raise CaseError(f'initial.axis: "{table.axis}" is no axis of a mesh with {d} dimensions')
    return lambda places: np.where(places[:, axis : axis + 1] < table.at, left, right)


def _checked_state(key: str, given: list[Any], d: int) -> Array:
    if len(given) != d + 2:
        raise CaseError(f"{key}: density, {d} velocities and pressure are wanted, {d + 2} numbers, not {len(given)}")
    if any(isinstance(one, Value) for one in given):
        return np.zeros(0)
    if given[0] <= 0.0 or given[-1] <= 0.0:
        raise CaseError(f"{key}: density and pressure have to be above 0, not {given[0]:g} and {given[-1]:g}")
    return np.array(given)
