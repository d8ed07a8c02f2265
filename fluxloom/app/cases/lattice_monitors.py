"""What a case of lattice Boltzmann flow looks at while it runs: forces, probes, films, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_monitors import ForcesTable, References, common_monitors
from fluxloom.app.cases.lattice_output_tables import LatticeMovieTable
from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.flows.lattice import Lattice
from fluxloom.flows.lattice_files import LatticeImages
from fluxloom.flows.lattice_frames import LayerPicture, Picture, PlanePicture
from fluxloom.flows.lattice_units import Units
from fluxloom.monitors.forces import Reference
from fluxloom.run.monitor import Monitor
from fluxloom.run.movies import Movie
from fluxloom.run.results.folder import ResultFolder

__all__ = ["MovieObserver", "lattice_monitors"]

Array = npt.NDArray[np.float64]
Frames = npt.NDArray[np.uint8]


def lattice_monitors(case: LatticeCase, flow: Lattice) -> list[Monitor]:
    """Return what looks at a flow."""
    films = [MovieObserver(flow, case.movie)] if case.movie.every else []
    images = LatticeImages(case.output.every, final=case.output.image)
    return [*common_monitors(case, references_in(flow.units)), *films, images]


def references_in(units: Units) -> References:
    """Return what coefficients refer to: by default velocity and length of the case, in space a circle's area."""

    def found(table: ForcesTable) -> Reference:
        length = table.length or units.length
        area = table.area or (length if units.dimension == 2 else 0.25 * np.pi * length**2)
        drag, lift = table.drag or Reference.drag, table.lift or Reference.lift
        return Reference(table.speed or units.velocity, area, length, units.density, drag, lift)

    return found


class MovieObserver(Monitor):
    """A film of a field; of a volume in the middle across z. Its pictures are drawn while the next steps run.

    On several ranks only what is seen comes together on rank 0: of wide boxes not every cell.
    """

    name, remembers = "movie", ("frames",)

    def __init__(self, flow: Lattice, table: LatticeMovieTable) -> None:
        self._flow, self._table, self._beside = flow, table, flow.beside
        self.movie: Movie | None = None
        self._picture: Picture | None = None
        self._name = ""
        self._before: Frames | None = None

    @property
    def frames(self) -> dict[str, Any]:
        """The field, and the pictures so far, one byte a pixel; on rank 0 alone. Collective."""
        self._beside.settle()
        pictures = [] if self.movie is None else self.movie.pictures
        return {"field": self._table.field, "pictures": np.array(pictures, dtype=np.uint8)}

    @frames.setter
    def frames(self, frames: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self._before = frames["pictures"] if frames["field"] == self._table.field else None

    def _made(self) -> Picture:
        """Return what the pictures are made of. Collective."""
        flow, field = self._flow, self._table.field
        if flow.dimension == 3:
            return LayerPicture(flow.solver, flow.units, field)
        return PlanePicture(flow.solver, flow.units, flow.pieces, field, self._beside.snapshot)

    def begin(self, folder: ResultFolder) -> None:
        """Begin the film, with the flow as it is; without the packages that it needs, it is left out."""
        super().begin(folder)
        table, units = self._table, self._flow.units
        signed = table.field == "vorticity" and units.dimension == 2
        least = 4.0 * units.velocity / units.length if table.field == "vorticity" else 1.5 * units.velocity
        most = table.range or least
        self._name = f"{table.field}.{table.format}"
        colours = "RdBu_r" if signed else "viridis"
        self.movie = None
        if folder.here:
            with folder.attempt(self._name, keep=False):
                self.movie = Movie(folder / self._name, -most if signed else 0.0, most, colours, table.rate)
        if not self._flow.pieces.comm.broadcast(self.movie is not None):
            return
        self._picture = self._made()
        if self._before is None:
            self._ask()
        elif self.movie is not None:
            self.movie.pictures = list(self._before)

    def _ask(self) -> None:
        if self._picture is not None:
            self._beside.ask(self._picture.taken, self._add)

    def _add(self) -> None:
        """Add the picture of the step that was taken. Collective."""
        assert self._picture is not None
        shown = self._picture.values()
        if shown is not None and self.movie is not None:
            self.movie.add(shown, self._picture.hidden)

    def stepped(self) -> None:
        """Add a picture, where it is due."""
        if self._flow.steps % self._table.every == 0:
            self._ask()

    def finish(self) -> None:
        """Write the film."""
        self._beside.settle()
        if (movie := self.movie) is not None:
            self.folder.write(self._name, lambda _: movie.finish())
