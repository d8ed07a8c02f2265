r"""Passes over the values of a Poisson problem besides transforms and tridiagonal systems.

- ``copy``: between arrays with gaps.
- ``side``: the boundary data of a side go to the right-hand side, ``x -= factor g``.
- ``divide``: ``x = scale y / (lambda_0 + lambda_1 + lambda_2)`` where every direction is diagonal.
- ``fit``: takes the weighted mean from one line, the constant mode of a singular problem across a direction whose
  tridiagonal system is solved, so that the system has a solution; ``centre``: the same with the solution.

Arrays that are divided have three axes, missing ones in front with length 1; a value is ``parts`` numbers, 2 where it
is complex.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.bodies import group_sum, over
from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.core.dtypes import scalar
from fluxloom.device.base import Call, Device
from fluxloom.device.buffer import View
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Operand, Primitive
from fluxloom.linalg.direct.transforms.mover import Mover, Place

__all__ = ["Passes", "line_of", "pass_functions"]

_BLOCK = 256

_SIDE = "x[x_first + i * x0 + j * x1] -= (real)factor * g[i * g0 + j * g1];"

_DIVIDE = """
    const real zero = y[y_first];
#pragma omp parallel for schedule(static) num_threads(fl_threads(threads)) if (threads != 1 && n0 * n1 * n2 > 16384)
    for (int64_t i = 0; i < n0; i++)
        for (int64_t j = 0; j < n1; j++) {
            const real sum = l0[i] + l1[j];
            const real *const from = y + y_first + i * y0 + j * y1;
            real *const to = x + x_first + i * x0 + j * x1;
            for (int64_t k = 0; k < n2; k++) {
                const real factor = (real)scale / (sum + l2[k]);
                for (int64_t part = 0; part < parts; part++) to[k * x2 + part] = factor * from[k * y2 + part];
            }
        }
    if (singular) {
        for (int64_t part = 0; part < parts; part++) x[x_first + part] = 0;
        mean[0] = zero * (real)gain;
    }
"""
_DIVIDE_ITEM = """
    if (FL_ITEM < n0 * n1 * n2) {
        const int64_t k = FL_ITEM % n2, j = FL_ITEM / n2 % n1, i = FL_ITEM / n2 / n1;
        const int zero = singular && FL_ITEM == 0;
        const real factor = zero ? (real)0 : (real)scale / (l0[i] + l1[j] + l2[k]);
        if (zero) mean[0] = y[y_first] * (real)gain;
        for (int part = 0; part < (int)parts; part++)
            x[x_first + i * x0 + j * x1 + k * x2 + part] = factor * y[y_first + i * y0 + j * y1 + k * y2 + part];
    }
"""


def _fit(block: int) -> str:
    """Return the body of ``fit``, for a group of so many items."""
    return group_sum("w[i] * y[y_first + i * y_step]", "n", block, "real") + f"""
    for (int64_t i = FL_MEMBER; i < n; i += {block}) x[x_first + i * x_step] = y[y_first + i * y_step] - part[0];
    if (FL_MEMBER == 0) mean[0] = part[0] * (real)gain;
