"""The tables of case files of lattice Boltzmann flow about running and writing: films, files, checkpoints, ranks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fluxloom.app.case import OutputFormat, OutputTable, PartitionTable
from fluxloom.app.tables import Table

__all__ = ["LatticeMovieTable", "LatticeOutputTable", "LatticePartitionTable"]

Number = Annotated[float, Field(ge=0)]
Steps = Annotated[int, Field(ge=0, le=10**9)]


class LatticeMovieTable(Table):
    """``[movie]``: a film of a field, in three dimensions of the plane in the middle across z.

    Attributes
    ----------
    every
        Steps between two pictures; 0: no film.
    field
        ``"speed"`` or ``"vorticity"``.
    format
        ``"gif"``, or ``"mp4"`` (needs ``pip install 'fluxloom[movie]'``).
    range
        The largest value shown; 0: 1.5 reference velocities, and 4 of these by reference length.
    rate
        Pictures a second.
    """

    every: Steps = 0
    field: Literal["speed", "vorticity"] = "vorticity"
    format: Literal["gif", "mp4"] = "gif"
    range: Number = 0.0
    rate: Annotated[int, Field(ge=1, le=100)] = 20

    @model_validator(mode="after")
    def _consistent(self) -> LatticeMovieTable:
        if not self.every and (extra := self.changed(("field", "format", "range", "rate"))):
            raise ValueError(f"{extra[0]} is there but there is no film: give every, the steps between two pictures")
        return self


class LatticeOutputTable(OutputTable):
    """``[output]``: what is written.

    Attributes
    ----------
    image
        Whether final fields are written as image data, ``final.vti``.
    every
        Steps between two files ``fields_STEP.vti``; 0: none.
    format
        The final fields as an unstructured mesh in addition; ``"none"`` by default.
    """

    format: OutputFormat = "none"
    image: bool = True

    @property
    def writes_fields(self) -> bool:
        """Whether fields are written, which need room on the disk."""
        return super().writes_fields or self.image
    every: Steps = 0


class LatticePartitionTable(PartitionTable):
    """``[partition]``: how the box is cut among several ranks.

    Attributes
    ----------
    cut
        Parts along x, y and z, as many as there are ranks in all: ``[1, 4]``. Empty: slabs across the last of the
        axes, or boxes where they have clearly less to send.
    shares
        What each rank gets of the cells, as slabs: ``"auto"``: the same, ``"measured"``: as fast as it is in a short
        trial, or a list of numbers, one a rank. With ``cut`` the slabs lie along the one axis that is cut.
    """

    cut: Annotated[list[Annotated[int, Field(ge=1)]], Field(max_length=3)] = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> LatticePartitionTable:
        if self.changed(("method",)):
            raise ValueError("there is no method: a lattice is cut into boxes; leave the key out, or give cut")
        if self.shares != "auto" and sum(parts > 1 for parts in self.cut) > 1:
            raise ValueError(f"shares are those of slabs, but cut = {self.cut} cuts more than one axis: give only one")
        return self
