"""Delta functions, markers, supports, and the weights with which markers spread forces."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.core.strategies import strategy_class, strategy_name
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed import Delta, Markers, Peskin, Roma, circle, curve, ellipse, sphere, surface
from fluxloom.lbm.immersed.markers.places import cross
from fluxloom.lbm.immersed.markers.spreading import (
    balanced,
    epsilon,
    interpolation,
    plane_weights,
    support,
    support_places,
)  # fmt: skip

PLANE = Box((60, 60), (True, True))
RNG = np.random.default_rng(5)


@pytest.mark.parametrize("delta", [Roma(), Peskin()], ids=strategy_name)
def test_sums_of_delta_functions(delta: Delta) -> None:
    """Force, torque and linear fields are kept, and the sum of squares does not depend on the place."""
    x = np.concatenate([RNG.uniform(-4, 4, (200, 2)), [[0.5, -0.5], [1.0, 2.0], [0.0, 0.25]]])
    first, w = delta.weights(x)
    r = first[..., None] + np.arange(delta.points) - x[..., None]
    assert np.abs(w.sum(axis=2) - 1).max() < 1e-14
    assert np.abs((w * r).sum(axis=2)).max() < 1e-14
    assert np.abs((w**2).sum(axis=2) - delta.square).max() < 1e-14
    assert w.min() >= 0
    beyond = np.array([-delta.points / 2 - 1e-9, delta.points / 2 + 1e-9, 7.0])
    assert all(delta(float(value)) == 0 for value in beyond), "there is nothing beyond the support"


def test_known_values_of_delta_functions() -> None:
    assert Roma()(0.0) == pytest.approx(2 / 3)
    assert Roma()(1.0) == pytest.approx(1 / 6)
    assert Peskin()(0.0) == pytest.approx(1 / 2)
    assert Peskin()(1.0) == pytest.approx(1 / 4)
    assert Peskin()(0.5) == pytest.approx((2 + np.sqrt(2)) / 8)
    assert Roma().thickness == pytest.approx(0.312, abs=2e-3)
    with pytest.raises(FluxloomError, match=r"delta function 'rome'.*roma"):
        strategy_class(Delta, "rome")


def test_marker_makers_cover_their_curves() -> None:
    """Measures add up to the length of the curve, and markers are as far apart as was asked for."""
    round_ = circle((3.0, 4.0), 5.0, spacing=0.8)
    assert round_.count == round(2 * np.pi * 5 / 0.8)
    assert np.allclose(np.hypot(*(round_.positions - [3.0, 4.0]).T), 5.0)
    assert np.isclose(round_.measures.sum(), 2 * np.pi * 5)
    assert np.allclose(round_.positions[0], [3.0, 9.0]), "the first marker is towards x"
    assert circle((0, 0), 10, count=63).count == 63
    oval = ellipse((0.0, 0.0), (5.0, 10.0), angle=0.4)
    gaps = np.hypot(*(oval.positions - np.roll(oval.positions, 1, axis=0)).T)
    assert gaps.max() - gaps.min() < 0.02
    assert oval.measures.sum() == pytest.approx(48.442, abs=1e-2)  # Ramanujan's formula for half axes 5 and 10
    y, x = oval.positions.T
    along, across = x * np.cos(0.4) + y * np.sin(0.4), y * np.cos(0.4) - x * np.sin(0.4)
    assert np.abs((along / 10) ** 2 + (across / 5) ** 2 - 1).max() < 1e-4
    square = curve([(0, 0), (0, 8), (8, 8), (8, 0)])
    assert square.count == 32
    assert np.allclose(square.measures, 1.0)
    line = curve([(0, 0), (0, 8)], closed=False)
    assert np.allclose(line.positions[:, 1], np.arange(8) + 0.5)


def test_sphere_and_surface() -> None:
    ball = sphere((1.0, 2.0, 3.0), 6.0)
    assert np.isclose(ball.measures.sum(), 4 * np.pi * 36)
    assert np.allclose(np.linalg.norm(ball.positions - [1, 2, 3], axis=1), 6.0)
    apart = np.linalg.norm(ball.positions[:, None] - ball.positions, axis=2) + 99 * np.eye(ball.count)
    assert 0.7 < apart.min(axis=1).min() <= apart.min(axis=1).max() < 1.2
    corners = np.array(list(itertools.product((0.0, 9.0), repeat=3)))
    quads = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    cube = corners[[t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]]
    coarse, fine = surface(cube), surface(_quartered(_quartered(_quartered(_quartered(cube)))))
    for made in (coarse, fine):  # triangles of 9 cells, and of half a cell
        assert np.isclose(made.measures.sum(), 6 * 81)
        assert 0.6 < made.measures.min() <= made.measures.max() < 2.5
        distance = np.abs(made.positions - 4.5).max(axis=1)
        assert np.allclose(distance, 4.5), "markers lie on the surface"
        near = np.linalg.norm(made.positions[:, None] - made.positions, axis=2) + 99 * np.eye(made.count)
        assert near.min() >= 0.9


def _quartered(triangles: np.ndarray) -> np.ndarray:
    a, b, c = triangles.transpose(1, 0, 2)
    ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
    return np.concatenate([np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Markers.at(np.zeros((3, 4))), "of shape"),
        (lambda: Markers.at([[0.0, np.nan]]), "finite"),
        (lambda: Markers.at([[0.0, 1.0]], measures=0.0), "positive"),
        (lambda: circle((0, 0), -1.0), "positive"),
        (lambda: curve([(0, 0)]), "two points"),
        (lambda: surface(np.zeros((4, 3))), "triangles"),
    ],
)  # fmt: skip
def test_what_are_no_markers(make: Any, says: str) -> None:
    with pytest.raises(SolverError, match=says):
        make()


def test_rotation_is_counter_clockwise_and_right_handed() -> None:
    """Components are the slowest axis first, spins are those of x, y, z."""
    x, y = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    assert np.allclose(cross(np.array(2.0), x), 2 * y)
    assert np.allclose(cross(np.array(2.0), y), -2 * x)
    assert np.allclose(cross(x, y), [1.0])
    ex, ey, ez = np.eye(3)[::-1]
    for a, b, c in ((ex, ey, ez), (ey, ez, ex), (ez, ex, ey)):
        assert np.allclose(cross(a, b), c)
    drum = circle((0.0, 0.0), 3.0).spinning(0.1)
    assert np.allclose(drum.velocities[0], [0.3, 0.0]), "the marker towards x goes up"


def test_supports() -> None:
    """The union of supports, with a margin, wrapped round periodic ends and cut off at others."""
    x = np.array([[0.2, 5.4], [0.3, 6.0]])
    first = Roma().first(x)
    assert first.tolist() == [[-1, 4], [-1, 5]]
    box = Box((8, 9), (True, True))
    found = support(box, first, 3)
    assert sorted(found.tolist()) == sorted(9 * j + i for j in (7, 0, 1) for i in (4, 5, 6, 7))
    assert support(box, first, 3, margin=1).size == 5 * 6
    assert support(box, first, 3, margin=9).size == 72, "no cell twice"
    open_ = Box((8, 9), (False, True))
    assert support(open_, first + np.array([1, 0]), 3, margin=1).size == 4 * 6, "rows -1 ... 3 without the one beyond"
    with pytest.raises(SolverError, match=r"body 'plate'.*marker 1 leaves the box along axis 0 \(cells -1 \.\.\. 1 of"):
        support_places(open_, first + np.array([[1, 0], [0, 0]]), 3, ["plate", "plate"])
    with pytest.raises(SolverError, match="along axis 1"):  # the layer beyond is no fluid either
        support_places(Box((8, 9), (True, False)), np.array([[0, 7]]), 3)


@pytest.mark.parametrize("delta", [Roma(), Peskin()], ids=strategy_name)
def test_interpolation_is_exact_for_linear_fields(delta: Delta) -> None:
    markers = circle((20.3, 30.7), 8.2)
    matrix = interpolation(PLANE, delta, markers.positions)
    y, x = np.mgrid[:60, :60].reshape(2, -1)
    assert np.allclose(matrix @ (2.0 + 0.3 * x - 0.7 * y), 2.0 + markers.positions @ [-0.7, 0.3], atol=1e-12)


@pytest.mark.parametrize(("centre", "low", "high"), [((30.5, 30.0), 1.79, 2.17), ((30.0, 30.5), 1.83, 2.05)])
def test_epsilon_of_a_circle(centre: tuple[float, float], low: float, high: float) -> None:
    """Values of the original: about 1.98 between 1.79 and 2.17 for a diameter of 20 and 63 markers."""
    markers = circle(centre, 10.0, count=63)
    matrix = interpolation(PLANE, Roma(), markers.positions)
    found = epsilon(matrix)
    assert found.mean() == pytest.approx(1.98, abs=0.01)
    assert (found.min(), found.max()) == pytest.approx((low, high), abs=0.01)
    back = matrix @ (matrix.T @ found)
    assert np.abs(back - 1).max() < 1e-12, "a constant force comes back as it was"


@pytest.mark.parametrize("delta", [Roma(), Peskin()], ids=strategy_name)
def test_weights_of_a_plane_are_the_mean(delta: Delta) -> None:
    """What markers of a plane have is within one per cent of the mean of the exact weights, for curved bodies too."""
    for markers in (circle((30.2, 29.7), 11.0), ellipse((30.0, 30.0), (6.0, 14.0), 0.3)):
        exact = epsilon(interpolation(PLANE, delta, markers.positions))
        assert plane_weights(delta, markers.measures).mean() == pytest.approx(exact.mean(), rel=0.015)


def test_near_markers_have_balanced_weights_only() -> None:
    box = Box((24, 24, 24), (True,) * 3)
    ball = sphere((12.0, 12.1, 11.8), 6.0)
    matrix = interpolation(box, Roma(), ball.positions)
    with pytest.raises(SolverError, match="too near to each other"):
        epsilon(matrix)
    found = balanced(matrix, plane_weights(Roma(), ball.measures))
    assert found.min() > 0
    assert np.abs(matrix @ (matrix.T @ found) - 1).max() < 0.02
    twice = np.concatenate([ball.positions[:5], ball.positions[:5]])
    with pytest.raises(SolverError, match="too near to each other"):
        epsilon(interpolation(box, Roma(), twice))


@pytest.mark.parametrize("periodic", list(itertools.product((False, True), repeat=2)))
def test_cells_around_supports(periodic: tuple[bool, bool]) -> None:
    """Every cell that is at most so far from a support, across joined sides too, once and in order."""
    rng, box = np.random.default_rng(9), Box((7, 9), periodic)
    for points, margin, count in itertools.product((1, 3), (0, 2), (0, 1, 6)):
        first = rng.integers(-2, 9, (count, 2))
        reach = np.arange(-margin, points + margin)
        wanted = set()
        for y, x in first:
            for i, j in itertools.product(y + reach, x + reach):
                if (periodic[0] or 0 <= i < 7) and (periodic[1] or 0 <= j < 9):
                    wanted.add(int(box.place([np.array(i), np.array(j)])))
        assert support(box, first, points, margin).tolist() == sorted(wanted)
