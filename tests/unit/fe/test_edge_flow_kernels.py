"""Kernels of flow on edges, each against its formula with full matrices, on small meshes with skewed cells."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq

import fluxloom as fl
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges import flow as kernels
from fluxloom.fe.edges.limit import time_limit
from fluxloom.fe.edges.operators import EdgeOperators
from fluxloom.kernel.frontend import Kernel
from tests.unit.fe.test_edge_operators import KINDS, dense, mesh_of

Array = npt.NDArray[np.float64]

TIMES = {"dynamic": 0.7, "viscous": 4.0, "convective": 2.0}
ROUNDING = 1e-13
EYES = {2: np.eye(2), 3: np.eye(3)}


class Points:
    """Random values at the points of a mesh, the integrals as full matrices, and loops with a kernel."""

    def __init__(self, kind: str) -> None:
        self.context = fl.Context("reference")
        self.ops = EdgeOperators.of(self.context, mesh_of(kind))
        self.places, self.d, self.n = mesh_of(kind).points, self.ops.dimension, self.ops.points.size
        packed, d = dense(kind)[0], self.d
        self.stiff = packed[..., 1 : 1 + d * d].reshape(self.n, self.n, d, d)
        self.trace = np.einsum("ijaa->ij", self.stiff)
        self.grad, self.weak = packed[..., 1 + d * d : 1 + d * d + d], packed[..., 1 + d * d + d :]
        self.mass = packed[..., 0].sum(axis=1)
        self.size = self.mass ** (1.0 / d)
        self.edge = np.unique(np.concatenate([patch.nodes() for patch in mesh_of(kind).patches.values()]))
        self.rng = np.random.default_rng(11)
        self.values: dict[str, Array] = {
            name: self.rng.normal(size=(self.n, d)) for name in ("u", "xi", "slope", "load", "start", "sums", "before")
        } | {name: self.rng.normal(size=self.n) for name in ("p", "rise")}
        self.values |= {name: self.rng.uniform(0.5, 2.0, self.n) for name in ("nu", "tau")}
        self.values |= {"mass": self.mass, "size": self.size, "free": (self.places[:, 0] > 0.01).astype(float)}
        self.dt = 0.3

    def dat(self, name: str, values: Array | None = None, shape: tuple[int, ...] = ()) -> Dat:
        """Return some values as a dat, by default those of the name."""
        given = self.values.get(name) if values is None and not shape else values
        sides = shape if given is None else given.shape[1:]
        return self.context.dat(self.ops.points, given, name, shape=sides)

    def both(self, *names: str, **given: Array) -> list[Any]:
        """Return of each name the values of the neighbours and those of the point."""
        dats = [self.dat(name, given.get(name)) for name in names]
        return [side for dat in dats for side in (dat[self.ops.neighbours], dat)]

    def run(self, kernel: Kernel, *arguments: Any, **constants: Any) -> None:
        """Run a loop over the points that gathers from edges."""
        rows = self.ops.entries[self.ops.neighbours.to_entries]
        Loop(kernel, self.ops.points, rows, *arguments, d=self.d, **constants)()

    def step(self) -> Any:
        """Return ``dt`` as a global."""
        return self.context.scalar(self.dt, "dt")

    def scalar(self, name: str, value: Any = 0.0) -> Any:
        """Return a global."""
        return self.context.scalar(value, name)

    # ------------------------------------------------------------------------------ formulas
    def rises(self, u: Array) -> Array:
        """Return ``u_J - u_I``, ``(n, n, ...)``."""
        return u[None] - u[:, None]

    def convection(self, u: Array, skew: float) -> Array:
        """Return ``xi``."""
        rise = self.rises(u)
        flux = np.einsum("ija,ija->ij", self.grad, u[:, None] + skew * rise)
        divergence = np.einsum("ija,ija->i", self.grad, rise)
        return (np.einsum("ij,ija->ia", flux, rise) + skew * divergence[:, None] * u) / self.mass[:, None]

    def tau(self, u: Array, nu: Array, dt: float) -> Array:
        """Return the time of subscales."""
        speed = np.linalg.norm(u, axis=1)
        return 1.0 / (TIMES["dynamic"] / dt + 4.0 * nu / self.size**2 + 2.0 * speed / self.size)

    def along(self, u: Array) -> Array:
        """Return ``u_I^T L^d_IJ u_I``."""
        return np.einsum("ia,ijab,ib->ij", u, self.stiff, u)

    def friction(self, u: Array, nu: Array, transposed: int) -> Array:
        """Return the viscous force, as it stands on the left-hand side; ``load`` is the area of outflows."""
        mean, rise = 0.5 * (nu + nu[:, None]), self.rises(u)
        force = np.einsum("ij,ij,ija->ia", mean, self.trace, rise)
        slope = np.einsum("ija,ijb->iab", self.grad, rise) / self.mass[:, None, None]
        layer = np.einsum("ija,ij->ia", self.grad, nu - nu[:, None])
        twist = 0.5 * (np.einsum("iab,ib->ia", slope, layer) - np.einsum("ibb,ia->ia", slope, layer))
        twist += np.einsum("i,iab,ib->ia", nu, slope, self.values["load"])
        return force + transposed * (np.einsum("ij,ijba,ijb->ia", mean, self.stiff, rise) - twist)

    def ends(self, transposed: int) -> Any:
        """Return the area of outflows for a kernel, where it has the transposed gradient."""
        return self.dat("load") if transposed else None

    def continuity(self, u: Array, p: Array, tau: Array, slope: Array) -> Array:
        """Return what velocity and pressure leave of continuity."""
        mean = 0.5 * (tau + tau[:, None])
        found = np.einsum("ija,ija->i", self.grad, self.rises(u))
        parts = np.einsum("ija,ja->ij", self.weak, slope) - np.einsum("ija,ia->ij", self.grad, slope)
        return found + (mean * (self.trace * self.rises(p) - parts)).sum(axis=1)


@cache
def points_of(kind: str) -> Points:
    return Points(kind)


def near(found: Array, wanted: Array) -> bool:
    """Tell whether arrays are the same to rounding of their largest value."""
    return bool(np.abs(found - wanted).max() <= ROUNDING * max(np.abs(wanted).max(), 1.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skew", [0.0, 0.5])
def test_convection(kind: str, skew: float) -> None:
    """Both forms; the skew one makes no energy where nothing passes the boundary, the other one does."""
    at = points_of(kind)
    xi = at.dat("xi", shape=(at.d,))
    at.run(kernels.convection, *at.both("u"), at.dat("mass"), xi, skew=skew)
    assert near(xi.read(), at.convection(at.values["u"], skew))
    inner = at.values["u"].copy()
    inner[at.edge] = 0.0
    at.run(kernels.convection, *at.both("u", u=inner), at.dat("mass"), xi, skew=skew)
    power = np.einsum("i,ia,ia->i", at.mass, inner, xi.read())
    if skew:
        assert abs(power.sum()) <= 1e-14 * np.abs(power).sum()
    else:
        assert abs(power.sum()) > 1e-3 * np.abs(power).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_stage(kind: str, place: int) -> None:
    """Viscosity with and without the transposed gradient, subscales, load and pressure, and the three kinds of sums."""
    at, ahead, weight = points_of(kind), 0.25, 0.4
    v = at.values
    tau = at.tau(v["u"], v["nu"], at.dt)[:, None]
    mean = 0.5 * (v["u"] + v["u"][:, None])
    low = np.einsum("ijb,ijbc,ijc,ija->ia", mean, at.stiff, mean, at.rises(v["u"]), optimize=True)
    high = np.einsum("ijb,ib,ja->ia", at.weak, v["u"], v["xi"])
    for transposed in (0, 1):
        rate = -at.friction(v["u"], v["nu"], transposed) - tau * (low - high)
        k = at.dt * (rate / at.mass[:, None] + v["load"] - v["slope"] - v["xi"])
        sums, out = at.dat("sums"), at.dat("out", shape=(at.d,))
        at.run(
            kernels.stage, *at.both("u", "xi", "nu"), *(at.dat(each) for each in ("mass", "size", "load", "slope")),
            at.dat("start"), at.step(), at.ends(transposed), sums, out, transposed=transposed, place=place, ahead=ahead,
            weight=weight, **TIMES,
        )  # fmt: skip
        total = {0: v["start"], 1: v["sums"], 2: v["sums"]}[place] + weight * k
        assert near(out.read(), total if place == 2 else v["start"] + ahead * k)
        assert near(sums.read(), v["sums"] if place == 2 else total)


@pytest.mark.parametrize("kind", KINDS)
def test_small_kernels(kind: str) -> None:
    """Traces, slopes, gradients, tau of the pressure, constraints, the correction, sums of energy and momentum."""
    at = points_of(kind)
    v, d, points = at.values, at.d, at.ops.points
    stiff = at.context.dat(at.ops.neighbours.entries, name="stiff")
    Loop(kernels.stiffness, at.ops.neighbours.entries, at.ops.entries, stiff, d=d)()
    rows, columns = np.nonzero(dense(kind)[0][..., 0])
    assert near(stiff.read(), at.trace[rows, columns])
    slope, tau, tensor = at.dat("slope"), at.dat("tau"), at.dat("tensor", shape=(9,))
    at.run(kernels.pressure_slope, *at.both("p"), at.dat("mass"), slope)
    gradient = np.einsum("ija,j->ia", at.grad, v["p"]) / at.mass[:, None]
    assert near(slope.read(), gradient)
    constants: dict[str, Any] = {"factor": 0.8, **TIMES}
    Loop(kernels.relaxation, points, at.dat("u"), at.dat("nu"), at.dat("size"), at.step(), tau, d=d, **constants)()
    assert near(tau.read(), 0.8 * at.tau(v["u"], v["nu"], at.dt))
    at.run(kernels.velocity_gradient, *at.both("u"), at.dat("mass"), tensor)
    wanted = np.zeros((at.n, 3, 3))
    wanted[:, :d, :d] = np.einsum("ijb,ja->iab", at.grad, v["u"]) / at.mass[:, None, None]
    assert near(tensor.read(), wanted.reshape(-1, 9))
    matrices = at.rng.normal(size=(at.n, d, d))
    u = at.dat("u")
    Loop(kernels.constrain, points, at.dat("P", matrices.reshape(at.n, -1)), at.dat("load"), u, d=d)()
    assert near(u.read(), np.einsum("iab,ib->ia", matrices, v["u"]) + v["load"])
    p, rise = at.dat("p"), at.both("rise")
    at.run(kernels.correct, *rise, at.dat("mass"), at.step(), at.dat("start"), p, u)
    step = np.einsum("ija,j->ia", at.grad, v["rise"]) / at.mass[:, None]
    assert near(u.read(), v["start"] - 0.5 * at.dt * step)
    assert near(p.read(), v["p"] + v["rise"])
    Loop(kernels.total_viscosity, points, at.dat("nu"), at.dat("tau"), tau)()
    assert near(tau.read(), v["nu"] + v["tau"])
    kinetic, momentum = at.scalar("kinetic"), at.scalar("momentum", np.zeros(d))
    Loop(kernels.energy, points, at.dat("u"), at.dat("mass"), kinetic, momentum, d=d)()
    assert kinetic.value == pytest.approx(0.5 * at.mass @ (v["u"] ** 2).sum(axis=1), rel=ROUNDING)
    assert np.asarray(momentum.value) == pytest.approx(at.mass @ v["u"], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_assemble_pressure(kind: str) -> None:
    """The matrix is symmetric; rows add up to 0 away from outlets, those of outlets have their diagonal alone."""
    at = points_of(kind)
    v, ops, n = at.values, at.ops, at.n
    rows, columns = np.nonzero(dense(kind)[0][..., 0])
    k = np.where(rows == columns, 0.0, at.trace[rows, columns])
    entries = ops.neighbours.to_entries
    stiff, h = (at.context.dat(ops.neighbours.entries, values, "k") for values in (k, None))
    diagonal, inverse = at.dat("diagonal"), at.dat("inverse")
    pairs = at.both("tau", "free")
    Loop(kernels.assemble_pressure, ops.points, stiff[entries], *pairs, at.step(), h[entries], diagonal)()
    own = at.context.map(ops.points, ops.neighbours.entries, np.flatnonzero(rows == columns)[:, None], "own")
    Loop(kernels.fill_diagonal, ops.points, diagonal, h[own[0]], inverse)()
    matrix = np.zeros((n, n))
    matrix[rows, columns] = h.read()
    scale = 0.5 * (v["tau"] + v["tau"][:, None]) + 0.5 * at.dt
    wanted = scale * at.trace
    np.fill_diagonal(wanted, 0.0)
    np.fill_diagonal(wanted, -wanted.sum(axis=1))
    free = v["free"] > 0.0
    masked = np.where(np.outer(free, free) | np.eye(n, dtype=bool), wanted, 0.0)
    assert not free.all()
    assert near(matrix, masked)
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(1.0 / inverse.read(), np.diag(matrix)) or near(inverse.read(), 1.0 / np.diag(masked))
    touched = (at.trace[:, ~free] != 0.0).any(axis=1)
    assert np.abs(matrix[~touched].sum(axis=1)).max() <= ROUNDING * np.abs(matrix).max()
    assert np.array_equal(matrix[~free], np.diag(np.diag(matrix))[~free])
    assert np.linalg.eigvalsh(matrix)[0] > 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_continuity(kind: str) -> None:
    """Both kernels with random values; a linear pressure with its slope and one tau leaves nothing, walls included."""
    at = points_of(kind)
    v = at.values
    b, names = at.dat("b"), ("u", "p", "tau", "slope")
    at.run(kernels.continuity, *at.both(*names), at.dat("free"), b)
    left = at.continuity(v["u"], v["p"], v["tau"], v["slope"])
    assert near(b.read(), -v["free"] * left)
    worst = at.scalar("worst")
    at.run(kernels.imbalance, *at.both(*names, "rise"), at.dat("free"), at.step(), worst)
    left = left + 0.5 * at.dt * at.trace @ v["rise"]
    assert worst.value == pytest.approx(np.abs(v["free"] * left).max(), rel=1e-12)
    slope = np.array([1.5, -0.7, 0.4])[: at.d]
    given = {
        "u": np.zeros((at.n, at.d)), "p": at.places @ slope + 3.0, "tau": np.full(at.n, 0.6),
        "slope": np.tile(slope, (at.n, 1)),
    }  # fmt: skip
    at.run(kernels.continuity, *at.both(*names, **given), at.dat("free", np.ones(at.n)), b)
    assert np.abs(b.read()).max() <= 1e-14


def spalding(plus: float) -> float:
    """Return ``y+`` of ``u+``."""
    z = 0.41 * plus
    return plus + np.exp(-0.41 * 5.0) * (np.exp(z) - 1.0 - z - z**2 / 2.0 - z**3 / 6.0)


@pytest.mark.parametrize("kind", KINDS)
def test_friction(kind: str) -> None:
    """The shear is that of Spalding's law: ``u+ = y+`` next to the wall, the logarithm far from it; none at rest."""
    at = points_of(kind)
    d, distance = at.d, 0.02
    reynolds = np.geomspace(1e-3, 1e9, at.n)
    direction = np.array([[2.0, 1.0, 2.0], [0.0, 0.0, -1.0]])[:, :d] if d == 3 else np.array([[3.0, 4.0], [4.0, -3.0]])
    along = direction[0] / np.linalg.norm(direction[0])
    normal = np.array([1.0, 0.0, -1.0]) / np.sqrt(2.0) if d == 3 else direction[1] / 5.0
    nu = np.full(at.n, 1e-3)
    speed = reynolds * nu / distance
    u = speed[:, None] * along + 0.3 * speed[:, None] * normal  # what goes through the wall has no part in it
    size = at.rng.uniform(0.5, 2.0, at.n)
    speed[-1], u[-1] = 0.0, 0.0
    body, load = at.values["load"], at.dat("load")
    Loop(
        kernels.friction, at.ops.points, at.dat("u", u), at.dat("area", size[:, None] * normal), at.dat("mass"),
        at.dat("nu", nu), at.dat("body", body), load, d=d, distance=distance, kappa=0.41, constant=5.0,
    )()  # fmt: skip
    plus = np.array([brentq(lambda x, r=r: x * spalding(x) / r - 1.0, 1e-3, 100.0, xtol=1e-13) for r in reynolds[:-1]])
    star = speed[:-1] / plus
    shear = (size / at.mass)[:-1, None] * star[:, None] ** 2 * along
    found = body - load.read()
    allowed = 1e-9 * np.abs(shear).max(axis=1) + ROUNDING * np.abs(body[:-1]).max(axis=1)
    assert (np.abs(found[:-1] - shear).max(axis=1) <= allowed).all()
    assert np.array_equal(found[-1], np.zeros(d))
    height = star * distance / nu[:-1]
    first, last = height < 0.5, height > 1e4
    assert first.any()
    assert last.any()
    assert plus[first] == pytest.approx(height[first], rel=1e-3)
    assert plus[last] == pytest.approx(np.log(height[last]) / 0.41 + 5.0, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_reaction(kind: str) -> None:
    """A share of what the discrete momentum of the points leaves, with both forms of stress, and of the pressure."""
    at = points_of(kind)
    v = at.values
    share, push = np.linspace(0.0, 1.0, len(at.mass)), np.cos(np.arange(len(at.mass) * at.d)).reshape(-1, at.d)
    for transposed in (0, 1):
        force = at.scalar("force", np.zeros(at.d))
        at.run(
            kernels.reaction, *at.both("u"), at.dat("before"), at.dat("xi"), *at.both("p", "nu"), at.dat("mass"),
            at.dat("load"), at.step(), at.dat("share", share), at.dat("push", push), at.ends(transposed),
            at.dat("borne", v["u"]), force, transposed=transposed,
        )  # fmt: skip
        inertia = at.mass[:, None] * ((v["u"] - v["before"]) / at.dt + v["xi"] - v["load"])
        pressure = np.einsum("ija,j->ia", at.weak, v["p"])
        total = inertia + at.friction(v["u"], v["nu"], transposed) - pressure
        assert np.asarray(force.value) == pytest.approx(v["p"] @ push - share @ total, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("share", "transposed"), [(0.0, 0), (0.5, 0), (0.0, 1)])
def test_time_limit(kind: str, share: float, transposed: int) -> None:
    """The larger one of two sums of a row; no eigenvalue of convection, friction and subscales is beyond it."""
    at = points_of(kind)
    u, nu = at.values["u"], at.values["nu"]
    slow = 4.0 * nu / at.size**2 + 2.0 * np.linalg.norm(u, axis=1) / at.size
    flux, drag = np.einsum("ija,ia->ij", at.grad, u), 0.5 * (nu + nu[:, None]) * at.trace * (1 + transposed)
    mean = 0.5 * (u[:, None] + u[None])
    level, across = np.einsum("ija,ija->ij", at.grad, mean), np.einsum("ija,ijab,ijb->ij", mean, at.stiff, mean)
    first = (np.abs(flux) + np.abs(drag) + np.abs(at.along(u) / slow[:, None])).sum(axis=1) / at.mass
    longest = (1.0 - share) / slow[:, None] + share / slow[None]
    for dynamic, reach in ((0.0, 2.78), (0.7, 2.78), (50.0, 0.3)):
        rate = at.scalar("rate")
        at.run(
            time_limit, *at.both("u", "nu", "size"), at.dat("mass"), rate, share=share, dynamic=dynamic,
            viscous=4.0, convective=2.0, reach=reach, transposed=transposed,
        )  # fmt: skip
        rest = (np.maximum(np.abs(flux), np.abs(level)) + np.abs(drag)).sum(axis=1) / at.mass
        weight = np.abs(across).sum(axis=1) / at.mass
        middle = weight * at.mass / (np.abs(across) * longest).sum(axis=1)
        second = [_fixed(*row, dynamic, reach) for row in zip(rest, weight, middle, strict=True)]
        assert rate.value == pytest.approx(max(first.max(), *second), rel=1e-10)
        tau = 1.0 / (dynamic * rate.value / reach + slow)
        along = across * ((1.0 - share) * tau[:, None] + share * tau[None])
        matrix = (level + drag + along - np.diag((drag + along).sum(axis=1))) / at.mass[:, None]
        largest = np.abs(np.linalg.eigvals(matrix)).max()
        assert 0.1 * rate.value < largest <= rate.value


def _fixed(rest: float, weight: float, slow: float, dynamic: float, reach: float) -> float:
    """Return ``r = rest + weight / (dynamic r / reach + slow)``."""
    found = brentq(lambda r: rest + weight / (dynamic * r / reach + slow) - r, rest, rest + weight / slow, xtol=1e-14)
    assert isinstance(found, float)
    return found
