"""What a lowered kernel computes is what the Python function computes."""

from __future__ import annotations

import math
from math import sqrt

import numpy as np
import pytest

from fluxloom.core.access import RW, Const, Inc, Max, Min, Read, Write
from fluxloom.core.errors import KernelError
from fluxloom.kernel import func, ir, kernel, used_components
from fluxloom.kernel import intrinsics as fl
from fluxloom.kernel.analysis import walk

from .interpreter import agree

GAMMA = 1.4
WEIGHTS = (0.25, 0.5, 0.25)
TABLE = ((1, 0), (0, 1), (-1, 0))
PERMUTED = (2, 0, 1)

rng = np.random.default_rng(1)


def reals(*shape: int) -> np.ndarray:
    return rng.uniform(0.5, 2.0, shape)


def only_kinds(lowered: ir.LoweredKernel) -> set[type]:
    return {type(item) for item in walk(lowered.body)}


@kernel
def diffuse(x: Read, u: Read, r: Inc, *, nu: float):
    """Docstring."""
    dx = x[1][0] - x[0][0]
    dy = x[1][1] - x[0][1]
    f = nu * (u[1] - u[0]) / fl.sqrt(dx * dx + dy * dy)
    r[0] += f
    r[1] -= f


def test_edge_flux():
    lowered = agree(
        diffuse,
        {"x": (reals(2), reals(2)), "u": (np.array(1.0), np.array(3.0)), "r": (np.array(0.0), np.array(1.0))},
        nu=0.3,
    )
    assert [item.name for item in lowered.constants] == ["nu"]
    assert dict(lowered.scalars) == {"dx": ir.Kind.REAL, "dy": ir.Kind.REAL, "f": ir.Kind.REAL}
    assert lowered.flops == 2 + (1 + 1 + 1 + 3 + 1) + 2
    assert used_components(lowered, "x") == {(0, (0,)), (0, (1,)), (1, (0,)), (1, (1,))}
    assert used_components(lowered, "u") == {(0, ()), (1, ())}


@kernel
def integers(n: Read, i: Write, r: Write, *, k: int):
    a = n[0]
    b = n[1]
    i[0] = a // b
    i[1] = a % b
    i[2] = -a // k
    i[3] = (a + 1) ** 3
    i[4] = int(2.7) + int(-2.7) + math.floor(-1.5) + min(a, b, k)
    i[5] = abs(-a) + max(a, b)
    r[0] = a / b
    r[1] = a * 0.5 // 0.2
    r[2] = -7.5 % b
    r[3] = 2.0**-2 + r[0] ** 0.5 + r[0] ** 2.5 + float(a) ** b


def test_integer_and_real_arithmetic():
    for pair in ([7, 3], [-7, 3], [7, -3], [8, 2]):
        agree(integers, {"n": np.array(pair), "i": np.zeros(6, int), "r": np.zeros(4)}, k=4) if pair[0] > 0 and pair[
            1
        ] > 0 else None


@kernel
def powers(n: Read, u: Read, i: Write, r: Write):
    i[0] = n[0] ** 4
    i[1] = n[0] ** 5
    i[2] = n[0] ** 6
    i[3] = n[0] ** 7
    i[4] = n[0] ** 8
    r[0] = u[0] ** 4
    r[1] = u[0] ** 5
    r[2] = u[0] ** 7
    r[3] = u[0] ** -4
    r[4] = u[0] ** 9


def test_powers_are_products():
    agree(powers, {"n": np.array([3]), "u": np.array([1.5]), "i": np.zeros(5, int), "r": np.zeros(5)})


@kernel
def floors(n: Read, i: Write, r: Write):
    i[0] = n[0] // n[1]
    i[1] = n[0] % n[1]
    r[0] = (0.5 * n[0]) // n[1]
    r[1] = (0.5 * n[0]) % n[1]


@pytest.mark.parametrize("pair", [[7, 3], [-7, 3], [7, -3], [-7, -3], [6, 3]])
def test_floor_division_follows_python(pair: list[int]):
    agree(floors, {"n": np.array(pair), "i": np.zeros(2, int), "r": np.zeros(2)})


@kernel
def joined(q: Read, r: Write):
    s = 0
    big = q[0] > 1.0
    for i in range(4):
        s += q[i] * WEIGHTS[i % 3]
    t = 1 if big else 2.5
    if 0.5 < q[1] < 1.5 and not big:
        t = 3
    elif big or q[2] == 0.0:
        t += GAMMA
    r[0] = s
    r[1] = t


def test_kinds_are_joined_over_all_assignments():
    for _ in range(5):
        lowered = agree(joined, {"q": reals(4), "r": np.zeros(2)})
    kinds = dict(lowered.scalars)
    assert kinds["s"] is ir.Kind.REAL
    assert kinds["t"] is ir.Kind.REAL
    assert kinds["big"] is ir.Kind.BOOL
    assert "i" not in kinds


