"""An argument of a loop: a dat or global, and the way to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fluxloom.dsl.dats import Dat, Global
    from fluxloom.dsl.maps import Map

__all__ = ["Argument"]


@dataclass(frozen=True, eq=False)
class Argument:
    """A dat seen from the driving set: directly, through a whole map, or through one leg of it."""

    data: Dat | Global
    map: Map | None = None
    leg: int = -1
