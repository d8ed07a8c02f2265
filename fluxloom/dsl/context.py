"""A context: where sets, dats and loops live, and where they are declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from fluxloom.core.dtypes import AoS, Layout, SoA
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import OffsetMap, RaggedMap, TableMap
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.ragged import CSR, RaggedLayout, SlicedELL
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.declare.slots import SlotMap

__all__ = ["Context"]


class Context(Runtime):
    """Where sets, dats and loops live.

    Parameters
    ----------
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"opencl"``, ``"opencl:0"``, ``"opencl:name"`` or
        ``"reference"``, or a device object.
    threads
        Threads of the CPU device; 0: all cores of the process.
    schedule
        Choices that hold for every loop unless the loop says otherwise.
    tuning
        Whether recorded tuning results are used.
    comm
        The ranks that share the sets; a rank alone by default.
    transport
        How messages between GPUs travel: ``"host"``, ``"mpi"``, ``"nccl"``, or ``"auto"``: as was fastest for the
        messages at hand.
    overlap
        Whether loops run while messages travel. Without, the same loops wait for them: to see what overlapping gains.
    check
        Whether every loop is checked before it runs, see docs/guide/checking.md; by default if the environment says
        ``FLUXLOOM_CHECK=1``.

    Raises
    ------
    DeviceUnavailable
        If the device is unknown or something it needs is missing, and for a number of threads that none can be.
    CommError
        For an unknown transport, or a ``comm`` that is no communicator.
    """

    def _new_checker(self) -> Callable[[Any], None]:
        from fluxloom.dsl.run.checking import LoopChecker

        return LoopChecker(self)

    # ------------------------------------------------------------------------------ what suits the device
    @property
    def component_layout(self) -> Layout:
        """How many components of many elements are stored: one after the other for work items, side by side for packs.

        Neighbouring work items then read neighbouring numbers; a thread finds all components of an element together.
        """
        return SoA() if self.device.items else AoS()

    def row_layout(self, *, packed: bool = True) -> RaggedLayout:
        """Return how rows of entries are stored: in slices of as many rows as the device handles side by side.

        Parameters
        ----------
        packed
            Whether packs of a CPU handle rows side by side too. Without, its rows lie one after the other.
        """
        if self.device.items:
            return SlicedELL(32)
        return SlicedELL(8) if packed else CSR()

    # ------------------------------------------------------------------------------ declarations
    def set(self, size: int | Part, name: str) -> Set:
        """Declare a set by its size, or by this rank's part of it: on several ranks it has one."""
        if not isinstance(size, Part):
            return Set(self, size, name)
        if not self.distributed and size.owned != size.total:
            raise DatError(f"set {name!r}: there is one rank, and the part has {size.owned} of {size.total} elements")
        return Set(self, size.owned, name, part=size if self.distributed else None)

    def grid(
        self,
        shape: tuple[int, ...],
        name: str = "grid",
        *,
        periodic: bool | tuple[bool, ...] = False,
        ghost: int | tuple[int, ...] = 0,
        reach: int | tuple[int, ...] = 1,
        cut: tuple[int, ...] | None = None,
        shares: Sequence[float] | None = None,
    ) -> Grid:
        """Declare a lattice by its whole shape, slowest axis first; on several ranks each one has a box of it."""
        return Grid(self, shape, name, periodic, ghost, reach, cut, shares)

    def subset(self, parent: Set, indices: npt.ArrayLike, name: str = "", *, capacity: int | None = None) -> Subset:
        """Declare a subset by element numbers or a mask; with a capacity its members may change later."""
        return Subset(parent, indices, name, capacity)

    def map(
        self, source: Set, target: Set, table: npt.ArrayLike, name: str = "map", *, stays: bool = False
    ) -> TableMap:
        """Declare a map by its table ``(source.size, arity)``; ``stays``: to elements of this rank, on every rank."""
        return TableMap(source, target, table, name, stays)

    def ragged(
        self,
        source: Set,
        target: Set,
        offsets: npt.ArrayLike,
        indices: npt.ArrayLike,
        name: str = "ragged",
        layout: RaggedLayout | None = None,
    ) -> RaggedMap:
        """Declare a ragged map by compressed rows."""
        return RaggedMap(source, target, offsets, indices, name, layout)

    def slots(
        self,
        source: Set,
        target: Set,
        cells: npt.ArrayLike,
        components: npt.ArrayLike,
        name: str = "slots",
        *,
        stored: bool = False,
    ) -> SlotMap:
        """Declare slots: a component of an element for each leg, by tables ``(source.size, legs)`` of both."""
        return SlotMap(source, target, cells, components, name, stored=stored)

    def stencil(
        self, grid: Grid, offsets: npt.ArrayLike, name: str = "stencil", *, mirror: Sequence[int] = ()
    ) -> OffsetMap:
        """Declare a stencil by its offsets ``(legs, dimensions)``; `OffsetMap` says how it turns round at ends."""
        return OffsetMap(grid, offsets, name, mirror)

    def dat(
        self,
        over: Set,
        data: Any = None,
        name: str = "",
        *,
        shape: tuple[int, ...] | None = None,
        dtype: npt.DTypeLike | None = None,
        layout: Layout | None = None,
        copy: bool | None = None,
    ) -> Dat:
        """Declare values on a set; `Dat` says when an array's memory becomes the dat's, and when it is copied."""
        return Dat(over, data, shape=shape, dtype=dtype, layout=layout, name=name, copy=copy)

    def scalar(self, value: npt.ArrayLike = 0.0, name: str = "", *, dtype: npt.DTypeLike | None = None) -> Global:
        """Declare a global value or small array."""
        return Global(self, value, dtype=dtype, name=name)
