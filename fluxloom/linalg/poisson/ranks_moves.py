"""What happens to the values of a Poisson problem on a rank before its systems are solved, and back after that.

Between two moves values are real numbers without gaps. A Fourier transform makes real and imaginary parts of them,
which then are components of a value, along a last axis: as all that follows is real and linear, each component is
treated by itself, so that a later Fourier transform is one of real values, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fluxloom.device.base import Call, Enqueued
from fluxloom.device.exchange import View, steps
from fluxloom.dsl.arrays import DeviceArray
from fluxloom.linalg.poisson.bases import Basis
from fluxloom.linalg.transforms import Transforms
from fluxloom.linalg.transforms.ranks import Extent, Redistribution, divided

__all__ = ["Form", "Fourier", "Move", "Passage", "Real", "viewed"]

Items = list[Call | Enqueued]


@dataclass(frozen=True)
class Form:
    """What values are like between two moves: lengths of the global axes, boxes along them, components of a value."""

    lengths: tuple[int, ...]
    factors: tuple[int, ...]
    components: int = 1

    @property
    def boxes(self) -> list[Extent]:
        """The box of every rank; components are a last axis where there are several."""
        if self.components == 1:
            return divided(self.lengths, self.factors)
        return divided((*self.lengths, self.components), (*self.factors, 1))


def viewed(array: DeviceArray, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    """Return the memory of an array as a dense one from its beginning on."""
    kind = np.dtype(dtype)
    strides = tuple(kind.itemsize * step for step in steps(shape))
    return DeviceArray(array.device, array.buffer, View(shape, kind, strides))


class Move(ABC):
    """A move there and back.

    Attributes
    ----------
    before, after
        What values are like.
    in_place
        Whether it may write where it reads.
    """

    before: Form
    after: Form
    in_place = False

    @abstractmethod
    def there(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the calls from ``before`` to ``after``."""

    @abstractmethod
    def back(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the calls from ``after`` to ``before``; they may destroy the source."""


class Real(Move):
    """A real transform along an axis.

    Parameters
    ----------
    transforms
        Those of the device.
    before
        Where the axis is not cut.
    axis, kind
        What is transformed, how.
    basis
        Of a transform by a matrix.
    """

    in_place = True

    def __init__(self, transforms: Transforms, before: Form, axis: int, kind: str, basis: Basis | None) -> None:
        self.before = self.after = before
        self.in_place = kind != "matrix"
        self._transforms, self._axis, self._kind = transforms, axis, kind
        self._given: dict[str, Any] = {} if basis is None else {"basis": basis}

    def there(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the transform."""
        return self._moved(self._transforms.forward, source, target)

    def back(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return its inverse, but for a factor."""
        return self._moved(self._transforms.backward, source, target)

    def _moved(self, transform: Any, source: DeviceArray, target: DeviceArray) -> Items:
        if not prod(source.shape):
            return []
        axis = self._axis
        if self.before.components > 1:
            shape = (prod(source.shape[:axis]), source.shape[axis], prod(source.shape[axis + 1 :]))
            in_place, axis = source is target, 1
            source = viewed(source, shape, source.dtype)
            target = source if in_place else viewed(target, shape, target.dtype)
        return list(transform(self._kind, (axis,), source, target, **self._given))


class Fourier(Move):
    """A Fourier transform of real values over axes; one axis alone where values have components already.

    Parameters
    ----------
    transforms
        Those of the device.
    before
        Where the axes are not cut.
    axes
        Ascending; the last one is halved.
    """

    def __init__(self, transforms: Transforms, before: Form, axes: tuple[int, ...]) -> None:
        last = axes[-1]
        lengths = tuple(n // 2 + 1 if k == last else n for k, n in enumerate(before.lengths))
        self.before, self.after = before, Form(lengths, before.factors, 2 * before.components)
        self._transforms, self._axes = transforms, axes

    def there(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the transform; the target is real, with twice the components."""
        if not prod(source.shape):
            return []
        axes, source, target = self._forms(source, target)
        return list(self._transforms.forward("dft", axes, source, target))

    def back(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return its inverse, but for a factor."""
        if not prod(source.shape):
            return []
        axes, target, source = self._forms(target, source)
        return list(self._transforms.backward("dft", axes, source, target))

    def _forms(self, real: DeviceArray, pairs: DeviceArray) -> tuple[tuple[int, ...], DeviceArray, DeviceArray]:
        """Return axes, values and spectrum as the transform takes them."""
        complex_kind = np.result_type(real.dtype, np.complex64)
        last = self._axes[-1]
        if self.before.components == 1:
            view = pairs.view
            whole = View(view.shape[:-1], complex_kind, view.strides[:-1], view.offset)
            return self._axes, real, DeviceArray(pairs.device, pairs.buffer, whole)
        outer, n, inner = prod(real.shape[:last]), real.shape[last], prod(real.shape[last + 1 :])
        spectrum = viewed(pairs, (outer, n // 2 + 1, inner), complex_kind)
        return (1,), viewed(real, (outer, n, inner), real.dtype), spectrum


class Passage(Move):
    """Values go from one division over the ranks to another. Collective to make.

    Parameters
    ----------
    before, after
        The divisions.
    there, back
        What carries the values.
    """

    def __init__(self, before: Form, after: Form, there: Redistribution, back: Redistribution) -> None:
        self.before, self.after, self.there_by, self.back_by = before, after, there, back

    def there(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return packing, messages and unpacking."""
        return self.there_by.items(source, target)

    def back(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the same the other way."""
        return self.back_by.items(source, target)
