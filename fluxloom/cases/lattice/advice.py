"""What may spoil a case of lattice Boltzmann flow: said by ``check``, before any step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.cases.shared.wall_motion import velocity_values
from fluxloom.core.strategies import strategy_name
from fluxloom.flows.lattice.given.units import SOUND, Units
from fluxloom.values.value import Value, vector_of

__all__ = ["advices"]

_COMPRESSIBLE = 0.18
_SLOW = 2.0
_FEW = 10.0

_SAFE = 0.4
"""What part of the Reynolds number of a cell at which coarse cavities were lost (`Collision.lost_from`) is safe: finer
ones are lost earlier, with TRT at 21 of 40 with 48 cells in space."""

_PLACES, _TIMES = 17, 33
"""Points along each axis, and times, at which formulas of velocities are looked at."""


def advices(case: LatticeCase, units: Units) -> list[str]:
    """Return what may spoil the results: compressibility, too fast or too coarse for the collision, small bodies."""
    found, fastest = [], _fastest(case, units)
    mach = fastest / units.speed / SOUND
    if mach > _COMPRESSIBLE:
        found.append(f"Mach number {mach:.2g}: errors of compressibility go with its square, {mach**2:.1%}")
    if advice := _coarse(case, fastest * units.dx / units.viscosity):
        found.append(advice)
    if units.relaxation > _SLOW:
        found.append(f"relaxation time {units.relaxation:.3g} is long, walls get worse: lower the lattice velocity")
    sizes = {f"body.{key}": body.diameter for key, body in case.body.items()} | {"particles": case.particles.diameter}
    for key, size in sizes.items():
        if 0.0 < size / units.dx < _FEW:
            found.append(f"{key}: {size / units.dx:.3g} cells across a body are few")
    return found


def _coarse(case: LatticeCase, reynolds: float) -> str:
    """Return a word about cells that are too coarse for the collision; none where they are not."""
    operator, smooth = case.lattice.collision, not case.boundary and not case.body and not case.particles.count
    lost = operator.lost_from[case.mesh.dimension - 2]
    if operator.has_subgrid or (smooth and operator.needs_product) or reynolds <= _SAFE * lost:
        return ""
    other = "" if operator.needs_product else 'collision = "cumulant" or "central", '
    return (
        f"Reynolds number of a cell {reynolds:.3g} (velocity times spacing by viscosity): with "
        f"{strategy_name(operator)} flows between walls stay finite up to {_SAFE * lost:.3g} or so (coarse cavities "
        f"were lost from {lost:.3g} on, finer ones earlier): {reynolds / (_SAFE * lost):.2g} times as many cells along "
        f"each axis, {other}or a smagorinsky constant"
    )


def _fastest(case: LatticeCase, units: Units) -> float:
    """Return the largest velocity that the case names: of reference, of sides and surfaces, of the start."""
    d = units.dimension
    given: list[Sequence[Any]] = [velocity_values(case.initial, "initial", d)]
    given += [velocity_values(side, f"boundary.{name}", d) for name, side in case.boundary.items()]
    given += [body.velocity for body in case.body.values() if len(body.velocity) == d]
    return max([units.velocity, *(_peak(vector_of(one, d), case, units) for one in given if one)])


def _peak(values: Sequence[Value], case: LatticeCase, units: Units) -> float:
    """Return the largest speed at some places of the box, and at some times until the end."""
    ends = zip(units.lower, case.mesh.shape[::-1], strict=True)
    axes = [np.linspace(low, low + n * units.dx, _PLACES) for low, n in ends]
    at = np.stack([x.ravel() for x in np.meshgrid(*axes)], axis=1)
    changes = any(value.in_time for value in values) and case.time.end
    times = np.linspace(0.0, case.time.end, _TIMES).tolist() if changes else [0.0]
    most = 0.0
    with np.errstate(all="ignore"):
        for time in times:
            parts = [np.broadcast_to(np.asarray(value.values(at, time)), len(at)) for value in values]
            speeds = np.sqrt(np.sum(np.square(parts), axis=0))
            most = max(most, float(speeds[np.isfinite(speeds)].max(initial=0.0)))
    return most
