"""Where the populations of a flow are: what conditions at walls and sides, and immersed bodies, are built on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.layout import AoS, Blocked
from fluxloom.dsl.args import Argument
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.maps import Map
from fluxloom.dsl.sets import Grid, Set
from fluxloom.lbm.box import Box
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming import Streaming

__all__ = ["Space"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Space:
    """Populations on a grid.

    Attributes
    ----------
    context, lattice, box, streaming
        What the flow was made with.
    grid
        Cells of the box and of the layer beyond its sides; periodic along all axes.
    buffers
        Copies of the populations ``g_i = f_i - w_i``, ``q`` components a cell.
    unit
        What ``g_i`` is multiplied with in memory: one, or a power of two for half precision.
    force
        Force per volume that acts in the collision, one component an axis: the same everywhere, or on the grid.
        Velocities that are set at sides include half of it.
    """

    context: Context
    lattice: Lattice
    box: Box
    grid: Grid
    streaming: Streaming
    buffers: tuple[Dat, ...]
    unit: float = 1.0
    force: Global | Dat | None = None

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

    def departed(self, over: Set, cells: Places, directions: Places, name: str) -> tuple[Argument, ...]:
        """Return the populations that left some cells as an argument of loops, one for each of `parities`.

        Parameters
        ----------
        over
            The set that the loops run over, of ``n`` elements.
        cells, directions
            Numbers in the grid, and of lattice velocities: ``(n,)``, or ``(n, legs)``.
        """
        return self._slots(self.streaming.departed, over, cells, directions, name)

    def arriving(self, over: Set, cells: Places, directions: Places, name: str) -> tuple[Argument, ...]:
        """Return the populations that will arrive at some cells, as `departed` does."""
        return self._slots(self.streaming.arriving, over, cells, directions, name)

    def _slots(
        self, places: Callable[..., tuple[Places, Places]], over: Set, cells: Places, directions: Places, name: str
    ) -> tuple[Argument, ...]:
        found: dict[tuple[bool, bool], Map] = {}
        out = []
        for parity in self.parities:
            stored = self.streaming.stored(parity)
            if stored not in found:
                at = places(self.box, self.lattice, cells, directions, parity)
                found[stored] = self.context.slots(over, self.grid, *at, name)
            out.append(self.populations(parity)[found[stored]])
        return tuple(out)

    def order(self, cells: Places, directions: Places) -> Places:
        """Return an order of links in which what arrives through them lies in memory one after the other."""
        at, component = self.streaming.arriving(self.box, self.lattice, cells, directions, 0)
        layout = self.populations(0).layout
        if isinstance(layout, AoS):
            return np.lexsort((component, at))
        if isinstance(layout, Blocked):
            return np.lexsort((at % layout.size, component, at // layout.size))
        return np.lexsort((at, component))
