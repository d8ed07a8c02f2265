"""Streaming: how populations travel, and where one finds them between two steps.

Between two steps the populations after collision are in memory, and each of them has to arrive somewhere. For each
scheme two questions have an answer: where is population ``k`` that left cell ``x`` (`Streaming.departed`), and where
will the next step look for what arrives at ``x`` along ``k`` (`Streaming.arriving`)? Conditions at walls and sides are
written in these terms, put what arrives in its place before the step, and so know nothing of the scheme:

========== ====== ============================ ============================
scheme     parity what left ``x`` along ``k``  what arrives at ``x`` by ``k``
========== ====== ============================ ============================
pull       any    ``f_k(x)``                   ``f_k(x - c_k)``
push       any    ``f_k(x + c_k)``             ``f_k(x)``
in-place   0      ``f_k(x + c_k)``             ``f_k(x)``
in-place   1      ``f_k'(x)``                  ``f_k'(x - c_k)``
========== ====== ============================ ============================

with ``c_k' = -c_k``. Three-phase streaming (collision, streaming and moments one after the other) is as pull. The
in-place scheme is the AA pattern (P. Bailey, J. Myre, S. Walsh, D. Lilja, M. Saar, ICPP 2009): a step at parity 0 reads
and writes a cell's own memory, one at parity 1 that of its neighbours; one copy of the populations is enough, as each
place is read and written by the same cell.

Where a row ends at a wall at rest and turns round (`fluxloom.lbm.cells.box`), a place beyond its end is that of the
cell itself in the opposite direction.

Where "the memory of the cell at ``x + c_k``" is, `Neighbours` tell: all cells of a box in the order of the grid
(`fluxloom.lbm.cells.box.Box`), or those that are fluid in a list (`fluxloom.lbm.cells.lists.CellList`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.strategies import Strategy
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming.memory import Memory
from fluxloom.lbm.streaming.steps import Constants, collide, even, odd, pull, push
from fluxloom.lbm.streaming.steps_moments import macros, stream
from fluxloom.lbm.streaming.stored import Stored

__all__ = ["Buffers", "InPlace", "Neighbours", "Pass", "Pull", "Push", "Streaming", "ThreePhase"]

Places = npt.NDArray[np.int64]


class Neighbours(Protocol):
    """Cells of which it is known where their neighbours' values are stored."""

    def shifted(self, cells: Places, shifts: Places, /) -> Places:
        """Return where the values at some distance ``(..., dimensions)`` from cells of the grid ``(...)`` are."""
        ...

    def leave(self, cells: Places, shifts: Places, /) -> npt.NDArray[np.bool_]:
        """Return which of these ways lead out of rows at whose ends populations come back by themselves."""
        ...


@dataclass(frozen=True, eq=False)
class Buffers:
    """What the passes of a step read and write.

    Attributes
    ----------
    populations
        As many copies as the scheme needs.
    memory
        Which has the maps from each cell to those that populations come from, and go to.
    excess, motion
        Density less one, and velocity: of three phases.
    """

    populations: tuple[Dat, ...]
    memory: Memory
    excess: Dat
    motion: Dat


@dataclass(frozen=True, eq=False)
class Pass:
    """A pass of a step over the cells.

    Attributes
    ----------
    kernel
        Of `fluxloom.lbm.streaming.steps`.
    reads, writes
        What it takes before and behind the force of the cells.
    forced
        Whether the force acts in it.
    """

    kernel: Kernel
    reads: tuple[Any, ...]
    writes: tuple[Any, ...] = ()
    forced: bool = True

    def loop(self, over: Set | Subset, constants: Constants, field: Dat | None, **options: Any) -> Loop:
        """Return the loop over some cells; ``field`` has the force of each of them."""
        force = (field,) if self.forced else ()
        return Loop(self.kernel, over, *self.reads, *force, *self.writes, **constants.of(self.kernel), **options)


