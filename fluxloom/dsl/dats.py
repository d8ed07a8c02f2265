"""Values on sets, and single values that loops reduce into."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar, scalar
from fluxloom.core.errors import DatError
from fluxloom.core.layout import AoS, Blocked, Layout, SoA, padded
from fluxloom.dsl.sets import Grid, Set, Subset

if TYPE_CHECKING:
    from fluxloom.dsl.args import Argument
    from fluxloom.dsl.context import Context
    from fluxloom.dsl.maps import Map, MapLeg

__all__ = ["Dat", "Global"]


def _check_type(scalar: Scalar, context: Context, what: str) -> None:
    """Raise `DatError` when the device has no such type."""
    if reason := context.device.refuses(scalar):
        raise DatError(f"{what} is of {scalar.name}: {reason}")


class Dat:
    """Values of a fixed shape on every element of a set.

    Parameters
    ----------
    over
        The set.
    data
        Initial values of shape ``(*over.shape, *shape)``, or None for zeros. They are copied.
    shape
        Shape of one element's value; ``()`` for a scalar. Taken from ``data`` when given.
    dtype
        ``float64``, ``float32``, ``float16``, ``int64``, ``int32`` or ``uint8``.
    layout
        `AoS`, `SoA` or `Blocked`.
    name
        Used in messages and reports.

    Raises
    ------
    DatError
        If the shape or dtype does not fit, or the device has no such type.
    """

    def __init__(
        self,
        over: Set,
        data: npt.ArrayLike | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        dtype: npt.DTypeLike | None = None,
        layout: Layout | None = None,
        name: str = "",
    ) -> None:
        if isinstance(over, Subset):
            raise DatError(f"dat {name!r}: a dat lives on a set, not on a subset; use {over.parent}")
        values = None if data is None else np.asarray(data)
        self.set = over
        self.name = name or "dat"
        self.shape = self._shape_of(values, shape)
        default = values.dtype if values is not None else "float64"
        self.scalar: Scalar = scalar(dtype if dtype is not None else default)
        _check_type(self.scalar, self.context, f"dat {self.name!r}")
        self.layout: Layout = layout if layout is not None else AoS()
        self.dim = prod(self.shape) if self.shape else 1
        self.stride = padded(over.storage_size)
        self.buffer = over.context.allocate(self.stride * self.dim * self.scalar.size)
        over.context.register(self)
        self.version = 0
        self.viewed = False
        """Whether a NumPy view of the storage was ever given out; see `watched`."""
        if values is not None:
            self.write(values)

    def _shape_of(self, values: npt.NDArray[Any] | None, shape: tuple[int, ...] | None) -> tuple[int, ...]:
        if values is None:
            return () if shape is None else tuple(shape)
        lead = self.set.shape
        if values.shape[: len(lead)] != lead:
            raise DatError(
                f"dat {self.name!r}: values of shape {values.shape} do not fit {self.set} (expected {lead} first)"
            )
        tail = values.shape[len(lead) :]
        if shape is not None and tuple(shape) != tail:
            raise DatError(f"dat {self.name!r}: values have components {tail}, shape says {tuple(shape)}")
        return tail

    @property
    def context(self) -> Context:
        """The context of its set."""
        return self.set.context

    @property
    def nbytes(self) -> int:
        """Bytes of the values, without padding."""
        return self.set.size * self.dim * self.scalar.size

    # ------------------------------------------------------------------------------------ values
    def _stored(self, *, write: bool) -> npt.NDArray[Any]:
        """Return the storage as ``(places, dim)``; a strided view, or a copy for blocked layouts."""
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
        self.version += 1
        self.viewed = True
        full = self._stored(write=True)[: self.set.storage_size]
        return full.reshape(*self.set.full_shape, *self.shape) if isinstance(self.layout, AoS) else self._soa_grid(full)

    def _soa_grid(self, full: npt.NDArray[Any]) -> npt.NDArray[Any]:
        assert isinstance(self.set, Grid)
        parts = full.T.reshape(*(self.shape or (1,)), *self.set.full_shape)
        lead = len(self.shape) or 1
        moved = np.moveaxis(parts, list(range(lead)), list(range(-lead, 0)))
        return moved if self.shape else moved[..., 0]

    @property
    def watched(self) -> bool:
        """Whether somebody holds a NumPy view of the storage now."""
        if self.viewed:
            self.viewed = self.buffer.exported
        return self.viewed

    def _view(self, *, write: bool) -> npt.NDArray[Any]:
        self.viewed = True
        if isinstance(self.layout, Blocked) or (self.set.position is not None and not isinstance(self.set, Grid)):
            raise DatError(
                f"dat {self.name!r} is stored in another order than NumPy's: use read() and write(), which copy"
            )
        if isinstance(self.set, Grid):
            full = self._stored(write=write)[: self.set.storage_size]
            if isinstance(self.layout, AoS):
                return full.reshape(*self.set.full_shape, *self.shape)[self.set.interior]
            return self._soa_grid(full)[self.set.interior]
        part = self._stored(write=write)[: self.set.size]
        if isinstance(self.layout, AoS):
            return part.reshape(self.set.size, *self.shape)
        if not self.shape:
            return part[:, 0]
        return np.moveaxis(part.T.reshape(*self.shape, self.set.size), -1, 0)

    @property
    def data(self) -> npt.NDArray[Any]:
        """A writable view of the values, ``(*set.shape, *shape)``, without a copy.

        Take it anew after loops have run; while it is alive its buffer stays where it is.
        """
        self.version += 1
        return self._view(write=True)

    @property
    def data_ro(self) -> npt.NDArray[Any]:
        """A read-only view of the values, without a copy."""
        view = self._view(write=False)
        view.flags.writeable = False
        return view

    def read(self) -> npt.NDArray[Any]:
        """Return a copy of the values, ``(*set.shape, *shape)``, in any layout."""
        stored = self._stored(write=False)
        if isinstance(self.layout, Blocked):
            stored = stored.reshape(self.stride, self.dim)
        place = self.set.position
        values = stored[: self.set.size] if place is None else stored[place]
        return np.array(values, copy=True, order="C").reshape(*self.set.shape, *self.shape)

    def write(self, values: npt.ArrayLike) -> None:
        """Set the values from an array of shape ``(*set.shape, *shape)`` or anything that broadcasts to it."""
        full = (*self.set.shape, *self.shape)
        try:
            array = np.broadcast_to(np.asarray(values, dtype=self.scalar.numpy), full)
        except ValueError:
            raise DatError(f"dat {self.name!r}: values of shape {np.shape(values)} do not fit {full}") from None
        array = array.reshape(self.set.size, self.dim)
        self.version += 1
        stored = self._stored(write=True)
        place = np.arange(self.set.size) if self.set.position is None else self.set.position
        if isinstance(self.layout, Blocked):
            stored[place // self.layout.size, place % self.layout.size] = array
        elif self.set.position is None:
            stored[: self.set.size] = array
        else:
            stored[place] = array

    def __getitem__(self, through: Map | MapLeg) -> Argument:
        """Return this dat seen through a map: ``x[e2n]`` (whole) or ``x[e2n[0]]`` (one leg)."""
        return through.argument(self)

    def __repr__(self) -> str:
        return f"Dat({self.name}, {self.set.name}, {self.shape}, {self.scalar.name}, {self.layout})"


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
        self, context: Context, value: npt.ArrayLike = 0.0, *, dtype: npt.DTypeLike | None = None, name: str = ""
    ) -> None:
        array = np.asarray(value)
        self.context = context
        self.name = name or "global"
        self.shape = array.shape
        self.scalar: Scalar = scalar(dtype if dtype is not None else array.dtype)
        _check_type(self.scalar, context, f"global {self.name!r}")
        self.dim = max(1, array.size)
        self.buffer = context.allocate(max(64, self.dim * self.scalar.size))
        self.version = 0
        self.value = array

    def _flat(self, *, write: bool) -> npt.NDArray[Any]:
        return self.buffer.host(write=write).view(self.scalar.numpy)[: self.dim]

    @property
    def value(self) -> Any:
        """The value: a NumPy scalar, or a copy of the array."""
        flat = self._flat(write=False)
        return flat[0] if not self.shape else flat.reshape(self.shape).copy()

    @value.setter
    def value(self, value: npt.ArrayLike) -> None:
        array = np.asarray(value, dtype=self.scalar.numpy)
        if array.shape not in (self.shape, ()):
            raise DatError(f"global {self.name!r}: a value of shape {array.shape} does not fit {self.shape}")
        self.version += 1
        self._flat(write=True)[:] = array.ravel() if array.shape else array

    def __repr__(self) -> str:
        return f"Global({self.name}, {self.value})"
