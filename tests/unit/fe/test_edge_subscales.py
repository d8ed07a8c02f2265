"""Kernels of subscales with a memory, each against its formula with full matrices, and their order in time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges import subscales as kernels
from tests.unit.fe.test_edge_flow_kernels import Points, near, points_of
from tests.unit.fe.test_edge_operators import KINDS

Array = npt.NDArray[np.float64]


def factors(dt: float, rate: Array) -> tuple[Array, Array]:
    """Return ``a`` and ``w``."""
    k = 0.5 * dt * rate
    left = 1.0 / (1.0 + 2.0 * k + 2.0 * k**2)
    return left, 0.5 * dt * (1.0 + k) * left


def excess(at: Points) -> Array:
    """Return ``e_IJ``, ``(n, n)``."""
    p, slope = at.values["p"], at.values["slope"]
    parts = np.einsum("ija,ja->ij", at.weak, slope) - np.einsum("ija,ia->ij", at.grad, slope)
    return at.trace * at.rises(p) - parts


def entries(at: Points, values: Array) -> Dat:
    """Return what entries have of a full matrix."""
    rows, columns = sides(at)
    return at.context.dat(at.ops.neighbours.entries, values[rows, columns], "s")


def sides(at: Points) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return row and column of each entry."""
    pattern = at.ops.neighbours
    return np.repeat(np.arange(at.n), np.diff(pattern.offsets)), np.asarray(pattern.indices, dtype=np.int64)


@pytest.mark.parametrize("kind", KINDS)
def test_subscales_of_a_step(kind: str) -> None:
    """The right-hand side has a step without the rise; then its end is added; two points have one subscale."""
    at = points_of(kind)
    rng, rows = np.random.default_rng(5), at.ops.neighbours.to_entries
    rate = rng.uniform(0.0, 9.0, at.n)
    mean, old = 0.5 * (rate + rate[:, None]), rng.normal(size=(at.n, at.n))
    old -= old.T
    left, share = factors(at.dt, mean)
    e, s, b = excess(at), entries(at, old), at.dat("b", shape=())
    at.run(
        kernels.tracked_continuity, *at.both("u", "p"), *at.both("rate", rate=rate), *at.both("slope"),
        at.dat("free"), at.step(), s[rows], b,
    )  # fmt: skip
    here = sides(at)
    total = np.einsum("ija,ija->i", at.grad, at.rises(at.values["u"])) + 2.0 * (share * e).sum(axis=1)
    mask = np.zeros((at.n, at.n))
    mask[here] = 1.0
    assert near(b.read(), -at.values["free"] * (total + (mask * left * old).sum(axis=1)))
    assert near(s.read(), (left * old + share * e)[here])
    at.run(
        kernels.tracked, *at.both("p"), *at.both("rate", rate=rate), *at.both("slope"),
        at.context.scalar(0.1, "before"), s[rows],
    )  # fmt: skip
    found = np.zeros((at.n, at.n))
    found[here] = s.read()
    assert near(found[here], (left * old + (share + factors(0.1, mean)[1]) * e)[here])
    assert np.abs(found + found.T).max() < 1e-13 * np.abs(found).max()


@pytest.mark.parametrize("kind", KINDS)
def test_matrix_and_what_is_left(kind: str) -> None:
    at = points_of(kind)
    rows, here = at.ops.neighbours.to_entries, sides(at)
    rate = np.linspace(0.0, 20.0, at.n)
    trace = at.trace * (1.0 - np.eye(at.n))
    h, diagonal = entries(at, np.zeros((at.n, at.n))), at.dat("diagonal", shape=())
    Loop(
        kernels.tracked_fill, at.ops.points, entries(at, trace)[rows], *at.both("rate", rate=rate), *at.both("free"),
        at.step(), h[rows], diagonal,
    )()  # fmt: skip
    values, free = (factors(at.dt, 0.5 * (rate + rate[:, None]))[1] + 0.5 * at.dt) * trace, at.values["free"]
    assert near(h.read(), (free[:, None] * free * values)[here])
    assert near(diagonal.read(), -values.sum(axis=1))
    worst, b = at.scalar("worst"), np.cos(np.arange(at.n))
    Loop(
        kernels.leftover, at.ops.points, h[rows], at.dat("rise")[at.ops.neighbours], at.dat("b", b), worst,
    )()  # fmt: skip
    product = (free[:, None] * free * values) @ at.values["rise"]
    assert worst.value == pytest.approx(np.abs(b - product).max(), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rate(kind: str) -> None:
    at = points_of(kind)
    rate = at.dat("rate", shape=())
    Loop(
        kernels.relaxation_rate, at.ops.points, at.dat("u"), at.dat("before"), at.dat("nu"), at.dat("size"), rate,
        d=at.d, factor=0.5, viscous=4.0, convective=2.0,
    )()  # fmt: skip
    speed = 0.5 * sum(np.linalg.norm(at.values[name], axis=1) for name in ("u", "before"))
    assert near(rate.read(), 2.0 * (4.0 * at.values["nu"] / at.size**2 + 2.0 * speed / at.size))


def test_factors_are_of_second_order() -> None:
    """``s' = cos t - 3 s`` with the factors of a step, and a steady state that does not know the step."""

    def error(steps: int) -> float:
        dt, s = 2.0 / steps, 0.0
        left, share = (float(value) for value in factors(dt, np.array(3.0)))
        for n in range(steps):
            s = left * s + share * (np.cos(n * dt) + np.cos((n + 1) * dt))
        exact = (3.0 * np.cos(2.0) + np.sin(2.0) - 3.0 * np.exp(-6.0)) / 10.0
        return abs(s - exact)

    assert error(40) / error(80) == pytest.approx(4.0, rel=0.1)
    for dt in (1e-3, 1.0, 1e6):
        left, share = (float(value) for value in factors(dt, np.array(3.0)))
        assert 0.0 <= left < 1.0
        assert 2.0 * share / (1.0 - left) == pytest.approx(1.0 / 3.0, rel=1e-9)


def test_devices_agree() -> None:
    """``fl.Context`` with threads: the same kernels in C."""
    at = points_of(KINDS[0])
    found = []
    for device in ("reference", "cpu"):
        context = fl.Context(device, threads=1) if device == "cpu" else fl.Context(device)
        points = context.set(at.n, "points")
        dats = [context.dat(points, at.values[name], name) for name in ("u", "before", "nu", "size")]
        rate = context.dat(points, name="rate")
        Loop(kernels.relaxation_rate, points, *dats, rate, d=at.d, factor=1.0, viscous=4.0, convective=2.0)()
        found.append(rate.read())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)
