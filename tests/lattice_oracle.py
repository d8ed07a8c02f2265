"""Lattice Boltzmann with walls and sides as the textbooks write it: whole arrays, double precision, no kernels.

What a test compares the library with. Nothing but the tables of velocities and weights comes from it: links are found
from padded arrays of labels, streaming is a shift of the whole array, conditions are formulas over masks.

One step of `Oracle`, from populations after collision ``f (*shape, q)``::

    g[x, i] = f[x - c_i, i]         streaming, periodic along every axis
    g[x, i] = condition             where x - c_i is beyond a side or in a solid
    f = collide(g)

Conventions are those of the solver: axes slowest first, sides half a cell beyond the outermost cells, the label of a
cell 0 for fluid and ``n`` for body ``n``. Conditions act in the order of their ``stage``, and within a stage in that of
the dictionary; a link through an edge belongs to the side that is first in ``priority``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fluxloom.lbm.lattices import Lattice

Array = npt.NDArray[np.float64]
Values = Sequence[float] | Array | Callable[[Array], npt.ArrayLike] | float


# ------------------------------------------------------------------------------------- formulas of a cell


def equilibrium(lattice: Lattice, rho: Array, u: Array) -> Array:
    """Qian et al. 1992: ``(...)`` and ``(..., d)`` to ``(..., q)``."""
    c, w = np.array(lattice.velocities, dtype=float), np.array(lattice.weights)
    cu = u @ c.T
    return w * rho[..., None] * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u * u).sum(-1, keepdims=True))


def guo(lattice: Lattice, u: Array, force: Array) -> Array:
    """Guo et al. 2002, eq. 20, without the factor ``1 - omega / 2``."""
    c, w = np.array(lattice.velocities, dtype=float), np.array(lattice.weights)
    away = c - u[..., None, :]
    return w * (3 * (away * force[..., None, :]).sum(-1) + 9 * (u @ c.T) * (force @ c.T))


def collide(lattice: Lattice, f: Array, omega: float, magic: float | None, force: Array) -> Array:
    """BGK, or TRT (Ginzburg et al. 2008) with ``magic = (1 / omega - 1/2) (1 / omega_odd - 1/2)``."""
    c = np.array(lattice.velocities, dtype=float)
    rho = f.sum(-1)
    u = (f @ c + 0.5 * force) / rho[..., None]
    away, push = f - equilibrium(lattice, rho, u), guo(lattice, u, force)
    odd = omega if magic is None else 1.0 / (magic / (1.0 / omega - 0.5) + 0.5)
    back = list(lattice.opposite)
    out = f.copy()
    for rate, sign in ((omega, 1), (odd, -1)):
        out += -0.5 * rate * (away + sign * away[..., back]) + (0.5 - 0.25 * rate) * (push + sign * push[..., back])
    return out


# ------------------------------------------------------------------------------------- conditions


@dataclass
class Bounce:
    """Half-way bounce-back (Ladd 1994), or interpolated (Bouzidi et al. 2001, linear); walls may move.

    ``velocity`` is one for all, an array over the cells of the side ``(..., d)``, or a function of positions.
    """

    velocity: Values | None = None
    interpolated: bool = False
    stage: ClassVar[int] = 1

    def fill(self, o: Oracle, key: str | int, g: Array) -> None:
        """Fill the links of a wall and keep what goes to it."""
        c, w = o.c, o.w
        before = g.copy()
        pushes, places = [], []
        for i in range(o.lattice.q):
            at = np.nonzero(o.owner[..., i] == o.code(key))
            back = o.lattice.opposite[i]
            q = o.fractions[(*at, i)] if self.interpolated else np.full(len(at[0]), 0.5)
            x = np.stack(at, -1)
            wall = x - q[:, None] * c[i]
            u = o.values(self.velocity, key, wall, x, (o.d,)) if self.velocity is not None else np.zeros((len(x), o.d))
            out = o.f[(*at, back)]
            inwards = x + c[i].astype(int)
            second = o.padded[(*(inwards + 1).T, back)]
            fluid = o.padded_labels[tuple((inwards + 1).T)] == 0
            kick = 6 * w[i] * u @ c[i]
            near = 2 * q * out + (1 - 2 * q) * second + kick
            far = (out + (2 * q - 1) * o.f[(*at, i)] + kick) / (2 * q)
            plain = out + kick
            value = plain
            if self.interpolated:
                value = np.where(q >= 0.5, far, np.where(fluid, near, plain))
                other = np.where(q >= 0.5, 1 - 0.5 / q, np.where(fluid, 1 - 2 * q, 0.0))
                value = value - other * 3 * w[i] * (c[i] @ o.stands)  # fluid at rest is denser where the force leads
            before[(*at, i)] = value
            # momentum exchange in the frame of the wall (Wen et al. 2014), less that of fluid at rest
            lost, gained = out - w[i], value - w[i]
            pushes.append(lost[:, None] * (-c[i] - u) - gained[:, None] * (c[i] - u))
            places.append(wall)
        g[...] = before
        o.pushes[key] = (np.concatenate(places), np.concatenate(pushes))


@dataclass
class Slip:
    """Specular reflection at a flat side; the mirror image of a solid is a solid, with bounce-back."""

    stage: ClassVar[int] = 2

    def fill(self, o: Oracle, key: str | int, g: Array) -> None:
        """Fill links from the image behind the mirrors."""
        for i in range(o.lattice.q):
            at = np.nonzero(o.owner[..., i] == o.code(key))
            for x in np.stack(at, -1):
                source = x - o.c[i].astype(int)
                turned = o.c[i].copy()
                for a in range(o.d):
                    if not o.periodic[a] and not 0 <= source[a] < o.shape[a]:
                        source[a] = x[a]  # the image of the cell beyond the side
                        turned[a] = -turned[a]
                source = source % o.shape
                k = o.number(turned)
                if o.labels[tuple(source)]:
                    source, k = x, o.lattice.opposite[i]
                g[(*x, i)] = o.f[(*source, k)]


@dataclass
class Convective:
    """Outflow: ``f(x, t) = (f(x, t - 1) + U f(x - n, t)) / (1 + U) + w rate (density - mean)``.

    ``speed`` None: the mean of the velocity out of the side. ``memory`` is what arrived before, to begin with the
    next cell's.
    """

    speed: float | None = None
    density: float | None = None
    rate: float = 0.0
    memory: dict[int, Array] = field(default_factory=dict)
    stage: ClassVar[int] = 3

    def fill(self, o: Oracle, key: str | int, g: Array) -> None:
        """Fill links from the next cell inwards and what was there."""
        assert isinstance(key, str)
        axis, way = o.side(key)
        cells = o.cells(key)
        seen = o.f[tuple(cells.T)]
        rho = seen.sum(-1)
        speed = max(0.0, (way * (seen @ o.c)[:, axis] / rho).mean()) if self.speed is None else self.speed
        drawn = 0.0 if self.density is None else self.rate * (self.density - rho.mean())
        for i in range(o.lattice.q):
            x = np.stack(np.nonzero(o.owner[..., i] == o.code(key)), -1)
            inner = x.copy()
            inner[:, axis] -= way
            there = g[(*inner.T, i)]
            old = self.memory.get(i, there)
            keep = 1.0 / (1.0 + speed)
            self.memory[i] = there + keep * (old - there) + o.w[i] * drawn
            g[(*x.T, i)] = self.memory[i]


class _OnCells:
    """Conditions that complete all populations of the cells at a side."""

    stage: ClassVar[int] = 4

    @staticmethod
    def of_velocity(o: Oracle, known: Array, u: Array, n: int, axis: int) -> Array:
        """Density from the velocity along the inward normal (Zou, He 1997, with half a force)."""
        return (known - 0.5 * n * o.force[axis]) / (1 - n * u[:, axis])

    @staticmethod
    def known(o: Oracle, h: Array, n: int, axis: int) -> Array:
        """Sum of what is known, what leaves counted twice."""
        cn = n * o.c[:, axis]
        return h[:, cn == 0].sum(1) + 2 * h[:, cn == -1].sum(1)

    def state(self, o: Oracle, key: str, h: Array, x: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """Return density and velocity, given or from what is known."""
        raise NotImplementedError

    def fill(self, o: Oracle, key: str | int, g: Array) -> None:
        """Complete all cells of the side."""
        assert isinstance(key, str)
        axis, way = o.side(key)
        x = o.cells(key)
        h = g[tuple(x.T)]
        rho, u = self.state(o, key, h, x)
        complete = zou_he if getattr(self, "scheme", "") == "zou-he" else regularised
        g[tuple(x.T)] = complete(o, h, rho, u, axis, -way)


@dataclass
class Velocity(_OnCells):
    """Velocity at the centres of cells; ``scheme`` is ``"zou-he"`` or ``"regularised"``."""

    value: Values
    scheme: str = "regularised"

    def state(self, o: Oracle, key: str, h: Array, x: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the given velocity and the density that follows."""
        axis, way = o.side(key)
        u = o.values(self.value, key, x.astype(float), x, (o.d,))
        return self.of_velocity(o, self.known(o, h, -way, axis), u, -way, axis), u