class Streaming(Strategy, ABC, what="scheme of streaming", group="fluxloom.streamings"):
    """A scheme of streaming.

    Attributes
    ----------
    buffers
        Copies of the populations that it needs. With pull and push two take turns; with three-phase streaming the
        second one holds what has streamed until it has collided.
    own_cells
        Whether a step writes to its own cells alone. In other schemes a rank writes to its copies of others' cells,
        which those of a list cannot be sent.
    """

    buffers: ClassVar[int] = 2
    own_cells: ClassVar[bool] = False

    def buffer(self, parity: int) -> int:
        """Return which buffer holds the populations between two steps."""
        return 0

    def stored(self, parity: int) -> Stored:
        """Return where the populations are between two steps."""
        return Stored()

    @abstractmethod
    def passes(self, of: Buffers) -> tuple[Sequence[Pass], Sequence[Pass]]:
        """Return what an even step does, and an odd one."""

    def departed(
        self, where: Neighbours, lattice: Lattice, cells: Places, directions: Places, parity: int
    ) -> tuple[Places, Places]:
        """Return the cells and components in which populations are that left some cells.

        Parameters
        ----------
        where
            The cells that are stored.
        cells, directions
            Numbers in the grid, and of lattice velocities; any shapes that broadcast.
        parity
            Of the number of steps done.
        """
        stored = self.stored(parity)
        return self._slots(where, lattice, cells, directions, int(stored.ahead), stored.turned)

    def arriving(
        self, where: Neighbours, lattice: Lattice, cells: Places, directions: Places, parity: int
    ) -> tuple[Places, Places]:
        """Return the cells and components in which the next step looks for what arrives at some cells."""
        stored = self.stored(parity)
        return self._slots(where, lattice, cells, directions, int(stored.ahead) - 1, stored.turned)

    @staticmethod
    def _slots(
        where: Neighbours, lattice: Lattice, cells: Places, directions: Places, shift: int, turned: bool
    ) -> tuple[Places, Places]:
        cells, directions = np.broadcast_arrays(np.asarray(cells, np.int64), np.asarray(directions, np.int64))
        velocities = np.array(lattice.velocities, dtype=np.int64)
        opposite, shifts = np.array(lattice.opposite, dtype=np.int64), shift * velocities[directions]
        components = opposite[directions] if turned else directions
        back = where.leave(cells, shifts)
        places = where.shifted(cells, np.where(back[..., None], 0, shifts))
        return places, np.where(back, opposite[components], components)


@dataclass(frozen=True)
class Pull(Streaming, name="pull"):
    """Populations arrive, collide and stay."""

    own_cells = True

    def buffer(self, parity: int) -> int:
        """Return one after the other."""
        return parity % 2

    def passes(self, of: Buffers) -> tuple[Sequence[Pass], Sequence[Pass]]:
        """Return one pass from a buffer to the other one, and one back."""
        a, b = of.populations
        return (Pass(pull, (a[of.memory.behind],), (b,)),), (Pass(pull, (b[of.memory.behind],), (a,)),)


@dataclass(frozen=True)
class Push(Streaming, name="push"):
    """Populations collide and leave."""

    def buffer(self, parity: int) -> int:
        """Return one after the other."""
        return parity % 2

    def stored(self, parity: int) -> Stored:
        """Return where the populations are: they have gone."""
        return Stored(ahead=True)

    def passes(self, of: Buffers) -> tuple[Sequence[Pass], Sequence[Pass]]:
        """Return one pass from a buffer to the other one, and one back."""
        a, b = of.populations
        return (Pass(push, (a,), (b[of.memory.ahead],)),), (Pass(push, (b,), (a[of.memory.ahead],)),)


@dataclass(frozen=True)
class ThreePhase(Streaming, name="three-phase"):
    """Streaming, moments and the collision one after the other, the moments being kept."""

    own_cells = True

    def passes(self, of: Buffers) -> tuple[Sequence[Pass], Sequence[Pass]]:
        """Return streaming into the second buffer, moments there, and the collision back into the first one."""
        a, b = of.populations
        three = (
            Pass(stream, (a[of.memory.behind],), (b,), forced=False),
            Pass(macros, (b,), (of.excess, of.motion)),
            Pass(collide, (b, of.excess, of.motion), (a,)),
        )
        return three, three


@dataclass(frozen=True)
class InPlace(Streaming, name="in-place"):
    """The AA pattern: one copy of the populations, half of the memory."""

    buffers = 1

    def stored(self, parity: int) -> Stored:
        """Return where the populations are: gone behind an odd step, in opposite slots behind an even one."""
        return Stored(turned=True) if parity % 2 else Stored(ahead=True)

    def passes(self, of: Buffers) -> tuple[Sequence[Pass], Sequence[Pass]]:
        """Return a pass over a cell's own memory, and one over that of its neighbours."""
        (f,) = of.populations
        return (Pass(even, (f,)),), (Pass(odd, (f[of.memory.ahead],)),)
