"""Sets of elements: plain, a subset, a lattice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.device.base import Buffer
from fluxloom.dsl.declare.incoming import unmasked, whole
from fluxloom.dsl.declare.parts import Part, refresh_host
from fluxloom.dsl.declare.runtime import Runtime

__all__ = ["Grid", "Set", "Subset"]


class Set:
    """``size`` elements of one kind: nodes, edges, cells, rows, markers.

    Parameters
    ----------
    context
        Where data on the set lives.
    size
        Number of elements; of a part, of those that this rank owns.
    name
        Used in messages and reports.
    part
        This rank's part of the set, when there are several ranks.
    """

    def __init__(self, context: Runtime, size: int, name: str, *, part: Part | None = None) -> None:
        size = whole(size, f"the size of set {name!r}")
        if size < 0 or size >= 2**31:
            raise DatError(f"set {name!r}: size {size} is outside 0 ... 2**31 - 1")
        self.context = context
        if part is None and context.distributed and type(self) is Set:
            raise DatError(
                f"set {name!r}: there are {context.comm.size} ranks: say which elements this one has, "
                "context.set(decomposition.parts[name], name)"
            )
        self.size = size
        self.name = name
        self.plans: dict[Hashable, Any] = {}
        """Plans of loops over it, see `Context.plans`."""
        self.part = part

    @property
    def storage_size(self) -> int:
        """Number of storage places a dat on this set has."""
        return self.size if self.part is None else self.part.stored

    @property
    def executed(self) -> int:
        """Elements that loops with indirect writes run over: those owned, and what leads to them."""
        return self.size if self.part is None else self.part.executed

    @property
    def stored(self) -> int:
        """Elements that maps of this rank may lead to: those owned and those of the halo."""
        return self.size if self.part is None else self.part.stored

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Number of each element, of those that this rank owns, among those of all ranks."""
        return np.arange(self.size) if self.part is None else self.part.numbers[: self.size]

    @property
    def total(self) -> int:
        """Elements of all ranks together."""
        return self.size if self.part is None else self.part.total

    @property
    def most(self) -> int | None:
        """Elements that it can have at most, where its members may change; None: they cannot."""
        return None

    @property
    def shared(self) -> bool:
        """Whether other ranks may need values of its elements; the same on every rank."""
        return self.part is not None

    @property
    def position(self) -> npt.NDArray[np.int32] | None:
        """Storage place of each element, or None when they are in order."""
        return None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the set in NumPy values of its dats."""
        return (self.size,)

    @property
    def parent(self) -> Set:
        """The set whose dats a loop over this one sees (itself, except for a subset)."""
        return self

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.size})"


def element_numbers(parent: Set, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return element numbers, ascending, each once, from numbers or a mask.

    Raises
    ------
    DatError
        If they are no numbers of elements.
    """
    values = np.asarray(unmasked(indices, f"subset of {parent}"))
    if values.dtype == bool:
        if values.shape not in ((parent.size,), parent.shape):
            raise DatError(f"mask of shape {values.shape} does not fit {parent}")
        values = np.flatnonzero(values)
    values = np.unique(values)
    if values.size and not np.issubdtype(values.dtype, np.integer):
        raise DatError(f"subset of {parent}: element numbers must be integers, got {values.dtype}")
    values = values.astype(np.int64)
    if values.size and (values[0] < 0 or values[-1] >= parent.size):
        raise DatError(f"subset of {parent}: element {values[-1] if values[0] >= 0 else values[0]} does not exist")
    return values


def members_of_halo(parent: Set, owned: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], bool]:
    """Return the elements of the execute halo that are in a subset, and whether any halo of any rank has some.

    Each rank knows its own elements. Collective.
    """
    part = parent.part
    assert part is not None
    if isinstance(parent, Grid):
        return np.empty(0, dtype=np.int64), True  # a lattice has no execute halo
    inside = np.zeros(part.stored, dtype=np.uint8)
    inside[owned] = 1
    comm = parent.context.comm
    refresh_host(comm, part, inside)
    found = part.owned + np.flatnonzero(inside[part.owned : part.executed])
    return found, any(comm.allgather(bool(inside[part.owned :].any())))


