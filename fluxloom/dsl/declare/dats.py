"""Values on sets, and single values that loops read or reduce into.

Of a global each rank reduces its own elements; the ranks' results meet when somebody wants them. Between the two a
global *waits*: of a sum, rank 0 holds what there was before and what it added, the others what they added; of a minimum
or maximum, every rank its own.

The memory of a dat may be that of an array of another library, where its form fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS, Blocked, Layout, Scalar, SoA, padded, scalar
from fluxloom.core.errors import DatError, ExportError
from fluxloom.device.buffer import Buffer, RemoteBuffer, View, dense, steps
from fluxloom.dsl.declare.incoming import incoming, unmasked, whole
from fluxloom.dsl.declare.links import OPERATIONS, Reduced, kind_of, value_act
from fluxloom.dsl.declare.runtime import Runtime, among
from fluxloom.dsl.declare.sets import Grid, Set, Subset

__all__ = [
    "Dat", "Global", "check_type", "combine_ranks", "fitting_layout", "forget", "form_totals", "is_ordered",
    "note_waiting", "note_written", "open_partial", "require_total", "require_totals", "require_view",
    "total_of_ranks", "view_of",
]  # fmt: skip

def open_partial(target: Global, access: Access) -> None:
    """Let a global wait: loops are going to reduce into it."""
    context = target.context
    if not context.distributed or target.waiting is access:
        return
    if target.waiting is not None:
        form_totals(context, [target])
    if access is Access.INC and context.comm.rank:
        target.buffer.host(write=True)[:] = 0
        target.buffer.device()
    target.waiting = access
    context.waiting.append(target)


def require_total(target: Global) -> None:
    """Make a global hold the result of all ranks, and with it all others that wait; collective when it waits."""
    if target.waiting is not None:
        form_totals(target.context, target.context.waiting)


def require_totals(targets: Sequence[Global]) -> None:
    """Make some globals hold the result of all ranks; the others wait on. Collective when one of them waits."""
    if targets:
        form_totals(targets[0].context, targets)


def forget(target: Global) -> None:
    """Let a global wait no longer: it is given a new value, the same on every rank."""
    if target.waiting is not None:
        target.waiting = None
        target.context.waiting = [g for g in target.context.waiting if g is not target]


def note_written(targets: Sequence[Reduced]) -> None:
    """Note that the device has reduced into some globals."""
    for target in targets:
        if isinstance(target.buffer, RemoteBuffer):
            target.buffer.written()


def form_totals(context: Runtime, targets: Sequence[Reduced]) -> None:
    """Combine what the ranks hold of those of some globals that wait, in one message; collective."""
    waiting = [g for g in context.waiting if among(g, targets)]
    if not waiting:
        return
    context.waiting = [g for g in context.waiting if not among(g, waiting)]
    combine_ranks(context, [(g, g.waiting) for g in waiting if g.waiting is not None])
    for target in waiting:
        target.waiting = None


def note_waiting(target: Global, access: Access | None) -> None:
    """Note how a global waits after a sequence that has reduced into it, or that it does not."""
    if target.waiting is access:
        return
    forget(target)
    if access is not None:
        target.waiting = access
        target.context.waiting.append(target)


def combine_ranks(context: Runtime, targets: Sequence[tuple[Reduced, Access]]) -> None:
    """Combine what the ranks hold of some globals, by the GPUs or through the host; collective.

    Through the host it takes a message for those of each type and operation.
    """
    for target, _ in targets:
        context.comm.note(target.act)
    if context.links.combine(targets):
        note_written([target for target, _ in targets])
        return
    context.device.bring([target.buffer for target, _ in targets])
    alike: dict[tuple[str, Access], list[Reduced]] = {}
    for target, access in targets:
        alike.setdefault((target.scalar.name, access), []).append(target)
    for (_, access), some in alike.items():
        found = context.comm.reduce(np.concatenate([_flat(target) for target in some]), OPERATIONS[access])
        begin = 0
        for target in some:
            target.buffer.host(write=True)
            _flat(target)[:] = found[begin : begin + target.dim]
            target.buffer.device()
            begin += target.dim


def _flat(target: Reduced) -> np.ndarray:
    return target.buffer.host().view(target.scalar.numpy)[: target.dim]


def total_of_ranks(
    context: Runtime, mine: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the sum over all ranks; in a context with ``deterministic="global"`` one that does not depend on them.

    Collective.

    Parameters
    ----------
    mine : (k,)
        The sum of this rank.
    rows : (n, k)
        What it is the sum of.
    """
    if context.schedule.deterministic != "global":
        return context.comm.reduce(mine, "sum")
    from fluxloom.comm.exact_sums import exact_total

    return exact_total(context.comm, rows)


