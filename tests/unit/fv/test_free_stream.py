"""The free stream: its state, its angles, and what wrong numbers are answered with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas, Sutherland

AIR = Gas(gamma=1.4, constant=287.0, viscosity=Sutherland())


@pytest.mark.parametrize("direction", [(3.0, 4.0), (2.0, -1.0, 2.0)])
def test_state(direction: tuple[float, ...]) -> None:
    d = len(direction)
    stream = FreeStream(0.8, 1e5, 300.0, direction)
    w = stream.state(AIR, d)
    assert w.shape == (d + 2,)
    assert w[0] * 287.0 * 300.0 == pytest.approx(w[-1]) == 1e5
    assert np.linalg.norm(w[1:-1]) / AIR.sound(w[None])[0] == pytest.approx(0.8)
    assert np.cross(np.append(w[1:-1], [0.0] * (3 - d)), np.append(direction, [0.0] * (3 - d))) == pytest.approx(0.0)
    assert w[1:-1] @ direction > 0.0
    assert stream.dynamic_pressure(AIR) == pytest.approx(0.5 * w[0] * (w[1:-1] ** 2).sum())
    assert not FreeStream(0.0, 1e5, 300.0, direction).state(AIR, d)[1:-1].any()


def test_angles() -> None:
    """They are those of Euler: first the pitch, then the yaw out of that plane."""
    a, b = np.radians(30.0), np.radians(10.0)
    flat = FreeStream.at_angles(0.5, 1.0, 1.0, 30.0, dimension=2)
    assert flat.direction == pytest.approx((np.cos(a), np.sin(a)))
    wing = FreeStream.at_angles(0.5, 1.0, 1.0, 30.0, 10.0)
    assert wing.direction == pytest.approx((np.cos(a) * np.cos(b), np.sin(b), np.sin(a) * np.cos(b)))
    across = FreeStream.at_angles(0.5, 1.0, 1.0, 30.0, 10.0, up=1)
    assert across.direction == pytest.approx((np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)))


def test_turbulence() -> None:
    """Air at 300 K and 1e5 Pa has a kinematic viscosity of 1.59e-5 m^2/s (White, table A-2: 1.846e-5 Pa s)."""
    stream = FreeStream(0.5, 1e5, 300.0, (1.0, 0.0))
    assert stream.turbulence(AIR, 1.0) == pytest.approx(1.846e-5 * 287.0 * 300.0 / 1e5, rel=2e-3)
    assert stream.turbulence(AIR) == pytest.approx(3.0 * stream.turbulence(AIR, 1.0))
    with pytest.raises(SolverError, match="the gas has no viscosity: give Gas"):
        stream.turbulence(Gas())
    with pytest.raises(SolverError, match="a ratio of at least 0 is wanted, not -1"):
        stream.turbulence(AIR, -1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((-0.1, 1.0, 1.0, (1, 0)), "free stream: mach: at least 0 is wanted, not -0.1"),
        ((np.nan, 1.0, 1.0, (1, 0)), "free stream: mach: at least 0 is wanted"),
        ((0.5, 0.0, 1.0, (1, 0)), "free stream: pressure: above 0 is wanted, not 0"),
        ((0.5, 1.0, -300.0, (1, 0)), "free stream: temperature: above 0 is wanted, not -300"),
        ((0.5, 1.0, 1.0, (0.0, 0.0)), "free stream: direction: 2 or 3 finite numbers, not all 0, are wanted"),
        ((0.5, 1.0, 1.0, (1.0,)), "free stream: direction: 2 or 3 finite numbers"),
        ((0.5, 1.0, 1.0, "forward"), "free stream: direction: 2 or 3 finite numbers, .*, not 'forward'"),
        ((0.5, 1.0, 1.0, (1.0, np.inf)), "free stream: direction: 2 or 3 finite numbers"),
    ],
)
def test_wrong_numbers(values: Any, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        FreeStream(*values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.0, "dimension": 4}, "dimension 2 with up = 1, or 3 with 1 or 2, not 4 with 3"),
        ({"alpha": 1.0, "dimension": 2, "up": 2}, "dimension 2 with up = 1, or 3 with 1 or 2, not 2 with 2"),
        ({"alpha": 1.0, "up": 0}, "dimension 2 with up = 1, or 3 with 1 or 2, not 3 with 0"),
        ({"alpha": 1.0, "beta": 2.0, "dimension": 2}, "finite angles, and beta = 0 in 2 dimensions"),
        ({"alpha": np.inf}, "finite angles, and beta = 0 in 2 dimensions, not inf"),
    ],
)
def test_wrong_angles(options: Any, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        FreeStream.at_angles(0.5, 1.0, 1.0, **options)


def test_other_dimension() -> None:
    with pytest.raises(SolverError, match="direction: 3 numbers are wanted here"):
        FreeStream(0.5, 1.0, 1.0, (1.0, 0.0)).state(AIR, 3)
