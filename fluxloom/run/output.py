"""What a run writes, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Output"]


@dataclass(frozen=True)
class Output:
    """What a run writes.

    Attributes
    ----------
    format
        Of the fields at the end: a name of `fluxloom.mesh.io.output_format`; ``"auto"`` is VTKHDF where h5py is
        installed, else VTU; ``"none"``: there is no such file.
    pictures
        Whether pictures are drawn.
    residual
        Whether ``residual.csv`` is written.
    fields
        Which fields at the end: names, and formulas with a name (`fluxloom.run.fields.Fields.chosen`); empty: those of
        the flow.
    """

    format: str = "auto"
    pictures: bool = True
    residual: bool = True
    fields: Sequence[str] = ()
