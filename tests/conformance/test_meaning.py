"""Python is the meaning: every operator and function with special values, of each type and kind of operand."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop, Max, Min, Read
from fluxloom.core.errors import LoopCheckError
from tests.conformance.battery import (
    BINARY,
    HIGH,
    INTEGER,
    INTEGERS,
    LOW,
    MIXED,
    REAL,
    REALS,
    RIGHT,
    WHOLE,
    Oracle,
    literal,
    named,
    text_of,
)
from tests.conformance.harness import MARKS, context
from tests.unit.kernel.conftest import load_module

FORMS = [("reference", 1), ("cpu", 1), ("cpu", 8), ("opencl", 0), ("cuda", 0)]
DEVICES = [pytest.param(d, n, marks=MARKS.get(d, []), id=f"{d}-{n}") for d, n in FORMS]
TOLERANCE = {"float64": 4e-14, "float32": 4e-6}


def run(
    form: tuple[str, int],
    kernel: Any,
    a: Any,
    b: Any,
    stored: tuple[str, str],
    sizes: tuple[int, int],
    c: Any = 1,
    e: Any = (1,),
) -> tuple[np.ndarray, np.ndarray]:
    """Return the reals and the integers that a kernel of the battery makes; ``b`` is also that of all elements."""
    ctx = context(form[0])
    s = ctx.set(len(a), "values")
    left, right, each = ctx.dat(s, a, "a"), ctx.dat(s, b, "b"), ctx.scalar(np.asarray(b).ravel()[0], "u")
    r, i = (ctx.dat(s, shape=(n,), dtype=t, name=x) for n, t, x in zip(sizes, stored, "ri", strict=True))
    schedule = fl.Schedule(lanes=form[1]) if form[1] else None
    Loop(kernel, s, left, right, each, r, i, c=c, e=e, schedule=schedule)()
    return r.read(), i.read()


def compare(got: np.ndarray, want: Any, texts: Sequence[str], a: Any, b: Any, *, any_zero: bool = False) -> None:
    """Require the same bits of NaN, infinities, zeros and integers, and reals up to rounding in the last digits.

    With ``any_zero`` zeros are alike.
    """
    want = np.stack([np.broadcast_to(w, len(a)).astype(got.dtype) for w in want], 1)
    if got.dtype.kind == "f":
        with np.errstate(all="ignore"):
            near = np.abs(got - want) <= TOLERANCE[got.dtype.name] * np.abs(want)
        alike = (np.signbit(got) == np.signbit(want)) | (any_zero & (got == 0))
        same = (np.isnan(got) & np.isnan(want)) | (((got == want) | near) & alike)
    else:
        same = got == want
    wrong = [
        f"{texts[n]} with x = {a[k]!r}, y = {b[k]!r}: {got[k, n]!r}, not {want[k, n]!r}" for k, n in np.argwhere(~same)
    ]
    assert not wrong, f"{len(wrong)} of {same.size}:\n" + "\n".join(wrong[:40])


def expected(oracles: Sequence[Oracle], a: np.ndarray, b: np.ndarray) -> list[Any]:
    with np.errstate(all="ignore"):
        return [oracle(a, b) for oracle in oracles]


TYPES = {
    "float64": (REAL, WHOLE, REALS["float64"], "float64"),
    "float32": (REAL, WHOLE, REALS["float32"], "float32"),
    "int64": (MIXED, INTEGER, INTEGERS, "float64"),
    "int32": (MIXED, INTEGER, (-(2**31), -(2**31) + 1, -7, -1, 0, 1, 2, 3, 2**16, 2**31 - 1), "float64"),
    "uint8": (MIXED, INTEGER, (0, 1, 2, 3, 127, 128, 255), "float64"),
}


def every(*choices: Sequence[Any]) -> list[Any]:
    """Return all cases of a test; those of the rarer types and kinds of operand are long."""
    cases = []
    for (device, lanes), *rest in itertools.product(FORMS, *choices):
        marks = [*MARKS.get(device, [])]
        usual = rest[1] == choices[1][0] or (
            rest[0] in ("float64", "int64") and rest[1] in ("c", "captured") and lanes != 8
        )
        if device != "reference" and not usual:
            marks.append(pytest.mark.long)
        name = "-".join(map(str, [device, lanes, *rest]))
        cases.append(pytest.param(device, lanes, *rest, marks=marks, id=name))
    return cases


OPERATIONS = every([*TYPES], RIGHT)


@pytest.fixture
def as_users(request: pytest.FixtureRequest, lanes: int) -> None:
    """Packs and OpenCL are compiled as for users: compilers know identities that hold for most values."""
    if lanes != 1:
        request.getfixturevalue("optimised")


@pytest.mark.parametrize(("device", "lanes", "dtype", "right"), OPERATIONS)
def test_operations(device: str, lanes: int, dtype: str, right: str, tmp_path: Path, as_users: None) -> None:
    """All pairs of special values, the right one read, passed through a helper, a global's or a constant's."""
    real, whole, values, computed = TYPES[dtype]
    uniform = right in ("u[0]", "c")
    if uniform:
        real, whole = ({t: f for t, f in table.items() if re.search(r"\by\b", t)} for table in (real, whole))
    kind = "float" if dtype.startswith("float") else "int"
    texts = [[named(t, "a[0]", right) for t in table] for table in (real, whole)]
    kernel = load_module(tmp_path, text_of(texts[0], texts[1], kind), "k").k
    pairs = np.array(list(itertools.product(values, repeat=2)), dtype)
    groups = [
        pairs[pairs[:, 1].view(f"u{pairs.itemsize}") == v.view(f"u{pairs.itemsize}")] for v in np.array(values, dtype)
    ]
    for part in groups if uniform else [pairs]:
        a, b = part[:, 0].copy(), part[:, 1].copy()
        got = run((device, lanes), kernel, a, b, (computed, "int64"), (len(real), len(whole)), c=b[0].item(), e=[1])
        x, y = (v if kind == "float" else v.astype("int64") for v in (a, b))
        compare(got[0], expected([*real.values()], x, y), [*real], a, b)
        compare(got[1], expected([*whole.values()], x, y), [*whole], a, b)


KNOWN: dict[str, Callable[[int, Any], str]] = {
    "literal": lambda k, value: f"({literal(value)})",
    "captured": lambda k, value: f"SPECIAL[{k}]",
    "baked": lambda k, value: f"e[{k}]",
}
OPERANDS = every(["float64", "float32", "int64"], [*KNOWN])
CHOICES = {"max(x, y)": lambda x, y: np.maximum(x, y), "x if x < y else y": lambda x, y: np.minimum(x, y)}


@pytest.mark.parametrize(("device", "lanes", "dtype", "where"), OPERANDS)
def test_known_operands(device: str, lanes: int, dtype: str, where: str, tmp_path: Path, as_users: None) -> None:
    """An operand that is known when the kernel is compiled: written there, a module's, or baked."""
    real = dtype != "int64"
    table = REAL if real else {**INTEGER, **CHOICES}
    known = (0.0, -0.0, 3.0, -3.0, 0.5, math.inf, -math.inf, math.nan) if real else (1, -1, 3, -3, LOW + 1, HIGH)
    cases, texts = [], []
    for text, (k, value), left in itertools.product(BINARY, enumerate(known), (False, True)):
        if text in table:
            operand = KNOWN[where](k, value)
            cases.append((table[text], np.full(1, value, dtype)[0], left))
            texts.append(named(text, *((operand, "a[0]") if left else ("a[0]", operand))))
    special = f"({', '.join(map(literal, known))})"
    text = text_of(*((texts, ()) if real else ((), texts)), "float" if real else "int", special)
    a = np.array(REALS[dtype] if real else INTEGERS, dtype)
    stored, sizes = (dtype if real else "float64", "int64"), (len(texts), 1) if real else (1, len(texts))
    got = run((device, lanes), load_module(tmp_path, text, "k").k, a, a, stored, sizes, e=list(known))
    with np.errstate(all="ignore"):
        full = [(oracle, np.full(len(a), value, dtype), left) for oracle, value, left in cases]
        want = [oracle(fixed, a) if left else oracle(a, fixed) for oracle, fixed, left in full]
    # nvcc and PoCL find the larger or lesser of a known zero and another one by an instruction that has either of both
    compare(got[0 if real else 1], want, texts, a, a, any_zero=device in ("cuda", "opencl"))