def view_of(dat: Dat, *, ghosts: bool = False) -> View:
    """Return where the values of an AoS or SoA dat are in its buffer: an array ``(*set.shape, *shape)``.

    Parameters
    ----------
    dat
        On a set whose elements are stored in order, or on a grid.
    ghosts
        Whether the ghosts of a grid belong to the array: then it is ``(*set.full_shape, *shape)``.
    """
    over, size = dat.set, dat.scalar.size
    full = over.full_shape if isinstance(over, Grid) else over.shape
    element, component = (1, dat.stride) if isinstance(dat.layout, SoA) else (dat.dim, 1)
    outer = [size * element * step for step in steps(full)]
    inner = [size * component * step for step in steps(dat.shape)]
    lead = full if ghosts else over.shape
    skipped = 0 if ghosts or not isinstance(over, Grid) else sum(g * s for g, s in zip(over.ghost, outer, strict=True))
    return View((*lead, *dat.shape), dat.scalar.numpy, (*outer, *inner), skipped)


def is_ordered(dat: Dat) -> bool:
    """Whether the values of a dat are in an order that an array can have."""
    return not isinstance(dat.layout, Blocked) and (dat.set.position is None or isinstance(dat.set, Grid))


def require_view(dat: Dat) -> None:
    """Raise `ExportError` when the values of a dat are in an order that no array has."""
    if not is_ordered(dat):
        raise ExportError(
            f"dat {dat.name!r} is stored in another order than NumPy's: use read() and write(), which copy"
        )


def fitting_layout(over: Set, kind: Scalar, array: Any, wanted: Layout | None) -> tuple[Layout | None, str]:
    """Return the layout in which an array's memory can be that of a dat; or None, and why there is none.

    Parameters
    ----------
    over, kind
        Set and type of the dat.
    array
        Of NumPy or another library, ``(*over.shape, *shape)``.
    wanted
        The layout that was asked for.
    """
    if over.position is not None:
        return None, f"{over.name!r} has ghosts, or elements that are stored in another order"
    if array.dtype != kind.numpy:
        return None, f"it is of {array.dtype}, and the dat of {kind.name}"
    if isinstance(wanted, Blocked):
        return None, f"arrays have no layout {wanted}"
    shape, strides, size, lead = tuple(array.shape), tuple(array.strides), array.dtype.itemsize, len(over.shape)
    if not isinstance(wanted, SoA) and dense(shape, strides, size):
        return AoS(), ""
    by_component = dense(shape[lead:] + shape[:lead], strides[lead:] + strides[:lead], size)
    if not isinstance(wanted, AoS) and by_component:
        return SoA(), ""
    if wanted is None:
        return None, "neither the components of an element nor the elements of a component lie one after the other"
    return None, f"its values are not laid out as {wanted}"


def check_type(scalar: Scalar, context: Runtime, what: str) -> None:
    """Raise `DatError` when the device has no such type."""
    if reason := context.device.refuses(scalar):
        raise DatError(f"{what} is of {scalar.name}: {reason}")


