"""Operators and functions of kernels, what each means by NumPy's float64 and int64, and special values for them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

LOW, HIGH = -(2**63), 2**63 - 1
INTEGERS = (LOW, LOW + 1, -(2**53) - 1, -(2**32), -3, -2, -1, 0, 1, 2, 3, 7, 2**31, 2**32 + 1, 2**62, HIGH - 1, HIGH)
REALS = {
    "float64": (
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        7.25,
        -7.25,
        1e-300,
        -1e-300,
        1e200,
        -1e200,
        2.0**63,
        -(2.0**63),
        1.7e308,
        -1.7e308,
        math.inf,
        -math.inf,
        math.nan,
    ),
    "float32": (
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        7.25,
        -7.25,
        2.0**-100,
        -(2.0**-100),
        2.0**90,
        -(2.0**90),
        2.0**63,
        -(2.0**63),
        2.0**127,
        -(2.0**127),
        math.inf,
        -math.inf,
        math.nan,
    ),
}
Oracle = Callable[..., Any]


def whole(x: Any) -> Any:
    """The whole part; the smallest integer where there is none of 64 bits."""
    inside = (x >= -(2.0**63)) & (x < 2.0**63)
    return np.where(inside, np.where(inside, x, 0).astype(np.int64), LOW)


def root(x: Any) -> Any:
    """What Python's floats and scalars of NumPy have: powers of arrays take a square root."""
    return np.where(x == -math.inf, math.inf, np.sqrt(x) + x.dtype.type(0))


def powers(exponents: tuple[float, ...]) -> dict[str, Oracle]:
    """Return powers by constants."""
    return {f"x ** {e!r}": lambda x, y, e=e: np.power(x, x.dtype.type(e)) for e in exponents}


def alike(names: str) -> dict[str, Oracle]:
    """Return functions of one argument that NumPy has under the same name."""
    return {f"fl.{name}(x)": lambda x, y, name=name: getattr(np, name)(x) for name in names.split()}


REAL: Mapping[str, Oracle] = MappingProxyType(
    {
        "x + y": lambda x, y: x + y,
        "x - y": lambda x, y: x - y,
        "x * y": lambda x, y: x * y,
        "x / y": lambda x, y: x / y,
        "x // y": lambda x, y: np.floor_divide(x, y),
        "x % y": lambda x, y: np.remainder(x, y),
        "x ** y": lambda x, y: np.power(x, y),
        "fl.pow(x, y)": lambda x, y: np.power(x, y),
        "-x": lambda x, y: -x,
        "+x": lambda x, y: x,
        "abs(x)": lambda x, y: np.abs(x),
        "fl.fabs(x)": lambda x, y: np.abs(x),
        "fl.sign(x)": lambda x, y: np.sign(x),
        "min(x, y)": lambda x, y: np.where(y < x, y, x),
        "max(x, y)": lambda x, y: np.where(y > x, y, x),
        "max(x, 1.0, y)": lambda x, y: np.where(y > np.where(x < 1, 1, x), y, np.where(x < 1, 1, x)),
        "x ** 0.5": lambda x, y: root(x),
        "(x + y) ** 0.5": lambda x, y: root(x + y),
        "fl.asin(x)": lambda x, y: np.arcsin(x),
        "fl.acos(x)": lambda x, y: np.arccos(x),
        "fl.atan(x)": lambda x, y: np.arctan(x),
        "fl.atan2(x, y)": lambda x, y: np.arctan2(x, y),
        "fl.hypot(x, y)": lambda x, y: np.hypot(x, y),
        "fl.copysign(x, y)": lambda x, y: np.copysign(x, y),
        "x if x < y else y": lambda x, y: np.where(x < y, x, y),
        "fl.select(x >= y, x, y)": lambda x, y: np.where(x >= y, x, y),
        "1.0 / (x - x)": lambda x, y: 1 / (x - x),
        "y / fl.sqrt(0.0 * x)": lambda x, y: y / np.sqrt(0 * x),
        "1.0 / int(x)": lambda x, y: 1 / whole(x).astype(x.dtype),
        "y // float(x < 0.0)": lambda x, y: y // (x < 0).astype(x.dtype),
        "y % fl.floor(x)": lambda x, y: np.remainder(y, np.floor(x)),
        "1.0 / fl.sign(x)": lambda x, y: 1 / np.sign(x),
        "min(x, 0) * y": lambda x, y: np.where(x > 0, 0, x) * y,
        "1.0 / -abs(x)": lambda x, y: 1 / -np.abs(x),
        **alike("sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh floor ceil"),
        **powers((0, 1, 2, 3, 5, 8, -1, -2, -3, 9, -9, 2.5, -0.5, 1 / 3)),
    }
)
"""Reals of reals."""

WHOLE: Mapping[str, Oracle] = MappingProxyType(
    {
        "int(x)": lambda x, y: whole(x),
        "math.floor(x)": lambda x, y: whole(np.floor(x)),
        "math.ceil(x)": lambda x, y: whole(np.ceil(x)),
        "math.trunc(x * y)": lambda x, y: whole(x * y),
        "int(x) // int(y)": lambda x, y: np.floor_divide(whole(x), whole(y)),
        "int(x < y)": lambda x, y: x < y,
        "int(x <= y)": lambda x, y: x <= y,
        "int(x > y)": lambda x, y: x > y,
        "int(x >= y)": lambda x, y: x >= y,
        "int(x == y)": lambda x, y: x == y,
        "int(x != y)": lambda x, y: x != y,
        "int(not x < y)": lambda x, y: ~(x < y),
        "int(x < y or x > y)": lambda x, y: (x < y) | (x > y),
        "int(-1.0 < x <= y)": lambda x, y: (x > -1) & (x <= y),
        "int(bool(x))": lambda x, y: x != 0,
        "int(x > 0.0 and 1.0 / x > y)": lambda x, y: (x > 0) & (1 / x > y),
        "int(fl.isnan(x))": lambda x, y: np.isnan(x),
        "int(fl.isinf(x * y))": lambda x, y: np.isinf(x * y),
        "int(fl.isfinite(x + y))": lambda x, y: np.isfinite(x + y),
    }
)
"""Integers of reals."""

