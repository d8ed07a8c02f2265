"""Tables of compressible flow for what is looked at: values on patches."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from fluxloom.app.tables import Table

__all__ = ["SurfaceTable"]


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