# ------------------------------------------------------------------- what raises in Python, raises when asked to


RAISES = """
@kernel
def reals(a: Read, b: Read, n: Read, r: Write):
    t = 0.0
{real}    r[0] = 1.0 if t > 1.0 else 0.0

@kernel
def integers(a: Read, b: Read, n: Read, r: Write):
    t = 0
{whole}    r[0] = 1.0 if t > 1 else 0.0
"""
RAISING_REAL = (
    "x / y",
    "x // y",
    "x % y",
    "x ** y",
    "x ** -1",
    "x ** -2",
    "y / int(x)",
    "float(int(x))",
    "float(int(fl.floor(x)))",
)
RAISING_WHOLE = ("x // y", "x % y", "int(x / y)", "int(x ** -1)", "x + y", "x - y", "x * y", "-x", "abs(x)", "x ** 3")


def python_raises(text: str, x: Any, y: Any) -> bool:
    """Whether Python has no value that a kernel can hold; powers that overflow are infinite, or found when written."""

    def whole(value: float) -> int:
        found = int(value)
        if not LOW <= found <= HIGH:
            raise ValueError(found)
        return found

    try:
        value = eval(text, {"fl": fl, "int": whole}, {"x": x, "y": y})
    except (ZeroDivisionError, ValueError):
        return True
    except OverflowError:
        return "**" not in text
    return isinstance(value, int) and not LOW <= value <= HIGH


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize(("device", "lanes"), [p for p in DEVICES if p.values[1] != 8])
def test_what_raises(device: str, lanes: int, dtype: str, tmp_path: Path) -> None:
    """The checking mode raises where Python does, and nowhere else."""
    real = dtype == "float64"
    lines = [
        "".join(
            f"    {'el' if n else ''}if n[0] == {n}:\n        t = {named(t, 'a[0]', 'b[0]')}\n"
            for n, t in enumerate(texts)
        )
        for texts in (RAISING_REAL, RAISING_WHOLE)
    ]
    module = load_module(tmp_path, RAISES.format(real=lines[0], whole=lines[1]), "m")
    ctx = context(device, check=True)
    s = ctx.set(1, "one")
    a, b = (ctx.dat(s, dtype=dtype, name=name) for name in "ab")
    n, r = ctx.dat(s, dtype="int64", name="n"), ctx.dat(s, name="r")
    loop = Loop(module.reals if real else module.integers, s, a, b, n, r)
    values = (0.0, -0.0, -0.5, 3.0, 1e300, -1e19, math.inf, math.nan) if real else (LOW, -1, 0, 1, 3, 2**32, HIGH)
    for k, text in enumerate(RAISING_REAL if real else RAISING_WHOLE):
        n.write(k)
        for x, y in itertools.product(values, repeat=2):
            a.write(x)
            b.write(y)
            told = ""
            try:
                loop()
            except LoopCheckError as error:
                told = error.what
            assert bool(told) == python_raises(text, x, y), f"{text} with x = {x!r}, y = {y!r}: {told or 'no error'}"