class Global:
    """A value shared by all elements: read by loops, or reduced into with Inc, Min or Max.

    Parameters
    ----------
    value
        Initial value; a scalar or a small array.

    Raises
    ------
    DatError
        If the dtype cannot be stored, or the device has no such type.
    """

    def __init__(
        self, context: Runtime, value: npt.ArrayLike = 0.0, *, dtype: npt.DTypeLike | None = None, name: str = ""
    ) -> None:
        self.context = context
        self.name = name or "global"
        array = np.asarray(unmasked(value, f"global {self.name!r}"))
        self.shape = array.shape
        self.scalar: Scalar = scalar(dtype if dtype is not None else array.dtype)
        check_type(self.scalar, context, f"global {self.name!r}")
        self.dim = max(1, array.size)
        self.buffer = context.allocate(max(64, self.dim * self.scalar.size))
        self.waiting: Access | None = None
        """How results of the ranks will be combined when somebody wants the value; None: they have been."""
        self.version = 0
        self.act = f"value of {kind_of(self)}".encode()
        self.value = array

    def _flat(self, *, write: bool) -> npt.NDArray[Any]:
        self.context.settle(None if write else self)
        if write:
            forget(self)
        else:
            require_total(self)
        return self.buffer.host(write=write).view(self.scalar.numpy)[: self.dim]

    @property
    def value(self) -> Any:
        """The value: a NumPy scalar, or a copy of the array. On several ranks, reading it is collective."""
        flat = self._flat(write=False)
        return flat[0] if not self.shape else flat.reshape(self.shape).copy()

    @value.setter
    def value(self, value: npt.ArrayLike) -> None:
        array = incoming(value, self.scalar, f"global {self.name!r}")
        if array.shape not in (self.shape, ()):
            raise DatError(f"global {self.name!r}: a value of shape {array.shape} does not fit {self.shape}")
        self.version += 1
        if self.context.distributed:
            self.context.comm.note(b"%s = %s" % (self.act, value_act(array)))
        self._flat(write=True)[:] = array.ravel() if array.shape else array

    @staticmethod
    def read_all(targets: Sequence[Global]) -> list[Any]:
        """Return the values of some globals, with one wait for the device instead of one for each.

        On several ranks, it is collective. All are of one context.
        """
        if targets:
            targets[0].context.settle(None)
            for target in targets:
                require_total(target)
            targets[0].context.device.bring([target.buffer for target in targets])
        return [target.value for target in targets]

    def __repr__(self) -> str:
        return f"Global({self.name}, {self.value})"


Seen = TypeVar("Seen", covariant=True)


class Way(Protocol[Seen]):
    """What a dat is seen through: a map or one of its legs."""

    def argument(self, dat: Dat) -> Seen:
        """Return the dat as it is seen."""
        ...