@dataclass
class Pressure(_OnCells):
    """Density at the centres of cells, no velocity along the side; ``scheme`` as `Velocity`.

    One number is that in the middle of the side: the fluid weighs along it.
    """

    density: Values = 1.0
    scheme: str = "regularised"

    def state(self, o: Oracle, key: str, h: Array, x: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the given density and the velocity that follows."""
        axis, way = o.side(key)
        rho = o.values(self.density, key, x.astype(float), x, ()) + o.column(self.density, x)
        u = np.zeros((len(x), o.d))
        u[:, axis] = -way * (1 - (self.known(o, h, -way, axis) + way * 0.5 * o.force[axis]) / rho)
        return rho, u


def zou_he(o: Oracle, h: Array, rho: Array, u: Array, axis: int, n: int) -> Array:
    """Zou and He 1997 on D2Q9; Hecht and Harting 2010, eqs. 13 to 19, on D3Q19. ``n`` is 1 or -1: into the box."""
    assert o.lattice.name in ("D2Q9", "D3Q19"), "no published form on D3Q27"
    h = h.copy()
    normal = np.zeros(o.d, dtype=int)
    normal[axis] = n
    j = rho[:, None] * u - 0.5 * o.force
    jn = n * j[:, axis]
    along = o.number(normal)
    h[:, along] = h[:, o.number(-normal)] + (2 / 3 if o.d == 2 else 1 / 3) * jn
    for t in (a for a in range(o.d) if a != axis):
        tangent = np.zeros(o.d, dtype=int)
        tangent[t] = 1
        in_plane = [(k, c[t]) for k, c in enumerate(o.c) if c[axis] == 0 and c[t] != 0]
        excess = 0.5 * sum(ct * h[:, k] for k, ct in in_plane) - j[:, t] / 3
        up, down = o.number(normal + tangent), o.number(normal - tangent)
        h[:, up] = h[:, o.number(-normal - tangent)] + (jn + j[:, t]) / 6 - excess
        h[:, down] = h[:, o.number(-normal + tangent)] + (jn - j[:, t]) / 6 + excess
    return h


def regularised(o: Oracle, h: Array, rho: Array, u: Array, axis: int, n: int) -> Array:
    """Latt et al. 2008, BC3: bounce-back of the part out of equilibrium, then all from density, velocity and stress."""
    j = rho[:, None] * u - 0.5 * o.force
    h = h.copy()
    for i in np.flatnonzero(n * o.c[:, axis] == 1):
        h[:, i] = h[:, o.lattice.opposite[i]] + 6 * o.w[i] * j @ o.c[i]
    rest = equilibrium(o.lattice, rho, u)
    pi = np.einsum("nk,ka,kb->nab", h - rest, o.c, o.c)
    q = np.einsum("ka,kb->kab", o.c, o.c) - np.eye(o.d) / 3
    return rest - 1.5 * o.w * (o.c @ o.force) + 4.5 * o.w * np.einsum("kab,nab->nk", q, pi)


@dataclass
class AntiBounce:
    """Density half a cell beyond the cells (Ginzburg et al. 2008; Krueger et al. 2017, eq. 5.53).

    With ``rate`` waves leave: ``memory`` has the distance from the density, the velocity out and its mean slope.
    """

    density: Values = 1.0
    rate: float | None = None
    memory: dict[str, Array] = field(default_factory=dict)
    stage: ClassVar[int] = 0

    def fill(self, o: Oracle, key: str | int, g: Array) -> None:
        """Fill what comes from beyond, with the velocity extrapolated to the side."""
        assert isinstance(key, str)
        axis, way = o.side(key)
        x = o.cells(key)
        inner = x.copy()
        inner[:, axis] -= way
        inner = np.where(o.labels[tuple((inner % o.shape).T)][:, None] == 0, inner, x)
        near, far = o.velocity()[tuple(x.T)], o.velocity()[tuple(inner.T)]
        u = 1.5 * near - 0.5 * far
        wall = x.astype(float)
        wall[:, axis] += 0.5 * way
        rho = o.values(self.density, key, wall, x, ()) + o.column(self.density, x)
        rho = rho + self._away(way * near[:, axis], way * far[:, axis])
        for i in np.flatnonzero(way * o.c[:, axis] == -1):
            even = rho * (1 + 4.5 * (u @ o.c[i]) ** 2 - 1.5 * (u * u).sum(1))
            along = np.where(np.arange(o.d) == axis, 0.0, o.force)
            g[(*x.T, i)] = 2 * o.w[i] * (even - 1.5 * o.c[i] @ along) - o.f[(*x.T, o.lattice.opposite[i])]

    def _away(self, near: Array, far: Array) -> Array:
        """Return how far the density is from what is set, from the velocities out of two cells."""
        if self.rate is None:
            return np.zeros(near.shape)
        out, slope, c = (near + far) / 2, near - far, 3**-0.5
        away, was, mean = self.memory.get("", np.stack([0 * out, out, slope]))
        away = (1 - self.rate) * away + (1 + out / c) / c * (out - was + np.maximum(out, 0) * (slope - mean))
        self.memory[""] = np.stack([away, out, mean + self.rate * (slope - mean)])
        return away


Condition = Bounce | Slip | Convective | Velocity | Pressure | AntiBounce


# ------------------------------------------------------------------------------------- the flow


class Oracle:
    """A flow in a box.

    Parameters
    ----------
    lattice
        Its tables of velocities and weights.
    shape
        Of the box, slowest axis first.
    viscosity
        Lattice units.
    conditions
        By names of sides (``"xmin"``) and labels of bodies. Axes whose sides have none are periodic.
    labels
        ``shape``; all fluid by default.
    fractions
        ``(*shape, q)``: the fluid share of each link, used by ``Bounce(interpolated=True)``.
    priority
        Sides, the one that has the links through edges first; by default in the order of ``conditions``.
    magic
        Of TRT; None: BGK.
    force
        ``(d,)``, the same everywhere.
    mirrors
        Sides that are walls or planes of symmetry: links through these alone belong to the body that has the mirror
        image of their source, if one has. Fluid at rest stands on them.
    excess
        By how many cells bodies that fluid surrounds are larger than those that they have.
    """

    def __init__(
        self,
        lattice: Lattice,
        shape: tuple[int, ...],
        *,
        viscosity: float,
        conditions: Mapping[Any, Any] | None = None,
        labels: npt.NDArray[Any] | None = None,
        fractions: Array | None = None,
        priority: Sequence[str] | None = None,
        magic: float | None = None,
        force: Sequence[float] | None = None,
        mirrors: Sequence[str] = (),
        excess: Mapping[int, float] | None = None,
    ) -> None:
        self.lattice, self.shape, self.d = lattice, np.array(shape), len(shape)
        self.c, self.w = np.array(lattice.velocities, dtype=float), np.array(lattice.weights)
        self.omega, self.magic = 1.0 / (3.0 * viscosity + 0.5), magic
        self.force = np.zeros(self.d) if force is None else np.asarray(force, dtype=float)
        self.conditions: dict[Any, Any] = dict(conditions or {})
        sides = [key for key in self.conditions if isinstance(key, str)]
        self.periodic = [not any(self.side(name)[0] == a for name in sides) for a in range(self.d)]
        self.mirrors, self.excess = frozenset(mirrors), dict(excess or {})
        standing = [any(self.side(name)[0] == a for name in mirrors) for a in range(self.d)]
        self.stands = np.where(standing, self.force, 0.0)
        self.priority = list(sides if priority is None else priority)
        self.labels = np.zeros(shape, dtype=int) if labels is None else np.asarray(labels, dtype=int)
        self.fractions = np.full((*shape, lattice.q), 0.5) if fractions is None else fractions
        self.padded_labels = self._label_padding()
        self.owner = self._owners()
        self.f = self.at_rest()
        self.pushes: dict[Any, tuple[Array, Array]] = {}
        self.padded = self._pad(self.f)

    def at_rest(self) -> Array:
        """Return populations of fluid at rest."""
        return np.broadcast_to(self.w, (*self.shape, self.lattice.q)).copy()

    def initialise(self, rho: npt.ArrayLike = 1.0, u: npt.ArrayLike = 0.0) -> None:
        """Start with equilibrium as the populations after collision."""
        shape = tuple(self.shape)
        density = np.broadcast_to(np.asarray(rho, dtype=float), shape)
        velocity = np.broadcast_to(np.asarray(u, dtype=float), (*shape, self.d))
        self.f = equilibrium(self.lattice, density, velocity)

    # --------------------------------------------------------------------------------- time

    def step(self, count: int = 1) -> None:
        """Advance."""
        for _ in range(count):
            g = self.arrived()
            force = np.broadcast_to(self.force, (*self.shape, self.d))
            self.f = collide(self.lattice, g, self.omega, self.magic, force)

    def arrived(self) -> Array:
        """Return what arrives at all cells, ``(*shape, q)``; of no meaning in solids."""
        self.padded = self._pad(self.f)
        axes = tuple(range(self.d))
        g = np.stack([np.roll(self.f[..., i], tuple(c), axes) for i, c in enumerate(self.lattice.velocities)], -1)
        for key, condition in sorted(self.conditions.items(), key=lambda item: item[1].stage):
            condition.fill(self, key, g)
        for key, condition in self.conditions.items():
            if isinstance(condition, Bounce):
                self._share_corners(key, g)
        return g

    def _own(self, x: Array, i: int, axis: int) -> int:
        """Return whether the owner of a link gets its component along an axis, and with which sign."""
        way = self._leaves(x - self.c[i], axis)
        owner = int(self.owner[(*x, i)])
        if not way:
            return 1
        if owner < 0:
            return int(self.side(self.priority[-1 - owner])[0] == axis)
        q = self.fractions[(*x, i)] if getattr(self.conditions[owner], "interpolated", False) else 0.5
        side = "xyz"[self.d - 1 - axis] + ("min" if way < 0 else "max")
        beyond = -1 if isinstance(self.conditions[side], Slip) else 0
        return 1 if q < 0.5 else beyond if q > 0.5 else 0

    def _share_corners(self, key: str | int, g: Array) -> None:
        """Give a wall the component across itself of links through corners, and none across the other side."""
        at, push = self.pushes[key]
        places, pushes, own = [at], [push], []
        for i in range(self.lattice.q):
            for x in np.stack(np.nonzero(self.owner[..., i] == self.code(key)), -1):
                own.append([self._own(x, i, a) for a in range(self.d)])
            if isinstance(key, int):
                continue
            axis, way = self.side(key)
            theirs = (self.owner[..., i] != 0) & (self.owner[..., i] != self.code(key))
            for x in np.stack(np.nonzero(theirs), -1):
                if self._leaves(x - self.c[i], axis) == way and not self._own(x, i, axis):
                    both = self.f[(*x, self.lattice.opposite[i])] + g[(*x, i)] - 2 * self.w[i]
                    places.append((x - 0.5 * self.c[i])[None])
                    pushes.append(np.where(np.arange(self.d) == axis, -both * self.c[i], 0.0)[None])
        pushes[0] = push * np.array(own).reshape(push.shape)
        self.pushes[key] = np.concatenate(places), np.concatenate(pushes)

    def _leaves(self, source: Array, axis: int) -> int:
        """Return whether a place is beyond a side across an axis: -1 or 1."""
        return 0 if self.periodic[axis] else int(source[axis] >= self.shape[axis]) - int(source[axis] < 0)

    # --------------------------------------------------------------------------------- results

    @property
    def fluid(self) -> npt.NDArray[np.bool_]:
        """Which cells are fluid."""
        return self.labels == 0

    def density(self) -> Array:
        """Return the density."""
        return self.f.sum(-1)

    def velocity(self) -> Array:
        """Return the velocity: that of the last collision, half of whose force is in the populations."""
        return (self.f @ self.c - 0.5 * self.force) / self.f.sum(-1, keepdims=True)

    def mass(self) -> float:
        """Return the mass of the fluid."""
        return float(self.f[self.fluid].sum())

    def force_on(self, key: str | int) -> Array:
        """Return the force of the fluid on a wall or body in the last step, without the pressure of rest."""
        return self.pushes[key][1].sum(0) + self._weight(key)

    def _weight(self, key: str | int) -> Array:
        """Return by how much a body weighs more than its cells: chord by chord, or all of its area at once."""
        if key in self.excess:
            return -self.excess[key] * self.stands
        found = np.zeros(self.d)
        for i in range(self.lattice.q):
            q = self.fractions[..., i][self.owner[..., i] == self.code(key)]
            found -= (6 * self.w[i] * (0.5 - q)).sum() * (self.c[i] @ self.stands) * self.c[i]
        return found

    def torque_on(self, key: str | int, center: Sequence[float]) -> Array:
        """Return the torque about a point: ``(1,)``, about z, or ``(3,)`` in the order of the axes, slowest first."""
        at, push = self.pushes[key]
        arm = at - np.asarray(center)
        if self.d == 2:
            return (arm[:, 1] * push[:, 0] - arm[:, 0] * push[:, 1]).sum(keepdims=True)
        return np.cross(arm[:, ::-1], push[:, ::-1]).sum(0)[::-1]

    # --------------------------------------------------------------------------------- tables

    def side(self, name: str) -> tuple[int, int]:
        """Return the axis across a side and -1 or 1: the way out."""
        return self.d - 1 - "xyz".index(name[0]), {"min": -1, "max": 1}[name[1:]]

    def cells(self, name: str) -> npt.NDArray[np.int64]:
        """Return the fluid cells at a side, ``(n, d)``."""
        axis, way = self.side(name)
        x = np.argwhere(self.fluid)
        return x[x[:, axis] == (0 if way < 0 else self.shape[axis] - 1)]

    def code(self, key: str | int) -> int:
        """Return the number by which `owner` knows a side or body."""
        return key if isinstance(key, int) else -1 - self.priority.index(key)

    def number(self, velocity: Array) -> int:
        """Return the direction of a velocity."""
        return self.lattice.velocities.index(tuple(int(v) for v in velocity))

    def values(
        self, given: Any, key: str | int, positions: Array, cells: npt.NDArray[Any], components: tuple[int, ...]
    ) -> Array:
        """Return what a condition sets at some places: a constant, an array over the side, or a function."""
        n = len(positions)
        found = np.asarray(given(positions) if callable(given) else given, dtype=float)
        if isinstance(key, str) and not callable(given) and found.ndim > len(components):
            axis, _ = self.side(key)
            found = found[tuple(np.delete(cells, axis, axis=1).T)]
        return np.broadcast_to(found, (n, *components))

    def column(self, given: Any, cells: npt.NDArray[Any]) -> Array:
        """Return by how much a density that is one number for a side rises in fluid at rest from its middle."""
        if callable(given) or np.ndim(given):
            return np.zeros(len(cells))
        middle = 0.5 * (cells.min(0) + cells.max(0))
        return 3.0 * (cells - middle) @ np.where(self.periodic, 0.0, self.force)

    def _pad(self, f: Array) -> Array:
        """Return an array with one cell more at each end, from the other end (of no meaning beyond sides)."""
        return np.pad(f, [(1, 1)] * self.d + [(0, 0)] * (f.ndim - self.d), mode="wrap")

    def _label_padding(self) -> npt.NDArray[Any]:
        padded = self._pad(self.labels)
        for a, periodic in enumerate(self.periodic):
            if not periodic:
                edge = [slice(None)] * self.d
                for end in (0, -1):
                    edge[a] = slice(end, 1 if end == 0 else None)
                    padded[tuple(edge)] = -1
        return padded

    def _owners(self) -> npt.NDArray[Any]:
        """Return whose link each population is: 0 nobody's, ``n`` of body ``n``, ``-1 - k`` of side ``priority[k]``."""
        owner = np.zeros((*self.shape, self.lattice.q), dtype=int)
        for x in product(*map(range, self.shape)):
            if self.labels[x]:
                continue
            for i, c in enumerate(self.lattice.velocities):
                source = np.subtract(x, c)
                kind = self.padded_labels[tuple(source + 1)]
                if kind == -1:
                    crossed = [
                        name for name in self.priority
                        for a, way in [self.side(name)]
                        if (source[a] < 0 and way < 0) or (source[a] >= self.shape[a] and way > 0)
                    ]  # fmt: skip
                    kind = self.code(crossed[0])
                    image = np.where((source < 0) | (source >= self.shape), x, source)
                    image = np.where(self.periodic, source % self.shape, image)
                    if self.mirrors.issuperset(crossed) and self.labels[tuple(image)]:
                        kind = self.labels[tuple(image)]
                owner[(*x, i)] = kind
        return owner
