"""Sides on which the velocity or the pressure is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.layout import SoA
from fluxloom.dsl.args import Argument
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.lbm.boundaries.cell_kernels import CELLS, anti_bounce_back
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.boundaries.values import Places, Scalars, Vectors, scalars_at, speeds_at
from fluxloom.lbm.boundaries.wall import Wall, bounce_part
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
        ``"regularised"`` (the most stable) and ``"zou-he"`` set it at the centres of the cells at the side;
        ``"bounce-back"`` half a cell further out, where walls are, and with it the flow of mass (density one).
        Equations and sources are in `fluxloom.lbm.boundaries.cell_kernels` and `link_kernels`.

    Raises
    ------
    SolverError
        For an unknown scheme.
    """

    value: Vectors
    scheme: str = "regularised"
    SCHEMES: ClassVar[tuple[str, ...]] = ("regularised", "zou-he", "bounce-back")

    def __post_init__(self) -> None:
        _check_scheme("Velocity", self.scheme, self.SCHEMES)

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
            return bounce_part(space, site, Wall(self.value))
        if not len(site.cells):
            return Part(site.name, [()], links=0)
        over, site = _cells(space, site)
        u = _dat(space, over, f"{site.name} velocity", space.lattice.dimensions)
        places = cell_places(space, site)

        def assign(values: Vectors) -> None:
            u.write(speeds_at(values, places))

        assign(self.value)
        steps = _completed(space, site, over, "velocity", self.scheme, u)
        return Part(site.name, steps, links=len(site.links), begin=((),), assign=assign)


@dataclass(frozen=True)
class Pressure:
    """A side on which the pressure is known, as a density: ``p = rho / 3``.

    Attributes
    ----------
    density
        One for all, an array over the cells of the side, or a function of positions ``(n, d)`` that returns ``(n,)``.
        `Part.assign` changes it between steps.
    scheme
        ``"anti-bounce-back"`` sets it half a cell beyond the cells, with the velocity that comes out;
        ``"regularised"`` and ``"zou-he"`` at the centres of the cells at the side. Those two are exact in a channel,
        but reflect an oscillation from one step to the next, as an abrupt start makes it, without damping.
    velocity
        That along the side, as a `Velocity` takes it (the component across it does not matter); for the schemes on
        cells. None: zero.

    Raises
    ------
    SolverError
        For an unknown scheme, or a velocity with anti-bounce-back.
    """

    density: Scalars = 1.0
    scheme: str = "anti-bounce-back"
    velocity: Vectors | None = None
    SCHEMES: ClassVar[tuple[str, ...]] = ("regularised", "zou-he", "anti-bounce-back")

    def __post_init__(self) -> None:
        _check_scheme("Pressure", self.scheme, self.SCHEMES)
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
        return self.scheme != "anti-bounce-back"

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        axis, outward = site.side()
        if not len(site.cells):
            return Part(site.name, [()], links=0)
        over, site = _cells(space, site)
        above = _dat(space, over, f"{site.name} density", 1)
        places = cell_places(space, site, 0.0 if self.on_cells else 0.5)

        def assign(values: Scalars) -> None:
            above.write(scalars_at(values, places)[:, None] - 1.0)

        assign(self.density)
        if self.on_cells:
            along = _dat(space, over, f"{site.name} velocity along", space.lattice.dimensions)
            if self.velocity is not None:
                along.write(speeds_at(self.velocity, places))
            steps = _completed(space, site, over, "density", self.scheme, above, along)
        else:
            steps = _turned(space, site, over, axis, outward, above)
        begin = ((),) if self.on_cells else None
        return Part(site.name, steps, links=len(site.links), begin=begin, assign=assign)


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
        return space.force[space.context.map(over.set, space.grid, table, f"{name} in the grid", stays=True)[0]]
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


def _turned(space: Space, site: Site, over: Elements, axis: int, outward: int, above: Dat) -> list[list[Loop]]:
    """Return the loops of anti-bounce-back; where the next cell inwards is no fluid the cell itself stands for it."""
    lattice, box = space.lattice, space.box
    shift = np.zeros(box.dimensions, dtype=np.int64)
    shift[axis] = -outward
    inwards = box.shifted(site.cells, np.broadcast_to(shift, (len(site.cells), box.dimensions)))
    further = np.where(site.is_fluid(inwards), inwards, site.cells)
    unknown = [k for k, c in enumerate(lattice.velocities) if c[axis] == -outward]
    near = space.departed(over, *_all(space, site.cells), f"{site.name} out")
    next_ = space.departed(over, *_all(space, further), f"{site.name} next")
    back = space.arriving(over, site.cells[:, None], np.array(unknown)[None, :], f"{site.name} back")
    pull = pull_at(space, over, site.name)
    tables: dict[str, Any] = {
        "velocities": lattice.velocities, "weights": lattice.weights, "opposite": lattice.opposite,
        "unknown": unknown, "unit": space.unit,
    }  # fmt: skip
    return [
        [Loop(anti_bounce_back, over.set, a, b, above, pull, c, name=f"{site.name} anti-bounce-back", **tables)]
        for a, b, c in zip(near, next_, back, strict=True)
    ]