class Dat:
    """Values of a fixed shape on every element of a set.

    Parameters
    ----------
    over
        The set.
    data
        Initial values of shape ``(*over.shape, *shape)``, or None for zeros: anything that NumPy understands,
        another dat, or an array in the memory of the device (with ``__cuda_array_interface__``).
    shape
        Shape of one element's value; ``()`` for a scalar. Taken from ``data`` when given.
    dtype
        ``float64``, ``float32``, ``float16``, ``int64``, ``int32`` or ``uint8``.
    layout
        `AoS`, `SoA` or `Blocked`.
    name
        Used in messages and reports.
    copy
        True: the values are copied. False: the memory of the array ``data`` becomes that of the dat, which loops
        then change. None: that is done with an array in a device's own memory, if it can be, and others are copied.
        For memory to be shared, the array has to be writable, aligned and of the dat's type, without gaps,
        with the components of an element together (`AoS`) or the elements of a component (`SoA`), and
        the set without ghosts. A chain with such a dat runs loop by loop.

    Raises
    ------
    DatError
        If the shape or dtype does not fit, the device has no such type, or ``data`` is in another memory.
    ExportError
        If ``copy`` is False and the memory cannot be shared; says why.
    """

    def __init__(
        self,
        over: Set,
        data: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        dtype: npt.DTypeLike | None = None,
        layout: Layout | None = None,
        name: str = "",
        copy: bool | None = None,
    ) -> None:
        if isinstance(over, Subset):
            raise DatError(f"dat {name!r}: a dat lives on a set, not on a subset; use {over.parent}")
        self.set = over
        self.name = name or "dat"
        values = None if data is None else self._as_array(data)
        self.shape = self._shape_of(values, shape)
        default = values.dtype if values is not None else "float64"
        self.scalar: Scalar = scalar(dtype if dtype is not None else default)
        check_type(self.scalar, self.context, f"dat {self.name!r}")
        self.dim = prod(self.shape) if self.shape else 1
        shared, buffer = self._share(data, values, layout, copy)
        self.layout: Layout = shared if shared is not None else layout if layout is not None else AoS()
        self.stride = padded(over.storage_size) if buffer is None else over.size
        if buffer is None:
            buffer = over.context.allocate(self.stride * self.dim * self.scalar.size)
        self.buffer: Buffer = buffer
        over.context.register(self)
        self.version = 0
        self.halo_version = -1 if over.shared else 0
        """Version whose values the halo has, see `Dat.current`."""
        self.viewed = self.buffer.foreign
        """Whether an array over the storage was ever given out; see `watched`."""
        if values is not None and not buffer.foreign:
            self.write(values)

    def _as_array(self, values: Any) -> Any:
        """Return values as an array of the device's library if they are in its memory, else as one of NumPy."""
        device = self.context.device
        if not isinstance(values, Dat):
            return device.as_array(unmasked(values, f"dat {self.name!r}"))
        if values.context.device is not device or device.dlpack is None or not is_ordered(values):
            return values.read()
        return values.buffer.array(view_of(values), write=False)

    def _share(
        self, data: Any, values: Any, wanted: Layout | None, copy: bool | None
    ) -> tuple[Layout | None, Buffer | None]:
        """Return the layout and the buffer with which the memory of ``data`` is the dat's; None: values are copied."""
        context, layout, buffer = self.context, None, None
        if copy or (copy is None and (values is None or isinstance(values, np.ndarray) or isinstance(data, Dat))):
            return None, None
        if values is None or isinstance(data, Dat):
            why = f"{'nothing' if data is None else 'another dat'} was given whose memory it could use"
        elif not (why := context.device.why_not_shared(data, values)):
            layout, why = fitting_layout(self.set, self.scalar, values, wanted)
        if layout is not None and self.nbytes:
            buffer = context.device.wrap(values)
            if (other := context.owner(buffer.address, buffer.nbytes)) is not None:
                layout, buffer, why = None, None, f"the dat {other.name!r} has the same memory"
        if layout is None and copy is False:
            raise ExportError(f"dat {self.name!r}: the values have to be copied: {why}; leave out copy=False")
        return layout, buffer

    def _shape_of(self, values: Any, shape: tuple[int, ...] | None) -> tuple[int, ...]:
        found = self._components(values, shape)
        if 0 in found:
            raise DatError(f"dat {self.name!r}: components {found}: an element has at least one value")
        return found

    def _components(self, values: Any, shape: tuple[int, ...] | None) -> tuple[int, ...]:
        if shape is not None:
            shape = tuple(whole(n, f"dat {self.name!r}: a length of shape {shape!r}") for n in shape)
        if values is None:
            return () if shape is None else shape
        lead = self.set.shape
        if values.shape[: len(lead)] != lead:
            raise DatError(
                f"dat {self.name!r}: values of shape {values.shape} do not fit {self.set} (expected {lead} first)"
            )
        tail = values.shape[len(lead) :]
        if shape is not None and shape != tail:
            raise DatError(f"dat {self.name!r}: values have components {tail}, shape says {shape}")
        return tail

    @property
    def context(self) -> Runtime:
        """The context of its set."""
        return self.set.context

    @property
    def current(self) -> bool:
        """Whether the halo holds what the other ranks have now (always, where there is none)."""
        return not self.set.shared or self.halo_version == self.version

    @property
    def nbytes(self) -> int:
        """Bytes of the values, without padding."""
        return self.set.size * self.dim * self.scalar.size

    # ------------------------------------------------------------------------------------ values
    def _stored(self, *, write: bool) -> npt.NDArray[Any]:
        """Return the storage as ``(places, dim)``; a strided view, or a copy for blocked layouts."""
        self.context.settle(None if write else self)
        flat = self.buffer.host(write=write).view(self.scalar.numpy)
        match self.layout:
            case AoS():
                return flat.reshape(self.stride, self.dim)
            case SoA():
                return flat.reshape(self.dim, self.stride).T
            case Blocked(size=size):
                blocks = flat.reshape(self.stride // size, self.dim, size)
                return blocks.transpose(0, 2, 1)
        raise TypeError(self.layout)

    def storage(self) -> npt.NDArray[Any]:
        """Return a writable view of every place of a grid dat, ghosts included: ``(*full, *shape)``.

        Raises
        ------
        DatError
            For a dat that is not on a grid, or has a blocked layout.
        """
        if not isinstance(self.set, Grid) or isinstance(self.layout, Blocked):
            raise DatError(f"dat {self.name!r}: storage() is for AoS and SoA dats on a grid")
        self.context.settle()
        self.version += 1
        self.viewed = True
        return self._host_view(view_of(self, ghosts=True), write=True)

    @property
    def watched(self) -> bool:
        """Whether somebody holds an array over the storage now."""
        if self.viewed:
            self.viewed = self.buffer.exported
        return self.viewed

    def _host_view(self, view: View, *, write: bool) -> npt.NDArray[Any]:
        array = np.ndarray(view.shape, view.dtype, self.buffer.host(write=write), view.offset, view.strides)
        array.flags.writeable = write
        return self.buffer.show(array, self.name)

    def _view(self, *, write: bool) -> npt.NDArray[Any]:
        self.context.settle(None if write else self)
        require_view(self)
        self.viewed = True
        return self._host_view(view_of(self), write=write)

    @property
    def data(self) -> npt.NDArray[Any]:
        """A writable view of the values, ``(*set.shape, *shape)``, without a copy.

        Take it anew after loops have run; while it is alive its buffer stays where it is. On a device with a memory of
        its own, it is read-only from the next loop on, and what was written to a slice of it is an error afterwards.
        """
        self.version += 1
        return self._view(write=True)

    @property
    def data_ro(self) -> npt.NDArray[Any]:
        """A read-only view of the values, without a copy."""
        return self._view(write=False)

    # ------------------------------------------------------------------ arrays of other libraries
    @property
    def array(self) -> Any:
        """The values on the device as a writable array of its library, ``(*set.shape, *shape)``, without a copy.

        Of CuPy on a GPU of CUDA's, of pyopencl with OpenCL, of NumPy elsewhere. Take it anew after loops have
        run; while it is alive its buffer stays where it is, so that chains run loop by loop. What CuPy does with
        it is in order with the loops inside ``with context.device.stream:``, or after ``context.synchronize()``.

        Raises
        ------
        ExportError
            If the values are stored in an order that no array of the library has.
        """
        self.context.settle(self)
        require_view(self)
        array = self.buffer.array(view_of(self))
        self._lend()
        return array

    def _lend(self) -> None:
        """Note that an array was given out through which the values may change."""
        self.version += 1
        self.viewed = True

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the values for ``numpy.asarray``: read-only without a copy where NumPy can see them, else a copy."""
        device = self.context.device
        if copy or (copy is None and (not device.shared or not is_ordered(self))):
            values = self.read()
        elif device.shared:
            values = self.data_ro
        else:
            raise ExportError(f"dat {self.name!r}: its values are not in host memory: they have to be copied")
        return values if dtype is None else values.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of `array`, for ``from_dlpack`` of CuPy, PyTorch, NumPy and others.

        Raises
        ------
        ExportError
            If there is no such array, or the device cannot exchange it.
        """
        self.context.settle()
        require_view(self)
        found = self.buffer.dlpack(view_of(self), stream, max_version=max_version, dl_device=dl_device, copy=copy)
        self._lend()
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind and the number of the device in DLPack's terms."""
        device = self.context.device
        if device.dlpack is None:
            raise ExportError(f"the {device.name} device has no DLPack: use array, or read() and write(), which copy")
        return device.dlpack

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The values on a GPU of CUDA's, as version 3 of the CUDA Array Interface describes them.

        Nothing tells when an array that was made of it is gone: the memory stays where it is for good, and
        chains with this dat run loop by loop. `array` and ``from_dlpack`` do not have this price.
        """
        if not is_ordered(self):
            raise AttributeError("no __cuda_array_interface__: the values are stored in an order that no array has")
        self.context.settle()
        found = self.buffer.interface(view_of(self))
        self._lend()
        return found

    # --------------------------------------------------------------------------------------- copies
    def read(self) -> npt.NDArray[Any]:
        """Return a copy of the values, ``(*set.shape, *shape)``, in any layout."""
        stored = self._stored(write=False)
        if isinstance(self.layout, Blocked):
            stored = stored.reshape(self.stride, self.dim)
        place = self.set.position
        values = stored[: self.set.size] if place is None else stored[place[: self.set.size]]
        return np.array(values, copy=True, order="C").reshape(*self.set.shape, *self.shape)

    def read_places(self) -> npt.NDArray[Any]:
        """Return a copy of the values of all places that maps may lead to, ``(set.stored, *shape)``.

        On a set with spare places behind its elements, which loops do not visit, these are more than `read` returns.
        """
        stored, n = self._stored(write=False), self.set.stored
        flat = stored.reshape(self.stride, self.dim)[:n]
        return np.array(flat, copy=True, order="C").reshape(n, *self.shape)

    def write_places(self, values: npt.ArrayLike) -> None:
        """Set the values of all places, from what `read_places` returned."""
        given = incoming(values, self.scalar, f"dat {self.name!r}").reshape(self.set.stored, self.dim)
        self._put(given, self.set.stored, None)

    def write(self, values: Any) -> None:
        """Set the values from an array of shape ``(*set.shape, *shape)`` or anything that broadcasts to it.

        An array in the memory of the device, or another dat on it, is copied there.

        Raises
        ------
        DatError
            If the shape does not fit, or the values are in the memory of another device.
        """
        full = (*self.set.shape, *self.shape)
        given = self._as_array(values)
        try:
            fits = np.broadcast_shapes(given.shape, full) == full
        except ValueError:
            fits = False
        if not fits:
            raise DatError(f"dat {self.name!r}: values of shape {given.shape} do not fit {full}")
        kept = self.scalar.floating or np.can_cast(given.dtype, self.scalar.numpy, "safe")
        if isinstance(given, np.ndarray) or not is_ordered(self) or not kept:
            self._write_host(given if isinstance(given, np.ndarray) else self.context.device.to_numpy(given))
        else:
            self.context.settle()
            self.version += 1
            self.context.device.assign(self.buffer.array(view_of(self)), given)

    def _write_host(self, given: npt.NDArray[Any]) -> None:
        full = (*self.set.shape, *self.shape)
        array = np.broadcast_to(incoming(given, self.scalar, f"dat {self.name!r}"), full)
        self._put(array.reshape(self.set.size, self.dim), self.set.size, self.set.position)

    def _put(self, array: npt.NDArray[Any], count: int, position: npt.NDArray[np.int32] | None) -> None:
        """Store ``(count, dim)`` values: at the first places, or where they are said to be."""
        self.version += 1
        stored = self._stored(write=True)
        place = np.arange(count) if position is None else position[:count]
        if isinstance(self.layout, Blocked):
            stored[place // self.layout.size, place % self.layout.size] = array
        elif position is None:
            stored[:count] = array
        else:
            stored[place] = array
        self.buffer.publish()

    def __getitem__(self, through: Way[Seen]) -> Seen:
        """Return this dat seen through a map: ``x[e2n]`` (whole) or ``x[e2n[0]]`` (one leg)."""
        return through.argument(self)

    def __repr__(self) -> str:
        return f"Dat({self.name}, {self.set.name}, {self.shape}, {self.scalar.name}, {self.layout})"
