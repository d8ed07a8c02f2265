"""Where a lattice Boltzmann flow keeps its values: on all cells of the grid, or on a list of those that are fluid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Layout, SoA
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import PYTHON_ONLY, Strategy
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.boxes import broadcasts
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.sets import Grid, Set
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.division import Division
from fluxloom.lbm.cells.labels import FLUID, Labels
from fluxloom.lbm.cells.lists import CellList, CellSet
from fluxloom.lbm.cells.windows import Windows
from fluxloom.lbm.lattices import Lattice

__all__ = ["AllCells", "Cells", "FluidCells", "GridMemory", "ListMemory", "Memory"]


class _Values(ABC):
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
        found = Dat(over, name=name, shape=shape, dtype=dtype, layout=layout)
        if values is not None:
            self.write(found, values)
        return found

    @abstractmethod
    def write(self, dat: Dat, values: npt.ArrayLike) -> None:
        """Set a dat to values over the box."""

    def inner(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of the cells of the box, of values of this rank's part of the grid."""
        return values[tuple(slice(0, max(0, n - o)) for n, o in zip(self._box.shape, self.grid.offset, strict=True))]


class GridMemory(_Values):
    """All cells of the box are stored, and those of the layer beyond sides that are not joined.

    Parameters
    ----------
    context, lattice, box
        What the flow was made with.
    cut, shares
        Parts on several ranks, as `fluxloom.dsl.declare.sets.Grid` takes them.

    Attributes
    ----------
    grid
        Cells of the box and of the layer.
    set
        What loops run over, and dats live on: the grid.
    listed
        None: all cells are stored.
    behind, ahead
        Stencils from each cell to those at ``-c_k`` and ``c_k`` from it; they turn round where rows of the box do.
    """

    listed: tuple[CellList, CellSet] | None = None

    def __init__(
        self, context: Context, lattice: Lattice, box: Box, cut: Sequence[int] | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        self._context, self._box = context, box
        joined = (*(True,) * (box.dimensions - 1), not box.turned)
        parts = None if cut is None else tuple(cut)
        self.grid = context.grid(box.grid_shape, "cells", periodic=joined, cut=parts, shares=shares)
        self.set: Set = self.grid
        mirror = lattice.opposite if box.turned else ()
        self.behind = context.stencil(self.grid, lattice.sources, lattice.name, mirror=mirror)
        self.ahead = context.stencil(self.grid, lattice.velocities, f"{lattice.name} ahead", mirror=mirror)

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


class ListMemory(_Values):
    """Only fluid cells are stored, and what arrives from where there is no fluid; see `fluxloom.lbm.cells.lists`.

    On several ranks each has its share of the fluid, a piece of the list. Values over the box are those of a *window*,
    this rank's box of `grid`: they come from who owns the cells, and go there.

    Parameters
    ----------
    context, lattice, box
        What the flow was made with.
    labels
        Over the grid: which cells are fluid.
    shares
        On several ranks: part of the fluid that each one gets; by default the same. Windows have the shares of the box.

    Attributes
    ----------
    grid
        Cells of the box and of the layer beyond sides that are not joined: nothing lives on it. On several ranks it is
        cut into windows: slabs, unless the box is too thin for these.
    set
        The fluid cells: what loops run over, and dats live on.
    listed
        The list, and the set.

    Raises
    ------
    SolverError
        If there are too many cells, or the shares do not fit.
    """

    def __init__(
        self, context: Context, lattice: Lattice, box: Box, labels: Labels, shares: Sequence[float] | None = None
    ) -> None:
        self._context, self._lattice, self._box = context, lattice, box
        self._windows: Windows | None = None
        comm = context.comm
        if not context.distributed:
            self.grid = context.grid(box.grid_shape, "box", periodic=True)
            self._cells = CellList(box, lattice, labels)
            own = CellSet(context, self._cells.cells.size, self._cells.spare)
            self._fluid = labels[box.inside] == FLUID
        else:
            self.grid = _windows(context, box, shares)
            division = Division(box, labels, shares if shares is not None else (1.0,) * comm.size)
            self._cells = CellList(box, lattice, labels, division, comm.rank)
            part = self._cells.part(comm, labels)
            own = CellSet(context, part.owned, self._cells.spare, part=part)
        self.listed: tuple[CellList, CellSet] | None = (self._cells, own)
        self.set: Set = own

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

    def _exchange(self) -> Windows:
        """Return what goes where when values over the box are looked at, or set. Collective when it is first wanted."""
        if self._windows is None:  # no cached property: those of several threads wait for each other
            self._windows = Windows(self._context.comm, self.grid, self._box, self._cells.cells)
        return self._windows

    def dat(
        self, name: str, components: int = 0, *, dtype: npt.DTypeLike, layout: Layout | None = None, values: Any = None
    ) -> Dat:
        """Return a dat on the cells; one number a cell by default.

        ``values`` are over the box, or broadcast to it; on several ranks each one has all of them, and nothing is sent.
        """
        found = super().dat(name, components, dtype=dtype, layout=layout)
        if values is not None:
            found.write(self._whole(values, found.shape)[self._box.coordinates(self._cells.cells)])
        return found

    def _whole(self, values: npt.ArrayLike, components: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return values over the box; raise `SolverError` if they do not broadcast to it."""
        given, whole = np.asarray(values), (*self._box.shape, *components)
        if not broadcasts(given.shape, whole):
            raise SolverError(f"values of shape {given.shape} do not fit the box, {whole}")
        return np.broadcast_to(given, whole)

    def marked(self, labels: Labels) -> Dat:
        """Return a dat that is one in the cells that are fluid: all of them."""
        return self._context.dat(self.set, np.ones(self.set.size, np.uint8), name="fluid", dtype="uint8")

    def write(self, dat: Dat, values: npt.ArrayLike) -> None:
        """Set a dat to values that broadcast to ``(*shape, *components)`` of the box.

        On several ranks also of this rank's part of the grid, and collective.
        """
        if self._context.distributed:
            dat.write(self._exchange().of(values, dat.shape))
        else:
            dat.write(self._whole(values, dat.shape)[self._fluid])

    def read(self, dat: Dat) -> npt.NDArray[Any]:
        """Return the values of the cells of the box, zero where there is no fluid.

        On several ranks those of this rank's window, whoever owns the cells; collective.
        """
        values = dat.read()
        if self._context.distributed:
            return self._exchange().over(values)
        found = np.zeros((*self._box.shape, *dat.shape), dtype=values.dtype)
        found[self._fluid] = values
        return found


def _windows(context: Context, box: Box, shares: Sequence[float] | None) -> Grid:
    """Return the grid of a box whose fluid cells are in lists, cut into a window a rank."""
    ranks = context.comm.size
    if shares is not None and len(shares) != ranks:
        raise SolverError(f"shares {tuple(shares)}: there are {ranks} ranks, give one positive number for each")
    slabs = (ranks, *(1 for _ in box.shape[1:])) if box.grid_shape[0] >= ranks else None
    return context.grid(box.grid_shape, "box", periodic=True, cut=slabs, shares=shares)


Memory: TypeAlias = GridMemory | ListMemory


@dataclass(frozen=True)
class Cells(Strategy, ABC, what="choice of cells", group="fluxloom.lattice_cells"):
    """Which cells of a box are stored and stepped, and how they are shared out among ranks.

    Attributes
    ----------
    shares
        How much of the cells each of several ranks gets; None: the same.
    layout
        Of the populations; None: one array a direction.
    """

    shares: Sequence[float] | None = field(default=None, metadata=PYTHON_ONLY)
    layout: Layout | None = field(default=None, metadata=PYTHON_ONLY)

    @abstractmethod
    def memory(self, context: Context, lattice: Lattice, box: Box, labels: Labels) -> Memory:
        """Return where a flow keeps its values; ``labels`` tell which cells are fluid."""


@dataclass(frozen=True)
class AllCells(Cells, name="all"):
    """Every cell of the box: the fastest where most of it is fluid.

    Attributes
    ----------
    cut
        Parts along each axis on several ranks, slowest first; None: slabs, or boxes where they have less to send.
    """

    cut: Sequence[int] | None = field(default=None, metadata=PYTHON_ONLY)

    def memory(self, context: Context, lattice: Lattice, box: Box, labels: Labels) -> Memory:
        """Return a grid, with a layer beyond sides that are not joined."""
        return GridMemory(context, lattice, box, self.cut, self.shares)


@dataclass(frozen=True)
class FluidCells(Cells, name="fluid"):
    """Fluid cells alone, in a list with a table of their neighbours: memory and time go by the fluid.

    For boxes that are mostly solid. On several ranks each has a piece of the list (pull and three-phase streaming),
    which is not cut along axes.
    """

    def memory(self, context: Context, lattice: Lattice, box: Box, labels: Labels) -> Memory:
        """Return a list of the fluid cells."""
        return ListMemory(context, lattice, box, labels, self.shares)
