"""Random chains: sequences of small loops over a mesh, with what may happen between two calls."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain

CELLS, EDGES, BOUNDARY, NODES = 2500, 4700, 240, 1300


@fl.kernel
def copy(a: Read, b: Write):
    """Compute ``b = a``."""
    for k in range(2):
        b[k] = a[k]


@fl.kernel
def blend(a: Read, b: RW, *, w: float):
    """Compute ``b = w b + (1 - w) J a``."""
    b[0] = w * b[0] + (1.0 - w) * a[1]
    b[1] = w * b[1] - (1.0 - w) * a[0]


@fl.kernel
def partly(a: Read, b: RW):
    """Compute ``b_1 = a_1 / 2`` where ``a_0 > 0.1``."""
    if a[0] > 0.1:
        b[1] = 0.5 * a[1]


@fl.kernel
def mix(a: Read, b: Read, c: Write, *, w: float):
    """Compute ``c = (w a_0 b_1 + 0.1, w (a_1 - b_0))``."""
    c[0] = w * a[0] * b[1] + 0.1
    c[1] = w * (a[1] - b[0])


@fl.kernel
def advance(old: Read, new: Write, r: RW):
    """Compute ``new = 0.9 old - 0.1 r``, ``r = 0``."""
    for k in range(2):
        new[k] = 0.9 * old[k] - 0.1 * r[k]
        r[k] = 0.0


@fl.kernel
def step(u: RW, r: RW):
    """Compute ``u <- 0.9 u + 0.05 r``, ``r = 0``."""
    for k in range(2):
        u[k] = 0.9 * u[k] + 0.05 * r[k]
        r[k] = 0.0


@fl.kernel
def clear(r: Write):
    """Compute ``r = 0``."""
    r[0] = 0.0
    r[1] = 0.0


@fl.kernel
def add(a: Read, r: Inc):
    """Compute ``r += (a_1, -a_0) / 4``."""
    r[0] += 0.25 * a[1]
    r[1] -= 0.25 * a[0]


@fl.kernel
def flux(u: Read, r: Inc, *, w: float):
    """Compute ``f = 0.1 w (u_0 - u_1)``: add ``f`` to the first and take it from the second."""
    for k in range(2):
        f = 0.1 * w * (u[0][k] - u[1][k])
        r[0][k] += f
        r[1][k] -= f


@fl.kernel
def weighted(u: Read, v: Read, r: Inc):
    """Compute products across an edge, one of them only where ``u > 0.2``."""
    r[0][0] += 0.1 * u[1][0] * v[0][1]
    r[1][1] -= 0.1 * u[0][1] * v[1][0]
    if u[0][0] > 0.2:
        r[1][0] += 0.05


@fl.kernel
def boundary(u: Read, r: Inc, *, w: float):
    """Compute ``r += 0.1 (w u_1, -u_0)``."""
    r[0] += 0.1 * w * u[1]
    r[1] -= 0.1 * u[0]


@fl.kernel
def corners(x: Read, u: Read, v: Write):
    """Compute ``v = (0.1 sum(x) u_0, 0.2 (x_0 - x_2) + 0.5 u_1)``."""
    v[0] = 0.1 * (x[0] + x[1] + x[2] + x[3]) * u[0]
    v[1] = 0.2 * (x[0] - x[2]) + 0.5 * u[1]


@fl.kernel
def near(u: Read, v: Write):
    """Compute means of neighbours, ``v_0 = (u_00 + u_11) / 4``."""
    v[0] = 0.25 * (u[0][0] + u[1][1])
    v[1] = 0.25 * (u[1][0] - u[2][1])


@fl.kernel
def total(u: Read, g: Inc):
    """Compute ``g += u_0^2 + 0.1 u_1``."""
    g[0] += u[0] * u[0] + 0.1 * u[1]


@fl.kernel
def scaled(u: RW, g: Read):
    """Compute ``u_0 <- 0.9 u_0 + 1e-5 g``."""
    u[0] = u[0] * 0.9 + 1e-5 * g[0]


FORMS = [
    (copy, "cells", "dd", {}), (copy, "cells", "dd", {}), (blend, "cells", "dd", {"w": 0.6}),
    (partly, "cells", "dd", {}), (mix, "cells", "ddd", {"w": 0.7}), (advance, "cells", "ddd", {}),
    (step, "cells", "dd", {}), (clear, "cells", "d", {}), (add, "cells", "dd", {}),
    (flux, "edges", "ee", {"w": 1.1}), (flux, "edges", "ee", {"w": 0.8}), (flux, "edges", "ee", {"w": 0.8}),
    (weighted, "edges", "eee", {}), (boundary, "bfaces", "bb", {"w": 0.9}), (boundary, "bfaces", "bb", {"w": 0.9}),
    (corners, "cells", "xdd", {}), (near, "cells", "nd", {}), (total, "cells", "dg", {}), (scaled, "cells", "dg", {}),
]  # fmt: skip


class World:
    """A mesh with five dats and two globals."""

    def __init__(self, ctx: fl.Context, dtype: str = "float64", seed: int = 0, layout: Any = None) -> None:
        rng = np.random.default_rng(seed)
        self.ctx = ctx
        self.cells, self.edges = ctx.set(CELLS, "cells"), ctx.set(EDGES, "edges")
        self.bfaces, self.nodes = ctx.set(BOUNDARY, "bfaces"), ctx.set(NODES, "nodes")
        first = np.arange(EDGES) * (CELLS - 1) // EDGES
        second = np.minimum(first + rng.integers(1, 60, EDGES), CELLS - 1)
        second[rng.random(EDGES) < 0.01] = rng.integers(0, CELLS)
        self.e = ctx.map(self.edges, self.cells, np.stack([first, second], 1), "e")
        self.b = ctx.map(self.bfaces, self.cells, rng.permutation(CELLS)[:BOUNDARY], "b")
        self.x = ctx.map(self.cells, self.nodes, rng.integers(0, NODES, (CELLS, 4)), "x")
        self.n = ctx.map(self.cells, self.cells, rng.integers(0, CELLS, (CELLS, 3)), "n")
        self.point = ctx.dat(self.nodes, rng.random(NODES), "point", dtype=dtype)
        self.dats = [ctx.dat(self.cells, rng.random((CELLS, 2)), n, dtype=dtype, layout=layout) for n in "uvwrs"]
        self.globals = [ctx.scalar(0.5, "g"), ctx.scalar(0.25, "h")]

    def loop(self, form: tuple[Any, str, str, dict[str, Any]], pick: random.Random, schedule: fl.Schedule) -> Loop:
        """Return the loop of a form on dats that are picked."""
        kernel, over, how, constants = form
        dats = pick.sample(self.dats, len(how.replace("x", "").replace("g", "")))
        arguments: list[Any] = []
        for letter in how:
            if letter == "x":
                arguments.append(self.point[self.x])
            elif letter == "g":
                arguments.append(pick.choice(self.globals))
            else:
                dat = dats.pop()
                way = {"d": None, "e": self.e, "b": self.b[0], "n": self.n}[letter]
                arguments.append(dat if way is None else dat[way])
        return Loop(kernel, getattr(self, over), *arguments, schedule=schedule, **constants)


class RandomChain:
    """The chain of a seed on a context; two of the same seed are the same."""

    def __init__(self, ctx: fl.Context, seed: int, schedule: fl.Schedule, fuse: bool, dtype: str = "float64") -> None:
        pick = random.Random(seed)
        self.world = World(ctx, dtype)
        count = pick.randint(2, 8)
        steps: list[Any] = []
        if pick.random() < 0.4:
            steps.append(Reset(pick.choice(self.world.globals), 0.5))
        self.loops = [self.world.loop(pick.choice(FORMS), pick, schedule) for _ in range(count)]
        steps += self.loops
        used = [d for d in self.world.dats if any(a.data is d for loop in self.loops for a in loop.bound.arguments)]
        self.transient = pick.sample(used, pick.randint(0, min(2, len(used)))) if pick.random() < 0.6 else []
        self.chain = Chain(steps, transient=self.transient, fuse=fuse, name="random")
        self.pick = random.Random(seed + 1)
        self.held: list[Any] = []

    def values(self) -> dict[str, np.ndarray]:
        """Return everything but the transient dats."""
        dats = [d for d in self.world.dats if not any(d is t for t in self.transient)]
        return {**{d.name: d.read() for d in dats}, **{g.name: np.array(g.value) for g in self.world.globals}}

    def between(self) -> str:
        """Let something happen, or nothing; returns what."""
        pick, world = self.pick, self.world
        kept = [d for d in world.dats if not any(d is t for t in self.transient)]
        dat = pick.choice(kept)
        number = pick.random()
        # nothing happens more often than not, so that fused steps follow each other
        kind = pick.choice(["nothing"] * 6 + ["write", "view", "hold", "release", "set", "global", "loop", "look"])
        match kind:
            case "write":
                dat.write(dat.read() * number)
            case "view":
                dat.data[: CELLS // 2] += number
            case "hold":
                self.held.append((dat, dat.data_ro if pick.random() < 0.5 else dat.data))
            case "release":
                self.held.clear()
            case "set":
                loop = pick.choice(self.loops)
                for name in loop.constants:
                    loop.set(**{name: number})
            case "global":
                pick.choice(world.globals).value = number
            case "loop":
                loop = pick.choice(self.loops)
                touched = [a.data for a in loop.bound.arguments]
                if not any(d is t for d in touched for t in self.transient):
                    loop()
            case "look":
                dat.read()
        return f"{kind} {dat.name}"

    def describe(self) -> str:
        """Return the chain in words, for the message of a failure."""
        lines = [f"transient: {[d.name for d in self.transient]}"]
        for item in self.loops:
            names = [
                f"{p.access.value} {a.data.name}{'' if a.map is None else '[' + a.map.name + ']'}"
                for p, a in zip(item.bound.kernel.parameters, item.bound.arguments, strict=True)
            ]
            lines.append(f"{item.name}({', '.join(names)})")
        return "\n".join([*lines, self.chain.describe()])


def differ(
    seed: int, device: str = "cpu", *, calls: int = 6, events: bool = True, dtype: str = "float64", **choices: Any
) -> str:
    """Run the chain of a seed fused and unfused; return how they differ, bit for bit, or an empty string."""
    schedule = fl.Schedule(deterministic="global", **choices)
    runs = [
        RandomChain(fl.Context(device, tuning=False, threads=threads), seed, schedule, fuse, dtype)
        for fuse, threads in ((True, 2), (False, 1))
    ]
    happened: list[str] = []
    for call in range(calls):
        for run in runs:
            run.chain()
        left, right = (run.values() for run in runs)
        for name in right:
            if not np.array_equal(left[name], right[name], equal_nan=True):
                return f"seed {seed}: {name} differs after call {call}: {happened}\n{runs[0].describe()}"
        if events:
            words = {run.between() for run in runs}
            assert len(words) == 1
            happened.append(words.pop())
    return ""
