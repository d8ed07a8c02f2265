"""Strategies as a third party writes them, and cases with them: fluxes with a gas, states at boundaries, a force."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

import fluxloom as fl
from fluxloom import Const, Func, Inc, Loop, Max, Read, Write


@dataclass(frozen=True)
class State:
    """What a `@func` returns: density, velocity and pressure."""

    rho: float
    u: float
    p: float

    @fl.func
    def momentum(self):
        return self.rho * self.u

    @fl.func
    def mean(self, other):
        return State(0.5 * (self.rho + other.rho), 0.5 * (self.u + other.u), 0.5 * (self.p + other.p))


@dataclass(frozen=True)
class Gas:
    gamma: float = 1.4

    @fl.func
    def primitive(self, w):
        u = w[1] / w[0]
        return State(p=self.factor * (w[2] - 0.5 * w[0] * u * u), rho=w[0], u=u)

    @property
    @fl.func
    def factor(self):
        return self.gamma - 1.0

    @fl.func
    def sound(self, s):
        return fl.sqrt(self.gamma * s.p / s.rho)


class Flux(Protocol):
    def __call__(self, left, right, f) -> None: ...


@fl.func
def euler(w, s, f):
    f[0] = s.momentum()
    f[1] = s.momentum() * s.u + s.p
    f[2] = (w[2] + s.p) * s.u


@dataclass(frozen=True)
class Rusanov:
    gas: Gas
    scale: float = 1.0

    @fl.func
    def waves(self, a, b):
        m = a.mean(b)
        return fl.fabs(m.u) + self.scale * self.gas.sound(m)

    @fl.func
    def __call__(self, left, right, f):
        a = self.gas.primitive(left)
        b = self.gas.primitive(right)
        g = fl.zeros(3)
        euler(left, a, f)
        euler(right, b, g)
        fastest = self.waves(a, b)
        for k in range(3):
            f[k] = 0.5 * (f[k] + g[k] - fastest * (right[k] - left[k]))


@dataclass(frozen=True)
class Damped(Rusanov):
    """Overrides a method, has baked fields, a table made of them and a number of the class."""

    order: int = 2
    weights: tuple[float, ...] = (0.5, 0.25, 0.125)
    name: str = "damped"
    limit: Const[float] = 0.75
    MOST: ClassVar[float] = 4.0

    @property
    def table(self) -> tuple[float, ...]:
        return tuple(w * self.order for w in self.weights)

    @fl.func
    def waves(self, a, b):
        total = 0.0
        for k in range(self.order):
            total += self.table[k] + self.weights[k]
        if a.p > b.p:
            s = a
            total += 0.125
        else:
            s = b.mean(a)
        return min(self.limit * total * self.gas.sound(s) + fl.fabs(s.u), self.MOST)


@dataclass(frozen=True)
class Blend:
    """Two fluxes, of which each may be one of these again."""

    first: Flux
    second: Flux
    share: float

    @fl.func
    def __call__(self, left, right, f):
        g = fl.zeros(3)
        self.first(left, right, f)
        self.second(left, right, g)
        for k in range(3):
            f[k] += self.share * (g[k] - f[k])


@fl.func
def central(left, right, f):
    for k in range(3):
        f[k] = 0.5 * (left[k] + right[k])


FLUXES: dict[str, tuple[Flux | Func, Flux | Func]] = {
    "formula": (central, central),
    "record": (Rusanov(Gas()), Rusanov(Gas(1.3), 0.5)),
    "derived": (Damped(Gas(), scale=2.0), Damped(Gas(1.67), scale=0.1)),
    "nested": (Blend(Blend(central, Rusanov(Gas()), 0.5), Damped(Gas(1.2)), 0.25),
               Blend(Blend(central, Rusanov(Gas(1.1), 0.3), 0.1), Damped(Gas(1.5)), 0.75)),
}  # fmt: skip


@fl.kernel
def through_edges(w: Read, res: Inc, *, flux: Const[Flux], area: float = 1.0):
    f = fl.zeros(3)
    flux(w[0], w[1], f)
    for k in range(3):
        res[0][k] -= area * f[k]
        res[1][k] += area * f[k]


def edges(ctx, schedule=None, layout=None, dtype="float64", flux="record", size=700):
    """A flux through the edges of a random graph, with two settings of its fields."""
    rng = np.random.default_rng(1)
    e, n = ctx.set(2 * size, "edges"), ctx.set(size, "nodes")
    m = ctx.map(e, n, rng.integers(0, size, (2 * size, 2)), "m")
    w = ctx.dat(n, np.array([1.0, 0.3, 2.5]) + 0.2 * rng.random((size, 3)), "w", dtype=dtype, layout=layout)
    first, second = (ctx.dat(n, name=f"res{k}", shape=(3,), dtype=dtype, layout=layout) for k in range(2))
    one, other = FLUXES[flux]
    loops = [Loop(through_edges, e, w[m], first[m], flux=one, schedule=schedule),
             Loop(through_edges, e, w[m], second[m], flux=one, schedule=schedule)]  # fmt: skip
    loops[1].set(flux=other)
    return loops, {"first": first, "second": second}


# ------------------------------------------------------------------------------------- one of several


@dataclass(frozen=True)
class Inflow:
    value: float
    turned: bool = False

    @fl.func
    def __call__(self, inside, outside):
        for k in range(3):
            outside[k] = self.value if not self.turned else -self.value
        outside[0] = 2.0 * self.value


@dataclass(frozen=True)
class Wall:
    @fl.func
    def __call__(self, inside, outside):
        outside[0] = inside[0]
        outside[1] = -inside[1]
        outside[2] = inside[2]


CONDITIONS: dict[str, tuple[Inflow | Wall, ...]] = {
    "none": (),
    "one": (Wall(),),
    "same": (Inflow(0.5), Inflow(1.5)),
    "several": (Inflow(0.5), Wall(), Inflow(1.5, turned=True), Inflow(2.5, turned=True)),
}


@fl.kernel
def at_boundaries(kind: Read, w: Read, out: Write, *, conditions: Const[tuple[Func, ...]]):
    outside = fl.zeros(3)
    for k in range(len(conditions)):
        if kind[0] == k:
            conditions[k](w, outside)
    for v in range(3):
        out[v] = outside[v]


def boundaries(ctx, schedule=None, layout=None, dtype="float64", conditions="several", size=513):
    """A boundary state for each face, chosen by a number."""
    rng = np.random.default_rng(2)
    faces = ctx.set(size, "faces")
    kind = ctx.dat(faces, rng.integers(0, 4, size), "kind")
    w = ctx.dat(faces, rng.random((size, 3)), "w", dtype=dtype, layout=layout)
    out = ctx.dat(faces, name="out", shape=(3,), dtype=dtype, layout=layout)
    loop = Loop(at_boundaries, faces, kind, w, out, conditions=CONDITIONS[conditions], schedule=schedule)
    return [loop], {"out": out}


# -------------------------------------------------------------------------------------- optional data


@fl.func
def pushed(w, force, scale):
    """A helper that is given what may be None."""
    if force is None:
        return w[1]
    return w[1] + scale * force[0]


@dataclass(frozen=True)
class Push:
    scale: float = 2.0
    gas: Gas | None = None

    @fl.func
    def __call__(self, w, force):
        extra = self.gas.gamma if self.gas is not None else 0.0
        return pushed(w, force, self.scale) + extra


@fl.kernel
def accelerate(
    w: Read, force: Read | None, out: Write, largest: Max | None, near: Read | None, total: Inc | None,
    *, push: Const[Push | None],
):  # fmt: skip
    value = w[0]
    if push is not None:
        value = push(w, force)
    if force is not None and force[1] > 0.5:
        value += force[1]
    if near is not None:
        for j in range(len(near)):
            value += near[j][0]
            if total is not None:
                total[j][0] += near[j][1] * value
    out[0] = value
    if largest is not None:
        largest[0] = max(largest[0], value)


def optional(ctx, schedule=None, layout=None, dtype="float64", given="all", size=600):
    """A loop with and without what it may leave out."""
    rng = np.random.default_rng(3)
    cells = ctx.set(size, "cells")
    ring = ctx.map(cells, cells, np.stack([np.arange(size), (np.arange(size) + 1) % size], 1), "ring")
    w, force, near = (ctx.dat(cells, rng.random((size, 2)), n, dtype=dtype, layout=layout) for n in ("w", "f", "n"))
    out = ctx.dat(cells, name="out", dtype=dtype, layout=layout)
    total = ctx.dat(cells, name="total", shape=(1,), dtype=dtype, layout=layout)
    largest = fl.Global(ctx, np.array([-1.0], dtype=dtype))
    some = given != "nothing"
    loop = Loop(
        accelerate, cells, w, force if some else None, out, largest if some else None, near[ring] if some else None,
        total[ring] if given == "all" else None, schedule=schedule,
        push=None if given == "nothing" else Push(0.5, Gas(1.25) if given == "all" else None),
    )  # fmt: skip
    return [loop], {"out": out, "total": total, "largest": largest}


@dataclass(frozen=True)
class Relaxed:
    """A record that is a variable of loops which stay loops, with a default made by a factory."""

    rate: float
    steps: Const[int] = 3
    start: State = field(default_factory=lambda: State(1.0, 0.5, 0.25))

    @fl.func
    def __call__(self, x, n):
        s = self.start.mean(self.start)
        k = 0
        while k < self.steps + 5 and s.rho < 8.0:
            s = State(s.rho + self.rate * x, s.rho, s.u)
            k += 1
        for _ in fl.rolled(n):
            s, t = State(s.u, s.p, s.rho), s
            s = s.mean(t)
        return s


@fl.kernel
def relax(x: Read, n: Read, out: Write, *, by: Const[Relaxed]):
    s = by(x[0], n[0])
    out[0] = s.rho
    out[1] = s.u
    out[2] = s.momentum() + s.p


def variables(ctx, schedule=None, layout=None, dtype="float64", size=257):
    """Records that loops change."""
    rng = np.random.default_rng(4)
    cells = ctx.set(size, "cells")
    x = ctx.dat(cells, rng.random(size), "x", dtype=dtype, layout=layout)
    n = ctx.dat(cells, rng.integers(0, 5, size), "n")
    out = ctx.dat(cells, name="out", shape=(3,), dtype=dtype, layout=layout)
    return [Loop(relax, cells, x, n, out, by=Relaxed(0.75), schedule=schedule)], {"out": out}
