"""Names that a kernel may use and that mean something else in C or in the generated code."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Read, Write
from fluxloom.dsl.run.chain import Chain


def check(kernel, count: int = 3, **constants) -> None:
    """Run a kernel over one set on both devices: reads first, one result last."""
    results = []
    for device in ("reference", "cpu"):
        ctx = fl.Context(device)
        over = ctx.set(37, "over")
        rng = np.random.default_rng(0)
        dats = [ctx.dat(over, rng.random((37, 2))) for _ in range(count)]
        Loop(kernel, over, *dats, **constants)()
        results.append([d.read() for d in dats])
    for left, right in zip(*results, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-14)


@fl.kernel
def keywords(double: Read, register: Read, int64_t: Write, *, static: float, switch: int):
    void = double[0] * static
    const = register[1] + switch
    struct = void - const
    restrict = [0.0, 1.0]
    restrict[1] = struct
    for long in range(switch):
        restrict[0] += double[long % 2]
    int64_t[0] = restrict[0]
    int64_t[1] = restrict[1] * 2.0


@fl.kernel
def inner_names(A: Read, i: Read, l: RW, *, e: float, n: int, L: float):  # noqa: E741
    o0 = A[0] * e
    p0_A = i[1] + n
    tn = o0 - p0_A
    t0 = tn * L
    fl_min_double = t0 + 1.0
    NAN = fl_min_double * 0.5
    INFINITY = NAN + 1.0
    M_PI = 2.0
    l[0] = l[0] + INFINITY * M_PI
    l[1] = o0


@fl.kernel
def greek(α: Read, β: Read, ψ: Write, *, γ: float, Δt: float):
    ρ = α[0] * γ
    größe = β[1] + Δt
    ψ[0] = ρ + größe
    ψ[1] = ρ * größe


@fl.kernel
def near_places(q: Read, r: Write, s: Inc):
    """Locals that look like the scalars generated for parameters."""
    r_0_0 = q[0]
    r_0_1 = q[1]
    r[0] = r_0_1 + 1.0
    r[1] = r_0_0 * r_0_1
    s_0_0 = r_0_0 * 2.0
    s[0] += s_0_0
    s[1] -= s_0_0 + r_0_1


@fl.kernel
def underscores(_: Read, __x: Read, x_: Write):
    x = _[0]
    _x = __x[1]
    x__ = x + _x
    x_[0] = x__
    x_[1] = x - _x


@fl.kernel
def counters(q: Read, r: RW, s: Write, *, t: float, te: float, k: int):
    """Loops that are not unrolled, next to constants named like their counters."""
    total = 0.0
    for k_ in range(k):
        for i in range(k_):
            total += t * q[0] + te * i
    s[0] = total
    s[1] = 0.0
    j = 0
    while j < k:
        j += 1
        s[1] += t
    r[0] = t + te


@pytest.mark.parametrize("kernel", [near_places, underscores], ids=lambda k: k.name)
def test_locals(kernel) -> None:
    check(kernel)


def test_keywords() -> None:
    check(keywords, static=1.5, switch=3)


def test_inner_names() -> None:
    check(inner_names, e=0.5, n=3, L=2.0)


def test_other_alphabets() -> None:
    check(greek, γ=1.4, Δt=0.1)


def test_counters() -> None:
    check(counters, t=0.25, te=-3.0, k=4)


HELPERS = [
    "wrap",
    "threads",
    "fence",
    "min_double",
    "abs_double",
    "mod_int64_t",
    "load4_float64_float64_8",
    "float64x4",
]


@pytest.mark.parametrize("name", HELPERS)
def test_loops_named_like_helpers(name: str) -> None:
    @fl.kernel
    def kernel(q: Read, r: Write, s: Write):
        for k in range(2):
            r[k] = q[k] % 0.3
            s[k] = min(q[k], 0.5)

    for device in ("reference", "cpu"):
        ctx = fl.Context(device)
        over = ctx.set(20, "over")
        q, r, s = ctx.dat(over, np.linspace(0, 1, 40).reshape(20, 2)), *(ctx.dat(over, shape=(2,)) for _ in range(2))
        Loop(kernel, over, q, r, s, name=name)()
        np.testing.assert_allclose(r.read(), q.read() % 0.3, rtol=1e-15)


@pytest.mark.parametrize(
    "name", ["a b", "flux/interior", "x */ y", "/* x", "ünïcode", "σ-flux", "9", "", "a\nb", "q" * 300, "*/ #error"]
)
def test_any_name(name: str) -> None:
    @fl.kernel
    def kernel(q: Read, r: RW):
        r[0] = r[0] + q[0]

    ctx = fl.Context("cpu")
    over = ctx.set(20, "over")
    q, r = ctx.dat(over, np.arange(20.0)), ctx.dat(over)
    loops = [Loop(kernel, over, q, r, name=name), Loop(kernel, over, r, q, name=name)]
    for loop in loops:
        loop()
    Chain(loops, name=name or "chain")()
    Chain(loops, name=name or "chain")()
    assert r.read()[1] == 8.0 or r.read().size


def test_members_of_one_group_keep_their_names_apart() -> None:
    """Fused kernels that use the same names for different things."""

    def first():
        @fl.kernel
        def same(x: Read, y: Inc, *, c: float):
            t = x[0] * c
            y[0] += t

        return same

    def second():
        @fl.kernel
        def same(y: Read, x: RW, m: Max, *, c: float):
            t = y[0] - c
            x[0] = x[0] + t
            m[0] = max(m[0], t)

        return same

    values = []
    for device in ("reference", "cpu"):
        ctx = fl.Context(device)
        over = ctx.set(50, "over")
        a, b, m = ctx.dat(over, np.linspace(0, 1, 50)), ctx.dat(over, np.ones(50)), ctx.scalar(0.0)
        loops = [
            Loop(first(), over, a, b, c=2.0),
            Loop(second(), over, b, a, m, c=0.5),
            Loop(first(), over, b, a, c=0.1),
        ]
        chain = Chain(loops)
        for _ in range(3):
            chain()
        values.append((a.read(), b.read(), np.array(m.value)))
    for left, right in zip(*values, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-13)
