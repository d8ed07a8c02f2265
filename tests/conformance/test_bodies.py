"""What a kernel body may contain: arithmetic, branches, loops, local arrays, helpers, guards."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Const, Loop, Read, Write

from .harness import LAYOUTS, agree, compare, everywhere, expected, native

STEP = 0.125
OFFSETS = (3, 1, 2, 0)


@fl.func
def smooth(a, b):
    return 0.5 * (a + b) + fl.sqrt(fl.fabs(a - b))


@fl.func
def split(a):
    lower = fl.floor(a * 4)
    return lower, a - 0.25 * lower


@fl.kernel
def body(
    a: Read, k: Read, out: Write, n: Write, *,
    nu: float, shift: int, flag: bool, weights: Const[list[float]], table: Const[list[list[int]]], g: Const[float],
):  # fmt: skip
    w = [0.0, 0.5, 1.0, 1.5]
    for i in range(4):
        w[i] = w[i] * a[OFFSETS[i]] + weights[i % 3]
    m = fl.zeros(2, 2)
    m[1, 0] = a[k[0] % 4]
    m[0, k[1] % 2] = STEP
    total = 0.0
    for i in range(k[0] % 5):
        total += w[i % 4] * (i + 1)
    x = a[0] + 1.0
    trips = 0
    while x < 3.0 and trips < 12:
        x = x * 1.3 + STEP
        trips += 1
    lower, rest = split(a[1])
    y = total if flag else -total
    y += m[1, 0] - m[0, 1] + smooth(x, w[k[2] % 4])
    if (nu > 0.5 and k[0] > 3) or not flag:
        y -= nu
    elif k[1] == table[1][0]:
        y *= g
    else:
        y = y / (1.0 + a[2]) ** 2
    out[0] = y + rest
    out[1] = fl.select(a[0] < 0.5, lower, 2.0) - (k[0] - 10) % 7 + (-a[1]) % 0.3
    n[0] = (k[0] - 10) // 3 + trips
    n[1] = (k[1] - 10) % shift
    n[2] = abs(k[2] - 9) * table[0][1] + int(a[0] * 9) + min(k[0], k[1], shift) + max(k[2], 4)
    n[3] = -7 // (k[0] + 1) + (-7) % (k[1] + 1) + (k[2] - 9) // -4 + (k[2] - 9) % -4


def language(ctx, schedule=None, layout=None, dtype="float64", size=4099):
    rng = np.random.default_rng(4)
    over = ctx.set(size, "over")
    a = ctx.dat(over, rng.random((size, 4)), "a", dtype=dtype, layout=layout)
    k = ctx.dat(over, rng.integers(0, 20, (size, 3)), "k", dtype="int32", layout=layout)
    out = ctx.dat(over, shape=(2,), name="out", dtype=dtype, layout=layout)
    n = ctx.dat(over, shape=(4,), name="n", dtype="int64", layout=layout)
    constants = {
        "nu": 0.7, "shift": 6, "flag": True, "g": 1.4, "weights": [0.25, -1.0, 2.0], "table": [[1, 2], [3, 4]],
    }  # fmt: skip
    return [Loop(body, over, a, k, out, n, schedule=schedule, **constants)], {"out": out, "n": n}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(("device", "lanes"), everywhere([8, 1, 4, 16], [0], keep=2))
def test_bodies(device: str, layout: str, lanes: int) -> None:
    agree(language, device, layout=layout, schedule=fl.Schedule(lanes=lanes))


@fl.kernel
def guarded(k: Read, x: Read, n: Write, out: Write):
    """The right side of a boolean may be undefined where the left side decides."""
    n[0] = 0
    if k[0] != 0 and 12 // k[0] > 2:
        n[0] = 1
    if k[0] == 0 or 12 % k[0] == 0:
        n[0] += 2
    n[0] += 100 // k[0] if k[0] > 0 else -4
    j = k[1] - 1
    out[0] = 0.0
    if j >= 0 and j < 3 and x[j] > 0.5:
        out[0] = x[j]


@pytest.mark.parametrize(("device", "lanes"), everywhere([1, 8], [0]))
def test_guards(device: str, lanes: int) -> None:
    def case(ctx, layout=None, dtype="float64", schedule=None):
        rng = np.random.default_rng(5)
        over = ctx.set(4099, "over")
        k = ctx.dat(over, rng.integers(0, 6, (4099, 2)), dtype="int32")
        x = ctx.dat(over, rng.random((4099, 3)))
        n, out = ctx.dat(over, dtype="int64"), ctx.dat(over)
        return [Loop(guarded, over, k, x, n, out, schedule=schedule)], {"n": n, "out": out}

    compare(native(case, device, schedule=fl.Schedule(lanes=lanes)), expected(case))


