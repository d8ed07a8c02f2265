"""The tables of case files of lattice Boltzmann flow about running and writing: films, files, checkpoints, ranks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from fluxloom.cases.files.case import OutputFormat, OutputTable, PartitionTable

__all__ = ["LatticeOutputTable", "LatticePartitionTable"]

Number = Annotated[float, Field(ge=0)]
Steps = Annotated[int, Field(ge=0, le=10**9)]


class LatticeOutputTable(OutputTable):
    """``[output]``: what is written.

    Attributes
    ----------
    image
        Whether final fields are written as image data, ``final.vti``.
    every
        Steps between two files ``fields_STEP.vti``; 0: none.
    format
        The final fields as an unstructured mesh in addition; by default ``"none"``, and ``"auto"`` beside ``fields``,
        which image data do not have.
    """

    format: OutputFormat = "none"
    image: bool = True
    every: Steps = 0

    @model_validator(mode="before")
    @classmethod
    def _asked_for(cls, given: Any) -> Any:
        """Let fields that are asked for have a file."""
        return {"format": "auto"} | given if isinstance(given, dict) and given.get("fields") else given

    @property
    def writes_fields(self) -> bool:
        """Whether fields are written, which need room on the disk."""
        return super().writes_fields or self.image


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
