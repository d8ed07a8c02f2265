"""Where the populations of a flow are: what conditions at walls and sides, and immersed bodies, are built on.

On several ranks each one does the cells and links of the cells that it owns. What they read and write is at most a cell
away: among its own cells, or in the layers of its neighbours' cells that it holds. There only this rank looks at what
arrives at its own cells, so that what it writes needs no message (`SlotMap.private`). What left its cells may be there
too, on its way to other ranks' cells: what changes it is sent to these (`SlotMap.returned`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import AoS, Blocked
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.sets import Grid, Set
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.lists import CellList, CellSet
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming.memory import Memory
from fluxloom.lbm.streaming.schemes import Neighbours, Streaming
from fluxloom.lbm.streaming.stored import Stored

__all__ = ["Elements", "Space"]

Places = npt.NDArray[np.int64]

REACH = 1
"""Cells between that of a link or condition and those that it reads or writes."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Cells or links of this rank, as a set that loops run over.

    Attributes
    ----------
    set
        Those that meet nothing of other ranks come first.
    which
        Their numbers among all that there are.
    cells
        Numbers in the grid of the cells, or of those at which the populations of the links arrive; ``(set.size,)``.
    """

    set: Set
    which: Places
    cells: Places


@dataclass(frozen=True)
class Space:
    """Populations on a grid, or on a list of its cells.

    Attributes
    ----------
    context, lattice, box, streaming
        What the flow was made with.
    memory
        Where values are kept.
    buffers
        Copies of the populations ``g_i = f_i - w_i``, ``q`` components a cell.
    unit
        What ``g_i`` is multiplied with in memory: one, or a power of two for half precision.
    force
        Force per volume that acts in the collision, one component an axis: the same everywhere, or on the grid.
        Velocities that are set at sides include half of it.
    weight
        The force that is the same everywhere, when the flow is made: what fluid at rest carries by its pressure.
    """

    context: Context
    lattice: Lattice
    box: Box
    memory: Memory
    streaming: Streaming
    buffers: tuple[Dat, ...]
    unit: float = 1.0
    force: Global | Dat | None = None
    weight: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.listed is not None and self.context.distributed and not self.streaming.own_cells:
            raise SolverError(
                f"cells=FluidCells() with streaming={type(self.streaming).__name__}() runs on one rank, here are "
                f"{self.context.comm.size}: a rank would write populations of cells that others own; take "
                "streaming=Pull() or ThreePhase(), or cells=AllCells()"
            )

    @property
    def grid(self) -> Grid:
        """Cells of the box and of the layer beyond its sides; periodic along all axes."""
        return self.memory.grid

    @property
    def listed(self) -> tuple[CellList, CellSet] | None:
        """The cells that are stored, and the set that they are, where those are not all."""
        return self.memory.listed

    @property
    def set(self) -> Set:
        """What populations live on: the grid, or a list of cells."""
        return self.memory.set

    @property
    def _where(self) -> Neighbours:
        return self.box if self.listed is None else self.listed[0]

    @property
    def real(self) -> str:
        """Type of what is stored beside populations: theirs, but not less than single precision."""
        return "float64" if self.buffers[0].scalar.size == 8 else "float32"

    @property
    def total(self) -> str:
        """Type of sums: double precision, unless the device has none."""
        return "float32" if self.context.device.refuses_double else "float64"

    @property
    def parities(self) -> tuple[int, ...]:
        """The numbers of steps, modulo two, at which populations are in different places."""
        same = self.populations(0) is self.populations(1) and self.streaming.stored(0) == self.streaming.stored(1)
        return (0,) if same else (0, 1)

    def populations(self, parity: int) -> Dat:
        """Return the buffer that holds the populations before a step of that parity."""
        return self.buffers[self.streaming.buffer(parity)]

    def seen(self, parity: int) -> tuple[Dat | Argument, dict[str, Any]]:
        """Return what left each cell as loops over cells see it, before a step of that parity, and their constants."""
        stored, f = self.streaming.stored(parity), self.populations(parity)
        return (f[self.memory.ahead] if stored.ahead else f), self.constants | {"stored": stored}

    @property
    def constants(self) -> dict[str, Any]:
        """What kernels that look at populations take."""
        return {"lattice": self.lattice, "unit": self.unit}

    # ------------------------------------------------------------------------------------------ ranks
    def check_cut(self) -> None:
        """Check that each rank finds what its cells at sides need; the same on every rank. Collective.

        Raises
        ------
        SolverError
            If boxes of ranks are too thin where an axis is cut.
        """
        if self.listed is not None:
            return  # cells at sides are where the next ones inwards are (`fluxloom.lbm.cells.division`)
        boxes = self.context.comm.allgather((self.grid.offset, self.grid.shape))
        for axis, (n, parts) in enumerate(zip(self.grid.global_shape, self.grid.factors, strict=True)):
            if parts == 1:
                continue
            ends = [(o[axis], o[axis] + s[axis]) for o, s in boxes]
            turned = self.box.turned and axis == self.box.dimensions - 1  # no conditions there
            closed = not self.box.periodic[axis] and not turned
            # next to a side a cell and the one further in are on one rank, and so are all cells beyond
            last = self.box.shape[axis] - 2
            thin = closed and any((low == 0 and high < 2) or (high > last + 1 and low > last) for low, high in ends)
            if thin or n < 3:
                raise SolverError(
                    f"axis {axis} of the lattice (slowest first) is cut into {parts} parts that are too thin: at sides "
                    "with conditions each needs two cells or more; take fewer ranks, or another cut"
                )

    def elements(self, cells: Places, name: str, reach: int = 0) -> Elements:
        """Return those of some cells, or of the cells of some links, that this rank owns. Collective.

        Parameters
        ----------
        cells
            Numbers in the grid ``(n,)``, the same on every rank.
        reach
            How many cells away from them is what loops over them meet, at least; by default a cell, and what left the
            one there.
        """
        reach = max(reach, REACH + any(self.streaming.stored(parity).ahead for parity in self.parities))
        if not self.context.distributed:
            return Elements(self.context.set(len(cells), name), np.arange(len(cells)), cells)
        mine = self.owns(cells)
        if self.listed is not None:
            deep = self.listed[0].alone(cells, reach)
        else:
            deep = np.ones(len(cells), dtype=bool)
            for at, n, parts in zip(self._local(cells), self.grid.shape, self.grid.factors, strict=True):
                deep &= (parts == 1) | ((at >= reach) & (at < n - reach))
        first, rest = np.flatnonzero(mine & deep), np.flatnonzero(mine & ~deep)
        which = np.concatenate([first, rest]).astype(np.int64)
        n = which.size
        part = Part(0, first.size, n, n, n, which, len(cells))
        return Elements(self.context.set(part, name), which, cells[which])

    def owns(self, cells: Places) -> npt.NDArray[np.bool_]:
        """Return which cells of the grid this rank owns."""
        if self.listed is not None:
            return self.listed[0].owns(cells)
        ends = zip(self._local(cells), self.grid.shape, strict=True)
        return np.logical_and.reduce([(at >= 0) & (at < n) for at, n in ends])

    def numbers(self, cells: Places) -> Places:
        """Return the numbers in `set` of cells that this rank has."""
        if self.listed is not None:
            return self.listed[0].numbers(cells)
        return np.ravel_multi_index(self._local(cells), self.grid.shape).astype(np.int64)

    def _local(self, cells: Places) -> tuple[Places, ...]:
        """Return the coordinates of cells in the box of this rank."""
        return tuple(x - o for x, o in zip(self.box.coordinates(cells), self.grid.offset, strict=True))

    def _stored(self, homes: Places, places: Places) -> Places:
        """Return where cells are stored: ``places``, ``(n,)`` or ``(n, legs)``, near ``homes`` of this rank."""
        grid, found = self.grid, []
        homes = homes.reshape(-1, *(1,) * (places.ndim - 1))
        axes = zip(self._local(homes), self._local(places), grid.global_shape, grid.factors, grid.ghost, strict=True)
        for home, at, n, parts, layers in axes:
            # along a cut axis what is near may be on either side, also of a lattice so thin that both are the same cell
            found.append(at if parts == 1 else home + np.mod(at - home + n // 2, n) - n // 2 + layers)
        return np.ravel_multi_index(tuple(np.broadcast_arrays(*found)), grid.full_shape).astype(np.int64)

    # ------------------------------------------------------------------------------------------ slots
    def departed(self, over: Elements, cells: Places, directions: Places, name: str) -> tuple[Argument, ...]:
        """Return the populations that left some cells as an argument of loops, one for each of `parities`.

        Parameters
        ----------
        over
            What the loops run over, ``n`` elements.
        cells, directions
            Numbers in the grid, next to those of the elements, and of lattice velocities: ``(n,)``, or ``(n, legs)``.
        """
        return self._slots(self.streaming.departed, over, cells, directions, name, private=False)

    def arriving(self, over: Elements, cells: Places, directions: Places, name: str) -> tuple[Argument, ...]:
        """Return the populations that will arrive at some cells, as `departed` does."""
        return self._slots(self.streaming.arriving, over, cells, directions, name, private=True)

    def _slots(
        self, places: Callable[..., tuple[Places, Places]], over: Elements, cells: Places, directions: Places,
        name: str, *, private: bool,
    ) -> tuple[Argument, ...]:  # fmt: skip
        """Return slots; what a loop writes through them is for this rank alone, or for those that it travels to."""
        found: dict[Stored, SlotMap] = {}
        out = []
        for parity in self.parities:
            stored = self.streaming.stored(parity)
            if stored not in found:
                at, component = places(self._where, self.lattice, cells, directions, parity)
                distributed = self.context.distributed
                cut = distributed and self.listed is None  # a list tells where its halo is
                at = self._stored(over.cells, at) if cut else at
                found[stored] = SlotMap(
                    over.set, self.set, at, component, name,
                    stored=cut, private=distributed and private, returned=distributed and not private,
                )  # fmt: skip
            out.append(self.populations(parity)[found[stored]])
        return tuple(out)

    def order(self, cells: Places, directions: Places) -> Places:
        """Return an order of links in which what arrives through them lies in memory one after the other."""
        at, component = self.streaming.arriving(self.box, self.lattice, cells, directions, 0)
        if self.listed is not None:
            at = cells  # spare places are in this order, and it is the same on any number of ranks
        layout = self.populations(0).layout
        if isinstance(layout, AoS):
            return np.lexsort((component, at))
        if isinstance(layout, Blocked):
            return np.lexsort((at % layout.size, component, at // layout.size))
        return np.lexsort((at, component))
