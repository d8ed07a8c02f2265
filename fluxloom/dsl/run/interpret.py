"""Running a loop on the reference device: the kernel as a Python function, element by element.

Min and Max take no NaN: an element whose value is NaN changes nothing, whatever comes before or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.core.dtypes import Scalar
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import BoundArgument, EntriesMap, OffsetMap, RaggedMap, TableMap
from fluxloom.dsl.declare.sets import Grid, Subset
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.bind import Bound, spreads
from fluxloom.dsl.run.check_errors import check_error, element_error
from fluxloom.kernel.analysis import used_components
from fluxloom.kernel.check.checks import Checked, index_checks
from fluxloom.kernel.check.explain import examine
from fluxloom.kernel.meaning import constant_value
from fluxloom.kernel.values import strategy_value

__all__ = ["element_values", "kernel_types", "longest_rows", "run_reference"]

Array = npt.NDArray[Any]


def run_reference(bound: Bound, constants: Mapping[str, Any]) -> None:
    """Run every element of a loop in order.

    Increments are collected in private zeroed values and added after each element, as every other
    device does; arithmetic is in the compute precision of the loop.
    """
    views = _views(bound)
    guard = index_checks(bound.lowered, kernel_types(bound), longest_rows(bound))
    kernel, numbers = bound.kernel.meaning(bound.compute.real), _numbers(bound, constants)
    elements = bound.over.indices if isinstance(bound.over, Subset) else range(bound.over.size)
    with np.errstate(all="ignore"):
        for element in elements:
            values = {v.arg.name: v.load(int(element)) for v in views}
            if guard is not None:
                _check_indices(bound, guard, int(element), values, constants)
            try:
                kernel(*values.values(), **numbers)
            except IndexError as error:
                raise element_error(bound, int(element), str(error)) from error
            for view, value in zip(views, values.values(), strict=True):
                view.store(value)
    for view in views:
        view.finish()


def _numbers(bound: Bound, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constants as the kernel sees them."""
    kernel, given, real = bound.kernel, bound.declared(constants), bound.compute.real
    values = {
        c.name: strategy_value(c.name, given[c.name], run_time=False) if c.name in kernel.signature.strategies
        else kernel.signature.value(kernel.source, c, given[c.name])
        for c in kernel.constants
    }  # fmt: skip
    return {name: constant_value(value, real) for name, value in values.items()}


def _views(bound: Bound) -> list[_View]:
    shared: dict[int, Array] = {}
    return [_View(a, bound, shared) for a in bound.arguments]


def element_values(bound: Bound) -> Callable[[int], dict[str, Array]]:
    """Return what gives the arrays that the kernel of a loop gets for an element, by parameter."""
    views = _views(bound)
    return lambda element: {view.arg.name: view.load(element) for view in views}


def kernel_types(bound: Bound) -> dict[str, Scalar]:
    """Return in which type the values of each parameter are stored."""
    return {a.name: a.data.scalar for a in bound.arguments}


def longest_rows(bound: Bound) -> dict[str, int]:
    """Return the entries of the longest row of each parameter through a ragged map, at least one."""
    rows = {a.name: a.ragged for a in bound.arguments}
    return {key: max(1, int(np.diff(m.offsets).max(initial=0))) for key, m in rows.items() if m is not None}


def _check_indices(
    bound: Bound, guard: Checked, element: int, values: Mapping[str, Array], constants: Mapping[str, Any]
) -> None:
    """Raise for an index that Python counts from the end: generated code does not."""
    given = {**values, guard.number: np.array([element])}
    found = examine(guard, given, constants, bound.compute.numpy)
    if found is not None:
        raise check_error(bound, guard, element, *found, values)


