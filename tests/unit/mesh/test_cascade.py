"""Meshes of a passage between blades: angles, patches, sides that match, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.sectors import Sector
from fluxloom.mesh.generate.cascade import BladeRow, blade_row_mesh, blade_row_sizes
from fluxloom.mesh.quality.check import check

PLANE = BladeRow(along=24, before=6, after=8, across=10)
RING = BladeRow(blades=24, chord=0.3, inlet_angle=-45.0, inlet_twist=-10.0, outlet_angle=-20.0, outlet_twist=-25.0,
                along=16, before=6, after=8, across=10, span=4, stretch_span=1.0)  # fmt: skip


def test_a_plane_passage() -> None:
    mesh = blade_row_mesh(PLANE)
    check(mesh)
    assert (mesh.n_cells, mesh.n_points, mesh.dimension) == blade_row_sizes(PLANE) == (380, 429, 2)
    assert {name: len(patch) for name, patch in mesh.patches.items()} == {
        "inlet": 10, "outlet": 10, "low": 14, "high": 14, "blade": 48,
    }  # fmt: skip
    volumes = control_volumes(mesh, [("low", "high")])
    whole = PLANE.pitch * PLANE.chord * (1.0 + PLANE.ahead + PLANE.behind)
    blade = 2.0 / 3.0 * PLANE.thickness * PLANE.chord**2
    assert volumes.volumes.sum() == pytest.approx(whole - blade, rel=2e-3)
    along = volumes.areas[volumes.interior + volumes.patches["outlet"].start - volumes.cells]
    np.testing.assert_allclose(along[1], 0.0, atol=1e-14)


def test_the_blade_has_its_angles() -> None:
    x = np.array([0.0, 1e-6, 1.0 - 1e-6, 1.0, 1.5])
    y = PLANE.camber(x, np.ones(5))
    angles = np.degrees(np.arctan(np.diff(y) / np.diff(x)))
    np.testing.assert_allclose(angles[[0, 2, 3]], [0.0, 50.0, 50.0], atol=1e-3)
    np.testing.assert_allclose(PLANE.half(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])), [0.0, 0.0, 0.05, 0.0, 0.0], atol=1e-15)


def test_a_passage_of_a_ring() -> None:
    mesh = blade_row_mesh(RING)
    check(mesh)
    assert (mesh.n_cells, mesh.n_points, mesh.dimension) == blade_row_sizes(RING)
    r = np.hypot(mesh.points[:, 1], mesh.points[:, 2])
    assert r.min() == pytest.approx(RING.hub)
    assert r.max() == pytest.approx(RING.casing)
    volumes = control_volumes(mesh, sectors=[Sector("low", "high", axis=(1.0, 0.0, 0.0))])
    assert set(volumes.patches) == {"inlet", "outlet", "hub", "casing", "blade"}
    turned = volumes.turned
    assert turned is not None
    np.testing.assert_allclose(turned.rotations[1][1, 2], -np.sin(2.0 * np.pi / 24), rtol=1e-12)
    closed = np.zeros((volumes.cells, 3))
    np.add.at(closed, volumes.faces[:, 0], volumes.areas)
    np.add.at(closed, volumes.faces[: volumes.interior, 1], -volumes.areas[: volumes.interior])
    assert np.abs(closed).max() < 1e-15


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"chord": 0.0}, "chord: above 0 is wanted, not 0"),
        ({"pitch": float("nan")}, "pitch: above 0 is wanted, not nan"),
        ({"along": 1}, "along: at least 2"),
        ({"inlet_angle": 85.0}, "inlet_angle: at most 80 degrees"),
        ({"outlet_twist": 40.0}, "outlet_twist: with the angle at most 80"),
        ({"casing": 0.5}, r"casing: above the hub \(1\)"),
        ({"thickness": 0.8}, "thickness: far less than the pitch"),
        ({"stretch": -1.0}, "stretch: between 0 and 10"),
    ],
)
def test_what_is_no_blade_row(keys: dict[str, float], message: str) -> None:
    with pytest.raises(MeshError, match=f"blade row: {message}"):
        BladeRow(**keys)  # pyright: ignore[reportArgumentType]
