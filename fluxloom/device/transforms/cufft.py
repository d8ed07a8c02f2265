"""Transforms of arrays in the memory of an NVIDIA GPU by cuFFT, through the plans of CuPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.transforms.dft import Library, Values, merged

if TYPE_CHECKING:
    from fluxloom.device.cuda.device import CudaDevice

__all__ = ["CufftTransforms", "Layout", "layout"]

_MOST_STARTS, _MOST_AXES, _MOST_STEP = 32, 3, 2**31 - 1
"""Starts of one plan at different places that are better than a copy in another order; axes; distance in values."""

_CODES = {"forward": ("R2C", "D2Z"), "backward": ("C2R", "Z2D"), "complex": ("C2C", "Z2Z")}


@dataclass(frozen=True)
class Layout:
    """What cuFFT's advanced layout says of a batch of transforms.

    Attributes
    ----------
    lengths
        Of the transformed axes.
    batch
        Transforms of one start.
    embeds, strides, distances
        Of the source and of the target: the lengths of the arrays that the axes are cut out of, the step of the last
        axis, that from transform to transform, in values.
    starts
        First values of source and target, of each start.
    """

    lengths: tuple[int, ...]
    batch: int
    embeds: tuple[tuple[int, ...], tuple[int, ...]]
    strides: tuple[int, int]
    distances: tuple[int, int]
    starts: tuple[tuple[int, int], ...]


def layout(axes: Sequence[int], source: Values, target: Values) -> Layout | None:
    """Return how transforms along some axes lie in two arrays; None where cuFFT has no words for it, or only many.

    Parameters
    ----------
    axes
        Ascending.
    """
    if not 0 < len(axes) <= _MOST_AXES:
        return None
    both = (source, target)
    lengths = tuple(max(v.view.shape[a] for v in both) for a in axes)
    embeds = [_embed([v.view.shape[a] for a in axes], [v.steps[a] for a in axes]) for v in both]
    if embeds[0] is None or embeds[1] is None:
        return None
    others = [k for k in range(len(source.view.shape)) if k not in axes]
    rest = merged(*([values[k] for k in others] for values in (source.view.shape, source.steps, target.steps)))
    batch = max(rest, key=lambda item: item[0], default=(1, 1, 1))
    if rest:
        rest.remove(batch)
    if prod(length for length, _, _ in rest) > _MOST_STARTS:
        return None
    if max(map(abs, (*batch, *source.steps, *target.steps))) > _MOST_STEP or min((*source.steps, *target.steps)) < 0:
        return None
    starts = tuple(
        (sum(i * s for i, (_, s, _) in zip(place, rest, strict=True)),
         sum(i * t for i, (_, _, t) in zip(place, rest, strict=True)))
        for place in itertools.product(*(range(length) for length, _, _ in rest))
    )  # fmt: skip
    steps = tuple(max(1, v.steps[axes[-1]]) for v in both)
    return Layout(lengths, batch[0], (embeds[0], embeds[1]), (steps[0], steps[1]), (batch[1], batch[2]), starts)


def _embed(lengths: Sequence[int], steps: Sequence[int]) -> tuple[int, ...] | None:
    """Return the lengths of the array that axes are cut out of; None where there is none."""
    found = [lengths[0]]
    for k in range(1, len(lengths)):
        if lengths[k - 1] == 1 or not steps[k]:
            found.append(lengths[k])
        elif steps[k - 1] % steps[k] or steps[k - 1] // steps[k] < lengths[k]:
            return None
        else:
            found.append(steps[k - 1] // steps[k])
    return tuple(found)


class CufftTransforms(Library):
    """cuFFT's transforms, on the stream of the device. Their working memory is taken when they are planned.

    Parameters
    ----------
    device
        The GPU.

    Raises
    ------
    DeviceUnavailable
        When CuPy does not find the library.
    """

    kinds = frozenset({"dft", "complex"})
    capturable = True

    def __init__(self, device: CudaDevice) -> None:
        try:
            self._cufft: Any = import_module("cupy.cuda.cufft")
        except ImportError as error:
            raise DeviceUnavailable(
                f"CuPy does not find cuFFT ({error}): install the CUDA toolkit, or pip install nvidia-cufft-cu12 "
                "(nvidia-cufft for CUDA 13)"
            ) from error
        self._device = device
        version = int(self._cufft.getVersion())
        self.title = f"cuFFT {version // 1000}.{version % 1000 // 100}.{version % 100}"

    def accepts(self, kind: str, axes: Sequence[int], source: Values, target: Values) -> bool:
        """Whether arrays that lie like these can be transformed where they are, in a few starts."""
        if kind not in self.kinds:
            return False
        found = layout(axes, source, target)
        if found is None:
            return False
        # without regard to the type, cuFFT wants addresses as those of complex values
        size = max(v.view.dtype.itemsize for v in (source, target))
        firsts = [(source, first) for first, _ in found.starts] + [(target, second) for _, second in found.starts]
        return not any((v.buffer.address + v.view.offset + k * v.view.dtype.itemsize) % size for v, k in firsts)

    def plan(
        self, kind: str, axes: Sequence[int], source: Values, target: Values, *, backward: bool = False
    ) -> Callable[[], None]:
        """Return the function that does a transform."""
        found = layout(axes, source, target)
        assert found is not None
        code = self._code(kind, source.view.dtype, backward)
        starts = [(_place(source, first), _place(target, second)) for first, second in found.starts]
        kept, device = (source, target), self._device
        direction = self._cufft.CUFFT_INVERSE if backward else self._cufft.CUFFT_FORWARD
        if not prod(source.view.shape):
            return _nothing
        with device.active(), device.stream:  # the working memory belongs to the stream it is taken on
            plan = self._cufft.PlanNd(
                found.lengths, found.embeds[0], found.strides[0], found.distances[0], found.embeds[1],
                found.strides[1], found.distances[1], code, found.batch, "C", axes[-1], None,
            )  # fmt: skip

        def run(kept: Any = kept) -> None:
            with device.active(), device.stream:
                for first, second in starts:
                    plan.fft(first, second, direction)

        return run

    def _code(self, kind: str, dtype: np.dtype[Any], backward: bool) -> int:
        """Return cuFFT's number of a transform of values of a type."""
        names = _CODES["complex" if kind == "complex" else "backward" if backward else "forward"]
        single = dtype in (np.float32, np.complex64)
        return int(getattr(self._cufft, f"CUFFT_{names[0 if single else 1]}"))


class _Place:
    """An address, as the plans of CuPy take it from arrays."""

    def __init__(self, address: int) -> None:
        self.ptr = address

    @property
    def data(self) -> _Place:
        """What has the address."""
        return self


def _place(values: Values, first: int) -> _Place:
    """Return the address of a value of an array."""
    return _Place(values.buffer.address + values.view.offset + first * values.view.dtype.itemsize)


def _nothing() -> None:
    """Do nothing."""
