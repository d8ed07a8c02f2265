"""Where a lattice Boltzmann flow keeps its values: on all cells of the grid, or on a list of those that are fluid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.layout import Layout, SoA
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import TableMap
from fluxloom.dsl.sets import Grid, Set
from fluxloom.lbm.box import Box
from fluxloom.lbm.cells import CellList, CellSet
from fluxloom.lbm.labels import FLUID, Labels
from fluxloom.lbm.lattices import Lattice

__all__ = ["CELLS", "GridMemory", "ListMemory", "Memory", "memory_of"]

CELLS = ("all", "fluid")
"""Which cells are stored."""


class _Cells(ABC):
    """What both ways of keeping values have in common."""

    grid: Grid
    set: Set
    _box: Box

    def dat(
        self, name: str, components: int = 0, *, dtype: npt.DTypeLike, layout: Layout | None = None, values: Any = None
    ) -> Dat:
        """Return a dat on the cells; one number a cell by default. ``values`` are over the box, or broadcast to it."""
        shape, over = (components,) if components else (), self.set
        layout = layout if layout is not None else SoA()
        found = over.context.dat(over, name=name, shape=shape, dtype=dtype, layout=layout)
        if values is not None:
            self.write(found, values)
        return found

    @abstractmethod
    def write(self, dat: Dat, values: npt.ArrayLike) -> None:
        """Set a dat to values over the box."""

    def inner(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of the cells of the box, of values of this rank's part of the grid."""
        return values[tuple(slice(0, max(0, n - o)) for n, o in zip(self._box.shape, self.grid.offset, strict=True))]


class GridMemory(_Cells):
    """All cells of the box are stored, and those of the layer beyond sides that are not joined.

    Parameters
    ----------
    context, lattice, box
        What the flow was made with.
    cut, shares
        Parts on several ranks, as `fluxloom.dsl.sets.Grid` takes them.

    Attributes
    ----------
    grid
        Cells of the box and of the layer.
    set
        What loops run over, and dats live on: the grid.
    listed
        None: all cells are stored.
    behind, ahead
        Stencils from each cell to those at ``-c_k`` and ``c_k`` from it.
    """

    listed: tuple[CellList, CellSet] | None = None

    def __init__(
        self, context: Context, lattice: Lattice, box: Box, cut: tuple[int, ...] | None, shares: Sequence[float] | None
    ) -> None:
        self._context, self._box = context, box
        self.grid = context.grid(box.grid_shape, "cells", periodic=True, cut=cut, shares=shares)
        self.set: Set = self.grid
        self.behind = context.stencil(self.grid, lattice.sources, lattice.name)
        self.ahead = context.stencil(self.grid, lattice.velocities, f"{lattice.name} ahead")

    @property
    def table_bytes(self) -> int:
        """Memory that a table of neighbours takes: there is none."""
        return 0

    def marked(self, labels: Labels) -> Dat:
        """Return a dat that is one in the cells that are fluid."""
        mask = (labels == FLUID).astype(np.uint8)
        return self._context.dat(self.grid, self.grid.local(mask), name="fluid", dtype="uint8")

    def write(self, dat: Dat, values: npt.ArrayLike) -> None:
        """Set a dat to values that broadcast to ``(*shape, *components)`` of the box, or of this rank's cells."""
        dat.write(self.grid.local(self._padded(np.asarray(values), dat.shape), dat.shape))

    def read(self, dat: Dat) -> npt.NDArray[Any]:
        """Return the values of the cells of the box; on several ranks of this rank's cells."""
        return self.inner(dat.read())

    def _padded(self, values: npt.NDArray[Any], components: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return values of the box with those of the last cells repeated in the layer beyond."""
        layers = [(0, n - m) for n, m in zip(self._box.grid_shape, self._box.shape, strict=True)]
        if not any(more for _, more in layers):
            return values
        axes = len(self._box.shape) + len(components)
        if values.ndim < axes:
            values = values.reshape((1,) * (axes - values.ndim) + values.shape)
        widths = [pad if values.shape[k] > 1 else (0, 0) for k, pad in enumerate(layers)]
        return np.pad(values, [*widths, *((0, 0) for _ in components)], mode="edge")


class ListMemory(_Cells):
    """Only fluid cells are stored, and what arrives from where there is no fluid; see `fluxloom.lbm.cells`.

    Parameters
    ----------
    context, lattice, box
        What the flow was made with.
    labels
        Over the grid: which cells are fluid.

    Attributes
    ----------
    grid
        Cells of the box and of the layer beyond sides that are not joined: nothing lives on it.
    set
        The fluid cells: what loops run over, and dats live on.
    listed
        The list, and the set.

    Raises
    ------
    SolverError
        On several ranks, or if there are too many cells.
    """

    def __init__(self, context: Context, lattice: Lattice, box: Box, labels: Labels) -> None:
        self._context, self._lattice, self._box = context, lattice, box
        cells = CellList(box, lattice, labels)
        own = CellSet(context, cells.cells.size, cells.spare)
        self.listed: tuple[CellList, CellSet] | None = (cells, own)
        self.set: Set = own
        self.grid = context.grid(box.grid_shape, "box", periodic=True)
        self._cells, self._fluid = cells, labels[box.inside] == FLUID

    @cached_property
    def behind(self) -> TableMap:
        """From each cell to those at ``-c_k`` from it."""
        return self._context.map(self.set, self.set, self._cells.behind, self._lattice.name)

    @cached_property
    def ahead(self) -> TableMap:
        """From each cell to those at ``c_k`` from it."""
        return self._context.map(self.set, self.set, self._cells.ahead, f"{self._lattice.name} ahead")

    @property
    def table_bytes(self) -> int:
        """Memory of the table of neighbours that a scheme of streaming needs."""
        return self._cells.ahead.nbytes

    def marked(self, labels: Labels) -> Dat:
        """Return a dat that is one in the cells that are fluid: all of them."""
        return self._context.dat(self.set, np.ones(self.set.size, np.uint8), name="fluid", dtype="uint8")

    def write(self, dat: Dat, values: npt.ArrayLike) -> None:
        """Set a dat to values that broadcast to ``(*shape, *components)`` of the box."""
        dat.write(np.broadcast_to(np.asarray(values), (*self._box.shape, *dat.shape))[self._fluid])

    def read(self, dat: Dat) -> npt.NDArray[Any]:
        """Return the values of the cells of the box; zero where there is no fluid."""
        values = dat.read()
        found = np.zeros((*self._box.shape, *dat.shape), dtype=values.dtype)
        found[self._fluid] = values
        return found


Memory: TypeAlias = GridMemory | ListMemory


def memory_of(
    cells: str,
    context: Context,
    lattice: Lattice,
    box: Box,
    labels: Labels,
    cut: tuple[int, ...] | None,
    shares: Sequence[float] | None,
) -> Memory:
    """Return where a flow keeps its values.

    Parameters
    ----------
    cells
        Of `CELLS`.

    Raises
    ------
    SolverError
        For another word, or a list of cells on several ranks.
    """
    if cells not in CELLS:
        raise SolverError(f"cells={cells!r}{did_you_mean(cells, CELLS)} (allowed: {', '.join(CELLS)})")
    if cells == "all":
        return GridMemory(context, lattice, box, cut, shares)
    return ListMemory(context, lattice, box, labels)