@kernel
def arrays(q: Read, r: Write):
    a = [0.0] * 3
    b = [[0.0] * 2 for _ in range(3)]
    c = fl.zeros(2, 2)
    d = [q[0], q[1], 1]
    for i in range(3):
        a[i] += q[i]
        for j in range(2):
            b[i][j] = a[i] * (j + 1)
    c[0, 1] = b[2][1]
    c[1][0] = c[0][1] + d[2]
    row = b[1]
    row[0] = 7.0
    d = [d[1], d[0], d[2]]
    r[0] = a[0] + b[1][0] + c[1, 0] + d[0] * len(b) + len(row)
    r[1] = d[1]


def test_local_arrays_become_scalars():
    lowered = agree(arrays, {"q": reals(3), "r": np.zeros(2)})
    assert lowered.arrays == ()
    names = [name for name, _ in lowered.scalars]
    assert "a_0" in names
    assert "b_2_1" in names
    assert len(names) == len(set(names))


@kernel
def dynamic(q: Read, n: Read, r: Write):
    a = [0.0] * 4
    for i in range(4):
        a[i] = q[i]
    a[n[0]] = 9.0
    a[n[1]] -= 1
    r[0] = a[n[0]] + a[2] + WEIGHTS[n[1]] + TABLE[n[1]][1]


def test_dynamic_indices_keep_the_array():
    lowered = agree(dynamic, {"q": reals(4), "n": np.array([3, 1]), "r": np.array(0.0)})
    assert {item.name for item in lowered.arrays} == {"a"}
    assert {item.name for item in lowered.tables} == {"WEIGHTS", "TABLE"}
    assert next(item for item in lowered.tables if item.name == "TABLE").kind is ir.Kind.INT
    assert used_components(lowered, "q") is not None


@kernel
def permuted(q: RW):
    q[0], q[1] = q[1], q[0]
    a, b, c = 1, q[0], q[1]
    a, b = b, a
    for i in range(3):
        q[i] += q[PERMUTED[i]] * a
    local = [1, 2, 0]
    for i in range(3):
        k = local[i]
        q[k] = q[k] + b + c


def test_tuples_and_swaps():
    lowered = agree(permuted, {"q": reals(3)})
    assert lowered.arrays == ()
    assert used_components(lowered, "q") == {(None, (0,)), (None, (1,)), (None, (2,))}


@kernel
def views(q: RW, s: RW):
    left = q[0]
    right = q[1]
    left[0] += right[1]
    m = left
    m[1] = 5.0
    row = s[1]
    row[2] = s[0, 1] + s[0][2]
    s[0, 0] = row[2]
    a, b = right
    left[0] *= a - b


def test_views_alias_the_parameter():
    agree(views, {"q": (reals(2), reals(2)), "s": reals(2, 3)})


@kernel
def ragged(x: Read, w: Read, y: Write, z: Write):
    total = 0.0
    for j in range(len(x)):
        v = x[j]
        if w[j] > 1.0:
            total += v[0] * w[j]
    y[0] = total / len(x)
    for j in range(len(z)):
        for k in range(2):
            z[j][k] = x[j][k] * total
            total = z[j][k]


@pytest.mark.parametrize("legs", [1, 2, 5])
def test_ragged(legs: int):
    lowered = agree(
        ragged,
        {
            "x": [reals(2) for _ in range(legs)],
            "w": [reals() for _ in range(legs)],
            "y": np.array(0.0),
            "z": [np.zeros(2) for _ in range(legs)],
        },
    )
    assert ir.For in only_kinds(lowered)
    assert used_components(lowered, "x") is None
    assert used_components(lowered, "y") == {(None, ())}


@kernel
def lengths(x: Read, q: Read, u: Read, r: Write):
    r[0] = len(x) * 100 + len(x[0]) * 10 + len(q) + len(u) * 1000.0
    for i in range(len(q) - 1, -1, -1):
        r[0] += i * q[i]


def test_constant_lengths_fold():
    lowered = agree(
        lengths, {"x": (reals(2), reals(2), reals(2)), "q": reals(4), "u": np.array(1.0), "r": np.array(0.0)}
    )
    assert only_kinds(lowered) == {ir.Store}


@kernel
def long_loop(q: Read, r: Write, *, n: int):
    s = 0.0
    for i in range(100):
        s += q[i]
        r[i] = s
    m = n
    for i in range(n, m + 3):
        m = i
        r[i] *= 2.0


def test_long_loops_stay_loops():
    lowered = agree(long_loop, {"q": reals(100), "r": np.zeros(100)}, n=4)
    assert sum(isinstance(item, ir.For) for item in walk(lowered.body)) == 2


