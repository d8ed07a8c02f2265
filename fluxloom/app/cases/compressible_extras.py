"""Tables of compressible flow for what is looked at and kept: coefficients, values on patches."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fluxloom.app.tables import Table

__all__ = ["CoefficientsTable", "SurfaceTable"]


class CoefficientsTable(Table):
    """``[forces.NAME]``: drag, lift and moment of patches; columns of ``history.csv``.

    Attributes
    ----------
    patches
        Their names; empty: the one that is called as the table.
    area, length
        What coefficients refer to; in two dimensions the area is a length.
    point
        That the moment is about, a coordinate a dimension; the origin by default.
    """

    patches: list[str] = Field(default=[])
    area: Annotated[float, Field(gt=0)] = 1.0
    length: Annotated[float, Field(gt=0)] = 1.0
    point: Annotated[list[float], Field(max_length=3)] = Field(default=[])


class SurfaceTable(Table):
    """``[surface]``: at the end, pressure and friction coefficients along patches.

    Attributes
    ----------
    patches
        ``surface_NAME.csv`` for each of them.
    axis, cuts
        In three dimensions: planes across an axis, ``cut_y_0.44.csv`` for each place along it.
    """

    patches: list[str] = Field(default=[])
    axis: Literal["x", "y", "z"] = "y"
    cuts: list[float] = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> SurfaceTable:
        if not self.patches and (extra := self.changed(("axis", "cuts"))):
            raise ValueError(f"{extra[0]} is there but patches is not: give it, or leave {extra[0]} out")
        if self.changed(("axis",)) and not self.cuts:
            raise ValueError("axis is there but cuts is not: give it, or leave axis out")
        if len(set(self.patches)) < len(self.patches) or len(set(self.cuts)) < len(self.cuts):
            raise ValueError("a patch, or a cut, is named twice")
        return self
