"""What a lattice Boltzmann flow needs: memory, and bytes that a step moves for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.dsl.run.loop import Loop
from fluxloom.solvers.lattice.values import LatticeValues

__all__ = ["Cost", "cost_of"]


@dataclass(frozen=True)
class Cost:
    """Memory and traffic of a flow, on one rank.

    Attributes
    ----------
    cells
        Cells that a step updates: all of the grid, or those in a list.
    memory
        Bytes of populations, density, velocity and the table of neighbours, spare places included; conditions need
        little beside.
    table
        Bytes of the table of neighbours in it; none where all cells are stored.
    moved
        Bytes that a step moves at least for each of these cells: populations in and out, the force if it is a field,
        and the row of the table where the scheme of streaming reads it (in place: in every other step).
    """

    cells: int
    memory: int
    table: int
    moved: float


def cost_of(values: LatticeValues, loops: Sequence[Loop]) -> Cost:
    """Return the cost of a flow; ``loops`` are those over all cells, of an even and an odd step."""
    cells, table = values.memory.set.size, values.memory.table_bytes
    dats = [*values.space.buffers, values.excess, values.motion]
    memory = sum(dat.stride * dat.dim * dat.scalar.size for dat in dats) + table
    return Cost(cells, memory, table, sum(loop.useful_bytes for loop in loops) / 2 / max(1, cells))
