"""How the systems of arrays lie in memory: two axes of systems, one of right-hand sides, one of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from fluxloom.device.base import Device
from fluxloom.dsl.declare.arrays import DeviceArray

__all__ = ["Layout", "layout_of"]


@dataclass(frozen=True)
class Layout:
    """Systems in arrays.

    Attributes
    ----------
    y, x, diagonals
        Memory of right-hand sides, solutions, and a, b, c; copies where the arrays do not lie alike.
    rows, inner, outer, rhs
        Rows of a system, systems along two axes, right-hand sides.
    steps, coefficient_steps
        Distances of rows, inner and outer systems, in y and x, and in the diagonals.
    rhs_step
        Distance of right-hand sides.
    shared
        Whether all systems have one matrix.
    """

    y: DeviceArray
    x: DeviceArray
    diagonals: tuple[DeviceArray, ...]
    rows: int
    inner: int
    outer: int
    rhs: int
    steps: tuple[int, int, int]
    coefficient_steps: tuple[int, int, int]
    rhs_step: int
    shared: bool


def layout_of(device: Device, y: DeviceArray, x: DeviceArray, diagonals: tuple[DeviceArray, ...], axis: int) -> Layout:
    """Return the systems of arrays; solutions may have to be copied from ``x`` of the result.

    Parameters
    ----------
    diagonals
        Of the shape of y, perhaps without its first axes, or of one axis.
    axis
        Of y, along which rows stand.
    """
    shape = y.shape
    found = _found(y, x, diagonals, axis)
    if found is not None:
        return found
    dense = [_dense(device, array) for array in (y, *diagonals)]
    target = x if x.dense and x is not y else DeviceArray.zeros(device, shape, y.dtype)
    found = _found(dense[0], target, tuple(dense[1:]), axis)
    if found is None:
        raise AssertionError(f"systems along axis {axis} of dense arrays of the shape {shape} lie along two axes")
    return found


def _dense(device: Device, array: DeviceArray) -> DeviceArray:
    if array.dense and not array.first:
        return array
    found = DeviceArray.zeros(device, array.shape, array.dtype)
    device.assign(found.array(), array.array(write=False))
    return found


def _found(y: DeviceArray, x: DeviceArray, diagonals: tuple[DeviceArray, ...], axis: int) -> Layout | None:
    """Return the systems as the arrays lie, or None where no two steps tell where they are."""
    shape, first = y.shape, diagonals[0]
    shared = len(first.shape) == 1 and len(shape) > 1
    leading = 0 if shared else len(shape) - len(first.shape)
    alike = all(array.strides == first.strides and not array.first for array in diagonals)
    same = all(a == b for a, b, length in zip(y.strides, x.strides, shape, strict=True) if length > 1)
    if not alike or not same:
        return None
    own = (0,) * len(shape) if shared else (0,) * leading + first.strides
    sides = _merged([(shape[k], y.strides[k], 0) for k in range(leading)])
    systems = _merged([(shape[k], y.strides[k], own[k]) for k in range(leading, len(shape)) if k != axis])
    if len(sides) > 1 or len(systems) > 2:
        return None
    outer, inner = [(1, 0, 0)] * (2 - len(systems)) + systems
    return Layout(
        y, x, diagonals, shape[axis], inner[0], outer[0], prod(length for length, _, _ in sides),
        (y.strides[axis], inner[1] or 1, outer[1]), (first.strides[0] if shared else own[axis], inner[2], outer[2]),
        sides[0][1] if sides else 0, shared,
    )  # fmt: skip


def _merged(axes: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return axes, from the widest steps to the narrowest, with those put together that have one step in all arrays."""
    found: list[tuple[int, int, int]] = []
    for length, step, own in sorted((axis for axis in axes if axis[0] > 1), key=lambda axis: -abs(axis[1])):
        if found and found[-1][1] == step * length and found[-1][2] == own * length:
            found[-1] = (found[-1][0] * length, step, own)
        else:
            found.append((length, step, own))
    return found
