"""The verification ``edge_flow``: what it is made of, and with ``long`` the whole."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.mesh.generate.boxes import clustered
from fluxloom_lab.problems.edge_flow_cases import edge_cavity, energy_of_decay, made_flow, peak, slip_vortices
from fluxloom_lab.verify.base import FullOptions
from fluxloom_lab.verify.edge_flow import GHIA_100
from fluxloom_lab.verify.edge_flow_cube import CubeFlow, middle, settled
from fluxloom_lab.verify.edge_flow_space import limit_of
from fluxloom_lab.verify.registry import verifications


@pytest.fixture(scope="module")
def context() -> Context:
    return Context("cpu", threads=1, tuning=False)


def test_peaks() -> None:
    """Of a cubic they are exact, at an end too; through 12 places of a wave they are within a thousandth."""
    x = np.array([0.0, 0.1, 0.25, 0.45, 0.6, 1.0])
    line = np.stack([x, 0.3 - 2.0 * (x - 0.31) ** 2 + (x - 0.31) ** 3], axis=1)
    assert peak(line, 1.0) == pytest.approx(0.3)
    assert peak(line * [1.0, -1.0], -1.0) == pytest.approx(-0.3)
    assert peak(line, -1.0) == pytest.approx(line[-1, 1])
    x = np.linspace(0.0, 1.0, 12)
    assert peak(np.stack([x, x * np.exp(-5.0 * x)], axis=1), 1.0) == pytest.approx(0.2 * np.exp(-1.0), rel=1e-3)


def test_order_on_triangles(context: Context) -> None:
    """Of a forced flow between walls; the stabilisation does not take it away where fluid slides along planes."""
    first, second = made_flow(context, 2, 8), made_flow(context, 2, 16)
    assert log2(first.velocity / second.velocity) > 1.8
    assert log2(first.pressure / second.pressure) > 1.8
    assert second.imbalance < 1e-8
    coarse, fine = slip_vortices(context, 8, 16)[1], slip_vortices(context, 16, 32)[1]
    assert log2(coarse.velocity / fine.velocity) > 1.9
    assert log2(coarse.pressure / fine.pressure) > 1.8


def test_energy_decays(context: Context) -> None:
    """At the Reynolds number 1e5, whatever the mesh resolves, from the first steps of the pressure on."""
    energy = energy_of_decay(context, steps=60)
    assert (np.diff(energy)[10:] < 0.0).all()
    assert (energy[1:] < energy[0]).all()


@pytest.mark.long
@pytest.mark.parametrize(("n", "allowed"), [(16, 0.014), (48, 0.01)])
def test_cavity_at_100(context: Context, n: int, allowed: float) -> None:
    """The deviation from Ghia's profile, as a part of the speed of the lid."""
    _, upright, _ = edge_cavity(context, n, 100.0)
    assert np.abs(np.interp(GHIA_100[:, 0], *upright.T) - GHIA_100[:, 1]).max() < allowed


def test_coarse_cavity(context: Context) -> None:
    """On 12 x 12 intervals: how far it is from Ghia's profile, pinned."""
    _, upright, level = edge_cavity(context, 12, 100.0, still=1e-3)
    off = np.abs(np.interp(GHIA_100[:, 0], *upright.T) - GHIA_100[:, 1]).max()
    assert off == pytest.approx(0.01836, rel=0.02)
    assert peak(level, -1.0) == pytest.approx(-0.2538030, rel=0.05)


def made_cube(lines: np.ndarray, scale: float = 1.0) -> CubeFlow:
    """Return polynomials of the places, a wave, and numbers, all times ``scale``."""
    z, y, x = np.meshgrid(lines, lines, lines, indexing="ij")
    u = (y - 0.3) ** 2 - 0.35 + (z - 0.5) ** 3 + x**2
    velocity = np.stack([u, np.sin(2.0 * np.pi * x) * (1.0 + y**3 * z), x * y * z], axis=-1)
    return CubeFlow(lines, scale * velocity, scale * 0.25, scale * -0.5, 1.0)


@pytest.mark.parametrize("intervals", [16, 17])
def test_centrelines_of_a_cube(intervals: int) -> None:
    """Of cubics they are exact, with a place in the middle or without; between places the flow is linear."""
    lines = clustered(1.2)(np.linspace(0.0, 1.0, intervals + 1))
    cube = made_cube(lines)
    assert middle(lines) @ lines**3 == pytest.approx(0.125, abs=1e-15)
    assert cube.upright[:, 1] == pytest.approx((lines - 0.3) ** 2 - 0.1, abs=1e-14)
    assert cube.level[:, 1] == pytest.approx(1.0625 * np.sin(2.0 * np.pi * lines), abs=1e-14)
    assert cube.numbers == pytest.approx([-0.1, 1.0625, -1.0625, 0.25, -0.5], rel=0.01)
    assert cube.numbers[0] == pytest.approx(-0.1, abs=1e-12)
    places = np.stack([lines[3:5], lines[5:7], lines[7:9]], axis=1)
    assert cube.at(places) == pytest.approx(np.stack([cube.velocity[7, 5, 3], cube.velocity[8, 6, 4]]))
    between = places.mean(axis=0)
    assert cube.at(between[None])[0, 2] == pytest.approx(between.prod())


def test_limit_of_second_order() -> None:
    """Two meshes tell the limit, whatever their ratio."""
    lines = np.linspace(0.0, 1.0, 13)
    found = [made_cube(lines, 1.0 + 20.0 / n**2) for n in (24, 36)]
    assert limit_of((12, 24, 36), found) == pytest.approx(made_cube(lines).numbers, rel=1e-10)


def test_settled() -> None:
    """Two modes that fade are known from four records; what grows or turns has no limit."""
    shapes = np.random.default_rng(3).normal(size=(3, 40))

    def fading(time: float) -> np.ndarray:
        return shapes[0] + np.exp(-0.7 * time) * shapes[1] + np.exp(-2.0 * time) * shapes[2]

    assert settled(fading, "made") == pytest.approx(shapes[0], abs=1e-9)
    with pytest.raises(SolverError, match="cavity in space, made: not steady"):
        settled(lambda time: np.sin(0.9 * time**1.5 + shapes[0]), "made")


@pytest.mark.long
def test_verification() -> None:
    checks = list(verifications()["edge_flow"].run(FullOptions(threads=1, full=True), lambda _line: None))
    assert len(checks) > 60
    assert [check for check in checks if not check.ok] == []
