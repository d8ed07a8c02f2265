"""Transforms of arrays in the memory of the host: SciPy's, and FFTW's through pyFFTW."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.packages import require
from fluxloom.device.transforms.dft import INVERSE, REAL_KINDS, Library, Values

__all__ = ["FftwTransforms", "HostTransforms", "ScipyTransforms"]

_PIECE = 1 << 20
"""Bytes that a thread transforms at once, so that they stay in the caches of its core."""

_PLANNING = 1.0
"""Seconds that FFTW may spend on finding out how to transform."""

_FFTW = {
    "dct1": "FFTW_REDFT00", "dct2": "FFTW_REDFT10", "dct3": "FFTW_REDFT01", "dct4": "FFTW_REDFT11",
    "dst1": "FFTW_RODFT00", "dst2": "FFTW_RODFT10", "dst3": "FFTW_RODFT01", "dst4": "FFTW_RODFT11",
}  # fmt: skip

_Place = tuple[slice, ...]

_EVERY = frozenset({*REAL_KINDS, "dft", "complex"})


class ScipyTransforms(Library):
    """SciPy's transforms (pocketfft), in pieces that stay in the caches.

    Parameters
    ----------
    threads
        That share the work.
    """

    kinds = _EVERY

    def __init__(self, threads: int = 1) -> None:
        self._fft: Any = require("scipy.fft", "app", "transforms on the host")
        self._threads = max(1, threads)
        self._pool = ThreadPoolExecutor(self._threads - 1, "fluxloom-transforms") if self._threads > 1 else None
        version = require("scipy", "app", "transforms on the host").__version__
        self.title = f"SciPy {version} (pocketfft), {self._threads} threads"

    def plan(
        self, kind: str, axes: Sequence[int], source: Values, target: Values, *, backward: bool = False
    ) -> Callable[[], None]:
        """Return the function that does a transform."""
        x = source.array()
        y = x if source.same(target) else target.array()
        if kind in REAL_KINDS:
            return self._real(INVERSE[kind] if backward else kind, axes[0], x, y)
        if kind == "complex":
            return self._complex(axes, x, y, backward)
        return self._backward(axes, x, y) if backward else self._forward(axes, x, y)

    def _real(self, kind: str, axis: int, x: Any, y: Any) -> Callable[[], None]:
        transform, number = getattr(self._fft, kind[:3]), int(kind[3])

        def piece(place: _Place, workers: int) -> None:
            part = y[place]
            if x is not y:
                np.copyto(part, x[place])
            _settle(part, transform(part, number, axis=axis, overwrite_x=True, workers=workers))

        return partial(self._each, piece, _pieces(y, (axis,)))

    def _complex(self, axes: Sequence[int], x: Any, y: Any, backward: bool) -> Callable[[], None]:
        transform, norm = (self._fft.ifft, "forward") if backward else (self._fft.fft, "backward")

        def piece(axis: int, place: _Place, workers: int) -> None:
            part = y[place]
            if x is not y and axis == axes[-1]:
                np.copyto(part, x[place])
            _settle(part, transform(part, axis=axis, norm=norm, overwrite_x=True, workers=workers))

        stages = [(partial(piece, axis), _pieces(y, (axis,))) for axis in reversed(axes)]

        def run() -> None:
            for stage, places in stages:
                self._each(stage, places)

        return run

    def _forward(self, axes: Sequence[int], x: Any, y: Any) -> Callable[[], None]:
        first, last = _stages(axes, x.ndim)
        rest, places = self._complex(first, y, y, backward=False), _pieces(x, last)

        def piece(place: _Place, workers: int) -> None:
            y[place] = self._fft.rfftn(x[place], axes=last, workers=workers)

        def run() -> None:
            self._each(piece, places)
            rest()

        return run

    def _backward(self, axes: Sequence[int], x: Any, y: Any) -> Callable[[], None]:
        first, last = _stages(axes, x.ndim)
        rest, places = self._complex(first, x, x, backward=True), _pieces(y, last)
        lengths = [y.shape[axis] for axis in last]

        def piece(place: _Place, workers: int) -> None:
            y[place] = self._fft.irfftn(x[place], lengths, axes=last, norm="forward", workers=workers)

        def run() -> None:
            rest()
            self._each(piece, places)

        return run

    def _each(self, piece: Callable[[_Place, int], None], places: Sequence[_Place]) -> None:
        """Do all pieces, by all threads: each takes the next one."""
        if len(places) == 1 or self._pool is None:
            for place in places:
                piece(place, self._threads)
            return
        waiting = deque(places)

        def work() -> None:
            while True:
                try:
                    place = waiting.popleft()
                except IndexError:
                    return
                piece(place, 1)

        helpers = [self._pool.submit(work) for _ in range(min(self._threads, len(places)) - 1)]
        work()
        for helper in helpers:
            helper.result()


def _settle(part: Any, done: Any) -> None:
    """Store the result of a transform that could not be done in place."""
    if done is not part:
        np.copyto(part, done)


def _stages(axes: Sequence[int], dimensions: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes whose transform takes the whole array, and those that are transformed piece by piece."""
    count = 0 if len(axes) < dimensions or len(axes) == 1 else 1
    return tuple(axes[:count]), tuple(axes[count:])


