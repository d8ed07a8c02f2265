"""Helpers: inlined with Python's meaning, their arguments evaluated once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluxloom.core.access import RW, Inc, Read, Write
from fluxloom.kernel import Func, expressions, func, ir, kernel, walk

from .conftest import Loader
from .interpreter import agree

rng = np.random.default_rng(2)
GAMMA = 1.4


@func
def pressure(q):
    """Pressure of a perfect gas."""
    kinetic = 0.5 * (q[1] ** 2 + q[2] ** 2) / q[0]
    return (GAMMA - 1.0) * (q[3] - kinetic)


@func
def primitive(q):
    return q[0], q[1] / q[0], q[2] / q[0], pressure(q)


@func
def clipped(a, low, high):
    if a < low:
        return low
    if a > high:
        a = high
    return a


@func
def nested(a):
    b = 0.0
    if a > 1.0:
        if a > 1.5:
            return a * 2
        b = 1.0
    else:
        return -a
    return a + b


@func
def rotated(v):
    return [-v[1], v[0]]


@func
def scaled(v, factor):
    out = [0.0] * 2
    for i in range(2):
        out[i] = v[i] * factor
    return out


@func
def swap(q):
    q[0], q[1] = q[1], q[0]
    return q[0]


@func
def add(r, a, b):
    a = a * 2
    r[0] += a
    r[1] -= b


@kernel
def euler(q: Read, r: Inc):
    rho, u, v, p = primitive(q[0])
    _, u2, v2, p2 = primitive(q[1])
    speed = math.sqrt(GAMMA * pressure(q[0]) / rho) + abs(u * v2 - v * u2)
    r[0][0] += p + p2
    r[1][3] -= speed


def test_tuples_and_nested_calls():
    states = tuple(rng.uniform(0.5, 1.0, 4) + np.array([0, 0, 0, 3.0]) for _ in range(2))
    lowered = agree(euler, {"q": states, "r": (np.zeros(4), np.zeros(4))})
    names = [name for name, _ in lowered.scalars]
    assert len(names) == len(set(names))


@kernel
def returns(q: Read, r: Write):
    r[0] = clipped(q[0], 0.8, 1.2) + clipped(q[0] * q[1], 0, 1)
    r[1] = nested(q[0]) * nested(q[1])
    r[2] = clipped(3, 1, 2)
    r[3] = clipped(q[0], 0.8, 1.2) if q[1] > 1.0 and nested(q[0]) > 1.0 else nested(0.5)


@pytest.mark.parametrize("first", [0.5, 1.1, 1.7])
@pytest.mark.parametrize("second", [0.6, 1.4, 1.9])
def test_early_returns(first: float, second: float):
    lowered = agree(returns, {"q": np.array([first, second]), "r": np.zeros(4)})
    stores = [
        item for item in lowered.body if isinstance(item, ir.Store) and item.index[0] == ir.Constant(ir.Kind.INT, 2)
    ]
    assert isinstance(stores[0].value, ir.Constant)


@kernel
def lists(q: Read, r: RW):
    a = rotated(q)
    b = scaled(rotated(a), 2)
    c = scaled([1.0, q[0]], 3.0)
    a[0] = 100.0
    r[0] = a[0] + b[0] + c[1]
    r[1] = a[1] + b[1] + c[0]


def test_helpers_return_arrays():
    assert agree(lists, {"q": rng.uniform(1, 2, 2), "r": np.zeros(2)}).arrays == ()


@kernel
def writes(q: RW, r: Inc):
    first = swap(q)
    add(r, first, q[1])
    a = first
    add(r, a, a)
    r[0] += a
    for i in range(2):
        add(r, i, 2 * i)


def test_helpers_write_to_their_arguments():
    agree(writes, {"q": rng.uniform(1, 2, 2), "r": np.zeros(2)})


@kernel
def once(q: Read, r: Write):
    r[0] = clipped(math.exp(q[0]), 1.0, 2.0)


def test_arguments_are_evaluated_once():
    lowered = once.lower({"q": ir.ArgShape(None, (), ir.Kind.REAL), "r": ir.ArgShape(None, (), ir.Kind.REAL)})
    calls = [item for statement in walk(lowered.body) for item in expressions(statement) if isinstance(item, ir.Call)]
    assert len(calls) == 1


@kernel
def in_loops(x: Read, r: Write):
    total = 0.0
    for j in range(len(x)):
        v = rotated(x[j])
        total += clipped(v[0], -1.5, -0.5) + nested(v[1])
    k = 0
    while k < 3 and total < 100.0:
        total = nested(total) + clipped(total, 0.0, 1.0)
        k += 1
    r[0] = total


def test_helpers_inside_loops():
    agree(in_loops, {"x": [rng.uniform(0.3, 2, 2) for _ in range(4)], "r": np.array(0.0)})


def test_a_helper_is_still_a_function():
    assert isinstance(clipped, Func)
    assert clipped(5.0, 0.0, 1.0) == 1.0
    assert pressure.doc.startswith("Pressure")


def test_helpers_of_modules_and_closures(load: Loader):
    module = load(
        """
        import sys
        import types
        library = types.ModuleType("library")

        @func
        def double(a):
            return a * factor()

        @func
        def factor_():
            return 2
        """.replace("factor()", "2")
        + """
        library.double = double
        library.three = np.float32(3.0)

        def make(scale):
            @func
            def scaled(a):
                return a * scale
            @kernel
            def inner(r: RW):
                r[0] = library.double(r[0]) + scaled(r[0]) + scale + library.three + factor_()
            return inner
        """
    )
    first, second = module.make(2.5), module.make(3.5)
    lowered = agree(first, {"r": np.array(1.5)})
    shapes = {"r": lowered.shapes[0]}
    assert first.lower(shapes).digest != second.lower(shapes).digest
    assert module.make(2.5).lower(shapes).digest == lowered.digest
