"""The math functions of the kernel language, which are ordinary Python functions as well.

The reference device runs a kernel as plain Python, so each function here follows IEEE arithmetic as
the compiled devices do: ``sqrt(-1.0)`` is NaN and ``exp(1000.0)`` is infinite, where `math` raises.
In a kernel a name is resolved by the *object* it stands for: ``fl.sqrt``, ``math.sqrt``, ``np.sqrt``
and ``from math import sqrt`` are the same intrinsic.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "INTRINSICS",
    "Intrinsic",
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "e",
    "exp",
    "expm1",
    "fabs",
    "find",
    "floor",
    "hypot",
    "inf",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "min",
    "nan",
    "pi",
    "pow",
    "rolled",
    "select",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "zeros",
]

T = TypeVar("T")

pi = math.pi
"""Circumference over diameter of a circle."""
e = math.e
"""Base of the natural logarithm."""
inf = math.inf
"""Infinity."""
nan = math.nan
"""No number."""

abs = builtins.abs  # the built-ins already behave as the kernel language wants
min = builtins.min
max = builtins.max


def _domain(function: Callable[[float], float], argument: float, overflow: float = math.inf) -> float:
    """Call a `math` function and turn its exceptions into the IEEE result."""
    try:
        return function(argument)
    except ValueError:
        return math.nan
    except OverflowError:
        return overflow


def sqrt(x: float) -> float:
    """Square root; NaN for a negative argument."""
    return _domain(math.sqrt, x)


def cbrt(x: float) -> float:
    """Cube root, of negative arguments too."""
    return math.cbrt(x)


def exp(x: float) -> float:
    """Exponential; infinite on overflow."""
    return _domain(math.exp, x)


def expm1(x: float) -> float:
    """``exp(x) - 1`` without cancellation near zero."""
    return _domain(math.expm1, x)


def log(x: float) -> float:
    """Natural logarithm; minus infinity at zero, NaN below."""
    return -math.inf if x == 0 else _domain(math.log, x)


def log1p(x: float) -> float:
    """``log(1 + x)`` without cancellation near zero."""
    return -math.inf if x == -1 else _domain(math.log1p, x)


def log2(x: float) -> float:
    """Logarithm to base 2."""
    return -math.inf if x == 0 else _domain(math.log2, x)


def log10(x: float) -> float:
    """Logarithm to base 10."""
    return -math.inf if x == 0 else _domain(math.log10, x)


def sin(x: float) -> float:
    """Sine of an angle in radians."""
    return _domain(math.sin, x)


def cos(x: float) -> float:
    """Cosine of an angle in radians."""
    return _domain(math.cos, x)


def tan(x: float) -> float:
    """Tangent of an angle in radians."""
    return _domain(math.tan, x)


def asin(x: float) -> float:
    """Inverse sine in radians; NaN outside [-1, 1]."""
    return _domain(math.asin, x)


def acos(x: float) -> float:
    """Inverse cosine in radians; NaN outside [-1, 1]."""
    return _domain(math.acos, x)


def atan(x: float) -> float:
    """Inverse tangent in radians."""
    return math.atan(x)


def atan2(y: float, x: float) -> float:
    """Angle in radians of the point ``(x, y)``."""
    return math.atan2(y, x)


def sinh(x: float) -> float:
    """Hyperbolic sine."""
    return _domain(math.sinh, x, math.copysign(math.inf, x))


def cosh(x: float) -> float:
    """Hyperbolic cosine."""
    return _domain(math.cosh, x)


def tanh(x: float) -> float:
    """Hyperbolic tangent."""
    return math.tanh(x)


def hypot(x: float, y: float) -> float:
    """``sqrt(x*x + y*y)`` without overflow."""
    return math.hypot(x, y)


def pow(x: float, y: float) -> float:
    """``x`` to the power ``y``; NaN where the result is not real."""
    try:
        return math.pow(x, y)
    except ValueError:
        if x != 0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf


def root(x: float) -> float:
    """``x ** 0.5``: the square root, but infinite for minus infinity, and never -0."""
    return math.inf if x == -math.inf else sqrt(x) + 0.0


def floor(x: float) -> float:
    """Largest whole number not above ``x``, as a real (``int(floor(x))`` is an index)."""
    return float(np.floor(x))


def ceil(x: float) -> float:
    """Smallest whole number not below ``x``, as a real."""
    return float(np.ceil(x))


def copysign(x: float, y: float) -> float:
    """The magnitude of ``x`` with the sign of ``y``."""
    return math.copysign(x, y)


def fabs(x: float) -> float:
    """Magnitude as a real."""
    return math.fabs(x)


def isnan(x: float) -> bool:
    """Whether ``x`` is NaN."""
    return math.isnan(x)


def isinf(x: float) -> bool:
    """Whether ``x`` is infinite."""
    return math.isinf(x)


def isfinite(x: float) -> bool:
    """Whether ``x`` is neither infinite nor NaN."""
    return math.isfinite(x)


def sign(x: float) -> float:
    """-1, 0 or 1 with the sign of ``x``, of the kind of ``x``; NaN stays NaN."""
    if x != x:
        return x
    result = int(x > 0) - int(x < 0)
    return result if isinstance(x, (int, np.integer)) else float(result)


def select(test: bool, yes: T, no: T) -> T:
    """``yes`` where ``test`` holds, else ``no``; both are evaluated (no branch in the generated code)."""
    return yes if test else no


def rolled(*bounds: int) -> range:
    """`range`, in the head of a loop that stays a loop in generated code, see docs/guide/kernels.md.

    Loops over ``range`` whose bounds are known are written out, which makes the code of nests long. The counter of a
    rolled loop is known at run time only; the index of a local array or of a table may be made of it.

    Parameters
    ----------
    *bounds
        Stop, or start and stop, or start, stop and step, as `range` takes them.

    Returns
    -------
    range
        ``range(*bounds)``.

    Raises
    ------
    TypeError
        As `range` does, outside kernels.

    Examples
    --------
    >>> for q in rolled(len(weight)):
    ...     total[0] += weight[q] * value[q]
    """
    return range(*bounds)


def zeros(*shape: int) -> NDArray[np.float64]:
    """A local array of zeros; indexed ``a[i]``, ``a[i][j]`` or ``a[i, j]``."""
    return np.zeros(shape)


@dataclass(frozen=True)
class Intrinsic:
    """One function of the kernel language.

    Attributes
    ----------
    name
        Its name in `fluxloom.kernel.ir.Call` (or a form that the front end lowers itself:
        ``select``, ``zeros``, ``len``, ``range``, ``rolled``, ``float``, ``int``, ``bool``).
    least, most
        Number of arguments; ``most`` is ``None`` when unlimited.
    result
        ``"real"``, ``"bool"``, ``"join"`` (the joined kind of the arguments), ``"int"`` (the real
        result converted to an integer, as `math.floor` does) or ``"form"``.
    python
        What folds a call with constant arguments.
    """

    name: str
    least: int
    most: int | None
    result: str
    python: Callable[..., Any]


def _table() -> dict[str, Intrinsic]:
    real_1 = (sqrt, cbrt, exp, expm1, log, log1p, log2, log10, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, fabs)
    entries = [Intrinsic(f.__name__, 1, 1, "real", f) for f in (*real_1, floor, ceil)]
    entries += [Intrinsic(f.__name__, 2, 2, "real", f) for f in (atan2, hypot, copysign, pow)]
    entries.append(Intrinsic("root", 1, 1, "real", root))
    entries += [Intrinsic(f.__name__, 1, 1, "bool", f) for f in (isnan, isinf, isfinite)]
    entries += [Intrinsic("abs", 1, 1, "join", abs), Intrinsic("sign", 1, 1, "join", sign)]
    entries += [Intrinsic("min", 2, None, "join", min), Intrinsic("max", 2, None, "join", max)]
    forms: list[tuple[str, int, int | None, Callable[..., Any]]] = [
        ("select", 3, 3, select), ("zeros", 1, None, zeros), ("len", 1, 1, len), ("range", 1, 3, range),
        ("rolled", 1, 3, rolled),
        ("float", 1, 1, float), ("int", 1, 1, int), ("bool", 1, 1, bool),
    ]  # fmt: skip
    entries += [Intrinsic(name, least, most, "form", python) for name, least, most, python in forms]
    return {entry.name: entry for entry in entries}


INTRINSICS: Mapping[str, Intrinsic] = MappingProxyType(_table())
"""Every intrinsic by its name."""


def _aliases() -> dict[int, tuple[object, Intrinsic]]:
    """Every Python object that stands for an intrinsic, by identity."""
    pairs: list[tuple[object, Intrinsic]] = [(entry.python, entry) for entry in INTRINSICS.values()]
    for name, entry in INTRINSICS.items():
        # math.floor and math.ceil are excluded: they return integers, unlike C, NumPy and this module
        if entry.result != "form" and name not in ("floor", "ceil") and hasattr(math, name):
            pairs.append((getattr(math, name), entry))
    numpy_names = {
        name: name
        for name in ("sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh fabs floor ceil "
                     "hypot copysign isnan isinf isfinite sign").split()
    }  # fmt: skip
    numpy_names |= {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "power": "pow"}
    numpy_names |= {"absolute": "abs", "float64": "float", "int64": "int", "zeros": "zeros"}
    pairs += [(getattr(np, theirs), INTRINSICS[ours]) for theirs, ours in numpy_names.items() if theirs != "zeros"]
    pairs += [
        (math.floor, Intrinsic("floor", 1, 1, "int", math.floor)),
        (math.ceil, Intrinsic("ceil", 1, 1, "int", math.ceil)),
        (math.trunc, INTRINSICS["int"]),
    ]
    return {id(thing): (thing, entry) for thing, entry in pairs}


_ALIASES: Mapping[int, tuple[object, Intrinsic]] = MappingProxyType(_aliases())


def find(thing: object) -> Intrinsic | None:
    """Return the intrinsic that a Python object stands for, or ``None``."""
    found = _ALIASES.get(id(thing))
    return found[1] if found is not None and found[0] is thing else None
