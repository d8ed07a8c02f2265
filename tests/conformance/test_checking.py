"""The checking mode: what Python would not do raises, with loop, line, element and values, on every device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Loop, Read, Write
from tests.conformance.checking import BAD, DEVICES, N, found, planted
from tests.conformance.harness import MARKS, context

LOW = -(2**63)
HIGH = 2**63 - 1


# ------------------------------------------------------------------------------- one element, one value


@fl.kernel
def divide(a: Read, b: Read, r: Write):
    r[0] = a[0] / b[0]  # fault


@fl.kernel
def floor_divide(a: Read, b: Read, r: Write):
    r[0] = a[0] // b[0]  # fault


@fl.kernel
def remainder(a: Read, b: Read, r: Write):
    r[0] = a[0] % b[0]  # fault


@fl.kernel
def add(a: Read, b: Read, r: Write):
    r[0] = a[0] + b[0]  # fault


@fl.kernel
def subtract(a: Read, b: Read, r: Write):
    r[0] = a[0] - b[0]  # fault


@fl.kernel
def multiply(a: Read, b: Read, r: Write):
    r[0] = a[0] * b[0]  # fault


@fl.kernel
def negate(a: Read, b: Read, r: Write):
    r[0] = -a[0] if b[0] > 0 else 0  # fault


@fl.kernel
def magnitude(a: Read, b: Read, r: Write):
    r[0] = abs(a[0]) + 0 * b[0]  # fault


@fl.kernel
def whole(a: Read, b: Read, r: Write):
    r[0] = int(a[0] * b[0])  # fault


@fl.kernel
def rounded_down(a: Read, b: Read, r: Write):
    r[0] = math.floor(a[0] * b[0])  # fault


@fl.kernel
def copied(a: Read, b: Read, r: Write):
    r[0] = a[0] * b[0]  # fault


@fl.kernel
def rooted(a: Read, b: Read, r: Write):
    root = fl.sqrt(a[0] - b[0])
    r[0] = 2.0 * root  # fault


REALS: list[tuple[fl.Kernel, Any, Any, str, str]] = [
    (divide, 1.0, 0.0, "float64", "division by zero: 1.0 / 0.0"),
    (divide, 0.0, -0.0, "float64", "division by zero: 0.0 / -0.0"),
    (floor_divide, 5.0, 0.0, "float64", "division by zero: 5.0 // 0.0"),
    (remainder, 5.0, 0.0, "float64", "division by zero: 5.0 % 0.0"),
    (whole, 1e300, 1.0, "int64", "integer overflow: int(1e+300)"),
    (whole, 2.0**62, 2.0, "int64", "integer overflow: int(9.223372036854776e+18)"),
    (rounded_down, -1e19, 1.0, "int64", "integer overflow: int(-1e+19)"),
    (copied, 1e200, 1e200, "float64", "inf is written to 'r'"),
    (copied, 1e20, 1e30, "float32", "e+50 is written to 'r'"),
    (rooted, 1.0, 3.0, "float64", "nan is written to 'r'"),
]
INTEGERS: list[tuple[fl.Kernel, int, int, str, str]] = [
    (floor_divide, 7, 0, "int64", "division by zero: 7 // 0"),
    (remainder, 7, 0, "int64", "division by zero: 7 % 0"),
    (floor_divide, LOW, -1, "int64", f"integer overflow: {LOW} // -1"),
    (add, HIGH, 1, "int64", f"integer overflow: {HIGH} + 1"),
    (add, LOW, -1, "int64", f"integer overflow: {LOW} + -1"),
    (subtract, LOW, 1, "int64", f"integer overflow: {LOW} - 1"),
    (subtract, 0, LOW, "int64", f"integer overflow: 0 - {LOW}"),
    (multiply, 2**32, 2**31, "int64", f"integer overflow: {2**32} * {2**31}"),
    (negate, LOW, 1, "int64", f"integer overflow: -({LOW})"),
    (magnitude, LOW, 1, "int64", f"integer overflow: abs({LOW})"),
    (copied, 2**16, 2**15, "int32", f"integer overflow: {2**31} is written to 'r', of int32"),
    (copied, -1, 1, "uint8", "integer overflow: -1 is written to 'r', of uint8"),
]
FAULTS = [
    pytest.param(device, *fault, id=f"{device}-{fault[0].name}-{k}",
                 marks=[*MARKS.get(device, []), *([pytest.mark.long] if device == "opencl" and k % 5 else [])])
    for device in ("reference", "cpu", "opencl", "cuda") for k, fault in enumerate((*REALS, *INTEGERS))
]  # fmt: skip


def pairs(ctx: fl.Context, kernel: fl.Kernel, dtype: str, stored: str) -> tuple[Loop, fl.Dat, fl.Dat, fl.Dat]:
    """Return a loop over N elements with two values each, all of them 1, these, and what it writes."""
    s = ctx.set(N, "items")
    a, b = ctx.dat(s, np.ones(N, dtype), "a"), ctx.dat(s, np.ones(N, dtype), "b")
    r = ctx.dat(s, np.zeros(N, stored), "r")
    return Loop(kernel, s, a, b, r), a, b, r


@pytest.mark.parametrize(("device", "kernel", "left", "right", "stored", "what"), FAULTS)
def test_values(device: str, kernel: fl.Kernel, left: Any, right: Any, stored: str, what: str) -> None:
    """The first element with a fault is named with its values; what the loop writes stays as it was."""
    dtype = "int64" if isinstance(left, int) else "float64"
    ctx = context(device, check=True)
    loop, a, b, r = pairs(ctx, kernel, dtype, stored)
    loop()
    before = r.read()
    planted(a, left)
    planted(b, right)
    error = found(loop, what, BAD)
    assert "call 2 of the loop" in str(error)
    assert "the element read a = [" in str(error)
    np.testing.assert_array_equal(r.read(), before)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("kernel", "operation"), [(add, int.__add__), (subtract, int.__sub__), (multiply, int.__mul__)]
)
def test_integers_at_the_limits(device: str, kernel: fl.Kernel, operation: Callable[[int, int], int]) -> None:
    """Exactly what does not fit into 64 bits is an overflow."""
    numbers = [LOW, LOW + 1, LOW // 2, -(2**32), -3, -2, -1, 0, 1, 2, 3, 2**31, 2**32, HIGH // 2, HIGH // 3, HIGH]
    ctx = context(device, check=True)
    s = ctx.set(1, "one")
    a, b, r = (ctx.dat(s, np.zeros(1, "int64"), name) for name in "abr")
    loop = Loop(kernel, s, a, b, r)
    for left, right in itertools.product(numbers, repeat=2):
        a.write(np.array([left]))
        b.write(np.array([right]))
        if LOW <= operation(left, right) <= HIGH:
            loop()
            assert int(r.read()[0]) == operation(left, right)
        else:
            found(loop, "integer overflow", 0)


# --------------------------------------------------------------------------------- what is no fault


@fl.kernel
def guarded(a: Read, b: Read, i: Read, r: Write, *, most: float):
    safe = a[0] / b[0] if b[0] != 0.0 else 0.0
    if i[0] >= 0 and i[0] < 3 and a[i[0]] > 0.0:
        safe = safe + a[i[0]]
    chosen_one = fl.select(b[0] > 0.0, 1.0 / b[0], 0.0)
    r[0] = min(safe + chosen_one, most)
    r[1] = math.nan if b[0] == 0.0 else 1.0


@pytest.mark.parametrize("device", DEVICES)
def test_guards_are_respected(device: str) -> None:
    """What is not evaluated is not checked; NaN that is meant, or comes in, is no fault of the kernel."""
    ctx = context(device, check=True)
    s = ctx.set(N, "items")
    a, b = ctx.dat(s, np.ones((N, 3)), "a"), ctx.dat(s, np.ones(N), "b")
    i, r = ctx.dat(s, np.ones(N, "int64"), "i"), ctx.dat(s, np.zeros((N, 2)), "r")
    loop = Loop(guarded, s, a, b, i, r, most=math.inf)
    planted(b, 0.0)
    planted(i, -5)
    loop()
    assert np.isnan(r.read()[BAD, 1])
    values = a.read()
    values[60] = math.nan
    a.write(values)
    loop()
    assert np.isnan(r.read()[60, 0])


# ------------------------------------------------------------------------------ chains, ranks, the mode


@fl.kernel
def count(a: RW):
    a[0] = a[0] - 1.0


@fl.kernel
def inverse(a: Read, r: Write):
    r[0] = 1.0 / a[0]  # fault


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [Chain, fl.TiledChain], ids=["chain", "tiled"])
def test_chain(device: str, make: Any) -> None:
    """The loops of a chain are checked one by one, each with what those before it have left."""
    ctx = context(device, check=True)
    s = ctx.set(N, "items")
    a, r = ctx.dat(s, np.full(N, 9.0), "a"), ctx.dat(s, np.zeros(N), "r")
    planted(a, 3.0)
    step = make([Loop(count, s, a), Loop(inverse, s, a, r)])
    step()
    step()
    error = found(step, "division by zero: 1.0 / 0.0", BAD)
    assert error.loop == "inverse"
    assert "call 3" in str(error)
    np.testing.assert_allclose(a.read()[[0, BAD]], [6.0, 0.0])
    np.testing.assert_allclose(r.read()[[0, BAD]], [1 / 7, 1.0])


def test_the_mode_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the context, else by the environment; generated code of loops is the same with it and without."""
    monkeypatch.delenv("FLUXLOOM_CHECK", raising=False)
    assert not fl.Context("cpu").check
    plain, *_ = pairs(fl.Context("cpu", tuning=False), multiply, "int64", "int64")
    monkeypatch.setenv("FLUXLOOM_CHECK", "1")
    assert fl.Context("cpu").check
    assert not fl.Context("cpu", check=False).check
    checked, *_ = pairs(fl.Context("cpu", tuning=False), multiply, "int64", "int64")
    assert checked.source == plain.source
    monkeypatch.setenv("FLUXLOOM_CHECK", "0")
    assert not fl.Context("cpu").check