class Subset(Set):
    """Some elements of a set; a loop over it visits them in ascending order.

    Parameters
    ----------
    parent
        The set.
    indices
        Element numbers, or a boolean mask over the set; on several ranks, of the elements that this one owns.
        Declaring a subset is collective then.
    capacity
        Elements that it may have at most, if `assign` shall change them later.

    Attributes
    ----------
    mirrored
        Whether some rank stores elements of it that another one owns.
    indices
        Element numbers, ascending.

    Raises
    ------
    DatError
        If an element does not exist, there are more than the capacity, or one is given on ranks and not on a lattice.
    """

    def __init__(self, parent: Set, indices: npt.ArrayLike, name: str = "", capacity: int | None = None) -> None:
        values = element_numbers(parent, indices)
        super().__init__(parent.context, values.size, name or f"{parent.name}[subset]")
        self._parent, self.mirrored = parent, False
        if parent.part is not None:
            halo, self.mirrored = members_of_halo(parent, values)
            values = np.append(values, halo)
        self.indices = np.ascontiguousarray(values, dtype=np.int32)
        self._capacity, self._members = capacity, None
        if capacity is not None:
            self._make_room(capacity)

    def _make_room(self, capacity: int) -> None:
        if self.context.distributed and not isinstance(self._parent, Grid):
            raise DatError(f"subset {self.name!r}: on several ranks members can change on a lattice only")
        if not isinstance(capacity, int | np.integer) or not 0 < capacity < 2**31:
            raise DatError(f"subset {self.name!r}: capacity {capacity!r} is no number of elements")
        self._members = self.context.allocate(4 * (int(capacity) + 1))
        self._keep(self.indices)

    def _keep(self, members: npt.NDArray[np.int32]) -> None:
        capacity = self._capacity or 0
        if members.size > capacity:
            raise DatError(f"subset {self.name!r}: {members.size} elements are more than its capacity {capacity}")
        self.indices, self.size = members, members.size
        stored = self.members.host(write=True).view(np.int32)
        stored[: members.size] = members
        stored[capacity] = members.size

    def assign(self, indices: npt.ArrayLike) -> None:
        """Give the subset other members; loops and chains that hold it visit them from now on.

        Parameters
        ----------
        indices
            Element numbers, or a boolean mask over the set.

        Raises
        ------
        DatError
            If it was declared without a capacity or has more members than that, or an element does not exist.
        """
        if self._capacity is None:
            raise DatError(f"subset {self.name!r}: its members cannot change; declare it with capacity=...")
        members = element_numbers(self._parent, indices).astype(np.int32)
        self.context.settle()  # what was put off has to run over the members of that time
        self._keep(members)

    @property
    def parent(self) -> Set:
        """The set it was taken from."""
        return self._parent

    @property
    def executed(self) -> int:
        """Elements that loops with indirect writes run over."""
        return self.indices.size

    @property
    def most(self) -> int | None:
        """Elements that it can have at most, where its members may change; None: they cannot."""
        return self._capacity

    @property
    def members(self) -> Buffer:
        """Members (int32) as the device sees them, where they may change; their number lies behind the last place."""
        assert self._members is not None
        return self._members


