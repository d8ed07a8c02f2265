"""Shapes: what is inside, and where links meet the surface."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import images, labels_of
from fluxloom.lbm.cells.links import find_links
from fluxloom.lbm.lattices import D3Q19
from fluxloom.lbm.shapes.sets import Complement, Difference, Implicit, Intersection, Polygon, Union
from fluxloom.lbm.shapes.shapes import SMALLEST, Block, Circle, Cylinder, HalfSpace, Shape, Sphere

FLAT: dict[str, Shape] = {
    "circle": Circle((0.2, -0.1), 3.3),
    "block": Block((-2.2, -np.inf), (1.7, 2.1)),
    "half plane": HalfSpace((0.3, 0.4), (2.0, -1.0)),
    "polygon": Polygon([(-3.1, -3.2), (-2.9, 3.3), (0.1, 0.2), (3.2, 2.7), (2.8, -2.9)]),
    "union": Union(Circle((-1.1, 0.0), 1.7), Circle((1.3, 0.4), 2.2)),
    "intersection": Intersection(Circle((-1.1, 0.0), 2.7), HalfSpace((0.0, 0.3), (0.1, 1.0))),
    "difference": Difference(Circle((0.0, 0.0), 3.4), Circle((0.5, 0.2), 1.9), HalfSpace((-2.3, 0.0), (1.0, 0.0))),
    "pipe": Complement(Circle((0.1, 0.2), 2.8)),
    "implicit": Implicit(lambda p: (p[:, 0] / 3.1) ** 2 + (p[:, 1] / 2.2) ** 2 - 1.0, 2),
}
SOLID: dict[str, Shape] = {
    "sphere": Sphere((0.2, -0.1, 0.3), 3.3),
    "cylinder": Cylinder((0.1, 0.2, 0.3), 2.1, (0.3, 1.0, -0.4)),
    "drum": Cylinder((0.1, 0.2, 0.3), 2.6, (1.0, 0.2, 0.1), 4.2),
    "block": Block((-2.2, -3.1, -1.4), (1.7, 2.1, 2.2)),
    "half space": HalfSpace((0.1, 0.2, 0.3), (1.0, -2.0, 0.5)),
    "bore": Difference(Block((-3.1,) * 3, (3.1,) * 3), Cylinder((0.0, 0.1, 0.2), 1.6, (1.0, 0.0, 0.0))),
    "implicit": Implicit(lambda p: np.abs(p).sum(axis=1) - 3.7, 3),
}


def segments(shape: Shape, count: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return random segments from outside to inside."""
    rng = np.random.default_rng(5)
    start = rng.uniform(-5.0, 5.0, (count, shape.dimensions))
    step = rng.choice([-1.0, 0.0, 1.0], start.shape)
    fit = ~shape.inside(start) & shape.inside(start + step)
    assert fit.sum() > 20
    return start[fit], step[fit]


@pytest.mark.parametrize("shape", [*FLAT.values(), *SOLID.values()], ids=[*FLAT, *(f"3d {name}" for name in SOLID)])
def test_the_surface_is_where_the_fraction_says(shape: Shape) -> None:
    """Just behind ``q`` is inside, and all before is outside."""
    start, step = segments(shape)
    q = shape.fraction(start, step)
    assert ((q > 0) & (q <= 1)).all()
    assert shape.inside(start + np.minimum(q + 1e-9, 1.0)[:, None] * step).all()
    for share in (0.02, 0.3, 0.6, 0.9, 0.98):
        assert not shape.inside(start + (share * q)[:, None] * step).any()
    assert not shape.inside(start + (q - 1e-9)[:, None] * step)[q > 1e-6].any()


@pytest.mark.parametrize("shape", [*FLAT.values(), *SOLID.values()], ids=[*FLAT, *(f"3d {name}" for name in SOLID)])
def test_nothing_is_inside_beyond_the_bounds(shape: Shape) -> None:
    points = np.random.default_rng(6).uniform(-6.0, 6.0, (4000, shape.dimensions))
    low, high = shape.bounds()
    beyond = ((points < low) | (points > high)).any(axis=1)
    found = shape.inside(points)
    assert not found[beyond].any()
    assert found.any()
    assert np.isfinite(low).all() or not isinstance(shape, Sphere | Circle | Polygon)


