"""Files of the fields of a lattice Boltzmann flow as image data."""

from __future__ import annotations

from fluxloom.core.errors import SolverError
from fluxloom.flows.lattice import Lattice
from fluxloom.flows.lattice_fields import fields_of, look_at
from fluxloom.flows.lattice_results import write_fields
from fluxloom.run.monitor import Monitor, Watched

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
        self._flow: Lattice | None = None

    def attach(self, run: Watched) -> None:
        """Hear of the flow."""
        if not isinstance(run.flow, Lattice):
            raise SolverError(f"image data are of a lattice, not of {type(run.flow).__name__}: take snapshots")
        self._flow = run.flow

    def stepped(self) -> None:
        """Ask for a file, where one is due."""
        flow = self._flow
        assert flow is not None
        if self.every and flow.steps % self.every == 0:
            name = f"fields_{flow.steps:08d}.vti"
            flow.beside.ask(flow.beside.snapshot, lambda: self._write_taken(flow, name))

    def _write_taken(self, flow: Lattice, name: str) -> None:
        """Write the fields of the step at which they were taken. Collective."""
        taken, units, pieces = flow.beside.snapshot, flow.units, flow.pieces
        found = fields_of(taken.velocity(), taken.density(), flow.solver.fluid, units, pieces)
        write_fields(self.folder, name, flow.solver, units, pieces, found, taken.step * units.dt, series=True)

    def finish(self) -> None:
        """Write what is left, and the last fields."""
        flow = self._flow
        assert flow is not None
        flow.beside.settle()
        if self.final:
            found = look_at(flow.solver, flow.units, flow.pieces)
            write_fields(self.folder, f"{self.folder.stem}.vti", flow.solver, flow.units, flow.pieces, found, flow.time)