@kernel
def heavy(q: Read, r: RW):
    for i in range(60):
        for j in range(60):
            r[0] += q[i] * q[j] * q[i] - q[j]


def test_heavy_nests_are_unrolled_inside_only():
    lowered = agree(heavy, {"q": reals(60), "r": np.array(0.0)})
    loops = [item for item in walk(lowered.body) if isinstance(item, ir.For)]
    assert [loop.name for loop in loops] == ["i"]
    assert len(loops[0].body) == 60


@kernel
def newton(q: Read, r: Write):
    x = q[0]
    change = 1.0
    k = 0
    while k < 50 and abs(change) > 1e-14:
        change = (x * x - q[0]) / (2 * x)
        x -= change
        k += 1
    r[0] = x
    r[1] = k


def test_bounded_while():
    lowered = agree(newton, {"q": reals(1) + 5.0, "r": np.zeros(2)})
    assert ir.While in only_kinds(lowered)
    assert dict(lowered.scalars)["k"] is ir.Kind.INT


@kernel
def reductions(q: Read, low: Min, high: Max, total: Inc):
    low[0] = min(low[0], q[0])
    low[1] = min(q[0] * 2, low[1], q[1])
    high[0] = fl.max(high[0], q[0] - q[1])
    total[0] -= q[0]


def test_reductions():
    lowered = agree(reductions, {"q": reals(2), "low": np.full(2, 9.0), "high": np.array(-9.0), "total": np.array(1.0)})
    assert [item.op for item in lowered.body if isinstance(item, ir.Update)] == ["min", "min", "max", "+"]


@kernel
def baked(q: Read, r: Write, *, c: Const[list[list[int]]], w: Const[list], n: Const[int] = 2, flag: bool = True):
    s = 0.0
    for i in range(n):
        if c[i][0] != 0:
            s += c[i][0] * w[i] * q[i]
    r[0] = s if flag else -s
    r[1] = c[int(q[2])][1]


def test_baked_constants():
    lowered = agree(
        baked,
        {"q": np.array([1.5, 2.5, 1.0]), "r": np.zeros(2)},
        baked={"c": [[0, 1], [-1, 4]], "w": np.array([0.5, 0.25]), "n": 2},
        flag=False,
    )
    assert [item.name for item in lowered.constants] == ["flag"]
    other = baked.lower(dict(zip(("q", "r"), lowered.shapes, strict=True)), {"c": [[0, 1], [-1, 5]], "w": [0.5, 0.25]})
    assert other.digest != lowered.digest
    assert baked.defaults == {"n": 2, "flag": True}


def test_run_time_constants_may_be_baked():
    shapes = {
        "x": ir.ArgShape(2, (2,), ir.Kind.REAL),
        "u": ir.ArgShape(2, (), ir.Kind.REAL),
        "r": ir.ArgShape(2, (), ir.Kind.REAL),
    }
    assert diffuse.lower(shapes, {"nu": 2}).constants == ()


@kernel
def intrinsic_names(q: Read, r: Write):
    r[0] = sqrt(q[0]) + math.sin(q[0]) + np.cos(q[0]) + fl.tanh(q[0]) + math.pi + np.e + np.arctan2(q[0], q[1])
    r[1] = fl.select(q[0] < q[1], q[0], 2) + fl.sign(-q[0]) + math.hypot(q[0], q[1]) + fl.cbrt(q[0]) + math.log(q[0])
    r[2] = float(math.isnan(q[0])) + fl.isfinite(fl.inf) + fl.copysign(2.0, -q[1]) if q[0] > 9 else math.ceil(q[1])
    r[3] = fl.floor(-q[1]) + int(q[0] * 10) % 3 + fl.exp(q[0]) + fl.expm1(q[0]) + fl.log1p(q[0]) + fl.log2(4.0)


def test_intrinsics_resolve_by_identity():
    with pytest.raises(KernelError, match="boolean"):
        agree(intrinsic_names, {"q": reals(2), "r": np.zeros(4)})


@kernel
def intrinsic_calls(q: Read, r: Write):
    r[0] = sqrt(q[0]) + math.sin(q[0]) + np.cos(q[0]) + fl.tanh(q[0]) + math.pi + np.e + np.arctan2(q[0], q[1])
    r[1] = fl.select(q[0] < q[1], q[0], 2) + fl.sign(-q[0]) + math.hypot(q[0], q[1]) + fl.cbrt(q[0]) + math.log(q[0])
    r[2] = float(math.isnan(q[0])) + fl.copysign(2.0, -q[1]) if q[0] < 9 else math.ceil(q[1])
    r[3] = fl.floor(-q[1]) + int(q[0] * 10) % 3 + fl.exp(q[0]) + fl.expm1(q[0]) + fl.log1p(q[0]) + fl.log2(4.0)


