"""Fast Poisson solvers against solutions of the differential equation: second order, with data on the boundary."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.linalg.direct.poisson import Dirichlet, Neumann, Plan

WAVES = (1.3, 0.8, 1.7)
SHIFT = -0.7
CLOSED = list(itertools.product(("dirichlet", "neumann"), repeat=2))


def wave(axis: int, x: np.ndarray, derivative: int = 0) -> np.ndarray:
    """Return one factor of the solution, or its derivative; periodic factors have a full period on [0, 1]."""
    k = WAVES[axis]
    return k**derivative * np.sin(k * x + 0.4 + derivative * np.pi / 2)


def turning(_axis: int, x: np.ndarray, derivative: int = 0) -> np.ndarray:
    """Return a factor with period 1."""
    k = 2 * np.pi
    return k**derivative * np.sin(k * x + 0.4 + derivative * np.pi / 2)


def mapped(points: np.ndarray, stretched: bool) -> np.ndarray:
    """Return coordinates on [0, 1], smoothly stretched if wanted."""
    return points + 0.15 * np.sin(2 * np.pi * points) / (2 * np.pi) if stretched else points


def error(n: int, ends: list[tuple[str, str]], centring: str, stretched: bool) -> float:
    """Return the largest error of a solve of ``L u + SHIFT u = f`` with ``u`` a product of waves."""
    factors: list[Callable[..., np.ndarray]] = []
    coordinates, unknowns, whole = [], [], []
    for number, pair in enumerate(ends):
        intervals = n + number
        edges = mapped(np.arange(intervals + 1) / intervals, stretched)
        first, last = int(pair[0] == "dirichlet"), intervals + 1 - int(pair[1] != "neumann")
        unknowns.append((edges[1:] + edges[:-1]) / 2 if centring == "cell" else edges[first:last])
        whole.append(edges if stretched else 1 / intervals)
        coordinates.append(edges)
        factors.append(turning if pair[0] == "periodic" else wave)

    def product(derivatives: list[int], points: list[np.ndarray]) -> np.ndarray:
        values = [f(k, x, d) for k, (f, x, d) in enumerate(zip(factors, points, derivatives, strict=True))]
        return reduce(np.multiply.outer, values)

    bc = []
    for axis, pair in enumerate(ends):
        if pair[0] == "periodic":
            bc.append("periodic")
            continue
        sides = []
        for kind, at, sign in zip(pair, (0.0, 1.0), (-1.0, 1.0), strict=True):
            points = [np.array([at]) if k == axis else x for k, x in enumerate(unknowns)]
            derivative = int(kind == "neumann")
            data = product([derivative * (k == axis) for k in range(len(ends))], points).squeeze(axis)
            sides.append(Neumann(sign * data) if derivative else Dirichlet(data))
        bc.append(tuple(sides))
    none = [0] * len(ends)
    u = product(none, unknowns)
    f = SHIFT * u + sum(product([2 * (k == axis) for k in range(len(ends))], unknowns) for axis in range(len(ends)))
    shape = tuple(x.size for x in unknowns)
    found = Plan(shape, whole, bc, centring=centring, shift=SHIFT)(f)
    return float(np.abs(found - u).max())


def order(*arguments: object, sizes: tuple[int, int] = (24, 48)) -> float:
    one, two = (error(n, *arguments) for n in sizes)  # type: ignore[arg-type]
    return float(np.log2(one / two))


def planes() -> Iterator[Any]:
    """Yield each pair of ends on cells and on nodes, one of them on a stretched grid; the others are long tests."""
    for (k, ends), (i, centring), stretched in itertools.product(
        enumerate(CLOSED), enumerate(("cell", "node")), (False, True)
    ):
        yield pytest.param(ends, centring, stretched, marks=[pytest.mark.long] if (k + i + stretched) % 2 else [])


@pytest.mark.parametrize(("ends", "centring", "stretched"), list(planes()))
def test_second_order_in_two_dimensions(ends, centring, stretched):
    assert 1.85 < order([ends, ("periodic",) * 2], centring, stretched) < 2.25
    assert 1.85 < order([ends, ends[::-1]], centring, stretched) < 2.25


@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("centring", ["cell", "node"])
def test_second_order_in_three_dimensions(centring, stretched):
    ends = [("dirichlet", "neumann"), ("periodic",) * 2, ("neumann", "neumann")]
    assert 1.85 < order(ends, centring, stretched, sizes=(12, 24)) < 2.25


def test_singular_problem_converges_up_to_a_constant():
    """Neumann data of a field with a net flux: what does not fit is the mean that is removed, of second order too."""
    errors, removed = [], []
    for n in (16, 32, 64):
        x = (np.arange(n) + 0.5) / n
        u = np.exp(x)[:, None] * np.cos(x)[None, :]  # harmonic
        ends = (Neumann(-np.cos(x)), Neumann(np.e * np.cos(x))), (Neumann(0.0), Neumann(-np.exp(x) * np.sin(1.0)))
        plan = Plan((n, n), 1 / n, list(ends))
        errors.append(np.abs(plan(np.zeros((n, n))) - (u - u.mean())).max())
        removed.append(abs(plan.removed))
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(2.0, abs=0.15)
    assert np.log2(removed[-2] / removed[-1]) == pytest.approx(2.0, abs=0.15)


def test_two_lines_are_enough():
    f = np.ones((33, 33))
    u = fl.poisson.solve(f, 1 / 34, bc="dirichlet", centring="node")
    assert u.min() == pytest.approx(-0.0736713, rel=2e-3)  # the torsion of a square: S. Timoshenko, chapter on torsion


@pytest.mark.long
@pytest.mark.parametrize("shape", [(251, 127), (64, 61, 67), (128, 96, 80)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_discrete_solutions(shape, dtype):
    from tests.unit.linalg.poisson.problems import ENDS, check

    for number in range(3):
        bc = [ENDS[(number + 2 * k) % len(ENDS)] for k in range(len(shape))]
        for centring in ("cell", "node"):
            check(Plan(shape, 0.1, bc, centring=centring, dtype=dtype))
