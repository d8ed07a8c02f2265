"""Kernels of the tests on several ranks, and random chains of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom_lab.attack.loops.chains import (
    add,
    advance,
    blend,
    boundary,
    clear,
    copy,
    flux,
    mix,
    near,
    partly,
    scaled,
    step,
    total,
    weighted,
)
from fluxloom_lab.attack.loops.worlds import World


@fl.kernel
def spread(k: RW, u: Read, r: Inc):
    """Changes the edge itself and adds what it had to both sides: the halo needs the edge's own value."""
    f = 0.1 * (u[0][0] - u[1][1]) + 0.2 * k[0]
    k[0] = 0.5 * k[0] + f
    k[1] = 0.9 * k[1]
    r[0][0] += f
    r[1][1] -= f


@fl.kernel
def two_sets(k: Read, r: Inc, a: Inc):
    """Compute increments of cells and points by an edge's own values, ``r_0 += 0.1 k``."""
    r[0][0] += 0.1 * k[0]
    r[1][1] -= 0.2 * k[1]
    a[0][0] += 0.1 * k[1]
    a[1][1] += 0.1 * k[0] * k[0]


@fl.kernel
def two_legs(k: Read, r: Inc, s: Inc):
    """Compute ``r += 0.1 k_0`` at one leg, ``s -= 0.3 k_1`` at the other."""
    r[0] += 0.1 * k[0]
    s[1] -= 0.3 * k[1]


@fl.kernel
def extremes(k: Read, u: Read, low: Min, high: Max):
    """Compute the least and the greatest ``v = k u``."""
    v = k[0] * u[0][0]
    low[0][0] = min(low[0][0], v)
    high[1][1] = max(high[1][1], v + u[1][1])
    if v > 0.2:
        low[1][0] = min(low[1][0], 0.5 * v)


@fl.kernel
def put(t: Read, v: Write):
    """Compute ``v = (t_0 + t_1, t_1 / 2)``."""
    v[0] = t[0] + t[1]
    v[1] = 0.5 * t[1]


@fl.kernel
def put_more(t: RW, v: RW):
    """Compute ``v_0 <- v_0 / 2 + t_0``, and a value of the border by it."""
    v[0] = 0.5 * v[0] + t[0]
    t[1] = 0.5 * t[1] + 0.1 * v[1]


@fl.kernel
def to_points(u: Read, a: Inc):
    """Compute ``a += (0.1 u_0, -0.05 u_1)`` at three points."""
    for k in range(3):
        a[k][0] += 0.1 * u[0]
        a[k][1] -= 0.05 * u[1]


@fl.kernel
def relax(a: RW):
    """Compute ``a <- (a_0 / 2, a_1 / 4 + 1/8)``."""
    a[0] = 0.5 * a[0]
    a[1] = 0.25 * a[1] + 0.125


@fl.kernel
def from_points(a: Read, u: Write):
    """Compute ``u = 0.3 sum(a)`` of three points."""
    u[0] = 0.3 * (a[0][0] + a[1][0] + a[2][1])
    u[1] = 0.2 * a[1][1]


@fl.kernel
def ends(u: Read, a: Read, k: Write):
    """Compute ``k = (u_0 - u_1) / 2`` and a value of a point."""
    k[0] = 0.5 * (u[0][0] - u[1][0]) + 0.1 * a[0][1]
    k[1] = 0.5 * (u[0][1] + u[1][1])


@fl.kernel
def lowest(u: Read, g: Min):
    """Compute ``g = min(u_0 + u_1)``."""
    g[0] = min(g[0], u[0] + u[1])


@fl.kernel
def highest(u: Read, g: Max):
    """Compute ``g = max(u_0 u_1)`` across edges."""
    g[0] = max(g[0], u[0][0] * u[1][1])


@fl.kernel
def flux_and_sum(u: Read, r: Inc, g: Inc, low: Min):
    """Increments and reductions at once: the execute halo must not count in the latter."""
    f = 0.1 * (u[0][0] - u[1][0])
    r[0][0] += f
    r[1][0] -= f
    g[0] += f * f + 1.0
    low[0] = min(low[0], f)


