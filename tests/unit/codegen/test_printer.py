"""Expressions: the C that is printed means what Python means."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop, Read, Write
from fluxloom.codegen.language.printer import literal
from fluxloom.core.dtypes import FLOAT32, FLOAT64
from fluxloom.kernel.ir import Kind
from fluxloom.toolchain import load_library


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
