"""Random systems, their memory, and their solution by dense matrices, for tests of the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Device
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Primitive, Steps
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines, Method, parameters

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Systems:
    """Systems of random diagonally dominant matrices and random right-hand sides.

    ``a, b, c``: rows of every system; ``y``: rows, systems, right-hand sides; ``given``: what kernels get.
    """

    form: Form
    lines: Lines
    a: Array
    b: Array
    c: Array
    y: Array
    given: dict[str, Array]
    pinned: int = -1

    def matrix(self, q: int) -> Array:
        """Return the dense matrix of a system."""
        n, rows = self.lines.rows, np.arange(self.lines.rows)
        found = np.zeros((n, n))
        np.add.at(found, (rows, rows), self.b[:, q])
        if q == self.pinned:
            found[0, 0] *= 2
        for side, values in ((-1, self.a[:, q]), (1, self.c[:, q])):
            kept = rows if self.form.periodic else rows[1:] if side < 0 else rows[:-1]
            np.add.at(found, (kept, (kept + side) % n), values[kept])
        return found

    def solution(self, scale: float) -> Array:
        """Return the solutions by dense elimination: rows, systems, right-hand sides."""
        found = np.empty_like(self.y)
        for q in range(self.lines.systems):
            found[:, q] = np.linalg.solve(self.matrix(q), scale * self.y[:, q])
        return found


def kind(form: Form) -> type[np.floating[Any]]:
    """Return the type of the values."""
    return np.float64 if form.real == "double" else np.float32


def layout(rows: int, inner: int, outer: int, rhs: int, order: str) -> Lines:
    """Return lines that fill memory; ``order`` names the axes from the slowest: ``"n"`` rows, ``"r"`` right sides."""
    lengths, steps, step = {"n": rows, "i": inner, "o": outer, "r": rhs}, {}, 1
    for axis in reversed(order):
        steps[axis] = step
        step *= lengths[axis]
    return Lines(rows, inner, outer, rhs, steps["n"], steps["i"], steps["o"], steps["r"])


def random_systems(form: Form, lines: Lines, seed: int = 0, pinned: int = -1) -> Systems:
    """Return systems; unread values at their ends are not numbers."""
    generator = np.random.default_rng(seed)
    n, count, real = lines.rows, lines.systems, kind(form)
    own = count if form.coefficients == "each" else 1
    a, c = (generator.uniform(-1, 1, (n, own)).astype(real) for _ in range(2))
    b = (np.abs(a) + np.abs(c) + generator.uniform(0.5, 2, (n, own))).astype(real)
    mass, inner, outer = (generator.uniform(0.5, 2, k).astype(real) for k in (n, lines.inner, lines.outer))
    y = generator.uniform(-1, 1, (n, count, lines.rhs)).astype(real)
    whole = b + np.zeros((1, count))
    if form.coefficients == "shifted":
        whole = b + mass[:, None] * (inner[None, :] + outer[:, None]).reshape(1, -1)
    found = {"mass": mass, "inner_shift": inner, "outer_shift": outer}
    for name, values in (("a", a), ("b", b), ("c", c)):
        stored = values.copy()
        if not form.periodic and name != "b":
            stored[0 if name == "a" else n - 1] = np.nan
        found[name] = stored if own == 1 else spread(stored[:, :, None], replace(lines, rhs=1))
    found["y"] = spread(y, lines)
    wide = [np.broadcast_to(v, (n, count)).astype(np.float64) for v in (a, c)]
    return Systems(form, lines, wide[0], whole.astype(np.float64), wide[1], y.astype(np.float64), found, pinned)


def places(lines: Lines) -> npt.NDArray[np.int64]:
    """Return where each value lies: rows, systems, right-hand sides."""
    i, o, s, r = np.ix_(*(range(k) for k in (lines.rows, lines.outer, lines.inner, lines.rhs)))
    at = lines.first + i * lines.row_step + o * lines.outer_step + s * lines.inner_step + r * lines.rhs_step
    return at.reshape(lines.rows, lines.systems, lines.rhs)


def spread(values: Array, lines: Lines) -> Array:
    """Return values as they lie in memory."""
    at = places(lines)
    found = np.full(int(at.max()) + 1, 7.0, values.dtype)
    found[at] = values
    return found


def solve(
    device: Device, method: Method, systems: Systems, scale: float = 1.0, *, inplace: bool = False
) -> tuple[Array, int]:
    """Return the solutions by a method, rows, systems, right-hand sides, and what ``status`` became."""
    form, lines = systems.form, systems.lines
    assert not method.refuses(form, lines)
    memory: dict[str, DeviceArray] = {k: DeviceArray.of(device, v.ravel()) for k, v in systems.given.items()}
    memory["x"] = memory["y"] if inplace else DeviceArray.zeros(device, memory["y"].shape, kind(form))
    code = method.code(form, lines)
    memory["work"] = DeviceArray.zeros(device, (code.words,), kind(form))
    memory["status"] = DeviceArray.zeros(device, (1,), np.int32)
    own = form.coefficients == "each"
    numbers = {
        "rows": lines.rows, "inner": lines.inner, "outer": lines.outer, "y_first": lines.first, "x_first": lines.first,
        "row_step": lines.row_step, "inner_step": lines.inner_step, "outer_step": lines.outer_step,
        "rhs_step": lines.rhs_step, "c_row": lines.row_step if own else 1, "c_inner": lines.inner_step if own else 0,
        "c_outer": lines.outer_step if own else 0, "pinned": systems.pinned, "scale": scale,
    }  # fmt: skip
    primitive = Primitive(device, code.functions, "systems", code.helpers)
    assert set(numbers | memory) == {p.name for p in parameters(form)}
    counted = zip(code.functions, code.items, strict=True)
    calls = [primitive.call(function.symbol, numbers | memory, items) for function, items in counted]
    buffers = [v.buffer for k, v in memory.items() if k not in ("work", "status") or k == "status"]
    written = [memory[k].buffer for k in ("x", "work", "status")]
    Steps(device, calls, [b for b in buffers if b is not memory["x"].buffer or inplace], written)()
    return memory["x"].host()[places(lines)], int(memory["status"].host()[0])