INTEGER: Mapping[str, Oracle] = MappingProxyType(
    {
        "x + y": lambda x, y: x + y,
        "x - y": lambda x, y: x - y,
        "x * y": lambda x, y: x * y,
        "x // y": lambda x, y: np.floor_divide(x, y),
        "x % y": lambda x, y: np.remainder(x, y),
        "-x": lambda x, y: -x,
        "+x": lambda x, y: x,
        "abs(x)": lambda x, y: np.abs(x),
        "fl.sign(x)": lambda x, y: np.sign(x),
        "min(x, y)": lambda x, y: np.minimum(x, y),
        "max(x, y, 2)": lambda x, y: np.maximum(np.maximum(x, y), 2),
        "x ** 2": lambda x, y: x * x,
        "x ** 3": lambda x, y: x * x * x,
        "x ** 0": lambda x, y: x * 0 + 1,
        "-x if y == -1 else x // y": lambda x, y: np.where(y == -1, -x, np.floor_divide(x, y)),
        "fl.select(x < y, x, y)": lambda x, y: np.minimum(x, y),
        "(x + 1) // (y + 1)": lambda x, y: np.floor_divide(x + 1, y + 1),
        "(x * y - x) % 7": lambda x, y: np.remainder(x * y - x, 7),
        "x // -1": lambda x, y: -x,
        "x % -1": lambda x, y: x * 0,
        "x // 3": lambda x, y: np.floor_divide(x, 3),
        "x % -3": lambda x, y: np.remainder(x, -3),
        "7 // y": lambda x, y: np.floor_divide(7, y),
        "-9223372036854775807 % y": lambda x, y: np.remainder(np.int64(LOW + 1), y),
        "int(x < y)": lambda x, y: x < y,
        "int(x + 1 > x)": lambda x, y: x + np.int64(1) > x,
        "int(x == y)": lambda x, y: x == y,
        "int(0.5 * x)": lambda x, y: whole(0.5 * x),
        "int(float(x))": lambda x, y: whole(x.astype(float)),
        "int(x + 0.5 > y)": lambda x, y: x + 0.5 > y,
    }
)
"""Integers of integers."""

MIXED: Mapping[str, Oracle] = MappingProxyType(
    {
        "x / y": lambda x, y: x / y,
        "float(x)": lambda x, y: x.astype(float),
        "x // 0.5": lambda x, y: x.astype(float) // 0.5,
        "x % 2.5": lambda x, y: np.remainder(x.astype(float), 2.5),
        "2.5 // y": lambda x, y: 2.5 // y.astype(float),
        "-2.5 % y": lambda x, y: np.remainder(-2.5, y.astype(float)),
        "x ** -1": lambda x, y: 1 / x.astype(float),
        "x ** -2": lambda x, y: 1 / (x.astype(float) * x),
        "x ** 0.5": lambda x, y: np.sqrt(x.astype(float)),
        "fl.sqrt(x)": lambda x, y: np.sqrt(x.astype(float)),
        "max(x, 0.5)": lambda x, y: np.where(x < 1, 0.5, x),
        "1.0 / x - y": lambda x, y: 1 / x.astype(float) - y,
        "x + 0.5": lambda x, y: x + 0.5,
        "1 / (x - x)": lambda x, y: 1 / (x - x).astype(float),
        "float(x) / float(y - y)": lambda x, y: x / (y - y).astype(float),
        "fl.select(x < y, x, 0.5)": lambda x, y: np.where(x < y, x, 0.5),
    }
)
"""Reals of integers."""

HEAD = """
SPECIAL = {special}

@func
def passed(x):
    return x

@kernel
def k(a: Read, b: Read, u: Read, r: Write, i: Write, *, c: {kind}, e: Const[list[{kind}]]):
    array = [b[0], b[0], a[0]]
"""
RIGHT = ("b[0]", "passed(array[1])", "u[0]", "c")
"""Where the right operand comes from: the last two are the same for all elements."""
BINARY = ("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "min(x, y)", "max(x, y)", "x if x < y else y")


def text_of(real: Iterable[str], whole: Iterable[str], kind: str, special: str = "()") -> str:
    """Return the text of a kernel with the results ``r`` and ``i``."""
    lines = [HEAD.format(kind=kind, special=special)]
    for name, texts in (("r", real), ("i", whole)):
        lines += [f"    {name}[{n}] = {text}\n" for n, text in enumerate(texts or ("int(a[0])",))]
    return "".join(lines)


def literal(value: float) -> str:
    """Return the text of a number in a kernel."""
    return {math.inf: "fl.inf", -math.inf: "-fl.inf"}.get(value, "fl.nan" if value != value else repr(value))


def named(text: str, x: str, y: str) -> str:
    """Return the text of an operation with its operands."""
    return re.sub(r"\b[xy]\b", lambda found: x if found[0] == "x" else y, text)
