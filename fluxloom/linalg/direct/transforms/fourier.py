r"""Fourier transforms by products with dense matrices, where no library is.

Complex values are pairs of real ones, so that :math:`Y = F X` is
:math:`\Re Y = C\, \Re X + S\, \Im X`, :math:`\Im Y = C\, \Im X - S\, \Re X` with
:math:`C_{kj} = \cos(2 \pi j k / n)`, :math:`S_{kj} = \sin(2 \pi j k / n)`. The inverse of the halved axis counts every
value but the first, and the last one of even ``n``, twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.transforms.matrix import Products, imaginary_part, real_part

__all__ = ["MatrixFourier", "circle"]

Items = list[Call | Enqueued]


def circle(n: int, rows: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the cosines and sines of ``2 pi j k / n``, ``(rows, n)``; angles are reduced as whole numbers first."""
    angles = 2 * np.pi * (np.arange(rows)[:, None] * np.arange(n)[None, :] % n) / n
    return np.cos(angles), np.sin(angles)


class MatrixFourier:
    """Makes the calls of transforms along several axes.

    Parameters
    ----------
    products
        Makes those of one product.
    room
        Returns working memory of a shape, a type and a number.
    """

    def __init__(self, products: Products, room: Callable[..., DeviceArray]) -> None:
        self._products, self._room = products, room

    def calls(
        self, axes: tuple[int, ...], source: DeviceArray, target: DeviceArray, name: str, *, backward: bool
    ) -> Items:
        """Return the calls of a transform; arrays and axes are those of `Transforms.forward`."""
        return self._back(axes, source, target, name) if backward else self._there(axes, source, target, name)

    def _there(self, axes: tuple[int, ...], source: DeviceArray, target: DeviceArray, name: str) -> Items:
        places = self._places(target, len(axes))
        cosines, sines = circle(source.shape[axes[-1]], target.shape[axes[-1]])
        make, last = self._products.calls, axes[-1]
        calls = make(cosines, last, source, real_part(places[0]), name)
        calls += make(-sines, last, source, imaginary_part(places[0]), name)
        for axis, x, y in zip(reversed(axes[:-1]), places, places[1:], strict=False):
            calls += self._complex(axis, x, y, name, 1.0)
        return calls

    def _back(self, axes: tuple[int, ...], source: DeviceArray, target: DeviceArray, name: str) -> Items:
        places = [source, *(self._room(source.shape, source.dtype, k % 2) for k in range(len(axes) - 1))]
        calls: Items = []
        for axis, x, y in zip(axes[:-1], places, places[1:], strict=False):
            calls += self._complex(axis, x, y, name, -1.0)
        n, half = target.shape[axes[-1]], source.shape[axes[-1]]
        cosines, sines = circle(n, half)
        twice = np.where((np.arange(half) == 0) | (2 * np.arange(half) == n), 1.0, 2.0)[:, None]
        make, last = self._products.calls, axes[-1]
        calls += make((twice * cosines).T, last, real_part(places[-1]), target, name)
        calls += make((-twice * sines).T, last, imaginary_part(places[-1]), target, name, accumulate=True)
        return calls

    def _places(self, target: DeviceArray, count: int) -> list[DeviceArray]:
        """Return where the values are after each of so many products: at the end in the target."""
        room = self._room(target.shape, target.dtype, 0) if count > 1 else target
        return [target if (count - 1 - k) % 2 == 0 else room for k in range(count)]

    def _complex(self, axis: int, x: DeviceArray, y: DeviceArray, name: str, sign: float) -> Items:
        """Return a transform of complex values along one axis; ``sign``: -1 of the inverse."""
        cosines, sines = circle(x.shape[axis], x.shape[axis])
        sines *= sign
        make = self._products.calls
        calls = make(cosines, axis, real_part(x), real_part(y), name)
        calls += make(sines, axis, imaginary_part(x), real_part(y), name, accumulate=True)
        calls += make(cosines, axis, imaginary_part(x), imaginary_part(y), name)
        return calls + make(-sines, axis, real_part(x), imaginary_part(y), name, accumulate=True)
