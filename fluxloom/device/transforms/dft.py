"""Discrete Fourier, cosine and sine transforms by libraries, in the memory that values have on a device.

The transforms are not normalised. With ``n`` values ``x_j``, ``j = 0 ... n - 1``:

========  ============================================================================================
dft       ``y_k = sum_j x_j exp(-2 pi i j k / n)``, of real values; of the last axis only ``k <= n / 2``
complex   the same of complex values
dct1      ``y_k = x_0 + (-1)^k x_(n-1) + 2 sum_(0<j<n-1) x_j cos(pi j k / (n - 1))``, ``n > 1``
dct2      ``y_k = 2 sum_j x_j cos(pi k (2 j + 1) / (2 n))``
dct3      ``y_k = x_0 + 2 sum_(j>0) x_j cos(pi (2 k + 1) j / (2 n))``
dct4      ``y_k = 2 sum_j x_j cos(pi (2 k + 1) (2 j + 1) / (4 n))``
dst1      ``y_k = 2 sum_j x_j sin(pi (j + 1) (k + 1) / (n + 1))``
dst2      ``y_k = 2 sum_j x_j sin(pi (k + 1) (2 j + 1) / (2 n))``
dst3      ``y_k = (-1)^k x_(n-1) + 2 sum_(j<n-1) x_j sin(pi (2 k + 1) (j + 1) / (2 n))``
dst4      ``y_k = 2 sum_j x_j sin(pi (2 k + 1) (2 j + 1) / (4 n))``
========  ============================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.device.base import Buffer
from fluxloom.device.buffer import View

__all__ = ["INVERSE", "REAL_KINDS", "Library", "Values", "merged", "pair_type"]

REAL_KINDS = ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4")
"""Transforms of real values to as many real ones, along one axis."""

INVERSE = {**{kind: kind for kind in REAL_KINDS}, "dct2": "dct3", "dct3": "dct2", "dst2": "dst3", "dst3": "dst2"}
"""Which transform undoes another one, but for a factor."""


@dataclass(frozen=True)
class Values:
    """An array in the memory of a device: the buffer, and where in it the values are."""

    buffer: Buffer
    view: View

    @property
    def steps(self) -> tuple[int, ...]:
        """Distances between neighbours along each axis, in values."""
        return tuple(stride // self.view.dtype.itemsize for stride in self.view.strides)

    def same(self, other: Values) -> bool:
        """Whether two arrays are the same values in memory."""
        return self.buffer.address == other.buffer.address and self.view == other.view

    def array(self) -> Any:
        """Return an array of the device's library over the memory."""
        return self.buffer.array(self.view)


class Library(ABC):
    """Transforms of one library on one device.

    Attributes
    ----------
    title
        Its name and version.
    kinds
        What it transforms by itself.
    capturable
        Whether what it asks of the device can be part of a graph, see `fluxloom.device.base.Enqueued`.
    """

    title: str
    kinds: frozenset[str]
    capturable: bool = False

    def accepts(self, kind: str, axes: Sequence[int], source: Values, target: Values) -> bool:
        """Whether arrays that lie like these can be transformed where they are."""
        return kind in self.kinds

    @abstractmethod
    def plan(
        self, kind: str, axes: Sequence[int], source: Values, target: Values, *, backward: bool = False
    ) -> Callable[[], None]:
        """Return the function that does a transform, or its inverse without the normalisation.

        Parameters
        ----------
        kind
            See this module.
        axes
            Ascending. The last one of a ``"dft"`` has ``n // 2 + 1`` complex values in the array of the spectrum.
        source, target
            Arrays; one and the same, or without a common value. They keep their values while the plan is made.
        backward
            Whether the inverse is wanted; it may destroy the source.
        """


def pair_type(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex type of two real numbers of a type."""
    return np.dtype(np.result_type(kind, np.complex64))


def merged(lengths: Sequence[int], first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return axes as ``(length, step, other step)``, joined where both arrays allow it; large steps first."""
    axes = [item for item in zip(lengths, first, second, strict=True) if item[0] != 1]
    axes.sort(key=lambda item: (-item[1], -item[2]))
    found: list[tuple[int, int, int]] = []
    for length, step, other in axes:
        if found and found[-1][1:] == (length * step, length * other):
            found[-1] = (found[-1][0] * length, step, other)
        else:
            found.append((length, step, other))
    return found
