"""Sides on which the velocity or the pressure is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.layout import SoA
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.maps import Argument
from fluxloom.lbm.boundaries.bounce import bounce_part
from fluxloom.lbm.boundaries.cell_kernels import CELLS
from fluxloom.lbm.boundaries.column import Densities
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.boundaries.pressure_kernels import anti_bounce_back, anti_bounce_back_absorbing, remember
from fluxloom.lbm.boundaries.ramp import Ramp, check_ramp
from fluxloom.lbm.boundaries.values import Places, Scalars, Vectors, speeds_at
from fluxloom.lbm.boundaries.wall import Wall
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED
from fluxloom.lbm.space import Elements, Space

__all__ = ["Pressure", "Velocity", "cell_places", "pull_at"]


@dataclass(frozen=True)
class Velocity:
    """A side through which fluid flows with a known velocity.

    Attributes
    ----------
    value
        Cells a step, slowest axis first: one for all, an array over the cells of the side ``(..., d)``, or a function
        of positions ``(n, d)`` that returns ``(n, d)``. `Part.assign` changes it between steps.
    scheme
        ``"regularised"`` (the most stable) and ``"zou-he"`` set it at the centres of the cells at the side, whatever
        the pressure is there, and so reflect waves whole; ``"bounce-back"`` half a cell further out, where walls are:
        it sets the flow of mass, the velocity at density one, and returns ``(1 - Ma) / (1 + Ma)`` of a wave.
        Equations and sources are in `fluxloom.lbm.boundaries.cell_kernels` and `link_kernels`.
    ramp
        Steps in which the velocity grows from zero, smoothly (`fluxloom.lbm.boundaries.ramp.Ramp`), for a flow that
        begins at rest. 0: it is there from the first one.

    Raises
    ------
    SolverError
        For an unknown scheme, or a number of steps that is not whole or negative.
    """

    value: Vectors
    scheme: str = "regularised"
    ramp: int = 0
    SCHEMES: ClassVar[tuple[str, ...]] = ("regularised", "zou-he", "bounce-back")

    def __post_init__(self) -> None:
        _check_scheme("Velocity", self.scheme, self.SCHEMES)
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
        return self.scheme != "bounce-back"

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        site.side()
        if not self.on_cells:
            return bounce_part(space, site, Wall(self.value, permeable=True), ramp=self.ramp)
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
        steps = _completed(space, site, over, "velocity", self.scheme, u)
        n = len(site.links)
        if ramp is None:
            return Part(site.name, steps, links=n, begin=((),), assign=assign)
        grown = [[ramp.loop, *step] for step in steps]
        return Part(site.name, grown, links=n, begin=((ramp.begin,),), assign=assign, state=ramp.state)


@dataclass(frozen=True)
class Pressure:
    """A side on which the pressure is known, as a density: ``p = rho / 3``.

    Attributes
    ----------
    density
        One for all, an array over the cells of the side, or a function of positions ``(n, d)`` that returns ``(n,)``.
        `Part.assign` changes it between steps. One number is that in the middle of the side: under a uniform force it
        goes on along the side as in fluid at rest (`fluxloom.lbm.boundaries.column`); others are taken as they are.
    scheme
        ``"anti-bounce-back"`` sets it half a cell beyond the cells, with the velocity that comes out;
        ``"regularised"`` and ``"zou-he"`` at the centres of the cells at the side. Those two are exact in a channel,
        but reflect an oscillation from one step to the next, as an abrupt start makes it, without damping.
    velocity
        That along the side, as a `Velocity` takes it (the component across it does not matter); for the schemes on
        cells. None: zero.
    absorbing
        Whether waves leave through the side: the density goes with them, and back to what is set. Otherwise it is held
        in every step, and waves are reflected. None: where the scheme can, with anti-bounce-back. See
        `fluxloom.lbm.boundaries.pressure_kernels`.
    rate
        What is made good of the distance from the density in a step, of a side that absorbs. None: ``c_s / 4 n`` with
        ``n`` cells across the box. Mean changes of what leaves are ``1 + c_s / (rate n)`` times as slow as with a
        pressure that is held.

    Raises
    ------
    SolverError
        For an unknown scheme, a velocity with anti-bounce-back, a side that cannot absorb or a rate out of range.
    """

    density: Scalars = 1.0
    scheme: str = "anti-bounce-back"
    velocity: Vectors | None = None
    absorbing: bool | None = None
    rate: float | None = None
    SCHEMES: ClassVar[tuple[str, ...]] = ("regularised", "zou-he", "anti-bounce-back")

    def __post_init__(self) -> None:
        _check_scheme("Pressure", self.scheme, self.SCHEMES)
        if self.velocity is not None and not self.on_cells:
            raise SolverError("Pressure(velocity=...): anti-bounce-back takes the velocity from the flow; leave it out")
        if self.absorbing and self.on_cells:
            raise SolverError(f"Pressure(absorbing=True): {self.scheme} cannot; take scheme='anti-bounce-back'")
        if self.rate is not None and not self.absorbs:
            raise SolverError("Pressure(rate=...): the pressure is held in every step, as it absorbs no waves")
        if self.rate is not None and not 0 < self.rate < 1:
            raise SolverError(f"Pressure(rate={self.rate!r}): a share of the distance each step is wanted, about 0.001")

    @property
    def absorbs(self) -> bool:
        """Whether waves leave."""
        return not self.on_cells if self.absorbing is None else self.absorbing

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
        return self.scheme != "anti-bounce-back"

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        axis, _ = site.side()
        if not len(site.cells):
            return Part(site.name, [()], links=0)
        over, site = _cells(space, site)
        above = _dat(space, over, f"{site.name} density", 1)
        places = cell_places(space, site, 0.0 if self.on_cells else 0.5)
        densities = Densities(space, site, places, above, self.density, beyond=not self.on_cells)
        given: dict[str, Any] = {"assign": densities.assign, "carry": densities.carry}
        n = len(site.links)
        if not self.on_cells:
            keep = self._keep(space.box.shape[axis]) if self.absorbs else None
            steps, begin, state = _turned(space, site, over, above, keep)
            return Part(site.name, steps, links=n, begin=begin, state=state, **given)
        along = _dat(space, over, f"{site.name} velocity along", space.lattice.dimensions)
        if self.velocity is not None:
            along.write(speeds_at(self.velocity, places))
        steps = _completed(space, site, over, "density", self.scheme, above, along)
        return Part(site.name, steps, links=n, begin=((),), **given)

    def _keep(self, cells: int) -> float:
        """Return what is kept in a step of the distance from the density, in a box so many cells across."""
        return 1.0 - (self.rate if self.rate is not None else 0.25 * SOUND_SPEED_SQUARED**0.5 / cells)


def _check_scheme(what: str, scheme: str, allowed: Sequence[str]) -> None:
    if scheme not in allowed:
        raise SolverError(f"{what}(scheme={scheme!r}){did_you_mean(scheme, allowed)}: one of {', '.join(allowed)}")


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
    shape = tuple(n for a, n in enumerate(space.box.shape) if a != axis)
    cells = np.ravel_multi_index(tuple(at[:, a] for a in range(at.shape[1]) if a != axis), shape)
    positions = at.astype(np.float64)
    positions[:, axis] += beyond * outward
    return Places(site.name, positions, shape, cells, space.context.comm)


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


def _completed(space: Space, site: Site, over: Elements, what: str, scheme: str, *values: Dat) -> list[list[Loop]]:
    """Return the loops that complete what arrives at cells."""
    axis, outward = site.side()
    lattice, kernel = space.lattice, CELLS[what, scheme]
    tables: dict[str, Any] = {
        "velocities": lattice.velocities, "weights": lattice.weights, "opposite": lattice.opposite,
        "axis": axis, "inward": -outward, "unit": space.unit,
    }  # fmt: skip
    pull = pull_at(space, over, site.name)
    return [
        [Loop(kernel, over.set, f, *values, pull, name=f"{site.name} {kernel.name}", **tables)]
        for f in space.arriving(over, *_all(space, site.cells), f"{site.name} arriving")
    ]


_Turned: TypeAlias = tuple[list[list[Loop]], list[list[Loop]] | None, tuple[Dat, ...]]


def _turned(space: Space, site: Site, over: Elements, above: Dat, keep: float | None) -> _Turned:
    """Return loops of anti-bounce-back, what runs at the beginning, and what they remember.

    Where the next cell inwards is no fluid the cell itself stands for it.
    """
    lattice, box, (axis, outward) = space.lattice, space.box, site.side()
    shift = np.zeros(box.dimensions, dtype=np.int64)
    shift[axis] = -outward
    inwards = box.shifted(site.cells, np.broadcast_to(shift, (len(site.cells), box.dimensions)))
    further = np.where(site.is_fluid(inwards), inwards, site.cells)
    unknown = [k for k, c in enumerate(lattice.velocities) if c[axis] == -outward]
    near = space.departed(over, *_all(space, site.cells), f"{site.name} out")
    next_ = space.departed(over, *_all(space, further), f"{site.name} next")
    back = space.arriving(over, site.cells[:, None], np.array(unknown)[None, :], f"{site.name} back")
    pull, name = pull_at(space, over, site.name), f"{site.name} anti-bounce-back"
    tables: dict[str, Any] = {
        "velocities": lattice.velocities, "weights": lattice.weights, "opposite": lattice.opposite,
        "unknown": unknown, "axis": axis, "unit": space.unit,
    }  # fmt: skip
    places = list(zip(near, next_, back, strict=True))
    if keep is None:
        steps = [[Loop(anti_bounce_back, over.set, a, b, above, pull, c, name=name, **tables)] for a, b, c in places]
        return steps, None, ()
    memory = _dat(space, over, f"{site.name} memory", 3)
    across: dict[str, Any] = {"axis": axis, "inward": -outward}
    tables |= {"inward": -outward}
    kernel, few = anti_bounce_back_absorbing, across | {"velocities": lattice.velocities, "unit": space.unit}
    steps = [
        [Loop(kernel, over.set, a, b, above, pull, memory, c, name=name, **tables, keep=keep)] for a, b, c in places
    ]
    begin = [[Loop(remember, over.set, a, b, pull, memory, name=f"{site.name} begin", **few)] for a, b, _ in places]
    return steps, [[*first, *step] for first, step in zip(begin, steps, strict=True)], (memory,)
