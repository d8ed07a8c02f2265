"""Relations of a perfect gas against tables, and the exact flow through a nozzle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import (
    Gas,
    area_ratio,
    mach_of_area_ratio,
    mach_of_pressure_ratio,
    mach_of_turning,
    most_turning,
    normal_shock,
    oblique_shock,
    prandtl_meyer,
    total_pressure_ratio,
    total_temperature_ratio,
)
from fluxloom_lab.exact.nozzle import Nozzle

Array = np.ndarray


def conserved_flux(rho: float, u: float, p: float, gamma: float) -> Array:
    return np.array([rho * u, rho * u * u + p, u * (gamma / (gamma - 1.0) * p + 0.5 * rho * u * u)])


def test_isentropic_tables() -> None:
    """NACA 1135, table I (subsonic) and II."""
    mach = np.array([0.5, 1.0, 2.0, 3.0])
    assert 1.0 / total_pressure_ratio(mach) == pytest.approx([0.8430, 0.5283, 0.1278, 0.02722], abs=5e-5)
    assert 1.0 / total_temperature_ratio(mach) == pytest.approx([0.95238, 0.83333, 0.55556, 0.35714], abs=5e-6)
    assert area_ratio(mach) == pytest.approx([1.3398, 1.0, 1.6875, 4.2346], abs=5e-5)
    assert prandtl_meyer([1.0, 2.0, 5.0]) == pytest.approx([0.0, 26.3798, 76.9202], abs=5e-5)


@pytest.mark.parametrize("gamma", [1.01, 1.1, 1.4, 5.0 / 3.0, 3.0])
def test_inverses(gamma: float) -> None:
    mach = np.array([1e-4, 0.3, 0.99, 1.0, 1.01, 2.5, 40.0])
    assert mach_of_area_ratio(area_ratio(mach, gamma), mach > 1.0, gamma) == pytest.approx(mach, rel=1e-7)
    assert mach_of_pressure_ratio(total_pressure_ratio(mach, gamma), gamma) == pytest.approx(mach, rel=1e-7)
    fast = np.array([1.0, 1.1, 2.5, 40.0])
    assert mach_of_turning(prandtl_meyer(fast, gamma), gamma) == pytest.approx(fast, rel=1e-8)


def test_normal_shock_table() -> None:
    """NACA 1135, table II."""
    found = normal_shock(2.0)
    assert found.pressure == pytest.approx(4.5, rel=1e-14)
    assert found.density == pytest.approx(8.0 / 3.0, rel=1e-14)
    assert (found.mach, found.total_pressure) == pytest.approx((0.57735, 0.72087), abs=5e-6)
    assert normal_shock(1.0)[1:] == pytest.approx((1.0, 1.0, 1.0, 1.0), rel=1e-14)


@pytest.mark.parametrize(
    ("angle", "beta", "pressure", "mach"), [(10.0, 39.3139, 1.70658, 1.64052), (15.0, 45.3436, 2.1947, 1.4457)]
)
def test_oblique_shock_at_mach_2(angle: float, beta: float, pressure: float, mach: float) -> None:
    found = oblique_shock(2.0, angle)
    assert found.angle == pytest.approx(beta, abs=5e-5)
    assert found.pressure == pytest.approx(pressure, abs=5e-5 if angle > 10.0 else 5e-6)
    assert found.mach == pytest.approx(mach, abs=5e-5 if angle > 10.0 else 5e-6)


@pytest.mark.parametrize("gamma", [1.2, 1.4, 5.0 / 3.0])
@pytest.mark.parametrize("mach", [1.05, 2.0, 8.0])
def test_shocks_conserve(mach: float, gamma: float) -> None:
    """Mass, momentum and energy across the shock, the velocity along it, for all angles up to the largest."""
    steepest, most = most_turning(mach, gamma)
    for angle in most * np.array([0.0, 1e-18, 1e-6, 0.3, 0.9, 1.0]):
        shock = oblique_shock(mach, float(angle), gamma)
        beta, turned = np.radians(shock.angle), np.radians(shock.angle - angle)
        speed = shock.mach * np.sqrt(shock.pressure / shock.density)  # the speed of sound before is 1
        before = conserved_flux(gamma, mach * np.sin(beta), 1.0, gamma)
        behind = conserved_flux(gamma * shock.density, speed * np.sin(turned), shock.pressure, gamma)
        assert behind == pytest.approx(before, rel=1e-10)
        assert speed * np.cos(turned) == pytest.approx(mach * np.cos(beta), rel=1e-10)
        assert shock.angle <= steepest + 1e-12
        ratio = total_pressure_ratio(shock.mach, gamma) / total_pressure_ratio(mach, gamma) * shock.pressure
        assert shock.total_pressure == pytest.approx(float(ratio), rel=1e-10)


def test_detached_and_other_refusals() -> None:
    assert most_turning(2.0)[1] == pytest.approx(22.9735, abs=5e-5)
    with pytest.raises(SolverError, match=r"0 to 22\.9735 degrees"):
        oblique_shock(2.0, 23.0)
    with pytest.raises(SolverError, match="attached"):
        oblique_shock(2.0, -1.0)
    for call in (lambda: oblique_shock(0.9, 1.0), lambda: normal_shock(0.5), lambda: prandtl_meyer(0.9)):
        with pytest.raises(SolverError, match="supersonic"):
            call()
    with pytest.raises(SolverError, match=r"below 130\.4541"):
        mach_of_turning(131.0)
    with pytest.raises(SolverError, match="sonic flow"):
        mach_of_area_ratio(0.9, True)
    with pytest.raises(SolverError, match="at least the pressure"):
        mach_of_pressure_ratio(0.9)
    with pytest.raises(SolverError, match="gamma"):
        oblique_shock(2.0, 10.0, 1.0)


# ------------------------------------------------------------------------------------------------------- nozzle


def parabola(x: Array) -> Array:
    """Anderson, *Computational Fluid Dynamics*, sec. 7.3."""
    return 1.0 + 2.2 * (x - 1.5) ** 2


def nozzle(pressure: float, **values: Any) -> Nozzle:
    return Nozzle(parabola, **{"inlet": 0.0, "throat": 1.5, "outlet": 3.0, **values}, total_pressure=1e5,
                  total_temperature=300.0, pressure=pressure * 1e5)  # fmt: skip


PLACES = np.column_stack([np.linspace(0.0, 3.0, 61), np.zeros(61)])


def test_nozzle_of_anderson() -> None:
    """Sec. 7.6: for a pressure of 0.6784 the shock is at 2.1, where A / A* is 1.79, and the exit has Mach 0.143."""
    case = nozzle(0.6784)
    assert case.choked
    assert case.shock == pytest.approx(2.1, abs=2e-3)
    assert case.mach(np.array([0.0, 2.099, 3.0])) == pytest.approx([0.098, 2.07, 0.143], rel=5e-3)


@pytest.mark.parametrize(("pressure", "kind"), [(0.995, "subsonic"), (0.9, "shock"), (0.5, "shock"), (0.01, "fast")])
def test_nozzle_conserves(pressure: float, kind: str) -> None:
    """The same mass and energy everywhere; the pressure of the outlet where it has an influence."""
    case, gas = nozzle(pressure), Gas()
    w = case.state(PLACES)
    flow = w[:, 0] * w[:, 1] * parabola(PLACES[:, 0])
    assert flow == pytest.approx(np.full(61, flow[0]), rel=1e-7)
    total = gas.temperature(w) * total_temperature_ratio(w[:, 1] / gas.sound(w))
    assert total == pytest.approx(np.full(61, 300.0), rel=1e-12)
    assert case.choked is (kind != "subsonic")
    assert (case.shock is not None) is (kind == "shock")
    if kind != "fast":
        assert w[-1, 3] == pytest.approx(pressure * 1e5, rel=1e-9)
    assert bool(case.mach(PLACES[:, 0])[40] > 1.0) is (kind == "fast" or (case.shock or 0.0) > 2.0)


def test_shock_of_the_nozzle_is_one() -> None:
    case, gas = nozzle(0.5), Gas()
    place = case.shock
    assert place is not None
    w = case.state(np.array([[place - 1e-9, 0.0], [place + 1e-9, 0.0]]))
    shock = normal_shock(float(w[0, 1] / gas.sound(w)[0]))
    assert w[1, 3] / w[0, 3] == pytest.approx(shock.pressure, rel=1e-6)
    assert w[1, 0] / w[0, 0] == pytest.approx(shock.density, rel=1e-6)
    assert w[1, 1] / gas.sound(w)[1] == pytest.approx(shock.mach, rel=1e-6)


def test_converging_nozzle() -> None:
    """Its outlet is sonic at the pressure of that, however low the pressure outside is."""
    w = nozzle(0.2, outlet=1.5).state(np.array([[1.5, 0.0, 0.0]]))
    assert w.shape == (1, 5)
    assert w[0, 4] == pytest.approx(1e5 * 0.528282, rel=1e-6)


@pytest.mark.parametrize(
    ("values", "match"),
    [({"throat": 3.5}, "inlet < throat <= outlet"), ({"throat": 1.0}, "least in the throat"),
     ({"pressure": 1.1}, "above that at its end"), ({"pressure": -1.0}, "pressure: a number above 0")],
)  # fmt: skip
def test_no_nozzle(values: dict[str, Any], match: str) -> None:
    with pytest.raises(SolverError, match=match):
        nozzle(**{"pressure": 0.5, **values})