# ---------------------------------------------------------------------------------------- Min and Max with NaN


@fl.kernel
def extremes(a: Read, low: Min, high: Max, turned: Max, each: Max):
    low[0] = min(low[0], a[0])
    high[0] = max(high[0], a[0])
    turned[0] = max(a[0], turned[0])
    each[0] = max(each[0], a[0], a[0] - 1.0)


@fl.kernel
def reached(a: Read, below: Min, above: Max):
    below[0][0] = min(a[0], below[0][0])
    above[0][0] = max(above[0][0], a[0])
    above[1][0] = max(a[0], above[1][0])


def extremes_of(ctx: fl.Context, values: np.ndarray, start: float, schedule: fl.Schedule | None = None) -> list[Any]:
    """Return the extremes of all values and those of nodes with a few edges each."""
    nodes = 8
    s, t = ctx.set(len(values), "edges"), ctx.set(nodes, "nodes")
    table = np.stack([np.arange(len(values)) % nodes, (np.arange(len(values)) * 3 + 1) % nodes], 1)
    m = ctx.map(s, t, table, "m")
    a = ctx.dat(s, values, "a")
    singles = [
        ctx.scalar(values.dtype.type(sign * start), name)
        for name, sign in (("low", -1), ("high", 1), ("turned", 1), ("each", 1))
    ]
    both = [
        ctx.dat(t, np.full((nodes, 1), sign * start, values.dtype), name)
        for name, sign in (("below", -1), ("above", 1))
    ]
    Loop(extremes, s, a, *singles)()
    Loop(reached, s, a, both[0][m], both[1][m], schedule=schedule)()
    return [*(g.value for g in singles), *(d.read().ravel() for d in both)]