class _Extreme(np.ndarray[Any, Any]):
    """Values of an element for a Min or a Max: NaN is not stored."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if value == value:
            super().__setitem__(index, value)


class _View:
    """One argument: loads what the kernel sees of an element, stores what it left."""

    def __init__(self, arg: BoundArgument, bound: Bound, shared: dict[int, Array]) -> None:
        self.arg, self.access = arg, arg.access
        self.data = arg.data
        self.dtype = _dtype(arg.data.scalar, bound.compute)
        self.inner = () if isinstance(arg.map, SlotMap) else arg.data.shape
        """Shape of what a leg leads to."""
        self.shape = arg.data.shape or (1,)
        self.places: Array | int = 0
        self.mirror: tuple[int, ...] = arg.map.mirror if isinstance(arg.map, OffsetMap) else ()
        self.back: Array = np.zeros((), dtype=bool)
        """Whether each leg leads back to the element, as it would leave the lattice where its stencil turns round."""
        self.spread = used_components(bound.lowered, arg.name) if spreads(arg) and arg.leg < 0 else None
        if isinstance(self.data, Dat):
            if id(self.data) not in shared:
                shared[id(self.data)] = _values(self.data)
            values = shared[id(self.data)]
            self.values = values.reshape(-1) if isinstance(arg.map, SlotMap) else values
            self.data.version += self.access.writes
        else:
            self.values = np.array(self.data.value, dtype=self.data.scalar.numpy).reshape(self.shape)
            self.partial = np.full(self.shape, _neutral(self.access, self.dtype), dtype=np.float64)
            if not self.data.scalar.floating:
                self.partial = np.full(self.shape, _neutral(self.access, np.dtype(np.int64)), dtype=np.int64)

    def load(self, element: int) -> Array:
        """Return the array that the kernel gets for this element."""
        if isinstance(self.data, Global):
            if self.access is Access.READ:
                return self.values.astype(self.dtype)
            return self._started(self.shape, self.dtype)
        self.back = self._back(element)
        self.places = self._places(element)
        stored = self._turned(self.values[self.places], self.mirror)
        if self.access.reduces:
            kind = self.dtype if self.data.scalar.floating else self.data.scalar.numpy
            return self._started(self._seen(stored).shape, kind)
        return self._seen(stored).astype(self.dtype)

    def _started(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
        """Return contributions that change nothing yet."""
        values = np.full(shape, _neutral(self.access, kind), dtype=self.dtype)
        return values if self.access is Access.INC else values.view(_Extreme)

    def _seen(self, stored: Array) -> Array:
        """Scalars lose the component index when there is a leg index, and get one when there is none."""
        if not self.inner and isinstance(self.places, int):
            return np.reshape(stored, (1,))
        return np.asarray(stored)

    def store(self, value: Array) -> None:
        """Bring the kernel's result back."""
        if self.access is Access.READ:
            return
        if isinstance(self.data, Global):
            self.partial = _reduce(self.access, self.partial, value)
            return
        if isinstance(self.places, int):
            self._store_one(self.places, self._turned(value.reshape(self.inner), np.argsort(self.mirror)))
        elif self.spread is not None:
            self._store_spread(value)
        else:
            for leg, place in enumerate(self.places):
                self._store_one(int(place), value[leg])

    def _store_spread(self, value: Array) -> None:
        """Store each component at the leg through which the kernel reaches it: legs may lead to one element."""
        assert isinstance(self.places, np.ndarray)
        for leg, component in self.spread or ():
            turned = bool(self.back.size > 1 and self.back[leg or 0])
            to = (self.mirror[component[0]],) if turned else component
            with np.errstate(over="ignore"):
                self.values[(self.places[leg or 0], *to)] = value[(leg or 0, *component)]

    def _store_one(self, place: int, value: Array) -> None:
        old = self.values[place]
        with np.errstate(over="ignore"):
            new = np.asarray(value).astype(self.data.scalar.numpy)
            self.values[place] = _reduce(self.access, old, new) if self.access.reduces else new

    def finish(self) -> None:
        """Write the result back to the dat or global."""
        if self.access is Access.READ:
            return
        if isinstance(self.data, Global):
            now = np.asarray(self.data.value, dtype=self.partial.dtype).reshape(self.shape)
            total = _reduce(self.access, now, self.partial)
            with np.errstate(over="ignore"):
                self.data.value = total.reshape(self.data.shape).astype(self.data.scalar.numpy)
        else:
            version = self.data.version
            _write(self.data, self.values)
            self.data.version = version

    # ------------------------------------------------------------------------------------ places
    def _places(self, element: int) -> Array | int:
        through = self.arg.map
        if through is None:
            return int(self._offset_place(element, None))
        if isinstance(through, TableMap):
            row = self._stored_at(through.table[element])
            return row.astype(np.int64) if self.arg.leg < 0 else int(row[self.arg.leg])
        if isinstance(through, SlotMap):
            return self._slots(through, element)
        if isinstance(through, RaggedMap):
            row = through.indices[through.offsets[element] : through.offsets[element + 1]]
            return self._stored_at(row).astype(np.int64)
        if isinstance(through, EntriesMap):
            offsets = through.ragged.offsets
            return np.arange(offsets[element], offsets[element + 1])
        assert isinstance(through, OffsetMap)
        home = (0,) * len(through.offsets[0])
        if self.arg.leg >= 0:
            return int(self._offset_place(element, home if self.back else through.offsets[self.arg.leg]))
        legs = zip(through.offsets, np.broadcast_to(self.back, through.legs), strict=True)
        return np.array([self._offset_place(element, home if back else o) for o, back in legs], dtype=np.int64)

    def _back(self, element: int) -> Array:
        """Return whether each leg, or the one that is used, leads back to the element."""
        through = self.arg.map
        if not isinstance(through, OffsetMap) or not self.mirror:
            return np.zeros((), dtype=bool)
        assert isinstance(through.target, Grid)
        length, (low, high) = through.target.shape[-1], through.ends
        legs = through.offsets if self.arg.leg < 0 else through.offsets[self.arg.leg]
        at = element % length + np.array(legs)[..., -1]
        return (low & (at < 0)) | (high & (at >= length))

    def _turned(self, values: Array, order: Sequence[int] | Array) -> Array:
        """Return values with the components of legs that lead back in another order."""
        if not self.mirror or not self.back.any():
            return values
        return np.where(self.back[..., None], values[..., np.asarray(order)], values)

    def _slots(self, through: SlotMap, element: int) -> Array | int:
        """Return places in the values as one row of numbers."""
        assert isinstance(self.data, Dat)
        cells = through.cells[element] if through.stored else self._stored_at(through.cells[element])
        row = cells.astype(np.int64) * self.data.dim + through.components[element]
        return row if self.arg.leg < 0 else int(row[self.arg.leg])

    def _stored_at(self, elements: Array) -> Array:
        """Turn element numbers into storage places where `_values` holds those."""
        assert isinstance(self.data, Dat)
        position = self.data.set.position if _ghosted(self.data) else None
        return elements if position is None else position[elements]

    def _offset_place(self, element: int, offset: tuple[int, ...] | None) -> int:
        over = self.data.set if isinstance(self.data, Dat) else None
        if not isinstance(over, Grid):
            return element
        index = np.array(np.unravel_index(element, over.shape))
        index = index + np.array(offset) if offset is not None else index
        for axis, n in enumerate(over.shape):
            if over.periodic[axis]:
                index[axis] %= n
        return int(np.ravel_multi_index(tuple(index + np.array(over.ghost)), over.full_shape))


