"""What flows through patches: volume or mass, heat, scalars, and means over their area."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from fluxloom.run.flow import Flow
from fluxloom.run.measures import Loads, Surface
from fluxloom.run.monitor import Monitor, Watched

__all__ = ["PatchFlow"]


class PatchFlow(Monitor):
    """What flows through some patches together; out of the flow it is positive.

    Columns of the history are ``NAME.flow``, volume in a second, of a gas mass; the means over the area ``NAME.p``,
    ``NAME.total_pressure`` and, of a gas, ``NAME.T``; of shallow water instead ``NAME.depth`` and ``NAME.elevation``;
    of a gas ``NAME.heat``, the energy that leaves, which at walls is heat; and of each scalar its mean,
    ``NAME.SCALAR``, and what leaves, ``NAME.SCALAR_flux``: of a scalar alone these.

    Parameters
    ----------
    name
        Of the columns.
    patches
        By default the one of that name.
    """

    _flow: Flow
    _surface: Surface

    def __init__(self, name: str, patches: Sequence[str] = ()) -> None:
        self.name, self.called = f"patch_flow.{name}", name
        self.patches = (patches,) if isinstance(patches, str) else tuple(patches) or (name,)
        self._loads: Loads | None = None
        self._carried: Mapping[str, tuple[float, float]] = {}
        self._at = -1

    def attach(self, run: Watched) -> None:
        """Find the patches.

        Raises
        ------
        SolverError
            If there is no such patch, or the flow has no surfaces.
        """
        self._flow, self._surface = run.flow, run.flow.through(self.patches)
        self._loads, self._at = None, -1

    def now(self) -> Loads:
        """Return what passes now. Collective."""
        if self._loads is None or self._at != self._flow.steps:
            self._surface.take()
            self._loads, self._carried = self._surface.collect(), self._surface.carried()
            self._at = self._flow.steps
        return self._loads

    def columns(self) -> dict[str, float]:
        """Return what leaves, and the means."""
        loads = self.now()
        found = ({"flow": loads.flow} if self._flow.exerts else {}) | dict(loads.means)
        if not isnan(loads.energy):
            found["heat"] = loads.energy
        for name, (mean, leaves) in self._carried.items():
            found |= {name: mean, f"{name}_flux": leaves}
        return {f"{self.called}.{name}": float(value) for name, value in found.items()}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return what `columns` has, in one row."""
        short = len(self.called) + 1
        text = ", ".join(f"{name[short:]} {value:.7g}" for name, value in self.columns().items())
        return ((f"{self.called}, through", text),)
