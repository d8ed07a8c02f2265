"""Walls: what leaves towards a wall comes back along the same way."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries.bounce import WallValues, bounce_part
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.streaming.space import Space

__all__ = ["Wall"]


@dataclass(frozen=True)
class Wall(WallValues):
    """No slip, by bounce-back; equations and sources are in `fluxloom.lbm.boundaries.link_kernels`.

    Attributes
    ----------
    velocity
        Of the wall, cells a step, slowest axis first: one for all, or a function of positions ``(n, d)`` that returns
        ``(n, d)``; on a side also an array over its cells. None: at rest, at less cost.
    interpolated
        Whether the wall is where the shape says (second order on curved walls), or half-way between cells. Links
        whose second cell is no fluid are half-way all the same; `Part.halfway` counts them. Interpolation does not
        conserve mass exactly.
    measure
        Whether the force of the fluid on the wall is summed in every step.
    center
        Point about which the torque is summed too, slowest axis first; None: it is not.
    permeable
        Whether the velocity may lead through the wall. That blows fluid in or sucks it off, and changes the mass; what
        is refused otherwise, on sides altogether, on bodies if most of it leads one way. Inlets are `Velocity`.

    Raises
    ------
    SolverError
        For a centre without ``measure``.
    """

    order = 1
    stage = 1

    def __post_init__(self) -> None:
        if self.center is not None and not self.measure:
            raise SolverError("Wall(center=...): the torque is measured with the force; give measure=True as well")

    @property
    def plain(self) -> bool:
        """Whether it is at rest, half-way, and not measured, so that all such walls are one."""
        return self.velocity is None and not self.interpolated and not self.measure

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        return bounce_part(space, site, self)
