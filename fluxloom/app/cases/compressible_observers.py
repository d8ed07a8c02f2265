"""What a case of compressible flow looks at while it runs, and at its end: mass, patches, averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.compressible_march import SurfaceTable
from fluxloom.app.cases.flow_monitors import ForcesTable, References, wall_reference
from fluxloom.flows.compressible import Compressible
from fluxloom.fv.free_stream import FreeStream
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.compressible_forces import AerodynamicReference, SurfaceForce, SurfaceForces

if TYPE_CHECKING:
    from fluxloom.monitors.forces import Reference

__all__ = [
    "MassBalance", "references_of", "surface_of",
]  # fmt: skip

Array = npt.NDArray[np.float64]

_COMPONENTS = "uvw"
_WHOLE = "all patches"
_NOTHING = 1e-12
"""Part of the mass that passes all patches which is rounding."""


def references_of(flow: CompressibleFlow, stream: FreeStream, up: int) -> References:
    """Return what coefficients refer to: the free stream, where their table says nothing else.

    Parameters
    ----------
    flow, stream
        The flow, and what it is far away.
    up
        Axis from the lower to the upper side.
    """
    gas = flow.gas

    def found(table: ForcesTable) -> Reference:
        """Return the reference of a table."""
        from fluxloom.monitors.forces import Reference

        area, length = table.area or 1.0, table.length or 1.0
        drag, lift, pitch = tuple(table.drag), tuple(table.lift), ()
        if not (table.speed and drag and lift):
            far = AerodynamicReference(stream, gas, area, length, up)
            if not (drag or lift):
                pitch = (0.0, 1.0, 0.0) if far.axis == 2 else (0.0, 0.0, -1.0)
            along, across = (tuple(way.tolist()) for way in far.along)
            drag, lift = drag or along, lift or across
        speed, density = table.speed or stream.speed(gas), stream.density(gas)
        pressure = None if table.speed else stream.dynamic_pressure(gas)
        return Reference(speed, area, length, density, drag, lift, pitch, pressure)

    return found


class MassBalance(Monitor):
    """What flows through all patches together."""

    def __init__(self, run: Compressible) -> None:
        self._run, self._last = run, -1
        self._forces = SurfaceForces(run.solver, {_WHOLE: list(run.patches)})
        self._found: SurfaceForce | None = None

    def now(self) -> SurfaceForce:
        """Return what passes in the present step. Collective."""
        if self._found is None or self._last != self._run.steps:
            self._run.fluxes()
            self._forces.take()
            self._found, self._last = self._forces.collect()[_WHOLE], self._run.steps
        return self._found

    @property
    def imbalance(self) -> float:
        """Mass that leaves through all patches, as a part of what enters or leaves, whichever is more; 0: neither.

        1 where nothing enters, -1 where nothing leaves.
        """
        whole = self.now()
        return 2.0 * whole.mass / (whole.through + abs(whole.mass)) if whole.through > 0.0 else 0.0

    def columns(self) -> dict[str, float]:
        """Return the imbalance."""
        return {"mass_imbalance": self.imbalance}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the imbalance in words."""
        whole = self.now()
        if not whole.through > 0.0:
            return ()
        return (("mass", f"{whole.mass:.3e} leaves in all, {_share(whole.mass, whole.through)}"),)


def _share(mass: float, through: float) -> str:
    """Return in words what part of the mass that passes all patches leaves in all."""
    enters, leaves = 0.5 * (through - mass), 0.5 * (through + mass)
    if min(enters, leaves) <= _NOTHING * through:
        return "nothing enters" if mass > 0.0 else "nothing leaves"
    more = "what enters" if enters >= leaves else "what leaves"
    return f"{mass / max(enters, leaves):.2e} of {more}"


def _names(flow: CompressibleFlow) -> list[str]:
    """Return the names of the primitive variables."""
    return ["rho", *_COMPONENTS[: flow.dimension], "p", *(["nu_tilde"] if flow.turbulent else [])]


def surface_of(table: SurfaceTable, stream: FreeStream, references: References) -> Monitor:
    """Return what writes the tables of ``[surface]``: one a patch, one a cut."""
    from fluxloom.monitors.walls import Walls

    walls = Walls(
        "surface", table.patches, wall_reference(references), pressure=stream.pressure, axis=table.axis,
        cuts=table.cuts, tables={f"surface_{name}": [name] for name in table.patches}, cut="cut",
        picture="pressure.png",
    )  # fmt: skip
    walls.table = "surface"
    return walls
