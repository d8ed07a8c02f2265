"""Files of the fields of a lattice Boltzmann flow as image data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.flows.lattice.fields import LatticeFields, fields_of, look_at
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.image_data import write_image

__all__ = ["LatticeImages"]


class LatticeImages(Monitor):
    """``fields_00000100.vti`` for step 100, and ``final.vti``, as image data.

    Parameters
    ----------
    every
        Steps between two files; 0: none.
    final
        Whether the last fields are written.
    """

    def __init__(self, every: int = 0, *, final: bool = True) -> None:
        self.every, self.final = every, final
        self._run: Watched | None = None

    @property
    def _flow(self) -> Lattice:
        assert self._run is not None
        assert isinstance(self._run.flow, Lattice)
        return self._run.flow

    def attach(self, run: Watched) -> None:
        """Hear of the flow."""
        if not isinstance(run.flow, Lattice):
            raise SolverError(f"image data are of a lattice, not of {type(run.flow).__name__}: take snapshots")
        self._run = run

    def stepped(self) -> None:
        """Ask for a file, where one is due."""
        if self.every and self._flow.steps % self.every == 0:
            beside, name = self._flow.beside, f"fields_{self._flow.steps:08d}.vti"
            beside.ask(beside.snapshot, lambda: self._write_taken(name))

    def _write_taken(self, name: str) -> None:
        """Write the fields of the step at which they were taken. Collective."""
        flow, taken = self._flow, self._flow.beside.snapshot
        found = fields_of(taken.velocity(), taken.density(), flow.solver.fluid, flow.units, flow.pieces)
        self._write(name, found, taken.step * flow.units.dt, series=True)

    def finish(self) -> None:
        """Write what is left, and the last fields."""
        flow = self._flow
        flow.beside.settle()
        if self.final:
            self._write(f"{self.folder.stem}.vti", look_at(flow.solver, flow.units, flow.pieces), flow.time)

    def _write(self, name: str, found: LatticeFields, time: float, *, series: bool = False) -> None:
        """Write fields, of a series or alone: they come together on rank 0 one by one. Collective."""
        flow, folder = self._flow, self.folder
        parts = {"pressure": found.pressure, "velocity": found.velocity, "vorticity": found.vorticity}
        fields = {name: flow.pieces.whole(values.astype(np.float32)) for name, values in parts.items()}
        known = {name: values for name, values in fields.items() if values is not None}
        if not known:
            return
        shown = known | {"fluid": flow.solver.fluid}

        def put(path: Path) -> None:
            write_image(path, shown, origin=flow.units.lower, spacing=flow.units.dx, time=time)

        if series:
            folder.write_at(time, name, put)
        else:
            folder.write(name, put)
