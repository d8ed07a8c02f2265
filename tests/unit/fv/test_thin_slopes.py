"""Slopes of thin cells: of linear fields, along curved layers, and of modes that alternate from layer to layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.fv.geometry.cell_faces import Across, CompressibleGeometry, thin_gradients, thin_inner_gradients
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, Sides
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.extrude import extrude
from fluxloom_lab.problems.compressible_cases import with_points

Array = npt.NDArray[np.float64]


def applied(volumes: ControlVolumes, sides: Sides, weights: Array, values: Array) -> Array:
    """Return the slopes of the values of elements, ``(cells, d)``."""
    jump = (values[sides.other] - values[sides.cell])[:, None] * weights
    sums = [np.bincount(sides.cell, column, minlength=volumes.cells) for column in jump.T]
    return np.stack(sums, axis=1).astype(np.float64)


def moved(mesh: MeshData, x: Array, y: Array) -> ControlVolumes:
    return control_volumes(with_points(mesh, np.stack([x, y], axis=1)))


def sides_of(volumes: ControlVolumes, sides: Sides) -> Across:
    """Return the sides with the ways across them."""
    return Across(volumes, sides, volumes.ways)


def none_of(sides: Sides, d: int) -> Array:
    """Return weights that no slope of a thin cell should take anything of."""
    return np.full((sides.face.size, d), 1e30)


@pytest.mark.parametrize("dimension", [2, 3])
def test_linear_fields_on_straight_layers(dimension: int) -> None:
    """With layers that grow, slopes are exact, also those that know no values at the boundary."""
    mesh = box2d(6, 6, (6.0, 1.0)) if dimension == 2 else box3d(4, 4, 6, (4.0, 4.0, 1.0))
    points = mesh.points.copy()
    points[:, -1] = 0.01 * (4.0 ** points[:, -1] - 1.0)
    volumes = control_volumes(with_points(mesh, points))
    sides, slope = Sides.of(volumes), np.arange(1.0, dimension + 1.0)
    values = 3.0 + volumes.centres @ slope
    assert sides_of(volumes, sides).thinness.min() == 1.0
    found = applied(volumes, sides, thin_gradients(sides_of(volumes, sides), none_of(sides, dimension)), values)
    assert np.abs(found - slope).max() < 1e-10
    kept = np.flatnonzero(~sides.outside)
    inner = np.zeros((sides.face.size, dimension))
    inner[kept] = thin_inner_gradients(sides_of(volumes, sides), kept, none_of(sides, dimension)[kept])
    assert np.abs(applied(volumes, sides, inner, values) - slope).max() < 1e-10


@pytest.mark.parametrize("height", [1e-3, 1e3])
def test_linear_fields_in_layers_of_prisms(height: float) -> None:
    """Uneven triangles, extruded to plates and to needles, with oblique columns: exact, also without the boundary."""
    mesh = extrude(box2d(4, 4, kind="triangle", perturb=0.3, seed=5), height * np.array([0.0, 0.2, 0.5, 1.0]))
    points = mesh.points.copy()
    points[:, 0] += 0.4 * points[:, 2] + 0.2 * points[:, 1]
    volumes = control_volumes(replace(mesh, points=points))
    sides, slope = Sides.of(volumes), np.array([1.0, 2.0, 3.0])
    across, values = sides_of(volumes, sides), 3.0 + volumes.centres @ slope
    assert across.thinness.min() == 1.0
    found = applied(volumes, sides, thin_gradients(across, none_of(sides, 3)), values)
    np.testing.assert_allclose(found, np.broadcast_to(slope, found.shape), rtol=1e-8)
    whole = np.bincount(sides.cell[~sides.outside], minlength=volumes.cells) > 3
    kept = np.flatnonzero(~sides.outside & whole[sides.cell])
    inner = np.zeros((sides.face.size, 3))
    inner[kept] = thin_inner_gradients(across, kept, none_of(sides, 3)[kept])
    found = applied(volumes, sides, inner, values)[whole]
    np.testing.assert_allclose(found, np.broadcast_to(slope, found.shape), rtol=1e-8)
    assert whole.sum() > 20


def test_layers_do_not_mix_round_a_bend() -> None:
    """A field that is constant along curved layers, wide and narrow by turns, has no slope along them."""
    mesh = box2d(24, 8)
    s, r = mesh.points.T
    angle, radius = s + 0.1 * np.sin(9.0 * s), 1.0 + 1e-4 * r
    volumes = moved(mesh, -radius * np.cos(angle), radius * np.sin(angle))
    sides = Sides.of(volumes)
    layer = np.zeros(volumes.elements)
    layer[: volumes.cells] = np.arange(volumes.cells) // 24
    layer[volumes.outer] = layer[volumes.faces[volumes.interior :, 0]]
    found = applied(volumes, sides, thin_gradients(sides_of(volumes, sides), none_of(sides, 2)), layer)
    place = volumes.centres[: volumes.cells]
    along = np.stack([place[:, 1], -place[:, 0]], axis=1) / np.linalg.norm(place, axis=1)[:, None]
    across = np.abs(np.einsum("ij,ij->i", found, place)).max()
    assert np.abs(np.einsum("ij,ij->i", found, along)).max() < 2e-3 * across


def test_modes_of_layers_are_no_slopes_along_them() -> None:
    """Lines across layers that are not quite straight: least squares take the mode for a slope, these do not."""
    mesh = box2d(8, 8, (8.0, 1e-2))
    x, y = mesh.points.T
    volumes = moved(mesh, x + 5e-4 * np.sin(2e3 * y + x), y)
    sides = Sides.of(volumes)
    sign = np.zeros(volumes.elements)
    sign[: volumes.cells] = (-1.0) ** (np.arange(volumes.cells) // 8)
    sign[volumes.outer] = sign[volumes.faces[volumes.interior :, 0]]
    inner = np.setdiff1d(np.arange(volumes.cells), volumes.faces[volumes.interior :, 0])
    found = applied(volumes, sides, thin_gradients(sides_of(volumes, sides), none_of(sides, 2)), sign)[inner, 0]
    assert np.abs(found).max() < 2.0
    flow = applied(volumes, sides, CompressibleGeometry.of(volumes).weights, sign)[inner, 0]
    assert np.abs(flow).max() < 2.0


def test_thick_cells_and_simplices_keep_theirs() -> None:
    for mesh in (box2d(4, 4), box2d(4, 4, (40.0, 1.0), "triangle")):
        volumes = control_volumes(mesh)
        sides = Sides.of(volumes)
        weights = np.ones((sides.face.size, 2))
        assert thin_gradients(sides_of(volumes, sides), weights) is weights
        kept = np.flatnonzero(~sides.outside)
        assert (thin_inner_gradients(sides_of(volumes, sides), kept, weights[kept]) == 1.0).all()
