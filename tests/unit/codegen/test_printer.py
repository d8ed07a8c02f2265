"""Expressions: the C that is printed means what Python means."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop, Read, Write
from fluxloom.codegen.tables import literal
from fluxloom.core.dtypes import FLOAT32, FLOAT64
from fluxloom.kernel.ir import Kind
from fluxloom.toolchain import load_library

INTS = [-(2**40), -1000003, -17, -12, -7, -3, -2, -1, 0, 1, 2, 3, 5, 12, 17, 1000003, 2**40]
REALS = [-1e300, -7.5, -3.0, -1.0, -0.3, -1e-300, 0.0, 0.1, 0.3, 1.0, 2.5, 3.0, 1e15, 1e300]


@fl.kernel
def integer_division(a: Read, q: Write, r: Write):
    q[0] = a[0] // a[1]
    r[0] = a[0] % a[1]


@fl.kernel
def real_division(a: Read, q: Write, r: Write, d: Write):
    q[0] = a[0] // a[1]
    r[0] = a[0] % a[1]
    d[0] = a[0] / a[1]


@pytest.mark.parametrize("lanes", [1, 8])
def test_integer_division(lanes: int) -> None:
    pairs = np.array([(a, b) for a in INTS for b in INTS if b])
    ctx = fl.Context("cpu")
    over = ctx.set(len(pairs), "pairs")
    a, q, r = ctx.dat(over, pairs), ctx.dat(over, dtype="int64"), ctx.dat(over, dtype="int64")
    Loop(integer_division, over, a, q, r, schedule=fl.Schedule(lanes=lanes))()
    assert q.read().tolist() == [int(x) // int(y) for x, y in pairs]
    assert r.read().tolist() == [int(x) % int(y) for x, y in pairs]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_real_division(lanes: int, dtype: str) -> None:
    limit = 1e30 if dtype == "float32" else math.inf
    values = [x for x in REALS if abs(x) < limit and (abs(x) > 1e-30 or x == 0 or dtype == "float64")]
    pairs = np.array([(a, b) for a in values for b in values if b], dtype=dtype)
    ctx = fl.Context("cpu")
    over = ctx.set(len(pairs), "pairs")
    a, q, r, d = ctx.dat(over, pairs), *(ctx.dat(over, dtype=dtype) for _ in range(3))
    Loop(real_division, over, a, q, r, d, schedule=fl.Schedule(lanes=lanes))()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(q.read(), pairs[:, 0] // pairs[:, 1])
        np.testing.assert_array_equal(r.read(), pairs[:, 0] % pairs[:, 1])
        np.testing.assert_array_equal(d.read(), pairs[:, 0] / pairs[:, 1])


@fl.kernel
def signs(a: Read, k: Read, x: Write, n: Write):
    x[0] = -a[0]
    x[1] = -(-a[0]) - -2.0  # noqa: B002
    x[2] = a[0] ** 2 - 3 * -a[0]
    x[3] = -(a[0] ** 2)
    x[4] = 2.0**-2 * -1
    n[0] = -k[0] - -k[0] * -2
    n[1] = -(k[0] // -2) + -(-k[0])  # noqa: B002
    n[2] = 1 if not k[0] > 0 or a[0] < 0 else -1
    n[3] = -9223372036854775807 + k[0] * 0


def test_negative_numbers() -> None:
    values = np.array([-2.5, -0.0, 0.0, 1.5])
    results = []
    for device in ("reference", "cpu"):
        ctx = fl.Context(device)
        over = ctx.set(4, "over")
        a, k = ctx.dat(over, values), ctx.dat(over, np.array([-3, 0, 2, 7]))
        x, n = ctx.dat(over, shape=(5,)), ctx.dat(over, shape=(4,), dtype="int64")
        Loop(signs, over, a, k, x, n)()
        results.append((x.read(), n.read()))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, 0.1, -2.5, 1e300, -1e-300, 5e-324, 123456789.123, math.inf, -math.inf]
)
@pytest.mark.parametrize("compute", [FLOAT64, FLOAT32])
def test_real_literals(value: float, compute) -> None:
    text = literal(value, Kind.REAL, compute)
    source = f"#include <math.h>\nvoid f(double *x) {{ *x = (double)({text}); }}"
    out = ctypes.c_double()
    load_library(source, name="literal").function("f", [ctypes.c_void_p])(ctypes.addressof(out))
    want = value if compute is FLOAT64 else float(np.float32(np.clip(value, -3e38, 3e38)))
    if compute is FLOAT32 and abs(value) > 3.5e38:
        want = math.copysign(math.inf, value)
    assert out.value == want
    assert math.copysign(1, out.value) == math.copysign(1, want)


def test_nan_literal() -> None:
    assert literal(math.nan, Kind.REAL, FLOAT64) == "NAN"


@pytest.mark.parametrize("value", [0, -1, 2**31 - 1, 2**31, -(2**31), -(2**62), 2**63 - 1])
def test_integer_literals(value: int) -> None:
    text = literal(value, Kind.INT, FLOAT64)
    source = f"#include <stdint.h>\nvoid f(int64_t *x) {{ *x = 1 - (1 - {text}); }}"
    out = ctypes.c_int64()
    load_library(source, name="literal").function("f", [ctypes.c_void_p])(ctypes.addressof(out))
    assert out.value == value


def test_booleans() -> None:
    assert [literal(b, Kind.BOOL, FLOAT64) for b in (True, False)] == ["1", "0"]
