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

Where a row ends at a wall at rest and turns round (`fluxloom.lbm.box`), a place beyond its end is that of the cell
itself in the opposite direction.

Where "the memory of the cell at ``x + c_k``" is, `Neighbours` tell: all cells of a box in the order of the grid
(`fluxloom.lbm.box.Box`), or those that are fluid in a list (`fluxloom.lbm.cells.CellList`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.lbm.lattices import Lattice

__all__ = ["STREAMING", "Neighbours", "Streaming", "streaming"]

Places = npt.NDArray[np.int64]


class Neighbours(Protocol):
    """Cells of which it is known where their neighbours' values are stored."""

    def shifted(self, cells: Places, shifts: Places, /) -> Places:
        """Return where the values at some distance ``(..., dimensions)`` from cells of the grid ``(...)`` are."""
        ...

    def leave(self, cells: Places, shifts: Places, /) -> npt.NDArray[np.bool_]:
        """Return which of these ways lead out of rows at whose ends populations come back by themselves."""
        ...


@dataclass(frozen=True)
class Streaming:
    """A scheme of streaming.

    Attributes
    ----------
    name
        ``"pull"``, ``"push"``, ``"three-phase"`` or ``"in-place"``.
    buffers
        Copies of the populations that it needs. With pull and push two take turns; with three-phase streaming the
        second one holds what has streamed until it has collided.
    """

    name: str
    buffers: int

    def buffer(self, parity: int) -> int:
        """Return which buffer holds the populations between two steps."""
        return parity % 2 if self.name in ("pull", "push") else 0

    def stored(self, parity: int) -> tuple[bool, bool]:
        """Whether populations are stored where they go to, and in the slot of the opposite direction."""
        if self.name == "in-place":
            return (True, False) if parity % 2 == 0 else (False, True)
        return self.name == "push", False

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
        ahead, turned = self.stored(parity)
        return self._slots(where, lattice, cells, directions, int(ahead), turned)

    def arriving(
        self, where: Neighbours, lattice: Lattice, cells: Places, directions: Places, parity: int
    ) -> tuple[Places, Places]:
        """Return the cells and components in which the next step looks for what arrives at some cells."""
        ahead, turned = self.stored(parity)
        return self._slots(where, lattice, cells, directions, int(ahead) - 1, turned)

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


STREAMING = {
    scheme.name: scheme
    for scheme in (Streaming("pull", 2), Streaming("push", 2), Streaming("three-phase", 2), Streaming("in-place", 1))
}


def streaming(name: str) -> Streaming:
    """Return a scheme by its name.

    Raises
    ------
    SolverError
        If there is none of that name.
    """
    if name not in STREAMING:
        raise SolverError(f"streaming {name!r}{did_you_mean(name, STREAMING)} (allowed: {', '.join(STREAMING)})")
    return STREAMING[name]