def _ghosted(dat: Dat) -> bool:
    return isinstance(dat.set, Grid) and any(dat.set.ghost)


def _values(dat: Dat) -> Array:
    """Return a copy of a dat's values by logical element (by storage place where there are ghosts or spare places)."""
    if isinstance(dat.set, Grid) and any(dat.set.ghost):
        version = dat.version
        full = np.array(dat.storage(), copy=True, order="C")
        dat.version = version
        return full.reshape(dat.set.storage_size, *dat.shape)
    if _spare(dat):
        return dat.read_places()
    return dat.read().reshape(dat.set.size, *dat.shape)


def _spare(dat: Dat) -> bool:
    """Whether maps lead to places behind the elements."""
    return not isinstance(dat.set, Grid) and dat.set.position is None and dat.set.stored > dat.set.size


def _write(dat: Dat, values: Array) -> None:
    """Set what `_values` returns."""
    if isinstance(dat.set, Grid) and _ghosted(dat):
        dat.storage()[...] = values.reshape(*dat.set.full_shape, *dat.shape)
    elif _spare(dat):
        dat.write_places(values)
    else:
        dat.write(values.reshape(*dat.set.shape, *dat.shape))


def _dtype(stored: Scalar, compute: Scalar) -> np.dtype[Any]:
    return compute.numpy if stored.floating else np.dtype(np.int64)


def _neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    if access not in (Access.MIN, Access.MAX):
        return 0
    if dtype.kind == "f":
        return np.inf if access is Access.MIN else -np.inf
    info = np.iinfo(dtype)
    return info.max if access is Access.MIN else info.min


def _reduce(access: Access, old: Array, new: Array) -> Array:
    match access:
        case Access.MIN:
            return np.where(new < old, new, old)
        case Access.MAX:
            return np.where(new > old, new, old)
    return old + new