@fl.kernel
def corners3(x: Read, u: Read, v: Write):
    """Compute ``v = 0.1 sum(x) u``."""
    v[0] = 0.1 * (x[0][0] + x[1][0] + x[2][1]) * u[0]
    v[1] = 0.2 * (x[0][0] - x[2][0]) + 0.5 * u[1]


Form = tuple[Any, str, str, dict[str, Any]]
"""Kernel, what it runs over (with + some of it), a letter an argument, constants."""

FORMS: list[Form] = [
    (copy, "cells", "dd", {}), (blend, "cells", "dd", {"w": 0.6}), (partly, "cells", "dd", {}),
    (mix, "cells", "ddd", {"w": 0.7}), (advance, "cells", "ddd", {}), (step, "cells", "dd", {}),
    (clear, "cells", "d", {}), (add, "cells", "dd", {}), (flux, "edges", "ee", {"w": 1.1}),
    (flux, "edges", "ee", {"w": 0.8}), (weighted, "edges", "eee", {}), (boundary, "border", "bb", {"w": 0.9}),
    (near, "cells", "nd", {}), (corners3, "cells", "xdd", {}), (spread, "edges", "kee", {}),
    (two_sets, "edges", "kep", {}), (two_legs, "edges", "kEF", {}), (extremes, "edges", "keee", {}),
    (put, "border", "tb", {}), (put_more, "border", "tb", {}), (to_points, "cells", "dx", {}),
    (relax, "points", "a", {}), (from_points, "cells", "xd", {}), (ends, "edges", "epk", {}),
    (mix, "cells+", "ddd", {"w": 0.7}), (near, "cells+", "nd", {}), (put, "border+", "tb", {}),
    (total, "cells", "dg", {}), (lowest, "cells", "dm", {}), (highest, "edges", "eM", {}), (total, "cells+", "dg", {}),
    (scaled, "cells", "dm", {}), (scaled, "cells", "dM", {}),
]  # fmt: skip
"""Forms whose results do not depend on the ranks with ``deterministic="global"`` (but for the sum ``g``)."""

MORE: list[Form] = [
    (flux, "edges+", "ee", {"w": 1.1}), (boundary, "border+", "bb", {"w": 0.9}), (spread, "edges+", "kee", {}),
    (flux_and_sum, "edges", "eegm", {}), (flux_and_sum, "edges+", "eegm", {}), (scaled, "cells", "dg", {}),
    (scaled, "cells", "dg", {}), (extremes, "edges+", "keee", {}),
]  # fmt: skip
"""Forms that sum in the order of the ranks or of local numbers."""

WAYS = {"e": ("edge_cells", None), "E": ("edge_cells", 0), "F": ("edge_cells", 1), "b": ("border_cell", 0),
        "n": ("near", None), "x": ("cell_points", None), "p": ("edge_points", None)}  # fmt: skip
ON = {**dict.fromkeys("deEFbn", "cells"), **dict.fromkeys("xpa", "points"), "k": "edges", "t": "border"}
GLOBALS = {"g": 0, "m": 1, "M": 2}


