"""Nothing is narrowed or dropped where values come in: dats, globals, constants, tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Write
from fluxloom.core.errors import FluxloomError
from tests.conformance.harness import MARKS

N = 3
REFUSED: dict[str, tuple[str, Any, str]] = {
    "too large": ("int32", np.array([1, 2**40, 5]), "1099511627776 does not fit int32"),
    "too large, Python's": ("int64", [1, 2**70, 5], "does not fit int64"),
    "too large, unsigned": ("int64", np.array([0, 2**63, 1], "uint64"), "9223372036854775808 does not fit int64"),
    "too large, real": ("int64", [1.0, 2.0**63, 3.0], "does not fit int64"),
    "too small": ("uint8", [0, -1, 255], "-1 does not fit uint8"),
    "256": ("uint8", [0, 256, 255], "256 does not fit uint8"),
    "a fraction": ("int64", [1.0, 1.5, 2.0], "1.5 is not a whole number"),
    "NaN": ("int32", [0.0, math.nan, 1.0], "nan is not a whole number"),
    "infinite": ("int64", [0.0, -math.inf, 1.0], "-inf is not a whole number"),
    "complex": ("float64", [0.0, 1j, 1.0], "not real numbers"),
    "texts": ("float64", ["0", "1", "2"], "not real numbers"),
    "nothing": ("float64", [0.0, None, 1.0], "not real numbers"),
    "dates": ("int64", np.array([0, 1, 2], "datetime64[s]"), "not real numbers"),
    "masked": ("float64", np.ma.array([1.0, 1e20, 3.0], mask=[0, 1, 0]), "1 of 3 values are masked, the first is"),
    "masked integers": ("int64", np.ma.array([1, 2, 3], mask=[0, 1, 0]), "fill them"),
}
TAKEN: list[tuple[str, Any, list[float]]] = [
    ("int32", np.array([1.0, -2.0, 2.0**31 - 1]), [1, -2, 2**31 - 1]),
    ("int64", [True, False, True], [1, 0, 1]),
    ("int64", [-(2.0**63), 0.0, -0.0], [-(2**63), 0, 0]),
    ("uint8", np.array([0, 7, 255], "int64"), [0, 7, 255]),
    ("float32", [math.nan, math.inf, 0.1], [math.nan, math.inf, float(np.float32(0.1))]),
    ("float64", [2**70, 1, 2], [2.0**70, 1, 2]),
    ("float64", np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 0]), [1, 2, 3]),
]
DEVICES = [pytest.param("reference"), *(pytest.param(d, marks=m) for d, m in MARKS.items())]


def dats(ctx: fl.Context, dtype: str, values: Any) -> dict[str, Callable[[], Any]]:
    """Return all ways by which values come in, each of which returns what is there afterwards."""
    s = ctx.set(N, "s")
    d, g = ctx.dat(s, np.full(N, 7, dtype), "d"), ctx.scalar(np.full(N, 7, dtype), "g")

    def written(call: Callable[[Any], Any]) -> Any:
        call(values)
        return d.read()

    def put() -> Any:
        g.value = values
        return g.value

    return {
        "made": lambda: ctx.dat(s, values, dtype=dtype).read(),
        "written": lambda: written(d.write),
        "places": lambda: written(d.write_places),
        "global": lambda: fl.Global(ctx, values, dtype=dtype).value,
        "set": put,
        "kept": lambda: (d.read(), g.value),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("why", REFUSED)
def test_refused(device: str, why: str) -> None:
    """With the value and its place; what was there stays."""
    dtype, values, message = REFUSED[why]
    ways = dats(fl.Context(device), dtype, values)
    kept = ways.pop("kept")
    for way in ways.values():
        with pytest.raises(FluxloomError, match=message):
            way()
    for left in kept():
        np.testing.assert_array_equal(left, np.full(N, 7))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "values", "want"), TAKEN)
def test_taken(device: str, dtype: str, values: Any, want: list[float]) -> None:
    """Numbers that the type holds, whatever they come as; reals are rounded."""
    ways = dats(fl.Context(device), dtype, values)
    del ways["kept"]
    for way in ways.values():
        np.testing.assert_array_equal(way(), np.array(want, dtype))


def tables(ctx: fl.Context, values: Any) -> list[Callable[[], Any]]:
    s = ctx.set(N, "s")
    g = ctx.grid((4, 4))
    return [
        lambda: ctx.map(s, s, values, "t"),
        lambda: ctx.ragged(s, s, [0, 1, 2, 3], values, "t"),
        lambda: ctx.ragged(s, s, np.append(0, values) if not np.ma.isMA(values) else np.ma.append(0, values), [0, 1]),
        lambda: ctx.subset(s, values, "t"),
        lambda: ctx.slots(s, g, values, 0, "t"),
        lambda: ctx.stencil(g, np.stack([values, values], 1) if not np.ma.isMA(values) else values[:, None]),
    ]


@pytest.mark.parametrize("values", [np.ma.array([0, 1, 2], mask=[0, 1, 0]), np.array([0.0, 1.5, 2.0])])
def test_tables(values: Any) -> None:
    for make in tables(fl.Context("cpu"), values):
        with pytest.raises(FluxloomError, match=r"masked|whole number|integers"):
            make()


@fl.kernel
def listed(r: Write, *, c: fl.Const[list[float]]):
    r[0] = c[0] + c[1]


def test_masked_constants() -> None:
    ctx = fl.Context("cpu")
    rows = ctx.set(N, "rows")
    with pytest.raises(FluxloomError, match=r"listed: constant 'c': 1 of 2 values are masked, the first is \[1\]"):
        fl.Loop(listed, rows, ctx.dat(rows, np.zeros(N), "r"), c=np.ma.array([1.0, 1e20], mask=[0, 1]))


@fl.kernel
def constants(r: Write, *, n: int, x: float, flag: bool):
    r[0] = n
    r[1] = x if flag else -x


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("n", 2.5), ("n", 2.0), ("n", True), ("n", 2**63), ("n", "3"), ("n", None), ("n", math.nan), ("x", 1j), ("x", "2"),
     ("x", [1.0]), ("x", None), ("flag", 2), ("flag", 0.0)],
)  # fmt: skip
def test_constants(device: str, name: str, value: Any) -> None:
    """A loop is not made with such a value, nor called or set; what it had stays."""
    ctx = fl.Context(device)
    s = ctx.set(1, "s")
    r = ctx.dat(s, np.zeros((1, 2)), "r")
    good = {"n": np.int32(3), "x": np.float32(0.5), "flag": np.bool_(True)}
    loop = fl.Loop(constants, s, r, **good)
    for call in (loop, loop.set, lambda **given: fl.Loop(constants, s, r, **{**good, **given})):
        with pytest.raises(FluxloomError, match=f"'{name}'"):
            call(**{name: value})
    loop(x=2)
    np.testing.assert_array_equal(r.read(), [[3.0, 2.0]])


@pytest.mark.parametrize("value", [3.0, "3", None, True, 2.5])
def test_sizes(value: Any) -> None:
    """A set has a whole number of elements, an element at least one value."""
    ctx = fl.Context("reference")
    for make in (
        lambda: ctx.set(value, "s"),
        lambda: ctx.grid((value, 2)),
        lambda: ctx.dat(ctx.set(2, "s"), shape=(value,)),
    ):
        with pytest.raises(FluxloomError, match="a whole number is needed"):
            make()
    assert ctx.set(np.int64(3), "s").size == 3
    assert ctx.grid((np.int32(3), 2)).size == 6
    for make in (lambda: ctx.dat(ctx.set(2, "s"), shape=(0,)), lambda: ctx.dat(ctx.set(2, "s"), np.zeros((2, 3, 0)))):
        with pytest.raises(FluxloomError, match="at least one value"):
            make()
