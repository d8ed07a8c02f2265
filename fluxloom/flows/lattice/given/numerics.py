"""How a lattice Boltzmann flow is computed: lattice, collision, streaming, storage."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.errors import SolverError
from fluxloom.lbm import lattices
from fluxloom.lbm.collisions.operators import TRT, Collision
from fluxloom.lbm.streaming.memory import AllCells, Cells
from fluxloom.lbm.streaming.schemes import Pull, Streaming

__all__ = ["Numerics"]


@dataclass(frozen=True)
class Numerics:
    """How a lattice Boltzmann flow is computed.

    Attributes
    ----------
    lattice
        `D2Q9`, `D3Q19`, `D3Q27`, or another one; None: the first in the plane, and in space the second, or the third
        where the collision needs it.
    collision, streaming, cells
        As in `fluxloom.solvers.lattice.flow.LatticeBoltzmann`.
    precision
        In which populations are stored.
    """

    lattice: lattices.Lattice | None = None
    collision: Collision = TRT()
    streaming: Streaming = Pull()
    precision: str = "float32"
    cells: Cells = AllCells()

    def lattice_in(self, dimension: int) -> lattices.Lattice:
        """Return the lattice in so many dimensions; raise `SolverError` where it has others."""
        in_space = lattices.D3Q27 if self.collision.needs_product else lattices.D3Q19
        found = self.lattice or (lattices.D2Q9 if dimension == 2 else in_space)
        if found.dimensions != dimension:
            raise SolverError(f"{found.name} has {found.dimensions} dimensions, the mesh {dimension}")
        return found
