"""Cells that a message or a summary names, by their numbers in the whole mesh, on one rank or on several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.ranks.bind import Mesh

__all__ = ["Place", "cell_numbers", "first_cell", "highest_cell"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Place:
    """A cell.

    Attributes
    ----------
    cell
        Its number in the whole mesh.
    x, y
        Its centroid, metres.
    """

    cell: int
    x: float
    y: float

    def __str__(self) -> str:
        return f"cell {self.cell} at ({self.x:.6g}, {self.y:.6g})"


def cell_numbers(mesh: Mesh) -> npt.NDArray[np.int64]:
    """Return the numbers in the whole mesh of the cells that this rank owns, ``(n,)``."""
    return mesh.part.part("cells").numbers[: mesh.cells.size]


def first_cell(mesh: Mesh, chosen: npt.NDArray[np.bool_]) -> tuple[Place, int] | None:
    """Return the chosen cell with the lowest number, and how many are chosen; None if there are none. Collective.

    Parameters
    ----------
    mesh
        Whose cells they are.
    chosen : (n,) bool
        Which of the owned cells.
    """
    found = np.flatnonzero(chosen)
    best = int(found[np.argmin(cell_numbers(mesh)[found])]) if found.size else -1
    everyone = mesh.context.comm.allgather((_place(mesh, best), int(found.size)))
    places = [place for place, _ in everyone if place is not None]
    return (min(places), sum(count for _, count in everyone)) if places else None


def highest_cell(mesh: Mesh, values: FloatArray) -> tuple[float, Place] | None:
    """Return the largest value and its cell, the first of equal ones; None if there are only NaN. Collective.

    Parameters
    ----------
    mesh
        On whose cells the values are.
    values : (n,)
        Of the owned cells; NaN does not count.
    """
    good = np.flatnonzero(~np.isnan(values))
    top, best = -np.inf, -1
    if good.size:
        top = float(values[good].max())
        equal = good[values[good] == top]
        best = int(equal[np.argmin(cell_numbers(mesh)[equal])])
    everyone = mesh.context.comm.allgather((top, _place(mesh, best)))
    found = [(value, place) for value, place in everyone if place is not None]
    return min(found, key=lambda one: (-one[0], one[1])) if found else None


def _place(mesh: Mesh, cell: int) -> Place | None:
    """Return an owned cell by its local number; None for -1."""
    centres = mesh.centroids.read()
    if cell < 0:
        return None
    x, y = (float(v) for v in centres[cell])
    return Place(int(cell_numbers(mesh)[cell]), x, y)
