"""The access contract, at decoration where names suffice and at lowering where shapes are needed."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.access import RW, Inc, Max, Min, Read, Write
from fluxloom.core.errors import AccessError
from fluxloom.kernel import func, ir, kernel
from fluxloom_lab.attack.loops.text import HEADER

from .conftest import Loader
from .interpreter import agree

REAL = ir.Kind.REAL
MODES = "q: Read, w: Write, u: RW, s: Inc, low: Min, high: Max, *, k: int"
FILL = "    w[0] = 1.0\n    w[1] = 2.0\n"
PREAMBLE = """
@func
def assigns(a):
    a[0] = 1.0
@func
def adds(a):
    a[0] += 1.0
@func
def reads(a):
    return a[0] + 1.0
@func
def deeper(a):
    b = a
    return reads(b)
"""
SHAPES = {name: ir.ArgShape(None, (2,), REAL) for name in ("q", "w", "u", "s", "low", "high")}

AT_DECORATION = [
    ("«q[0] = 1.0", "'q' is Read but is assigned"),
    ("«q[0] += 1.0", "'q' is Read but is assigned"),
    ("a, «q[0] = 1.0, 2.0", "'q' is Read but is assigned"),
    ("v = q\n«v[0] = 1.0", "'q' is Read but is assigned"),
    ("«s[0] = 1.0", "'s' is Inc but is assigned"),
    ("«s[0] = s[0] + 1.0", "'s' is Inc but is assigned"),
    ("«s[0] *= 2.0", "'s' is Inc: this update is not allowed"),
    ("a = «s[0] + 1.0", "'s' is Inc but is read"),
    ("s[0] += «s[1]", "'s' is Inc but is read"),
    ("if «s[0] > 1.0:\n    pass", "'s' is Inc but is read"),
    ("«low[0] = 1.0", "'low' is Min but is assigned"),
    ("«low[0] = max(low[0], 1.0)", "'low' is Min but is assigned"),
    ("«low[0] = min(low[1], 1.0)", "'low' is Min but is assigned"),
    ("«low[0] += 1.0", "'low' is Min: this update is not allowed"),
    ("a = min(«low[0], 1.0)", "'low' is Min but is read"),
    ("«high[0] = min(high[0], 1.0)", "'high' is Max but is assigned"),
]


def place(statements: str, fill: str = FILL) -> tuple[str, int, int]:
    body = "\n".join("    " + line for line in statements.split("\n"))
    text = f"{PREAMBLE}@kernel\ndef bad({MODES}):\n{body}\n{fill}"
    before = (HEADER + text).split("«")[0]
    return text.replace("«", ""), before.count("\n") + 1, len(before) - before.rfind("\n") - 1


@pytest.mark.parametrize(("statements", "message"), AT_DECORATION)
def test_broken_contract_when_defined(load: Loader, statements: str, message: str):
    text, line, column = place(statements)
    with pytest.raises(AccessError) as caught:
        load(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.hint


IN_HELPERS = [
    ("assigns(q)", "'q' is Read but is assigned", 3),
    ("adds(q)", "'q' is Read but is assigned", 6),
    ("assigns(s)", "'s' is Inc but is assigned", 3),
    ("a = reads(s)", "'s' is Inc but is read", 9),
    ("a = deeper(s)", "'s' is Inc but is read", 9),
    ("adds(low)", "'low' is Min: this update is not allowed", 6),
]


@pytest.mark.parametrize(("statements", "message", "line"), IN_HELPERS)
def test_broken_contract_in_a_helper(load: Loader, statements: str, message: str, line: int):
    text, _, _ = place(statements)
    with pytest.raises(AccessError) as caught:
        load(text)
    assert message in caught.value.message
    assert caught.value.line == HEADER.count("\n") + 1 + line


AT_LOWERING = [
    ("a = «w[0]\nw[0] = 1.0\nw[1] = 1.0", "read before it is written"),
    ("«w[0] += 1.0\nw[1] = 1.0", "read before it is written"),
    ("if q[0] > 0.0:\n    w[0] = 1.0\na = «w[0]\nw[0] = 1.0\nw[1] = 1.0", "read before it is written"),
    ("w[0] = 1.0", "w[1] is not written on every path"),
    ("w[0] = 1.0\nif q[0] > 0.0:\n    w[1] = 1.0", "w[1] is not written on every path"),
    ("w[0] = 1.0\nfor i in range(k):\n    w[1] = 1.0", "w[1] is not written on every path"),
    ("w[0] = 1.0\nw[k] = 2.0", "w[1] is not written on every path"),
    ("w[0] = 1.0\ni = 1\nwhile i < k:\n    w[1] = 1.0\n    i += 1", "w[1] is not written on every path"),
]


@pytest.mark.parametrize(("statements", "message"), AT_LOWERING)
def test_incomplete_writes(load: Loader, statements: str, message: str):
    text, line, column = place(statements, fill="")
    bad = load(text).bad
    with pytest.raises(AccessError) as caught:
        bad.lower(SHAPES)
    assert message in caught.value.message
    if "«" in statements:
        assert (caught.value.line, caught.value.column) == (line, column)
    else:
        assert caught.value.source_line[caught.value.column :].startswith("w: Write")


def test_write_that_is_never_written(load: Loader):
    with pytest.raises(AccessError, match="'w' is Write but never written"):
        load(f"@kernel\ndef bad({MODES}):\n    a = 1\n")


@func
def fill(a, value):
    for i in range(len(a)):
        a[i] = value


@func
def bump(a, value):
    a[0] += value


@func
def lowest(a, value):
    a[0] = min(value, a[0])


@kernel
def complete(q: Read, w: Write, s: Inc, low: Min, big: Write, high: Max):
    if q[0] > 1.0:
        fill(w[0], q[0])
    else:
        w[0][0], w[0][1] = q[1], 3.0
    fill(w[1], w[0][1])
    w[1][0] += 1.0
    bump(s, q[0])
    lowest(low, q[1])
    for i in range(100):
        big[i] = q[0]
        big[i] *= 2.0
    v = high
    v[0] = max(v[0], big[3])


@pytest.mark.parametrize("value", [0.5, 1.5])
def test_complete_writes_are_accepted(value: float):
    data = {
        "q": np.array([value, 3.0]), "w": (np.zeros(2), np.zeros(2)), "s": np.array(1.0), "low": np.array(9.0),
        "big": np.zeros(100), "high": np.array(0.0),
    }  # fmt: skip
    agree(complete, data)


@kernel
def unused(q: Read, r: RW, s: Inc):
    r[0] = 1.0


def test_unused_parameters_are_allowed():
    shapes = {name: ir.ArgShape(None, (), REAL) for name in ("q", "r", "s")}
    assert unused.lower(shapes).parameters == unused.parameters


@kernel
def partial_loop(w: Write):
    for i in range(99):
        w[i] = 1.0


def test_loop_over_a_part_does_not_cover():
    with pytest.raises(AccessError, match=r"w\[99\] is not written"):
        partial_loop.lower({"w": ir.ArgShape(None, (100,), REAL)})
    partial_loop.lower({"w": ir.ArgShape(None, (99,), REAL)})
