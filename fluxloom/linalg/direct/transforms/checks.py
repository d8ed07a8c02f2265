"""Whether what a transform is given fits, and arrays over the memory of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluxloom.core.errors import PlanError, did_you_mean
from fluxloom.device.buffer import View
from fluxloom.device.transforms.dft import REAL_KINDS, Values, pair_type
from fluxloom.dsl.declare.arrays import DeviceArray

__all__ = ["check", "require_kind", "turned", "values_of"]

_KINDS = ("dft", *REAL_KINDS, "matrix")


def require_kind(kind: str) -> None:
    """Raise `PlanError` when there is no such transform."""
    if kind not in _KINDS:
        raise PlanError(f"no transform {kind!r}: use one of {', '.join(_KINDS)}{did_you_mean(kind, _KINDS)}")


def check(
    kind: str, axes: Sequence[int], source: DeviceArray, target: DeviceArray, basis: Any, *, backward: bool
) -> None:
    """Raise `PlanError` when arrays, axes and kind do not fit."""
    require_kind(kind)
    real, other = (target, source) if backward else (source, target)
    shape = real.shape
    if not axes or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= len(shape):
        raise PlanError(f"{kind}: axes {tuple(axes)} of an array with {len(shape)}: give them ascending, each once")
    if kind != "dft" and len(axes) != 1:
        raise PlanError(f"{kind}: one axis at a time, not {tuple(axes)}")
    if (kind == "matrix") is (basis is None):
        raise PlanError(f"{kind}: a basis belongs to the kind 'matrix', and to no other")
    if kind == "dct1" and shape[axes[0]] < 2:
        raise PlanError(f"dct1: axis {axes[0]} has {shape[axes[0]]} value, and there is no such transform below 2")
    if real.dtype not in (np.float64, np.float32):
        raise PlanError(f"{kind}: values of {real.dtype}: they have to be float64 or float32")
    halved = tuple(n // 2 + 1 if kind == "dft" and k == axes[-1] else n for k, n in enumerate(shape))
    wanted = pair_type(real.dtype) if kind == "dft" else real.dtype
    if other.shape != halved or other.dtype != wanted:
        raise PlanError(
            f"{kind}: real values {shape} of {real.dtype} have a spectrum {halved} of {wanted}, and it is given "
            f"{other.shape} of {other.dtype}"
        )


def values_of(array: DeviceArray) -> Values:
    """Return an array as the layer of devices knows it."""
    return Values(array.buffer, array.view)


def turned(array: DeviceArray, order: Sequence[int]) -> DeviceArray:
    """Return an array with its axes in another order, over the same memory."""
    view = array.view
    shape, strides = (tuple(values[k] for k in order) for values in (view.shape, view.strides))
    return DeviceArray(array.device, array.buffer, View(shape, view.dtype, strides, view.offset))