@pytest.mark.parametrize(
    ("shape", "start", "step", "q"),
    [
        (Circle((0.0, 0.0), 2.0), (0.0, 3.0), (0.0, -2.0), 0.5),
        (Circle((0.0, 0.0), sqrt(2.0)), (2.0, 2.0), (-2.0, -2.0), 0.5),
        (Circle((0.0, 0.0), 2.0), (0.0, 3.0), (0.0, -1.0), 1.0),  # ends on the surface
        (Sphere((0.0, 0.0, 0.0), 2.0), (0.0, 0.0, 3.0), (0.0, 0.0, -4.0), 0.25),
        (Cylinder((5.0, 0.0, 0.0), 3.0, (2.0, 0.0, 0.0)), (9.0, 5.0, 0.0), (1.0, -4.0, 0.0), 0.5),
        (Cylinder((0.0, 0.0, 0.0), 3.0, (2.0, 0.0, 0.0), 4.0), (3.0, 1.0, 0.0), (-4.0, 0.0, 0.0), 0.25),
        (Block((0.0, 0.0), (1.0, 1.0)), (0.5, -0.25), (0.0, 1.0), 0.25),
        (HalfSpace((0.0, 1.0), (0.0, 3.0)), (7.0, 1.75), (1.0, -1.0), 0.75),
        (Polygon([(0, 0), (0, 4), (4, 0)]), (3.0, 3.0), (-2.0, -2.0), 0.5),
        (Union(Circle((0.0, 0.0), 1.0), Circle((0.0, 5.0), 1.0)), (0.0, 7.0), (0.0, -7.0), 1 / 7),
        (Difference(Circle((0.0, 0.0), 2.0), Circle((0.0, 0.0), 1.0)), (0.0, 0.0), (0.0, 1.5), 2 / 3),
        (Complement(Circle((0.0, 0.0), 2.0)), (0.0, 0.0), (0.0, 4.0), 0.5),
    ],
)
def test_fraction(shape: Shape, start: Any, step: Any, q: float) -> None:
    assert shape.fraction(np.array([start]), np.array([step])) == pytest.approx(q, rel=1e-12)


def test_a_start_on_the_surface() -> None:
    """A fluid cell whose centre is on the surface of what was taken away: no division by zero later."""
    assert Complement(Circle((0.0, 0.0), 2.0)).fraction(np.array([[0.0, 2.0]]), np.array([[0.0, 1.0]])) == SMALLEST


def test_inside_a_polygon_with_points_on_it() -> None:
    """Corners, edges along both axes, and a line along x through a corner."""
    star = Polygon([(0, 0), (0, 4), (4, 4), (2, 2), (4, 0)])
    points = np.array([(0, 0), (0, 2), (2, 4), (2, 2), (3, 3), (3, 2), (2, 1), (2, -1), (4, 2), (1, 5), (4, 4)], float)
    assert star.inside(points).tolist() == [True, True, True, True, True, False, True, False, False, False, True]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Circle((0.0, 0.0, 0.0), 1.0),
        lambda: Sphere((0.0, 0.0), 1.0),
        lambda: Sphere((0.0, 0.0, 0.0), 0.0),
        lambda: Circle((0.0, np.nan), 1.0),
        lambda: Cylinder((0.0, 0.0, 0.0), 1.0, (0.0, 0.0, 0.0)),
        lambda: Cylinder((0.0, 0.0, 0.0), 1.0, (0.0, 1.0, 0.0), -1.0),
        lambda: Block((0.0, 1.0), (1.0, 1.0)),
        lambda: HalfSpace((0.0, 1.0), (0.0, 0.0)),
        lambda: Polygon([(0, 0), (1, 1)]),
        lambda: Union(),
        lambda: Union(Circle((0.0, 0.0), 1.0), Sphere((0.0, 0.0, 0.0), 1.0)),
        lambda: Implicit(lambda p: p, 2).inside(np.zeros((3, 2))),
    ],
)
def test_refused(wrong: Any) -> None:
    with pytest.raises(SolverError):
        wrong()


def gyroid(size: float, shift: float) -> Implicit:
    """Return one half of space, of period ``size``."""

    def value(p: np.ndarray) -> np.ndarray:
        z, y, x = 2.0 * np.pi / size * (p.T - shift)
        return np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)

    return Implicit(value, 3)