def extremes_wanted(values: np.ndarray, start: float) -> list[Any]:
    nodes, n = 8, np.arange(len(values))
    most, least = (np.full(nodes, sign * start, values.dtype) for sign in (1, -1))
    for k in n:
        for node in (k % nodes, (k * 3 + 1) % nodes):
            most[node] = values[k] if values[k] > most[node] else most[node]
        least[k % nodes] = values[k] if values[k] < least[k % nodes] else least[k % nodes]
    seen = values[~np.isnan(values)]
    low, high = min([-start, *seen]), max([start, *seen])
    low, high = (math.nan, math.nan) if math.isnan(start) else (low, high)
    return [low, high, high, high, least, most]


STARTS = {"nothing": -math.inf, "0.25": 0.25, "nan": math.nan}


@pytest.mark.parametrize(("device", "lanes", "dtype", "start"), every(["float64", "float32"], [*STARTS]))
def test_extremes_pass_over_nan(device: str, lanes: int, dtype: str, start: str) -> None:
    """NaN of an element changes nothing, NaN that was there before stays: in every order and strategy."""
    from tests.conformance.harness import ITEM_STRATEGIES, STRATEGIES

    rng = np.random.default_rng(3)
    every = {"reference": {}, "cpu": STRATEGIES}.get(device, ITEM_STRATEGIES)
    strategies = [None, *(wish for name, wish in every.items() if name != "atomic")]
    for places in ([0], [-1], [0, 1, 2, 3, 4, 5, 6, 7], list(range(40)), list(range(0, 41, 2))):
        values = rng.random(41).astype(dtype)
        values[places] = math.nan
        want = extremes_wanted(values, STARTS[start])
        for wish in strategies if places == [0] else [None]:
            schedule = wish if wish is None or device != "cpu" else fl.Schedule(**{**wish.__dict__, "lanes": lanes})
            got = extremes_of(context(device, threads=2 if device == "cpu" else 0), values, STARTS[start], schedule)
            for x, y in zip(got, want, strict=True):
                np.testing.assert_array_equal(x, y, f"{schedule}, NaN at {places}")


@pytest.mark.parametrize("many", [5000])
@pytest.mark.parametrize(("device", "lanes"), DEVICES[1:])
def test_extremes_of_many(device: str, lanes: int, many: int) -> None:
    """More values than a chunk, a pack or a group has, all but one NaN."""
    for place in (0, 1, 4095, many - 1):
        values = np.full(many, math.nan)
        values[place] = 3.0
        got = extremes_of(context(device, threads=2 if device == "cpu" else 0), values, -math.inf)
        assert got[:4] == [3.0] * 4


def test_extremes_of_ranks() -> None:
    """The rule is the same on ranks, and those that have NaN only."""
    from fluxloom.comm.threads import run_threads
    from fluxloom.dsl.declare.parts import Part

    def work(comm: Any) -> list[float]:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        s = ctx.set(Part(0, 0, 4, 4, 4, np.arange(4) + 4 * comm.rank, 4 * comm.size), "values")
        a = ctx.dat(s, [3.0, math.nan, 2.0, 1.0] if comm.rank == 1 else np.full(4, math.nan), "a")
        found = []
        for start in (-math.inf, 7.0, math.nan):
            g = ctx.scalar(start, "g")
            Loop(greatest, s, a, g)()
            found.append(float(g.value))
        return found

    for found in run_threads(3, work):
        np.testing.assert_array_equal(found, [3.0, 7.0, math.nan])


@fl.kernel
def greatest(a: Read, g: Max):
    g[0] = max(a[0], g[0])