def test_intrinsics():
    agree(intrinsic_calls, {"q": reals(2), "r": np.zeros(4)})


@kernel
def short_circuits(x: Read, r: Write):
    s = 0.0
    for i in range(3):
        if i > 0 and x[i - 1] > 1.0:
            s += 1.0
        s += x[i + 1] if i < 2 else 10.0
    r[0] = s


def test_constant_tests_decide_before_indices_are_looked_at():
    agree(short_circuits, {"x": reals(3), "r": np.array(0.0)})


@kernel
def guarded(n: Read, r: Write):
    r[0] = (n[0] // n[1]) ** 2 if n[1] != 0 else 1
    r[1] = 1.0 if n[1] != 0 and (n[0] // n[1]) ** 2 > 3 else 0.0
    r[2] = 1.0 if n[1] == 0 or (n[0] % n[1]) ** 2 > 3 else 0.0


@pytest.mark.parametrize("pair", [(7, 0), (7, 2), (3, 2)])
def test_guards_hold_for_hoisted_temporaries(pair: tuple[int, int]):
    agree(guarded, {"n": np.array(pair), "r": np.zeros(3)})


@kernel
def branches(q: Read, r: Write):
    if q[0] > 1.0:
        a = [1.0, q[0]]
        r[0] = 1.0
    else:
        a = [q[0], 2.0]
        r[0] = a[0]
    b = a
    b[0] += 1
    r[1] = a[0] + a[1]


def test_arrays_made_in_both_branches():
    for value in (0.5, 1.5):
        agree(branches, {"q": np.array([value]), "r": np.zeros(2)})


def test_division_by_zero_is_not_folded():
    lowered = divides.lower({"r": ir.ArgShape(None, (2,), ir.Kind.REAL)})
    (store, other) = lowered.body
    assert isinstance(store, ir.Store)
    assert isinstance(store.value, ir.Binary)
    assert isinstance(other, ir.Store)
    assert isinstance(other.value, ir.Binary)
    assert other.value.op == "+"


@kernel
def divides(r: RW):
    r[0] = 1.0 / 0.0
    r[1] = r[0] + 0.0


@func
def plus_one(a):
    return a + 1


@kernel
def identities(r: RW):
    r[0] = 1.0 * r[1] * 1
    r[1] = r[0] * 0.0
    r[2] = r[1] - 0.0
    r[3] = plus_one(2) * 1.0


def test_exact_identities_only():
    lowered = identities.lower({"r": ir.ArgShape(None, (4,), ir.Kind.REAL)})
    values = [item.value for item in lowered.body if isinstance(item, ir.Store)]
    assert isinstance(values[0], ir.Read)
    assert isinstance(values[1], ir.Binary)
    assert isinstance(values[2], ir.Read)
    assert values[3] == ir.Constant(ir.Kind.REAL, 3.0)


@kernel
def rebinding(x: Read, q: Read, r: Write):
    flux = [0.0, 0.0]
    for j in range(len(x)):
        old = flux[0]
        flux = [x[j][0] + old, flux[0] - x[j][1]]
    k = 0
    v = q[0]
    while k < 3 and flux[0] < 100.0:
        flux = [flux[1], flux[0] + v[0]]
        v = q[0]
        k += 1
    r[0] = flux[0]
    r[1] = flux[1] + v[1]


def test_arrays_may_be_made_again_in_loops():
    agree(rebinding, {"x": [reals(2) for _ in range(3)], "q": (reals(2), reals(2)), "r": np.zeros(2)})


@kernel
def aliasing(x: Read, r: Write):
    a = [0.0, 1.0]
    b = [2.0, 3.0]
    for j in range(len(x)):
        a = b
        r[0] = a[0]
        b = [x[j], 4.0]
    r[0] = 1.0


def test_arrays_that_trade_places_in_a_loop_are_refused():
    with pytest.raises(KernelError, match="'b' may be used before it is assigned"):
        aliasing.lower({"x": ir.ArgShape(ir.RAGGED, (), ir.Kind.REAL), "r": ir.ArgShape(None, (), ir.Kind.REAL)})


@kernel
def guards(x: Read, n: Read, r: Write):
    s = 0.0
    for j in range(len(x)):
        if j > 0 and x[j - 1] > 1.0 and n[0] >= 0:
            s += x[j]
        if j + 1 == len(x) or x[j + 1] < 1.0:
            s += 1.0
    r[0] = s
    r[1] = 1.0 if n[1] != 0 and n[0] // n[1] > 1 else 0.0


def test_and_and_or_guard_what_follows():
    for second in (0, 2):
        x = [reals() for _ in range(4)]
        agree(guards, {"x": x, "n": np.array([5, second]), "r": np.zeros(2)})
