"""What a compressible flow is given, made whole and checked: boundary conditions, free stream, states at the start.

Of flow so slow that upwind fluxes damp it as sound is warned: start and boundaries tell how fast it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.advice import warn
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    FarField,
    NoSlipWall,
    SupersonicInlet,
    SymmetryPlane,
    boundary_table,
)
from fluxloom.fv.compressible.boundary_states import (
    DensityState,
    FaceState,
    FarFieldState,
    GivenState,
    HeatFluxState,
    IsothermalState,
    MassFlowState,
    NoSlipState,
    OutletState,
    ReservoirState,
    SlipState,
    TemperatureState,
)
from fluxloom.fv.compressible.free_stream import FreeStream, FreeStreamInTime
from fluxloom.fv.compressible.gas import Gas, mach_of_pressure_ratio
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.values import Field
from fluxloom.values.value import Given, value_of

__all__ = ["START_NAMES", "Start", "check_symmetry", "normals_of", "start_states", "warn_of_slow_flow", "with_stream"]

Array = npt.NDArray[np.float64]

START_NAMES = ("density", "velocity_x", "velocity_y", "velocity_z", "pressure")
"""Of parts of the states at the start."""

Start = Field | Mapping[str, Given]
"""``(nv,)``, ``(owned, nv)``, a function of the places ``(n, d)``, or values by name, `START_NAMES`: numbers, formulas
in x, y and z, functions of the places ``(n, d)``, tables."""

_ACROSS = 1e-6
"""Cosine of the angle between a direction and the normal of a plane along it, at most."""
_ALONG = 1e-9
"""Sine of the angle between two directions that are one."""


def with_stream(
    boundaries: Mapping[str, BoundaryCondition], stream: FreeStream | None, gas: Gas, rotation: Rotation | None, *,
    turbulent: bool,
) -> dict[str, BoundaryCondition]:  # fmt: skip
    """Return boundary conditions in which the free stream stands where they leave out a state, or its turbulence.

    Raises
    ------
    SolverError
        If it is wanted and there is none, or it would turn with the mesh; for walls with friction in a gas without.
    """
    found: dict[str, BoundaryCondition] = {}
    for name, condition in boundaries.items():
        changes: dict[str, Any] = {}
        if isinstance(condition, FarField | SupersonicInlet) and condition.state is None:
            if stream is None:
                raise SolverError(f"boundaries.{name}: it has no state: give it one, or give the flow a stream")
            changes["state"] = stream
        if turbulent and stream is not None and getattr(condition, "turbulence", 0.0) is None:
            changes["turbulence"] = stream.turbulence(gas)
        if isinstance(condition, NoSlipWall) and gas.viscosity is None:
            raise SolverError(
                f"boundaries.{name}: a wall with friction needs a gas with a viscosity; or take one that slips"
            )
        found[name] = replace(condition, **changes) if changes else condition  # pyright: ignore[reportArgumentType]
        _check_wind(name, found[name], rotation)
    return found


def _check_wind(name: str, condition: BoundaryCondition, rotation: Rotation | None) -> None:
    """Raise `SolverError` where a free stream would turn with the mesh."""
    stream = getattr(condition, "state", None)
    if rotation is not None and isinstance(stream, FreeStreamInTime):
        raise SolverError(
            f"boundaries.{name}: the mesh turns, and the free stream depends on the time: give it numbers"
        )
    if rotation is None or not isinstance(stream, FreeStream):
        return
    way = np.zeros(3)
    way[: len(stream.direction)] = stream.direction
    size = float(np.linalg.norm(way) * np.linalg.norm(rotation.vector))
    if stream.mach and np.linalg.norm(np.cross(way, rotation.vector)) > _ALONG * size:
        raise SolverError(
            f"boundaries.{name}: the free stream is not along the axis of rotation, and would turn with the mesh; give "
            "it the Mach number 0, or a direction along the axis"
        )


def check_symmetry(
    boundaries: Mapping[str, BoundaryCondition], start: Start | None, stream: FreeStream | None,
    volumes: ControlVolumes, context: Context,
) -> None:  # fmt: skip
    """Raise `SolverError` where a free stream that is used crosses a plane of symmetry. Collective."""
    if stream is None or not stream.mach:
        return
    streams = FreeStream | FreeStreamInTime
    uses = any(isinstance(getattr(condition, "state", None), streams) for condition in boundaries.values())
    velocities = START_NAMES[1 : 1 + volumes.dimension]
    starts = start is None or (isinstance(start, Mapping) and not set(velocities) <= set(start))
    if not (uses or starts):
        return
    way = np.asarray(stream.direction) / np.linalg.norm(stream.direction)
    for name, condition in boundaries.items():
        if not isinstance(condition, SymmetryPlane) or name not in volumes.patches:
            continue
        across = np.abs(normals_of(volumes, name) @ way).max(initial=0.0)
        if max(context.comm.allgather(float(across))) > _ACROSS:
            raise SolverError(
                f"boundaries.{name}: the free stream {np.round(way, 6).tolist()} has a component across this plane of "
                f"symmetry; change its direction, or take another condition for {name}"
            )


def normals_of(volumes: ControlVolumes, name: str) -> Array:
    """Return the unit normals of a patch, ``(faces, d)``."""
    span, offset = volumes.patches[name], volumes.interior - volumes.cells
    return volumes.normals[span.start + offset : span.stop + offset]


def start_states(start: Start | None, stream: FreeStream | None, gas: Gas, dimension: int, *, turbulent: bool) -> Field:
    """Return the states at the start as `CompressibleFlow.start` takes them.

    Parameters
    ----------
    start
        What is given; None: the free stream, uniform. What functions by name leave out is of the free stream too.
    stream
        The free stream, whose variable of turbulence the states have where they come without one.
    gas, dimension, turbulent
        Of the flow.

    Raises
    ------
    SolverError
        If there is neither, or a name is unknown; when called, where density or pressure are not positive.
    """
    if start is None and stream is None:
        raise SolverError("start: give the states at the start, or a stream, with which the flow begins then")
    if start is None or isinstance(start, Mapping):
        found = _by_name(start or {}, stream, gas, dimension)
    else:
        found = start if callable(start) else np.asarray(start, dtype=np.float64)
    if not turbulent:
        return found
    nut = None if stream is None else stream.turbulence(gas)

    def with_turbulence(values: npt.ArrayLike) -> Array:
        """Return states ``(n, d + 2)`` with the variable of the model of turbulence, ``(n, d + 3)``."""
        states = np.asarray(values, dtype=np.float64)
        if states.shape[-1:] != (dimension + 2,):
            return states
        if nut is None:
            raise SolverError("start: give the variable of the model of turbulence too, or a stream, whose is taken")
        return np.concatenate([states, np.full((*states.shape[:-1], 1), nut)], axis=-1)

    return (lambda places: with_turbulence(found(places))) if callable(found) else with_turbulence(found)


def _by_name(
    parts: Mapping[str, Given], stream: FreeStream | None, gas: Gas, d: int
) -> Callable[[Array], Array]:  # fmt: skip
    """Return states of which some components are given, and the others are those of a free stream."""
    names = [START_NAMES[0], *START_NAMES[1 : 1 + d], START_NAMES[-1]]
    for name in parts:
        if name in START_NAMES and name not in names:
            raise SolverError(f"start.{name}: the mesh has {d} dimensions; leave it out")
        if name not in names:
            raise SolverError(f"start: unknown name {name!r}{did_you_mean(name, names)} (known: {', '.join(names)})")
    given = {name: value_of(one, f"start.{name}") for name, one in parts.items()}
    if lacking := [name for name in names if name not in given and stream is None]:
        raise SolverError(f"start.{lacking[0]}: it is not given, and there is no stream whose it could be")
    uniform = np.ones(d + 2) if stream is None else stream.state(gas, d)

    def states(places: Array) -> Array:
        """Return density, velocity and pressure at places ``(n, d)``, ``(n, d + 2)``; `SolverError` unless above 0."""
        found = np.tile(uniform, (len(places), 1))
        for k, name in enumerate(names):
            if name in given:
                found[:, k] = given[name].at(places, what=f"start.{name}")
        for name in ("density", "pressure"):
            values = found[:, names.index(name)]
            if (values <= 0.0).any():
                where = places[values.argmin()].round(6).tolist()
                raise SolverError(f"start.{name}: above 0 is wanted, not {values.min():g} at {where}")
        return found

    return states


_SLOW = 0.15
"""Mach number below which jumps of the velocity are damped too much."""


def warn_of_slow_flow(flow: CompressibleFlow, states: Array, mach: float) -> None:
    """Warn of a flow that upwind fluxes damp too much, as nothing that is given makes it faster. Collective.

    Of what depends on the time it is not known how fast it makes the flow: there is no warning then.

    Parameters
    ----------
    flow
        Its solver.
    states
        Of the owned cells, at the start.
    mach
        Of the free stream.
    """
    if flow.given.given:
        return
    scheme, fastest = flow.scheme, _fastest(flow, states, mach)
    cure = "low_mach = true, with which it does not"
    if not scheme.flux.resolves_contacts:  # what it damps is no jump of the normal velocity
        cure = 'flux = "roe" and ' + cure
    elif scheme.low_mach:
        return
    if 0.0 < fastest < _SLOW and scheme.order == 2:
        name = strategy_name(scheme.flux)
        text = f'scheme: the flow is slow, Mach {fastest:.3g} at most: flux = "{name}" damps it as sound'
        warn(f"{text}; set {cure}")


def _fastest(flow: CompressibleFlow, states: Array, mach: float) -> float:
    """Return the largest Mach number that start, boundaries, free stream and differences of pressure lead to."""
    d, gas, comm = flow.dimension, flow.gas, flow.context.comm
    w = states[:, : d + 2]
    density, sound = _largest(comm, w[:, 0]), _largest(comm, gas.sound(w))
    kinds, rows, formulas, _ = boundary_table(flow.volumes, flow.boundaries, gas)
    speed, heat = np.linalg.norm(rows[:, 1 : 1 + d], axis=1), rows[:, 0]

    def of(*which: type[FaceState]) -> npt.NDArray[np.bool_]:
        return np.isin(kinds, [k for k, formula in enumerate(formulas) if isinstance(formula, which)])

    free, warm, mass = of(FarFieldState, GivenState), of(TemperatureState), of(MassFlowState)
    given = np.column_stack([rows[free, : d + 1], rows[free, 1 + d]])
    found = [
        np.linalg.norm(w[:, 1:-1], axis=1) / gas.sound(w),
        speed[free] / gas.sound(given),
        speed[warm] / np.sqrt(gas.gamma * heat[warm]),
        speed[mass] / (density * sound),
        speed[of(SlipState, NoSlipState, IsothermalState, HeatFluxState, DensityState)] / sound,
    ]
    pressures = np.concatenate([w[:, -1], rows[free | of(ReservoirState, OutletState), 1 + d]])
    ratio = _largest(comm, pressures) * _largest(comm, 1.0 / pressures)
    driven = float(mach_of_pressure_ratio(max(ratio, 1.0), gas.gamma))
    return max(_largest(comm, np.concatenate(found)), driven, mach)


def _largest(comm: Comm, values: Array) -> float:
    """Return the largest of the values of all ranks, at least 0."""
    return float(comm.reduce(np.array([values.max(initial=0.0)]), "max")[0])