def _pieces(array: npt.NDArray[Any], axes: Sequence[int]) -> list[_Place]:
    """Return slices of the longest step that is not transformed."""
    other = [k for k in range(array.ndim) if k not in axes]
    if not other or array.nbytes <= _PIECE:
        return [(slice(None),) * array.ndim]
    axis = max(other, key=lambda k: (abs(array.strides[k]), array.shape[k]))
    rows = max(1, _PIECE * array.shape[axis] // array.nbytes)
    return [
        tuple(slice(first, first + rows) if k == axis else slice(None) for k in range(array.ndim))
        for first in range(0, array.shape[axis], rows)
    ]


class FftwTransforms(Library):
    """FFTW's transforms, planned by measuring once.

    Parameters
    ----------
    threads
        That share the work.
    """

    kinds = _EVERY

    def __init__(self, threads: int = 1) -> None:
        self._fftw: Any = require("pyfftw", "fft", "FFTW")
        self._threads = max(1, threads)
        self.title = f"FFTW {self._fftw.fftw_version} (pyFFTW {self._fftw.__version__}), {self._threads} threads"

    def plan(
        self, kind: str, axes: Sequence[int], source: Values, target: Values, *, backward: bool = False
    ) -> Callable[[], None]:
        """Return the function that does a transform."""
        x = source.array()
        y = x if source.same(target) else target.array()
        if not x.size:
            return _nothing
        kept = [array.copy() for array in ([x] if y is x else [x, y])]  # measuring writes into both
        flags = ["FFTW_MEASURE"]
        if kind in REAL_KINDS:
            direction: Any = _FFTW[INVERSE[kind] if backward else kind]
        else:
            direction = "FFTW_BACKWARD" if backward else "FFTW_FORWARD"
            flags += ["FFTW_DESTROY_INPUT"] if backward else []
        found = self._fftw.FFTW(
            x, y, axes=tuple(axes), direction=direction, flags=tuple(flags), threads=self._threads,
            planning_timelimit=_PLANNING,
        )  # fmt: skip
        for array, values in zip((x, y), kept, strict=False):
            np.copyto(array, values)
        return found.execute


class HostTransforms(Library):
    """FFTW's Fourier transforms beside SciPy's of real kinds: each is the quicker one of the two.

    Parameters
    ----------
    threads
        That share the work.
    """

    kinds = _EVERY

    def __init__(self, threads: int = 1) -> None:
        self._complex, self._real = FftwTransforms(threads), ScipyTransforms(threads)
        self.title = f"{self._complex.title}, cosines and sines: {self._real.title}"

    def plan(
        self, kind: str, axes: Sequence[int], source: Values, target: Values, *, backward: bool = False
    ) -> Callable[[], None]:
        """Return the function that does a transform."""
        chosen = self._real if kind in REAL_KINDS else self._complex
        return chosen.plan(kind, axes, source, target, backward=backward)


def _nothing() -> None:
    """Do nothing."""
