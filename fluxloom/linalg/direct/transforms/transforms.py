"""Fourier, cosine and sine transforms, and those of a dense basis, of arrays in the memory of any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import PlanError
from fluxloom.device.base import Buffer, Call, Device, Enqueued
from fluxloom.device.buffer import View
from fluxloom.device.transforms.dft import INVERSE, Library, pair_type
from fluxloom.device.transforms.libraries import open_library
from fluxloom.dsl.declare.arrays import DeviceArray, dense_view
from fluxloom.linalg.direct.transforms.checks import check, require_kind, turned, values_of
from fluxloom.linalg.direct.transforms.fourier import MatrixFourier
from fluxloom.linalg.direct.transforms.matrix import Basis, Products, real_matrix
from fluxloom.linalg.direct.transforms.recipes import recipe
from fluxloom.linalg.direct.transforms.rows import Copies, Rows

__all__ = ["Transforms"]

Items = list[Call | Enqueued]
Made = TypeVar("Made")

SLAB = 256 << 20
"""Bytes of working memory: what is gained by less, as it stays in a cache, is lost by more and smaller calls. On an
H200 a sine transform of 512^3 values there and back takes 4.2 ms with 32 MiB, 3.9 with 128, 3.6 without a limit."""


class Transforms:
    """Makes the calls that transform arrays on one device.

    The transforms are those of `fluxloom.device.transforms.dft`, not normalised, as in SciPy. A library does them where
    it has them. Where it has Fourier transforms alone, cosines and sines are made of these with one pass over memory
    before and one after (`fluxloom.linalg.direct.transforms.recipes`). Where there is no library, all are products with
    dense matrices: ``n`` operations a value, exact, and quick for short lines.

    Parameters
    ----------
    device
        Whose memory the arrays are in.
    threads
        Of a library on the host.
    library
        ``"auto"``, ``"matrix"``, a name of `fluxloom.device.transforms.libraries.open_library`, or a library.
    slab
        Bytes of the rows that are prepared, transformed and brought back together, where cosines and sines are made of
        Fourier transforms: they stay in the second-level cache, and the working memory is no larger.

    Raises
    ------
    DeviceUnavailable
        When the library is not installed; the message names the extra.
    SolverError
        When it does not work on this device.

    Notes
    -----
    Working memory is shared by all calls of one object: they have to run one after the other.
    """

    def __init__(self, device: Device, *, threads: int = 1, library: str | Library = "auto", slab: int = SLAB) -> None:
        self.device, self.threads, self.slab = device, threads, slab
        self._chosen = library == "matrix"
        if isinstance(library, str):
            self._library = None if self._chosen else open_library(device, library, threads)
        else:
            self._library = library
        self._work: dict[int, Buffer] = {}
        self._makers: dict[tuple[Any, np.dtype[Any]], Any] = {}

    # -------------------------------------------------------------------------------------------- what there is
    def native(self, kind: str) -> bool:
        """Whether the library has a kind of transform itself."""
        return self._library is not None and kind in self._library.kinds

    def describe(self) -> str:
        """Return what transforms, with its version, and why it is no library where it is none."""
        if self._library is not None:
            made = "" if self.native("dct2") else ", cosines and sines with passes before and after"
            return f"{self._library.title}{made}"
        if self._chosen:
            return "products with dense matrices"
        return (
            f"products with dense matrices, because no library of transforms for the {self.device.name} device is "
            "installed: pip install 'fluxloom[vkfft]'"
        )

    def scale(self, kind: str, lengths: Sequence[int]) -> float:
        """Return ``s`` of ``backward(forward(x)) = s x``.

        Parameters
        ----------
        kind
            See the class.
        lengths
            Values along each of the axes.
        """
        if kind == "matrix":
            return 1.0
        if kind == "dft":
            return float(prod(lengths))
        require_kind(kind)
        return float(prod(2 * (n + {"dct1": -1, "dst1": 1}.get(kind, 0)) for n in lengths))

    def spectrum(
        self, kind: str, axes: Sequence[int], shape: Sequence[int], dtype: npt.DTypeLike
    ) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and type of the transform of a real array: of a dft, the last of the axes is halved."""
        if kind != "dft":
            return tuple(shape), np.dtype(dtype)
        return tuple(n // 2 + 1 if k == axes[-1] else n for k, n in enumerate(shape)), pair_type(np.dtype(dtype))

    # ----------------------------------------------------------------------------------------------- transforms
    def forward(
        self, kind: str, axes: Sequence[int], source: DeviceArray, target: DeviceArray, basis: Basis | None = None
    ) -> Items:
        """Return the calls of a transform.

        Parameters
        ----------
        kind
            ``"dft"``, ``"dct1"`` to ``"dct4"``, ``"dst1"`` to ``"dst4"``, or ``"matrix"``.
        axes
            Ascending; one of all kinds but ``"dft"``.
        source, target
            Arrays, maybe with gaps. The same one may be both where the kind is real; else they share no value.
        basis
            Of ``"matrix"``.

        Raises
        ------
        PlanError
            If the arrays, the axes and the kind do not fit.
        """
        return self._calls(kind, tuple(axes), source, target, basis, backward=False)

    def backward(
        self, kind: str, axes: Sequence[int], source: DeviceArray, target: DeviceArray, basis: Basis | None = None
    ) -> Items:
        """Return the calls of the inverse transform times `scale`; it may destroy the source.

        Parameters and errors are those of `forward`.
        """
        return self._calls(kind, tuple(axes), source, target, basis, backward=True)

    def _calls(
        self, kind: str, axes: tuple[int, ...], source: DeviceArray, target: DeviceArray, basis: Basis | None,
        *, backward: bool,
    ) -> Items:  # fmt: skip
        check(kind, axes, source, target, basis, backward=backward)
        if not prod(source.shape) or not prod(target.shape):
            return []
        name = f"{'inverse ' if backward else ''}{kind} {', '.join(map(str, axes))}"
        if kind == "matrix":
            assert basis is not None
            return self._product(basis.backward if backward else basis.forward, axes[0], source, target, name)
        if kind == "dft":
            return self._fourier(axes, source, target, name, backward=backward)
        done, length = INVERSE[kind] if backward else kind, source.shape[axes[0]]
        if self._library is None or (self.device.items and length == 1):  # libraries have no plan for one value
            return self._product(real_matrix(done, length), axes[0], source, target, name)
        if self.native(kind):
            return self._by_library(kind, axes, source, target, name, backward=backward)
        return self._by_rows(done, axes[0], source, target, name)

    def _fourier(
        self, axes: tuple[int, ...], source: DeviceArray, target: DeviceArray, name: str, *, backward: bool
    ) -> Items:
        """Return a Fourier transform; single values along an axis are no matter for a library."""
        real, spectrum = (target, source) if backward else (source, target)
        if self.device.items:
            axes = (*(k for k in axes[:-1] if real.shape[k] > 1), axes[-1])
        matrices = MatrixFourier(self._made(Products, real.dtype), self._room)
        if not self.native("dft"):
            return matrices.calls(axes, source, target, name, backward=backward)
        one_value = self.device.items and real.shape[axes[-1]] == 1
        # A library is slow where lanes of an axis that is not transformed lie inside two that are.
        apart = self.device.items and len(axes) > 1 and max(real.shape[axes[-1] + 1 :], default=1) > 1
        if not one_value and not apart:
            return self._by_library("dft", axes, source, target, name, backward=backward)
        if one_value:
            halved = matrices.calls(axes[-1:], source, target, name, backward=backward)
        else:
            halved = self._by_library("dft", axes[-1:], source, target, name, backward=backward)
        if not axes[:-1]:
            return halved
        others = self._by_library("complex", axes[:-1], spectrum, spectrum, name, backward=backward)
        return others + halved if backward else halved + others

    def _by_library(
        self, kind: str, axes: tuple[int, ...], source: DeviceArray, target: DeviceArray, name: str, *, backward: bool
    ) -> Items:
        """Return a transform by the library, between copies where its arrays have to lie otherwise."""
        library = self._library
        assert library is not None
        x, y = values_of(source), values_of(target)
        if library.accepts(kind, axes, x, y):
            run = library.plan(kind, axes, x, y, backward=backward)
            return [Enqueued(name, run, capturable=library.capturable)]
        order = (*(k for k in range(len(source.shape)) if k not in axes), *axes)  # transformed axes last: rows
        moved = tuple(range(len(order) - len(axes), len(order)))
        work_x, work_y = (
            self._room(tuple(array.shape[k] for k in order), array.dtype, number)
            for number, array in enumerate((source, target))
        )
        if kind != "dft":
            work_y = work_x
        if not library.accepts(kind, moved, values_of(work_x), values_of(work_y)):
            raise PlanError(f"{name}: {library.title} does not transform these axes, not even of a copy of the array")
        copies = self._made(Copies, source.dtype)
        run = library.plan(kind, moved, values_of(work_x), values_of(work_y), backward=backward)
        return [
            *copies.calls(turned(source, order), work_x, f"{name} before"),
            Enqueued(name, run, capturable=library.capturable),
            *copies.calls(work_y, turned(target, order), f"{name} after"),
        ]

    def _by_rows(self, kind: str, axis: int, source: DeviceArray, target: DeviceArray, name: str) -> Items:
        """Return a real transform by Fourier transforms of rows, which replace each other in place."""
        found, library = recipe(kind, source.shape[axis]), self._library
        assert library is not None
        way, inverse = ("complex", False) if found.way == "complex" else ("dft", found.way == "backward")
        runs: dict[int, Callable[[], None]] = {}

        def transform(lines: int, most: int) -> tuple[DeviceArray, Enqueued]:
            """Return so many rows, and what transforms them; the same memory for all."""
            work = self._room((most, found.reals), source.dtype, 0)
            pairs = DeviceArray(
                self.device, work.buffer, dense_view((lines, found.reals // 2), pair_type(source.dtype))
            )
            cut = View((lines, found.length), source.dtype, work.view.strides)
            numbers = DeviceArray(self.device, work.buffer, cut)
            arrays = {"forward": (numbers, pairs), "backward": (pairs, numbers), "complex": (pairs, pairs)}[found.way]
            if lines not in runs:
                runs[lines] = library.plan(way, (1,), *map(values_of, arrays), backward=inverse)
            return work, Enqueued(name, runs[lines], capturable=library.capturable)

        return self._made(Rows, source.dtype).calls(found, axis, source, target, self.slab, transform, name)

    def _product(
        self, matrix: npt.NDArray[Any], axis: int, source: DeviceArray, target: DeviceArray, name: str
    ) -> Items:
        """Return the product of lines with a matrix; in place by way of a copy."""
        if matrix.shape != (source.shape[axis],) * 2:
            raise PlanError(f"{name}: the basis is {matrix.shape}, and axis {axis} has {source.shape[axis]} values")
        products = self._made(Products, source.dtype)
        if not self.device.items or not values_of(source).same(values_of(target)):  # NumPy sees where arrays meet
            return products.calls(matrix, axis, source, target, name)
        work = self._room(source.shape, source.dtype, 0)
        before = self._made(Copies, source.dtype).calls(source, work, f"{name} before")
        return [*before, *products.calls(matrix, axis, work, target, name)]

    # -------------------------------------------------------------------------------------------------- helpers
    def _room(self, shape: tuple[int, ...], dtype: np.dtype[Any], number: int) -> DeviceArray:
        """Return working memory; that of one number is the same for all calls."""
        nbytes = prod(shape) * dtype.itemsize
        buffer = self._work.get(number)
        if buffer is None or buffer.nbytes < nbytes:
            buffer = self._work[number] = self.device.allocate(nbytes)
        return DeviceArray(self.device, buffer, dense_view(shape, dtype))

    @property
    def nbytes(self) -> int:
        """Bytes of working memory made so far."""
        return sum(buffer.nbytes for buffer in self._work.values())

    def _made(self, kind: Callable[[Device, np.dtype[Any]], Made], dtype: np.dtype[Any]) -> Made:
        """Return what makes calls for a type of real values, or of the parts of complex ones; it is made once."""
        real = np.dtype(np.float64 if dtype in (np.float64, np.complex128) else np.float32)
        if (kind, real) not in self._makers:
            self._makers[kind, real] = kind(self.device, real)
        return self._makers[kind, real]