"""


def _numbers(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter("int64_t", name) for name in names)


def _steps(*letters: str) -> tuple[Parameter, ...]:
    return _numbers(*(f"{letter}{end}" for letter in letters for end in ("_first", "0", "1", "2")))


def pass_functions(real: str, *, items: bool) -> list[Function]:
    """Return the functions for a type of values, as kernels of work items or as plain ones."""
    pointer = f"{real} *"
    y, x = Parameter(pointer, "y", shared=True), Parameter(pointer, "x", written=True, shared=True)
    mean = Parameter(pointer, "mean", written=True)
    tables = [Parameter(pointer, name) for name in ("l0", "l1", "l2")]
    box, gain = _numbers("n0", "n1", "n2"), Parameter("double", "gain")
    block = _BLOCK if items else 1
    bodies = {
        "side": over({"i": "n0", "j": "n1"}, _SIDE, items=items),
        "divide": _DIVIDE_ITEM if items else _DIVIDE,
        "fit": _fit(block),
    }
    given: dict[str, tuple[Parameter, ...]] = {
        "side": (
            Parameter(pointer, "g"), x, *_numbers("n0", "n1", "x_first", "x0", "x1", "g0", "g1"),
            Parameter("double", "factor"),
        ),
        "divide": (
            y, x, *tables, mean, *box, *_steps("y", "x"), *_numbers("parts", "singular", "threads"),
            Parameter("double", "scale"), gain,
        ),
        "fit": (
            y, x, Parameter(pointer, "w"), mean, *_numbers("n", "y_first", "y_step", "x_first", "x_step"), gain,
        ),
    }  # fmt: skip
    return [Function(name, given[name], bodies[name], block) for name in given]


def line_of(array: DeviceArray, axis: int) -> DeviceArray:
    """Return the first line along an axis, over the same memory."""
    view = array.view
    return DeviceArray(
        array.device, array.buffer, View((view.shape[axis],), view.dtype, (view.strides[axis],), view.offset)
    )


class Passes:
    """The passes, compiled for a device and a type of values.

    Parameters
    ----------
    device
        Runs generated code.
    dtype
        ``float64`` or ``float32``.
    threads
        Threads of a pass, where the device has them.
    """

    def __init__(self, device: Device, dtype: npt.DTypeLike, threads: int) -> None:
        self.dtype, self.threads = np.dtype(dtype), threads
        real = scalar(self.dtype).c
        self._primitive = Primitive(
            device, pass_functions(real, items=device.items), f"poisson_{real}", f"typedef {real} real;"
        )

    @cached_property
    def _mover(self) -> Mover:
        return Mover(self._primitive.device, self.dtype, self.threads)

    def copy(self, source: DeviceArray, target: DeviceArray) -> Call:
        """Return the call that copies real values."""
        return self._mover.call(source.shape, Place.of(source), Place.of(target), "poisson copy")

    def side(self, target: DeviceArray, axis: int, end: int, data: npt.NDArray[Any], factor: float) -> Call:
        """Return the call ``x = x - factor g`` that takes the data of a side from the first (0) or last (-1) values."""
        shape = tuple(n for k, n in enumerate(target.shape) if k != axis)
        steps = [step for k, step in enumerate(target.strides) if k != axis]
        table = np.array(data, dtype=self.dtype, order="C")
        own = [step // table.itemsize for step in np.broadcast_to(table, shape).strides]
        missing = 2 - len(shape)
        n, x, g = [1] * missing + list(shape), [0] * missing + steps, [0] * missing + own
        first = target.first + (target.strides[axis] * (target.shape[axis] - 1) if end else 0)
        given: dict[str, Operand] = {
            "g": table.reshape(-1), "x": target, "n0": n[0], "n1": n[1], "x_first": first, "x0": x[0], "x1": x[1],
            "g0": g[0], "g1": g[1], "factor": float(factor),
        }  # fmt: skip
        return self._primitive.call("side", given, n[0] * n[1], "poisson boundary")

    def divide(
        self, source: DeviceArray, target: DeviceArray, eigenvalues: Sequence[npt.NDArray[np.float64]],
        mean: DeviceArray, *, scale: float, singular: bool, gain: float,
    ) -> Call:  # fmt: skip
        """Return the call that divides by the sum of eigenvalues, one list an axis; ``mean = gain y_0`` if singular."""
        parts, missing = 2 if target.dtype.kind == "c" else 1, 3 - len(target.shape)
        lists = [np.zeros(1)] * missing + list(eigenvalues)
        given: dict[str, Operand] = {
            "y": source, "x": target, "mean": mean, "parts": parts, "singular": int(singular),
            "threads": self.threads, "scale": scale, "gain": gain,
        }  # fmt: skip
        for k, (length, one) in enumerate(zip((1,) * missing + target.shape, lists, strict=True)):
            given |= {f"n{k}": length, f"l{k}": one.astype(self.dtype)}
        for letter, array in (("y", source), ("x", target)):
            given[f"{letter}_first"] = parts * array.first
            given |= {f"{letter}{k}": parts * step for k, step in enumerate((0,) * missing + array.strides)}
        return self._primitive.call("divide", given, prod(target.shape), "poisson divide")

    def fit(
        self, source: DeviceArray, target: DeviceArray, weights: npt.NDArray[np.float64], mean: DeviceArray, *,
        gain: float, name: str,
    ) -> Call:  # fmt: skip
        """Return the call that takes the weighted mean from a line, ``(n,)``; ``mean`` is ``gain`` of it."""
        given: dict[str, Operand] = {
            "y": source, "x": target, "w": (weights / weights.sum()).astype(self.dtype), "mean": mean,
            "n": target.shape[0], "y_first": source.first, "y_step": source.strides[0], "x_first": target.first,
            "x_step": target.strides[0], "gain": gain,
        }  # fmt: skip
        return self._primitive.call("fit", given, 1, name)