class Grid(Set):
    """A box of a lattice, slowest axis first: ``(nz, ny, nx)``, ``(ny, nx)`` or ``(nx,)``.

    On several ranks each one has a box of the lattice: `shape`, the values of dats and loops are those of the box.

    Parameters
    ----------
    shape
        Elements along each axis, of the whole lattice.
    periodic
        Axes whose neighbours wrap round.
    ghost
        Layers of storage around the box, per axis or one number for all. They are not elements:
        loops do not visit them, stencils may read them, `Dat.storage` sets them.
    reach
        How far stencils lead, per axis or one number for all. Where an axis is cut, boxes have at least that many
        layers of their neighbours' values, which loops keep up to date.
    cut
        Boxes along each axis on several ranks; by default as `fluxloom.dsl.declare.boxes.cut` chooses.
    shares
        Part of the lattice that each rank gets, as slabs: for ranks of unequal speed.

    Attributes
    ----------
    global_shape
        Shape of the whole lattice.
    offset
        Place of the first element of the box in it.
    periodic
        Axes whose neighbours wrap round inside the box: those that are periodic and not cut.
    ghost, beyond
        Layers of storage around the box, of which those towards another box hold its values; and those asked for.
    factors
        Boxes along each axis.

    Raises
    ------
    DatError
        If an option does not fit, or the lattice is too thin for so many ranks.
    """

    def __init__(
        self,
        context: Runtime,
        shape: tuple[int, ...],
        name: str,
        periodic: bool | tuple[bool, ...] = False,
        ghost: int | tuple[int, ...] = 0,
        reach: int | tuple[int, ...] = 1,
        cut: tuple[int, ...] | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:
        shape = tuple(whole(k, f"grid {name!r}: a length of shape {shape!r}") for k in shape)
        if not 1 <= len(shape) <= 3 or min(shape) < 1:
            raise DatError(f"grid {name!r}: shape {shape} must have one to three positive entries")
        n, comm = len(shape), context.comm
        wraps = (periodic,) * n if isinstance(periodic, bool) else tuple(periodic)
        layers = (ghost,) * n if isinstance(ghost, int) else tuple(ghost)
        far = (reach,) * n if isinstance(reach, int) else tuple(reach)
        if len(wraps) != n or len(layers) != n or min(layers) < 0:
            raise DatError(f"grid {name!r}: periodic and ghost need one entry for each of the {n} axes")
        if len(far) != n or min(far) < 0:
            raise DatError(f"grid {name!r}: reach needs one entry, not negative, for each of the {n} axes")
        try:
            from fluxloom.dsl.declare.boxes import box_of

            box = box_of(
                shape, comm.rank, comm.size, periodic=wraps, ghost=layers, reach=far, factors=cut, shares=shares
            )
        except DatError as error:
            raise DatError(f"grid {name!r}: {error}") from None
        super().__init__(context, prod(box.shape), name, part=box.part)
        self._box, self._wraps, self.beyond = box, wraps, layers
        self.global_shape = shape
        self.offset, self.periodic, self.ghost, self.factors = box.offset, box.periodic, box.ghost, box.factors
        if self.storage_size >= 2**31:
            raise DatError(f"grid {name!r}: {self.storage_size} storage places; more than 2**31 - 1 need more ranks")
        self._position: npt.NDArray[np.int32] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._box.shape

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Storage places along each axis: elements and ghosts."""
        return tuple(n + 2 * g for n, g in zip(self.shape, self.ghost, strict=True))

    @property
    def storage_size(self) -> int:
        """Number of storage places, ghosts included."""
        return prod(self.full_shape)

    @property
    def interior(self) -> tuple[slice, ...]:
        """Slices that cut the elements out of the full storage."""
        return tuple(slice(g, g + n) for n, g in zip(self.shape, self.ghost, strict=True))

    @property
    def window(self) -> tuple[slice, ...]:
        """Slices that cut the box out of an array over the whole lattice."""
        return self._box.window

    @property
    def coordinates(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Coordinates of the elements in the whole lattice, an array an axis that broadcasts to `shape`."""
        return tuple(np.ogrid[self.window])

    def local(self, values: npt.ArrayLike, components: tuple[int, ...] = ()) -> npt.NDArray[Any]:
        """Return the box's part of values over the whole lattice.

        Parameters
        ----------
        values
            What broadcasts to ``(*global_shape, *components)``. Values that broadcast to those of the box, which
            has other lengths where the lattice is cut, are returned as they are.
        components
            Shape of the value of one element.

        Raises
        ------
        DatError
            If they fit neither the lattice nor the box.
        """
        array, full = np.asarray(unmasked(values, f"grid {self.name!r}")), (*self.global_shape, *components)
        from fluxloom.dsl.declare.boxes import cut_values

        found = cut_values(array, full, (*self.window, *(slice(0, n) for n in components)))
        if found is None:
            raise DatError(f"grid {self.name!r}: values of shape {array.shape} do not fit the lattice, {full}")
        return found

    def check_reach(self, name: str, reach: Sequence[int], turns: bool = False) -> None:
        """Check that a stencil finds values wherever it leads.

        Parameters
        ----------
        name
            Of the stencil.
        reach
            Its largest distance along each axis.
        turns
            Whether it turns round at the ends of the last axis.

        Raises
        ------
        DatError
            If it leaves the lattice, or leads past the layers that are exchanged where an axis is cut; if there are no
            ends at which it could turn round.
        """
        last = len(reach) - 1
        if turns and (self._wraps[last] or self.beyond[last]):
            raise DatError(f"stencil {name!r}: it turns round at the ends of the last axis: no periodic one, no ghosts")
        for axis, (r, n) in enumerate(zip(reach, self.global_shape, strict=True)):
            if (self._wraps[axis] or (turns and axis == last)) and r > n:
                which = "the periodic axis" if self._wraps[axis] else "axis"
                raise DatError(f"stencil {name!r}: reach {r} is longer than {which} {axis} ({n} elements)")
            if not self._wraps[axis] and r > self.beyond[axis] and not (turns and axis == last):
                raise DatError(
                    f"stencil {name!r}: reach {r} along axis {axis} leaves the box; make the axis periodic "
                    f"or give the grid ghost={r}"
                )
            if self.factors[axis] > 1 and r > self.ghost[axis]:
                raise DatError(
                    f"stencil {name!r}: it leads {r} elements along axis {axis}, which is cut into "
                    f"{self.factors[axis]} boxes that exchange {self.ghost[axis]} layers; give the grid reach={r}"
                )

    def held(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        """Return the storage places whose values are this rank's own, their numbers, and how many all ranks have.

        Beside the elements they are the ghosts beyond ends that are not periodic; see
        `fluxloom.dsl.declare.boxes.held`.
        """
        beyond = tuple(0 if wraps else layers for wraps, layers in zip(self._wraps, self.beyond, strict=True))
        from fluxloom.dsl.declare.boxes import held

        return held(self._box, self.global_shape, beyond)

    @property
    def position(self) -> npt.NDArray[np.int32] | None:
        """Storage place of each element, or None without ghosts."""
        if not any(self.ghost):
            return None
        if self._position is None:
            places = np.arange(self.storage_size, dtype=np.int32).reshape(self.full_shape)
            self._position = np.ascontiguousarray(places[self.interior].ravel())
        return self._position
