"""Sides on which the velocity or the pressure is set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import require_strategy, strategy_name
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.bounce import WallValues, bounce_part
from fluxloom.lbm.boundaries.cell_kernels import Normal, complete
from fluxloom.lbm.boundaries.hydrostatics import Densities
from fluxloom.lbm.boundaries.in_time import AT_CELLS, AT_LINKS, InTime, Timed
from fluxloom.lbm.boundaries.openings import (
    AntiBounceBack,
    OpeningScheme,
    PressureScheme,
    RegularisedCells,
    VelocityScheme,
)
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.boundaries.pressure_kernels import Absorption, anti_bounce_back, remember
from fluxloom.lbm.boundaries.ramp import Ramp, check_ramp
from fluxloom.lbm.boundaries.values import Places, Scalars, Vectors, speeds_at
from fluxloom.lbm.streaming.space import Elements, Space

__all__ = ["Pressure", "Velocity", "cell_places", "pull_at", "timed_at"]


@dataclass(frozen=True)
class Velocity:
    """A side through which fluid flows with a known velocity.

    Attributes
    ----------
    value
        Cells a step, slowest axis first: one for all, an array over the cells of the side ``(..., d)``, or a function
        of positions ``(n, d)`` that returns ``(n, d)``. `Part.assign` changes it between steps. Or an
        `fluxloom.lbm.boundaries.in_time.InTime`, which changes by itself.
    scheme
        `RegularisedCells` (the most stable) and `ZouHe` set it at the centres of the cells at the side, whatever
        the pressure is there, and so reflect waves whole; `BounceBack` half a cell further out, where walls are:
        it sets the flow of mass, the velocity at density one, and returns ``(1 - Ma) / (1 + Ma)`` of a wave.
    ramp
        Steps in which the velocity grows from zero, smoothly (`fluxloom.lbm.boundaries.ramp.Ramp`), for a flow that
        begins at rest. 0: it is there from the first one.

    Raises
    ------
    SolverError
        For what is no scheme of a velocity, or a number of steps that is not whole or negative.
    """

    value: Vectors
    scheme: VelocityScheme = RegularisedCells()
    ramp: int = 0

    def __post_init__(self) -> None:
        require_strategy("scheme", self.scheme, VelocityScheme)
        check_ramp("Velocity", self.ramp)

    @property
    def order(self) -> int:
        """Ascending: who has the links through edges."""
        return 0 if self.on_cells else 2

    @property
    def stage(self) -> int:
        """Ascending: what runs first."""
        return 4 if self.on_cells else 1

    @property
    def on_cells(self) -> bool:
        """Whether populations are completed cell by cell, not link by link."""
        return self.scheme.on_cells

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        site.side()
        if not self.on_cells:
            return bounce_part(space, site, WallValues(self.value, permeable=True), ramp=self.ramp)
        if not len(site.cells):
            return Part(site.name, [()], links=0)
        over, site = _cells(space, site)
        u = _dat(space, over, f"{site.name} velocity", space.lattice.dimensions)
        ramp = Ramp(space, over, u, self.ramp, site.name) if self.ramp else None
        target = u if ramp is None else ramp.target
        places = cell_places(space, site)

        def assign(values: Vectors) -> None:
            target.write(speeds_at(values, places))

        assign(self.value)
        timed = timed_at(space, over, places, self.value, target, AT_CELLS)
        steps = _completed(space, site, over, self.scheme, None, u)
        given: dict[str, Any] = {"links": len(site.links), "assign": None if timed else assign, "timed": timed}
        if ramp is None:
            return Part(site.name, steps, begin=((),), **given)
        grown = [[ramp.loop, *step] for step in steps]
        return Part(site.name, grown, begin=((ramp.begin,),), state=ramp.state, **given)


@dataclass(frozen=True)
class Pressure:
    """A side on which the pressure is known, as a density: ``p = rho / 3``.

    Attributes
    ----------
    density
        One for all, an array over the cells of the side, or a function of positions ``(n, d)`` that returns ``(n,)``.
        `Part.assign` changes it between steps; or an `fluxloom.lbm.boundaries.in_time.InTime`. One number is that in
        the middle of the side: under a uniform force it goes on along the side as in fluid at rest
        (`fluxloom.lbm.boundaries.hydrostatics`); others are taken as they are.
    scheme
        `AntiBounceBack` sets it half a cell beyond the cells, with the velocity that comes out; `RegularisedCells` and
        `ZouHe` at the centres of the cells at the side. Those two are exact in a channel, but reflect an oscillation
        from one step to the next, as an abrupt start makes it, without damping.
    velocity
        That along the side, as a `Velocity` takes it (the component across it does not matter); for the schemes on
        cells. None: zero.

    Raises
    ------
    SolverError
        For what is no scheme of a pressure, or a velocity with anti-bounce-back.
    """

    density: Scalars = 1.0
    scheme: PressureScheme = AntiBounceBack()
    velocity: Vectors | None = None

    def __post_init__(self) -> None:
        require_strategy("scheme", self.scheme, PressureScheme)
        if self.velocity is not None and not self.on_cells:
            raise SolverError("Pressure(velocity=...): anti-bounce-back takes the velocity from the flow; leave it out")

    @property
    def order(self) -> int:
        """Ascending: who has the links through edges."""
        return 0 if self.on_cells else 2

    @property
    def stage(self) -> int:
        """Ascending: what runs first; walls put right what anti-bounce-back leaves at their edges."""
        return 4 if self.on_cells else 0

    @property
    def on_cells(self) -> bool:
        """Whether all populations of a cell are looked at where they arrive."""
        return self.scheme.on_cells

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        axis, _ = site.side()
        if not len(site.cells):
            return Part(site.name, [()], links=0)
        over, site = _cells(space, site)
        above = _dat(space, over, f"{site.name} density", 1)
        places = cell_places(space, site, 0.0 if self.on_cells else 0.5)
        densities = Densities(space, site, places, above, self.density, beyond=not self.on_cells)
        timed = timed_at(space, over, places, self.density, above, AT_CELLS if self.on_cells else AT_LINKS)
        given: dict[str, Any] = {"carry": densities.carry, "timed": timed}
        given["assign"] = None if timed else densities.assign
        n = len(site.links)
        if isinstance(self.scheme, AntiBounceBack):
            steps, begin, state = _turned(space, site, over, above, self.scheme.kept(space.box.shape[axis]))
            return Part(site.name, steps, links=n, begin=begin, state=state, **given)
        along = _dat(space, over, f"{site.name} velocity along", space.lattice.dimensions)
        if self.velocity is not None:
            along.write(speeds_at(self.velocity, places))
        steps = _completed(space, site, over, self.scheme, above, along)
        return Part(site.name, steps, links=n, begin=((),), **given)


def _cells(space: Space, site: Site) -> tuple[Elements, Site]:
    """Return the cells of this rank."""
    over = space.elements(site.cells, f"{site.name} cells")
    return over, replace(site, cells=over.cells)


def _dat(space: Space, over: Elements, name: str, components: int) -> Dat:
    return space.context.dat(over.set, name=name, shape=(components,), dtype=space.real, layout=SoA())


def cell_places(space: Space, site: Site, beyond: float = 0.0) -> Places:
    """Return where the values of cells are: at their centres, or ``beyond`` them."""
    axis, outward = site.side()
    at = np.stack(space.box.coordinates(site.cells), axis=-1)
    positions = at.astype(np.float64)
    positions[:, axis] += beyond * outward
    return Places(site.name, positions, *space.box.across(site.cells, axis), space.context.comm)


def timed_at(space: Space, over: Elements, places: Places, values: Any, out: Dat, delay: float) -> list[Timed]:
    """Return what sets values anew in every step: nothing where they do not change."""
    if not (isinstance(values, InTime) and values.changes):
        return []
    return [Timed(space.context, over.set, places.positions, values, out, delay)]


def pull_at(space: Space, over: Elements, name: str) -> Argument | Global:
    """Return the force at some cells as an argument of loops over them: none, the same everywhere, or their own."""
    if isinstance(space.force, Dat):
        table = space.numbers(over.cells)[:, None]
        return space.force[space.context.map(over.set, space.set, table, f"{name} in the grid", stays=True)[0]]
    if space.force is None:
        return space.context.scalar(np.zeros(space.lattice.dimensions), "no force", dtype=space.real)
    return space.force


def _all(space: Space, cells: Any) -> tuple[Any, Any]:
    """Return cells and directions of all populations of some cells."""
    return cells[:, None], np.arange(space.lattice.q)[None, :]


def _completed(
    space: Space, site: Site, over: Elements, scheme: OpeningScheme, above: Dat | None, u: Dat
) -> list[list[Loop]]:
    """Return the loops that complete what arrives at cells."""
    axis, outward = site.side()
    constants: dict[str, Any] = space.constants | {"scheme": scheme, "side": Normal(axis, -outward)}
    pull, name = pull_at(space, over, site.name), f"{site.name} {strategy_name(scheme)}"
    return [
        [Loop(complete, over.set, f, above, u, pull, name=name, **constants)]
        for f in space.arriving(over, *_all(space, site.cells), f"{site.name} arriving")
    ]


_Turned: TypeAlias = tuple[list[list[Loop]], list[list[Loop]] | None, tuple[Dat, ...]]


def _turned(space: Space, site: Site, over: Elements, above: Dat, keep: float | None) -> _Turned:
    """Return loops of anti-bounce-back, what runs at the beginning, and what they remember.

    Where the next cell inwards is no fluid the cell itself stands for it.
    """
    lattice, box, (axis, outward) = space.lattice, space.box, site.side()
    inwards = box.inwards(site.cells, axis, outward)
    further = np.where(site.is_fluid(inwards), inwards, site.cells)
    unknown = [k for k, c in enumerate(lattice.velocities) if c[axis] == -outward]
    near = space.departed(over, *_all(space, site.cells), f"{site.name} out")
    next_ = space.departed(over, *_all(space, further), f"{site.name} next")
    back = space.arriving(over, site.cells[:, None], np.array(unknown)[None, :], f"{site.name} back")
    pull, name = pull_at(space, over, site.name), f"{site.name} anti-bounce-back"
    known: dict[str, Any] = space.constants | {"side": Normal(axis, -outward)}
    constants = known | {"unknown": unknown, "absorption": None if keep is None else Absorption(keep)}
    memory = None if keep is None else _dat(space, over, f"{site.name} memory", 3)
    places = list(zip(near, next_, back, strict=True))
    steps = [
        [Loop(anti_bounce_back, over.set, a, b, above, pull, memory, c, name=name, **constants)] for a, b, c in places
    ]
    if memory is None:
        return steps, None, ()
    begin = [[Loop(remember, over.set, a, b, pull, memory, name=f"{site.name} begin", **known)] for a, b, _ in places]
    return steps, [[*first, *step] for first, step in zip(begin, steps, strict=True)], (memory,)