class Program:
    """The random chain of a seed on a world; two of the same seed are the same."""

    def __init__(
        self,
        world: World,
        seed: int,
        *,
        fuse: bool = True,
        schedule: fl.Schedule | None = None,
        exact: bool = False,
        chained: bool = True,
        length: int = 8,
    ) -> None:
        self.world, pick = world, random.Random(seed)
        rng = np.random.default_rng(seed)
        sizes = world.mesh.sizes
        self.dats = {
            over: [world.dat(over, rng.random((sizes[over], 2)), name) for name in names]
            for over, names in {"cells": "uvwrs", "edges": "kl", "points": "ab", "border": "t"}.items()
        }
        self.globals = [world.ctx.scalar(v, n) for v, n in ((0.5, "g"), (0.75, "m"), (0.25, "M"))]
        # nothing of the second half: ranks with blocks of cells have nothing of some subset
        masks = {over: rng.random(sizes[over]) < 0.6 * (np.arange(sizes[over]) < sizes[over] // 2) for over in sizes}
        self.subsets = {f"{over}+": world.subset(over, mask) for over, mask in masks.items()}
        forms = FORMS if exact else FORMS + MORE
        count = pick.randint(2, length)
        self.loops = [self._loop(pick.choice(forms), pick, schedule) for _ in range(count)]
        self.steps: list[Any] = list(self.loops)
        for _ in range(pick.choice((0, 0, 1, 1, 2))):
            number = pick.randint(0, 2)
            place = 0 if pick.random() < 0.6 else pick.randint(0, len(self.steps))
            self.steps.insert(place, Reset(self.globals[number], (0.25, 0.75, 0.5)[number]))
        used = [d for d in self.dats["cells"] if any(a.data is d for loop in self.loops for a in loop.bound.arguments)]
        self.transient = pick.sample(used, pick.randint(0, min(2, len(used)))) if pick.random() < 0.5 else []
        self.chain: Any = None
        if chained:
            self.chain = Chain(self.steps, transient=self.transient, fuse=fuse, name="random")
        self.pick = random.Random(seed + 1)
        self.held: list[Any] = []

    def _loop(self, form: Form, pick: random.Random, schedule: fl.Schedule | None) -> Loop:
        kernel, over, letters, constants = form
        world = self.world
        taken: list[fl.Dat] = []
        arguments: list[Any] = []
        for letter in letters:
            if letter in GLOBALS:
                arguments.append(self.globals[GLOBALS[letter]])
                continue
            dat = pick.choice([d for d in self.dats[ON[letter]] if not any(d is t for t in taken)])
            taken.append(dat)
            name, leg = WAYS.get(letter, ("", None))
            through = world.maps[name] if name else None
            arguments.append(dat if through is None else dat[through if leg is None else through[leg]])
        place = self.subsets[over] if over in self.subsets else world.sets[over]
        return Loop(kernel, place, *arguments, schedule=schedule, **constants)

    def run(self) -> None:
        """Run every step once."""
        if self.chain is not None:
            self.chain()
            return
        for item in self.steps:
            item()

    def outputs(self) -> Mapping[str, Any]:
        """Return everything but the transient dats."""
        hidden = self.transient if self.chain is not None else []
        dats = [d for group in self.dats.values() for d in group if not any(d is t for t in hidden)]
        return {d.name: d for d in dats} | {g.name: g for g in self.globals}

    def between(self) -> None:
        """Let something happen, or nothing: the same on every rank, but what is held."""
        pick, world = self.pick, self.world
        dat = pick.choice([d for d in self.outputs().values() if isinstance(d, fl.Dat)])
        number, holder = pick.random(), pick.randint(0, 2)
        ordered = not isinstance(dat.layout, fl.Blocked)
        match pick.choice(["nothing"] * 5 + ["write", "view", "hold", "release", "set", "global", "loop", "look"]):
            case "write":
                dat.write(dat.read() * number)
            case "view" if ordered:
                dat.data[...] += number
            case "hold" if ordered and world.rank == holder % max(1, world.ctx.comm.size):
                self.held.append(dat.data_ro if number < 0.5 else dat.data)
            case "release":
                self.held.clear()
            case "set":
                loop = pick.choice(self.loops)
                for name in loop.constants:
                    loop.set(**{name: number})
            case "global":
                pick.choice(self.globals).value = number
            case "loop":
                loop = pick.choice(self.loops)
                if not any(a.data is t for a in loop.bound.arguments for t in self.transient):
                    loop()
            case "look":
                dat.read()
                float(pick.choice(self.globals).value)

    def describe(self) -> str:
        """Return the program in words, for the message of a failure."""
        lines = [f"transient: {[d.name for d in self.transient]}"]
        for item in self.steps:
            if isinstance(item, Reset):
                lines.append(f"reset {item.target.name}")
                continue
            words = [
                f"{p.access.value} {a.data.name}{'' if a.map is None else f'[{a.map.name}{a.leg}]'}"
                for p, a in zip(item.bound.kernel.parameters, item.bound.arguments, strict=True)
            ]
            lines.append(f"{item.name} over {item.over}: {', '.join(words)}")
        return "\n".join(lines)
