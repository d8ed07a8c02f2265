"""Walls: what leaves towards a wall comes back along the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.layout import SoA
from fluxloom.dsl.args import Argument
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.lbm.boundaries.link_kernels import LINKS
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.boundaries.ramp import Ramp
from fluxloom.lbm.boundaries.values import Places, Reals, Vectors, speeds_at
from fluxloom.lbm.links import Links
from fluxloom.lbm.space import Space

__all__ = ["Wall", "bounce_part", "link_places"]

_TIGHT = 1e-12
"""Velocity across a wall that is rounding."""

_ONE_WAY = 0.5
"""Share of what goes through the links of a body: half of it and more one way is no motion of a tight one."""


@dataclass(frozen=True)
class Wall:
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

    velocity: Vectors | None = None
    interpolated: bool = False
    measure: bool = False
    center: Sequence[float] | None = None
    permeable: bool = False
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


def link_places(space: Space, site: Site, links: Links) -> Places:
    """Return where the walls of links are."""
    at = np.stack(space.box.coordinates(links.cells), axis=-1)
    c = np.array(space.lattice.velocities)[links.directions]
    positions = at - links.fractions[:, None] * c
    if site.axis is None:
        return Places(site.name, positions, comm=space.context.comm)
    shape = tuple(n for a, n in enumerate(space.box.shape) if a != site.axis)
    rest = tuple(at[:, a] for a in range(at.shape[1]) if a != site.axis)
    return Places(site.name, positions, shape, np.ravel_multi_index(rest, shape), space.context.comm)


def bounce_part(space: Space, site: Site, wall: Wall, *, ramp: int = 0) -> Part:
    """Return bounce-back on all links of a side or body; the velocity grows in the steps of a ramp."""
    if not len(site.links):
        return Part(site.name, [()], links=0)
    order = space.order(site.links.cells, site.links.directions)
    return _Bounce(space, site, wall, site.links[order], ramp).part()


class _Bounce:
    """Bounce-back while it is built: arrays and dats of the links."""

    def __init__(self, space: Space, site: Site, wall: Wall, links: Links, ramp: int) -> None:
        self.space, self.site, self.wall, self.total, self.steps = space, site, wall, len(links), ramp
        self.over = space.elements(links.cells, f"{site.name} links")
        self.links = links = links[self.over.which]
        self.c = np.array(space.lattice.velocities)[links.directions]
        self.against = np.array(space.lattice.opposite)[links.directions]
        self.halfway = 0
        self.share, self.stretch = np.ones(len(links.cells)), np.ones(len(links.cells))
        self.second = np.zeros((0, 2), dtype=np.int64)
        if wall.interpolated:
            self._interpolate()
        comm = space.context.comm
        self.interpolated = any(comm.allgather(bool(np.any(self.share != 1.0))))
        self.halfway = sum(comm.allgather(self.halfway))

    def _interpolate(self) -> None:
        """Set the share of the first population, the second one, and what the term of the moving wall is divided by."""
        q, cells = self.links.fractions, self.links.cells
        inwards = self.space.box.shifted(cells, self.c)
        near = q < 0.5
        lacking = near & ~self.site.is_fluid(inwards)
        self.halfway = int(np.count_nonzero(lacking))
        self.share = np.where(lacking, 1.0, np.where(near, 2.0 * q, 0.5 / q))
        self.stretch = np.where(near, 1.0, 0.5 / q)
        first = np.stack([cells, self.against], axis=-1)
        ahead = np.stack([inwards, self.against], axis=-1)
        back = np.stack([cells, self.links.directions], axis=-1)
        self.second = np.where(lacking[:, None], first, np.where(near[:, None], ahead, back))

    def part(self) -> Part:
        """Return the loops, of the kernel that does what is wanted and no more."""
        space, wall, name = self.space, self.wall, self.site.name
        outs, backs = self._slots()
        measured = "" if not wall.measure else "force" if wall.center is None else "torque"
        before: list[Argument | Dat] = []
        if self.interpolated:
            before.append(self._dat(self.share, "share"))
        kick = speed = None
        if wall.velocity is not None:
            kick, speed = self._dat(np.zeros((len(self.share), 1)), "kick"), self._speed(measured)
            before.append(kick)
        before += self._moments(speed, measured)
        after, resets = self._sums(measured)
        kernel = LINKS[self.interpolated, wall.velocity is not None, measured]
        constants: dict[str, Any] = {"per": 1.0 / space.unit} if measured else {}
        over, title = self.over.set, f"{name} {kernel.name}"
        steps = [
            [*resets, Loop(kernel, over, out, *before, back, *after, name=title, **constants)]
            for out, back in zip(outs, backs, strict=True)
        ]
        force, torque = [*after, None, None][:2]
        ramp = Ramp(space, self.over, kick, self.steps, name) if self.steps and kick is not None else None
        assign = None if kick is None else self._assign(kick if ramp is None else ramp.target, speed)
        if assign is not None:
            assign(wall.velocity)
        more: dict[str, Any] = {"force": force, "torque": torque, "assign": assign, "halfway": self.halfway}
        if ramp is None:
            return Part(name, steps, links=self.total, **more)
        grown, begin = ([[first, *step] for step in steps] for first in (ramp.loop, ramp.begin))
        return Part(name, grown, links=self.total, begin=begin, state=ramp.state, **more)

    def _slots(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        links, name = self.links, self.site.name
        cells, directions = links.cells, self.against
        if self.interpolated:
            cells = np.stack([cells, self.second[:, 0]], axis=-1)
            directions = np.stack([directions, self.second[:, 1]], axis=-1)
        outs = self.space.departed(self.over, cells, directions, f"{name} out")
        return outs, self.space.arriving(self.over, links.cells, links.directions, f"{name} back")

    def _dat(self, values: npt.NDArray[Any], name: str, dtype: str = "") -> Dat:
        full = f"{self.site.name} {name}"
        return self.space.context.dat(self.over.set, values, full, dtype=dtype or self.space.real, layout=SoA())

    def _speed(self, measured: str) -> Dat | None:
        return self._dat(np.zeros(self.c.shape), "velocity") if measured else None

    def _moments(self, speed: Dat | None, measured: str) -> list[Dat]:
        """Return what the sums need: headings, velocities of a moving wall, arms."""
        if not measured:
            return []
        found = [self._dat(self.c + 1, "heading", "uint8")]
        if speed is not None:
            found.append(speed)
        if self.wall.center is not None:
            positions = link_places(self.space, self.site, self.links).positions
            found.append(self._dat(positions - self._center(positions.shape[1]), "arm"))
        return found

    def _center(self, dimensions: int) -> Reals:
        center = np.asarray(self.wall.center, dtype=np.float64)
        if center.shape != (dimensions,) or not np.all(np.isfinite(center)):
            raise SolverError(f"{self.site.name}: center={self.wall.center}: it has {dimensions} finite coordinates")
        return center

    def _sums(self, measured: str) -> tuple[list[Global], list[Reset]]:
        space, d = self.space, self.c.shape[1]
        sums = [space.context.scalar(np.zeros(d), f"{self.site.name} force", dtype=space.total)] if measured else []
        if measured == "torque":
            turns = np.zeros(1 if d == 2 else 3)
            sums.append(space.context.scalar(turns, f"{self.site.name} torque", dtype=space.total))
        return sums, [Reset(one) for one in sums]

    def _assign(self, kick: Dat, speed: Dat | None) -> Any:
        places = link_places(self.space, self.site, self.links)
        weights = np.array(self.space.lattice.weights)[self.links.directions]
        c = self.c

        def assign(values: Vectors) -> None:
            u = speeds_at(values, places)
            flux = 6.0 * weights * (c * u).sum(axis=1)
            self._check_tight(u, flux, places)
            kick.write((self.space.unit * self.stretch * flux)[:, None])
            if speed is not None:
                speed.write(u)

        return assign

    def _check_tight(self, u: Reals, flux: Reals, places: Places) -> None:
        """Raise `SolverError` if a wall that should be tight lets fluid through. Collective."""
        if self.wall.permeable:
            return
        name, axis, comm = self.site.name, self.site.axis, self.space.context.comm
        most = max(comm.allgather(0.0 if axis is None else float(np.abs(u[:, axis]).max(initial=0.0))))
        if most > _TIGHT:
            raise SolverError(
                f"{name}: the wall has a velocity of {most:.3g} across itself, which lets fluid through: walls move "
                "along themselves. Give a Velocity for an inlet, or Wall(..., permeable=True) for blowing and suction"
            )
        net, gross = (sum(comm.allgather(float(x.sum()))) for x in (flux, np.abs(flux)))
        if axis is None and abs(net) > _ONE_WAY * gross:
            way = "out of" if net > 0 else "into"
            raise SolverError(
                f"{name}: the velocity of the wall leads {way} the body all round, {abs(net):.3g} of mass a step: a "
                "surface moves along itself, or as the body does. For blowing and suction give "
                "Wall(..., permeable=True)"
            )
