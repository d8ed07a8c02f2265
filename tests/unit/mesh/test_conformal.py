"""Quads of least energy: rectangles, a ring between two circles, and widths from poor guesses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.mesh.generate.conformal import QuadNet, relax, relax_widths, widths_curvature

Array = npt.NDArray[np.float64]
NOWHERE = np.zeros(0, dtype=np.int64)


def box(columns: int, rows: int, length: float) -> tuple[QuadNet, Array]:
    """Return quads in a box of height 1, whose nodes slide along the sides, at random places."""
    nodes = np.arange((columns + 1) * (rows + 1)).reshape(rows + 1, columns + 1)
    quads = np.stack([nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, 1:], nodes[1:, :-1]], axis=-1).reshape(-1, 4)
    x, y = np.meshgrid(np.linspace(0.0, length, columns + 1), np.linspace(0.0, 1.0, rows + 1))
    points = np.stack([x, y], axis=-1).reshape(-1, 2)
    held = np.stack([np.isin(points[:, 0], (0.0, length)), np.isin(points[:, 1], (0.0, 1.0))], axis=1)
    moved = points + np.random.default_rng(1).normal(scale=0.01, size=points.shape)
    return QuadNet(quads, held, NOWHERE, np.zeros(2), 1.0), np.where(held, points, moved)


def test_rectangles_have_the_energy_of_their_area() -> None:
    net, points = box(6, 4, 3.0)
    found = relax(net, points, np.full(24, 0.25 / 0.5))
    x, y = found.points[:, 0].reshape(5, 7), found.points[:, 1].reshape(5, 7)
    assert x == pytest.approx(np.tile(np.linspace(0.0, 3.0, 7), (5, 1)), abs=1e-12)
    assert y == pytest.approx(np.tile(np.linspace(0.0, 1.0, 5)[:, None], (1, 7)), abs=1e-12)
    assert found.energy == pytest.approx(3.0, rel=1e-12)
    assert found.slope == pytest.approx(0.0, abs=1e-12)
    assert relax(net, points, np.full(24, 0.6)).energy > 3.01


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_widths_are_found(factor: float) -> None:
    """Two halves of a box with twice as many columns in one: from wrong widths and a wrong curvature too."""
    net, points = box(6, 4, 3.0)

    def ratios(widths: Array) -> Array:
        columns = np.exp(np.concatenate([np.full(2, widths[0]), np.full(4, widths[1])]))
        return np.tile(0.25 / columns, 4)

    guess = np.log([0.4, 0.7])
    curvature = factor * widths_curvature(net, points, ratios, guess)
    found, widths = relax_widths(net, points, ratios, guess, curvature, 30)
    assert 2.0 * np.exp(widths[0]) + 4.0 * np.exp(widths[1]) == pytest.approx(3.0, rel=1e-4)
    assert relax(net, found, ratios(widths)).energy == pytest.approx(3.0, rel=1e-8)


def ring(count: int, levels: int, outer: float) -> tuple[QuadNet, Array]:
    """Return quads between circles; on the inner one nodes slide, and begin crowded on one side."""
    nodes = np.arange(count * levels).reshape(levels, count)
    after = np.roll(nodes, -1, axis=1)
    quads = np.stack([nodes[:-1], nodes[1:], after[1:], after[:-1]], axis=-1).reshape(-1, 4)
    even = 2.0 * np.pi * np.arange(count) / count
    angle = even + np.linspace(0.1, 0.0, levels)[:, None] * np.sin(even)
    points = np.geomspace(1.0, outer, levels)[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    held = np.zeros((count * levels, 2), dtype=bool)
    held[nodes[-1]] = True
    return QuadNet(quads, held, nodes[0], np.zeros(2), 1.0), points.reshape(-1, 2)


def test_nodes_on_a_circle_slide() -> None:
    """They end in front of those of the outer circle, quadratically."""
    count, levels, outer = 24, 9, 3.0
    net, points = ring(count, levels, outer)
    ratios = np.full(count * (levels - 1), (levels - 1) * 2.0 * np.pi / count / np.log(outer))
    off = []
    for steps in (1, 2, 3):
        inner = relax(net, points, ratios, steps).points[:count]
        assert np.linalg.norm(inner, axis=1) == pytest.approx(1.0, abs=1e-14)
        wrong = np.angle((inner[:, 0] + 1j * inner[:, 1]) * np.exp(-2j * np.pi * np.arange(count) / count))
        off.append(float(np.abs(wrong).max()))
    assert off[0] < 0.02
    assert off[1] < 1e-3
    assert off[2] < 1e-6
