"""What a case of compressible flow looks at while it runs, and at its end: mass, patches, averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.compressible_extras import SurfaceTable
from fluxloom.app.cases.flow_averages import SampleObserver
from fluxloom.app.cases.flow_monitors import AveragesTable, ForcesTable, References, wall_reference
from fluxloom.flows.compressible import Compressible
from fluxloom.fv.free_stream import FreeStream
from fluxloom.monitors.forces import Reference
from fluxloom.monitors.walls import Walls
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.compressible_forces import AerodynamicReference, SurfaceForce, SurfaceForces

__all__ = [
    "AveragesObserver", "MassBalance", "references_of", "surface_of",
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


class AveragesObserver(SampleObserver):
    """Averages of the states over time, samples count with the time since the look before; of ``steady`` flow alike."""

    def __init__(self, flow: CompressibleFlow, table: AveragesTable, *, steady: bool) -> None:
        super().__init__(flow, table.every)
        self._flow, self._table, self._steady = flow, table, steady
        from fluxloom.solvers.compressible_monitors import StateAverages

        self.averages = StateAverages(flow)

    def _sample(self) -> None:
        flow = self._flow
        if (flow.steps if self._steady else flow.time) >= self._table.start:
            self.averages.sample(1.0 if self._steady else flow.time - self._before)
        self._before = flow.time

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return means, root mean squares, and Reynolds's shear stresses."""
        if not self.averages.samples:
            return {}
        names, d = _names(self._flow), self._flow.dimension
        mean, rms, stress = self.averages.mean(), np.sqrt(self.averages.variance()), self.averages.stress()
        found = {f"{name}_mean": mean[:, k].copy() for k, name in enumerate(names)}
        found |= {f"{name}_rms": rms[:, k].copy() for k, name in enumerate(names)}
        pairs = [(i, k) for i in range(d) for k in range(i + 1, d)]
        return found | {_COMPONENTS[i] + _COMPONENTS[k]: stress[:, i, k].copy() for i, k in pairs}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how much has been averaged."""
        found = self.averages
        over = "" if self._steady else f", over a time of {found.weight:.6g}"
        return (("averages", f"{found.samples:,} samples{over}"),)


def surface_of(table: SurfaceTable, stream: FreeStream, references: References) -> Walls:
    """Return what writes the tables of ``[surface]``: one a patch, one a cut."""
    walls = Walls(
        "surface", table.patches, wall_reference(references), pressure=stream.pressure, axis=table.axis,
        cuts=table.cuts, tables={f"surface_{name}": [name] for name in table.patches}, cut="cut",
        picture="pressure.png",
    )  # fmt: skip
    walls.table = "surface"
    return walls
