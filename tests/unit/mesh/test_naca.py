"""Rings of quads round airfoils of the NACA family: places on the profile, right angles, sizes, patches."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh.generate.naca import AirfoilMap, NacaProfile, naca_mesh
from fluxloom.mesh.quality.check import check
from fluxloom_lab.exact.potential_airfoil import map_slope


def rings(name: str, around: int = 64, outward: int = 24, **choices: float) -> np.ndarray:
    """Return the nodes as complex numbers, ring by ring."""
    points = naca_mesh(name, around, outward, **choices).points
    return (points[:, 0] + 1j * points[:, 1]).reshape(outward + 1, around)


def test_thickness() -> None:
    """Of the airfoil 0012, extended to a sharp edge and shortened to 1; coefficients of NASA's turbulence models."""
    x = np.linspace(0.0, 1.0, 21)[1:-1]
    c = (0.298222773, -0.127125232, -0.357907906, 0.291984971, -0.105174696)
    wanted = 0.594689181 * (c[0] * np.sqrt(x) + sum(a * x**k for k, a in enumerate(c[1:], 1)))
    found = NacaProfile.named("0012").points(np.arccos(2.0 * x - 1.0) / (2.0 * np.pi))
    assert found.real == pytest.approx(x, abs=1e-14)
    assert found.imag == pytest.approx(wanted, abs=1e-7)
    assert NacaProfile.named("0012").family_chord == pytest.approx(1.0 / 1.008930411365, rel=1e-10)


def test_camber() -> None:
    """Of the airfoil 2412 both sides are around a line which is highest, 0.02, at 0.4."""
    profile = NacaProfile.named("2412")
    t = np.linspace(0.0, 0.5, 4001)
    middle = 0.5 * (profile.points(t) + profile.points(1.0 - t))
    assert middle.imag.max() == pytest.approx(0.02, abs=1e-8)
    assert middle.real[middle.imag.argmax()] == pytest.approx(0.4, abs=1e-3)
    assert abs(profile.points(np.array([0.0, 1.0])) - 1.0).max() < 1e-14


@pytest.mark.parametrize("name", ["0012", "0006", "2412", "4415"])
def test_mesh(name: str) -> None:
    """A sound mesh; nodes on the airfoil are on it, lines cross at right angles, the last ring is a circle nearly."""
    mesh = naca_mesh(name, 64, 24, 20.0)
    check(mesh)
    assert {key: len(faces) for key, faces in mesh.patches.items()} == {"airfoil": 64, "far_field": 64}
    z = rings(name, reach=20.0)
    assert z[0, 0] == pytest.approx(1.0, abs=1e-15)
    dense = NacaProfile.named(name).points(np.linspace(0.0, 1.0, 200_001))
    for place in z[0]:
        assert abs(dense - place).min() < 2e-5
    along, across = np.roll(z, -1, axis=1) - np.roll(z, 1, axis=1), z[2:] - z[:-2]
    lean = np.degrees(np.abs(np.angle(across / along[1:-1]))) - 90.0
    assert np.abs(lean).max() < 3.0
    assert np.abs(z[-1]) == pytest.approx(20.0, rel=0.03)


def test_first_ring_fits_the_airfoil() -> None:
    """The map takes the circle to the profile: a thin first ring is as far from it as its thickness says."""
    around = 128
    z = rings("0012", around, 48, first=1e-6, reach=4.0)
    width = np.abs(np.roll(z[0], -1) - np.roll(z[0], 1)) / 2.0
    assert np.abs(z[1] - z[0])[2:-1] == pytest.approx(1e-6 * width[2:-1], rel=0.05)


def test_slope_of_the_map() -> None:
    """It is the difference quotient of the places, and far away the scale and the angle."""
    found, angle, step = AirfoilMap(NacaProfile.named("2412")), np.linspace(0.1, 6.0, 7), 1e-5
    places = [found.outside(angle, 1.3 * (1.0 + move)) for move in (-step, step)]
    circle: np.ndarray = 1.3 * np.exp(1j * angle)
    distant = np.array([1e6 + 0.0j], dtype=np.complex128)
    assert (places[1] - places[0]) / (2.0 * step * circle) == pytest.approx(map_slope(found, circle), rel=1e-7)
    assert map_slope(found, distant)[0] == pytest.approx(found.scale * np.exp(1j * found.turn), rel=1e-5)


def test_symmetric() -> None:
    """Of a symmetric airfoil the lower half is the mirror image of the upper one, which the map knows but for rounding.

    The square root of what rounding leaves at the edge would be 1e-8.
    """
    z = rings("0012")
    assert np.array_equal(z[:, 1:], np.conj(z[:, :0:-1]))
    assert np.array_equal(NacaProfile.named("0012").points(np.array([0.0, 1.0])), [1.0, 1.0])
    found, theta = AirfoilMap(NacaProfile.named("0012")), 2.0 * np.pi * np.arange(64) / 64
    assert np.abs(found.series.imag).max() < 1e-14
    for places in (found.on_wall(theta), found.outside(theta, 1.0 + 1e-6), found.outside(theta, 100.0)):
        assert np.abs(places[1:] - np.conj(places[:0:-1])).max() < 1e-13 * np.abs(places).max()


def test_control_volumes_are_closed() -> None:
    """The normals of the airfoil add up to nothing, and the area of the mesh is that between its curves."""
    volumes = control_volumes(naca_mesh("4412", 32, 8, 10.0))
    body = volumes.patches["airfoil"]
    areas = volumes.areas[volumes.interior :][body.start - volumes.cells : body.stop - volumes.cells]
    assert np.abs(areas.sum(axis=0)).max() < 1e-13
    assert volumes.volumes.min() > 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("12",), "four digits, as \"0012\", not '12'"),
        (("00x2",), "four digits"),
        (("0000",), "a thickness from 0.01 to 0.4"),
        (("2012",), "camber at a place from 0.1 to 0.9, not 0"),
        (("0012", 15, 8), "an even number of at least 16"),
        (("0012", 32, 3), "4 outward"),
        (("0012", 32, 8, 1.0), "reach is 2 to 10000"),
        (("0012", 32, 400, 4.0, 10.0), "400 rings do not lead from the airfoil to the end: take fewer"),
        (("0012", 64, 8, 30.0, 0.01), "take more"),
    ],
)
def test_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(MeshError, match=re.escape(message)):
        naca_mesh(*arguments)  # pyright: ignore[reportArgumentType]
