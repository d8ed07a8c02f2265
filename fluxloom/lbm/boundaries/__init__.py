"""Conditions at walls, sides and bodies of a lattice.

Each is a frozen dataclass, and becomes loops over its links or cells that put what arrives from beyond in its place
before every step. Read `part` (what a condition is at run time) and `wall` first, then `bounce`, `side` with
`openings`, `outflow`, `slip`, `sponge`; `assemble` puts them in order.
"""

from fluxloom.lbm.boundaries.assemble import Body, at_row_ends, beside_sponges, parts_of, rows_turn
from fluxloom.lbm.boundaries.openings import (
    AntiBounceBack,
    BounceBack,
    OpeningScheme,
    PressureScheme,
    RegularisedCells,
    VelocityScheme,
    ZouHe,
)
from fluxloom.lbm.boundaries.outflow import Outflow
from fluxloom.lbm.boundaries.part import Condition, Part, Site
from fluxloom.lbm.boundaries.side import Pressure, Velocity
from fluxloom.lbm.boundaries.slip import Slip
from fluxloom.lbm.boundaries.sponge import Sponge
from fluxloom.lbm.boundaries.wall import Wall

__all__ = [
    "AntiBounceBack", "Body", "BounceBack", "Condition", "OpeningScheme", "Outflow", "Part", "Pressure",
    "PressureScheme", "RegularisedCells", "Site", "Slip", "Sponge", "Velocity", "VelocityScheme", "Wall", "ZouHe",
    "at_row_ends", "beside_sponges", "parts_of", "rows_turn",
]  # fmt: skip