def test_links_of_an_implicit_shape() -> None:
    """Each link of a gyroid ends where a root finder says; it has no ends, and fits the periodic box."""
    optimize = pytest.importorskip("scipy.optimize")
    shape = gyroid(10.0, 0.3)
    box = Box((10, 10, 10), (True,) * 3)
    labels = labels_of(box, [shape])
    assert 0.45 < labels.mean() < 0.55
    links = find_links(box, D3Q19, labels, [shape], [])[1]
    assert len(links) > 1500
    start = np.stack(box.coordinates(links.cells), axis=-1)
    steps = -np.array(D3Q19.velocities)[links.directions]
    for at, step, q in list(zip(start, steps, links.fractions, strict=True))[::40]:

        def value(t: float, at: np.ndarray = at, step: np.ndarray = step) -> float:
            return float(shape.function((at + t * step)[None])[0])  # type: ignore[index]

        assert q == pytest.approx(optimize.brentq(value, 0.0, 1.0, xtol=1e-14), abs=1e-12)


def test_ends_of_an_implicit_shape() -> None:
    """A gyroid that is cut off has walls at its ends, and nothing beyond; over a periodic side it comes in again."""
    whole = gyroid(10.0, 0.3)
    part = Implicit(whole.function, 3, (-3.25, 2.5, 2.5), (3.25, 7.5, 7.5))
    cut = Intersection(whole, Block((-3.25, 2.5, 2.5), (3.25, 7.5, 7.5)))
    box = Box((10, 10, 10), (True,) * 3)
    labels = labels_of(box, [part])
    np.testing.assert_array_equal(labels, labels_of(box, [cut]))
    assert labels[[0, 3, 7, 9]].any(axis=(1, 2)).all()
    assert not labels[4:7].any()
    got, wanted = (find_links(box, D3Q19, labels, [one], [])[1] for one in (part, cut))
    np.testing.assert_array_equal(got.cells, wanted.cells)
    np.testing.assert_allclose(got.fractions, wanted.fractions, atol=1e-12)
    ends = np.isclose(got.fractions, 0.25, atol=1e-12) | np.isclose(got.fractions, 0.75, atol=1e-12)
    assert ends.sum() > 20


# ------------------------------------------------------------------------------------------- labels


def test_labels_are_those_of_the_centres() -> None:
    box = Box((7, 9), (False, False))
    first, second = Circle((2.0, 3.0), 2.0), Circle((4.0, 5.0), 2.2)
    labels = labels_of(box, [first, second])
    assert labels.shape == (8, 10)
    assert labels.dtype == np.int16
    assert (labels[7] == -1).all()
    assert (labels[:, 9] == -1).all()
    y, x = np.mgrid[:7, :9]
    one, two = (y - 2) ** 2 + (x - 3) ** 2 <= 4, (y - 4) ** 2 + (x - 5) ** 2 <= 2.2**2
    assert (one & two).any(), "the first one has what both cover"
    np.testing.assert_array_equal(labels[:7, :9], np.where(one, 1, np.where(two, 2, 0)))


def test_slabs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box((9, 8, 11), (False, True, False))
    shapes = [Sphere((4.0, 1.0, 5.0), 2.7), HalfSpace((7.5, 0, 0), (-1, 0, 0))]
    whole = labels_of(box, shapes)
    monkeypatch.setattr("fluxloom.lbm.cells.labels.CHUNK", 50)
    np.testing.assert_array_equal(labels_of(box, shapes), whole)
    assert (whole[8:9, :8, :11] == 2).all()


def test_a_body_over_a_periodic_side_comes_in_again() -> None:
    box = Box((10, 12), (True, False))
    body = Circle((0.3, 5.1), 2.4)
    assert sorted(float(shift[0]) for shift in images(box, body)) == [0.0, 10.0]
    there = labels_of(box, [Circle((5.3, 5.1), 2.4)])
    np.testing.assert_array_equal(labels_of(box, [body]), np.roll(there, -5, axis=0))
    assert (labels_of(Box((10, 12), (False, True)), [body])[5:10] == 0).all()


def test_labels_refused() -> None:
    with pytest.raises(SolverError, match="Sphere of 3 axes"):
        labels_of(Box((4, 4), (True, True)), [Sphere((1.0, 1.0, 1.0), 1.0)])
