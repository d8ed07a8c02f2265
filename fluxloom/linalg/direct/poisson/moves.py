"""What happens to the values of a Poisson problem before its systems are solved, and back after that.

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
from fluxloom.device.buffer import View, steps
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.poisson.bases import Basis
from fluxloom.linalg.direct.transforms import Transforms
from fluxloom.linalg.direct.transforms.ranks import Extent, Redistribution, divided

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
    def items(self, transforms: Transforms, source: DeviceArray, target: DeviceArray, *, back: bool) -> Items:
        """Return the calls from ``before`` to ``after``; or ``back``, but for a factor, which may destroy the source.

        Parameters
        ----------
        transforms
            Those of the device; where threads share the work, those of one thread.
        """


class Real(Move):
    """A real transform along an axis.

    Parameters
    ----------
    before
        Where the axis is not cut.
    axis, kind
        What is transformed, how.
    basis
        Of a transform by a matrix.
    in_place
        See `Move`.
    """

    def __init__(self, before: Form, axis: int, kind: str, basis: Basis | None, in_place: bool) -> None:
        self.before = self.after = before
        self.axis, self.kind, self.in_place = axis, kind, in_place
        self._given: dict[str, Any] = {} if basis is None else {"basis": basis}

    def items(self, transforms: Transforms, source: DeviceArray, target: DeviceArray, *, back: bool) -> Items:
        """Return the transform, or its inverse."""
        if not prod(source.shape):
            return []
        axis = self.axis
        if self.before.components > 1:
            shape = (prod(source.shape[:axis]), source.shape[axis], prod(source.shape[axis + 1 :]))
            in_place, axis = source is target, 1
            source = viewed(source, shape, source.dtype)
            target = source if in_place else viewed(target, shape, target.dtype)
        transform = transforms.backward if back else transforms.forward
        return list(transform(self.kind, (axis,), source, target, **self._given))


class Fourier(Move):
    """A Fourier transform of real values over axes; one axis alone where values have components already.

    Parameters
    ----------
    before
        Where the axes are not cut.
    axes
        Ascending; the last one is halved.
    """

    def __init__(self, before: Form, axes: tuple[int, ...]) -> None:
        last = axes[-1]
        lengths = tuple(n // 2 + 1 if k == last else n for k, n in enumerate(before.lengths))
        self.before, self.after = before, Form(lengths, before.factors, 2 * before.components)
        self._axes = axes

    def items(self, transforms: Transforms, source: DeviceArray, target: DeviceArray, *, back: bool) -> Items:
        """Return the transform, whose target is real with twice the components, or its inverse."""
        if not prod(source.shape):
            return []
        if back:
            axes, target, source = self._forms(target, source)
            return list(transforms.backward("dft", axes, source, target))
        axes, source, target = self._forms(source, target)
        return list(transforms.forward("dft", axes, source, target))

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
    context
        The ranks.
    before, after
        The divisions.
    dtype
        Of the values.
    number
        Of the move, for messages and profilers.
    """

    def __init__(self, context: Context, before: Form, after: Form, dtype: np.dtype[Any], number: int) -> None:
        self.before, self.after = before, after
        one, other = before.boxes, after.boxes
        self.there = Redistribution(context, one, other, dtype, f"poisson pencils {number}")
        self.back = Redistribution(context, other, one, dtype, f"poisson pencils back {number}")

    def items(self, transforms: Transforms, source: DeviceArray, target: DeviceArray, *, back: bool) -> Items:
        """Return packing, messages and unpacking."""
        return (self.back if back else self.there).items(source, target)
