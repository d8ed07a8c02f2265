"""Films of a field in a plane, ``speed.gif``: pictures that are drawn while the flow goes on, where its device can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.monitors.raster import Raster
from fluxloom.run.flow import Flow
from fluxloom.run.measures import Frames
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.movies import Movie
from fluxloom.run.results.results import ResultFolder

__all__ = ["Film"]

Array = npt.NDArray[np.float64]


class Film(Monitor):
    """A film of a field; of a volume in the middle across z.

    Parameters
    ----------
    field
        ``"speed"``, ``"vorticity"`` (of a volume and values at points its component out of the plane), or another
        value that the flow has at points, as ``"p"``.
    every
        Steps between two pictures.
    format
        ``"gif"``, or ``"mp4"`` (needs ``pip install 'fluxloom[movie]'``).
    most
        The largest value shown; 0: what the flow says, of speed and vorticity where it knows what is usual.
    least
        The least value shown; None: 0, or of fields with both signs ``-most``.
    rate
        Pictures a second.

    Raises
    ------
    SolverError
        When it is attached to a run: if there is no such field, or ``most`` has to be given.
    """

    name, remembers = "movie", ("frames",)

    def __init__(
        self, field: str = "vorticity", every: int = 100, format: Literal["gif", "mp4"] = "gif", *, most: float = 0.0,
        least: float | None = None, rate: int = 20,
    ) -> None:  # fmt: skip
        if every < 1:
            raise SolverError(f"film: every: steps between two pictures are wanted, at least 1, not {every!r}")
        self.field, self.every, self.format, self.most, self.least, self.rate = field, every, format, most, least, rate
        self.movie: Movie | None = None
        self._flow: Flow | None = None
        self._pictures: Frames | None = None
        self._drawn = False
        self._before: npt.NDArray[np.uint8] | None = None

    @property
    def frames(self) -> dict[str, Any]:
        """The field, and the pictures so far, one byte a pixel; on rank 0 alone. Collective."""
        if self._pictures is not None:
            self._pictures.settle()
        pictures = [] if self.movie is None else self.movie.pictures
        return {"field": self.field, "pictures": np.array(pictures, dtype=np.uint8)}

    @frames.setter
    def frames(self, frames: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self._before = frames["pictures"] if frames["field"] == self.field else None

    def attach(self, run: Watched) -> None:
        """Find the field."""
        self._flow = run.flow
        self._pictures = run.flow.frames(self.field) or Raster(run, self.field)
        self.most = self.most or self._pictures.largest
        if not self.most:
            raise SolverError(f"the largest value of {self.field!r} that is worth showing is not known: give it")

    def begin(self, folder: ResultFolder) -> None:
        """Begin the film, with the flow as it is; without the packages that it needs, it is left out."""
        super().begin(folder)
        assert self._flow is not None
        assert self._pictures is not None
        signed = self._pictures.signed
        least = self.least if self.least is not None else -self.most if signed else 0.0
        self.movie = None
        if folder.here:
            with folder.attempt(self._file, keep=False):
                path, colours = folder / self._file, "RdBu_r" if signed else "viridis"
                self.movie = Movie(path, least, self.most, colours, self.rate)
        self._drawn = self._flow.context.comm.broadcast(self.movie is not None)
        if self._before is None:
            self._ask()
        elif self.movie is not None:
            self.movie.pictures = list(self._before)

    @property
    def _file(self) -> str:
        return f"{self.field}.{self.format}"

    def _ask(self) -> None:
        if self._drawn and self._pictures is not None:
            self._pictures.ask(self._add)

    def _add(self, shown: Array | None) -> None:
        """Add a picture."""
        if shown is not None and self.movie is not None and self._pictures is not None:
            self.movie.add(shown, self._pictures.hidden)

    def stepped(self) -> None:
        """Add a picture, where it is due."""
        if self._flow is not None and self._flow.steps % self.every == 0:
            self._ask()

    def finish(self) -> None:
        """Write the film."""
        if self._pictures is not None:
            self._pictures.settle()
        if (movie := self.movie) is not None:
            self.folder.write(self._file, lambda _: movie.finish())
