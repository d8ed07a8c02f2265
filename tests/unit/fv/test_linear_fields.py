"""Linear fields: every operator of every finite-volume solver is exact for them on every kind of cell."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fluxloom.fv.geometry.cell_faces import least_squares
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, Sides
from fluxloom.fv.incompressible.boundary import Boundary, FlowConditions, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.linear_operators import LinearOperators
from fluxloom.fv.incompressible.matrices import FlowMatrices
from tests.unit.fv.oblique_meshes import PLANE, STRAIGHT, THIN, WARPED, oblique_mesh

KINDS = [*PLANE, *THIN, *WARPED]
FLAT = [*PLANE, *THIN, *STRAIGHT]


@cache
def volumes_of(kind: str) -> ControlVolumes:
    return control_volumes(oblique_mesh(kind))


def matrices_of(kind: str, ends: Boundary | None = None) -> FlowMatrices:
    """Return corrected matrices of a flow with walls, but for one side."""
    cv = volumes_of(kind)
    sides: dict[str, Boundary] = dict.fromkeys(cv.patches, NoSlip())
    return FlowMatrices(cv, FlowConditions.of(cv, sides | {"xmax": ends or NoSlip()}), oblique=True)


def places(linear: LinearOperators) -> np.ndarray:
    """Return where the values of elements are: centroids, centres of faces, feet of perpendiculars."""
    cv = linear.volumes
    found = cv.centres.copy()
    found[cv.cells :] = cv.centres[cv.faces[cv.interior :, 0]] + linear.ways[cv.interior :]
    return found


def slopes(cv: ControlVolumes, seed: int = 0) -> np.ndarray:
    """Return random gradients of as many fields as there are dimensions, such that a thin mesh has no thin field."""
    span = np.ptp(cv.centres, axis=0)
    return np.random.default_rng(seed).uniform(0.5, 2.0, (cv.dimension, cv.dimension)) / span


def cell_gradients(linear: LinearOperators, values: np.ndarray) -> np.ndarray:
    """Return the gradients of values of elements, with those that are borrowed, ``(cells, d)``."""
    cv, found = linear.volumes, linear.gradients()
    g = np.stack([found.matrix(cv.elements, k) @ values for k in range(cv.dimension)], axis=1)
    return settled(linear, g)


def settled(linear: LinearOperators, g: np.ndarray) -> np.ndarray:
    cv, d = linear.volumes, linear.volumes.dimension
    for _, rows in linear.borrowed():
        add = [sum(rows.matrix(cv.cells, d * k + m) @ g[:, m] for m in range(d)) for k in range(d)]
        g = g + np.stack(add, axis=1)
    return g


def at_faces(linear: LinearOperators, g: np.ndarray) -> np.ndarray:
    """Return the gradients at faces that correct them."""
    cv, mean = linear.volumes, linear.means().matrix(linear.volumes.cells)
    return linear.halves().matrix(cv.cells) @ (mean @ (mean @ g))


def with_images(linear: LinearOperators, g: np.ndarray) -> np.ndarray:
    """Return the mean gradients of a velocity ``(cells, d, d)``, or of scalars, with those of images."""
    cv, d = linear.volumes, linear.volumes.dimension
    mean, (_, images) = linear.means().matrix(cv.cells), linear.images()
    row, n = np.repeat(np.arange(cv.cells), np.diff(images.offsets)), images.values[:, 1:]
    turn = np.eye(d) - 2.0 * n[:, :, None] * n[:, None, :]
    for _ in range(2):
        found = (mean @ g.reshape(cv.cells, -1)).reshape(g.shape)
        turned = turn @ g[row] @ turn if g.ndim > 2 else np.einsum("nij,nj->ni", turn, g[row])
        share = images.values[:, 0].reshape(-1, *(1,) * (g.ndim - 1))
        np.add.at(found, row, share * turned)
        g = found
    return g


@pytest.mark.parametrize("kind", FLAT)
def test_planes_of_symmetry(kind: str) -> None:
    """What is its own image is exact: a velocity along the plane, linear along it, one through it across it."""
    known = matrices_of(kind, Symmetry())
    linear, cv, d = known.velocity_operators, known.volumes, known.volumes.dimension
    assert known.mirrors.any()
    n = cv.normals[cv.interior:][known.mirrors][0]
    along, scale = np.eye(d) - np.outer(n, n), 1.0 / np.ptp(cv.centres, axis=0).max()
    b = scale * np.random.default_rng(3).uniform(0.5, 2.0, (d, d))
    b = along @ b @ along + scale * 0.7 * np.outer(n, n)
    plane = cv.centres[cv.cells:][known.mirrors][0]
    u = (places(linear) - plane) @ b.T
    beside = cv.faces[cv.interior:, 0]
    inside = u[beside] - np.einsum("ni,i->n", u[beside], n)[:, None] * n
    near(u[cv.cells:][known.mirrors], inside[known.mirrors], 1.0)
    g = np.stack([cell_gradients(linear, u[:, k]) for k in range(d)], axis=1)
    near(g, np.broadcast_to(b, g.shape), np.abs(b).max(), 1e-8)
    near(with_images(linear, g), np.broadcast_to(b, g.shape), np.abs(b).max(), 1e-8)
    slope = along @ (np.arange(1.0, d + 1.0) * scale)
    p = cv.centres[: cv.cells] @ slope
    near(pressure_gradient(known, p), np.broadcast_to(slope, (cv.cells, d)), np.abs(slope).max(), 1e-7)


def near(found: np.ndarray, wanted: np.ndarray, scale: np.ndarray | float, tolerance: float = 1e-9) -> None:
    assert np.isfinite(found).all()
    assert np.abs((found - wanted) / scale).max() < tolerance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ends", [NoSlip(), Outflow()])
def test_gradient_and_derivatives_at_faces(kind: str, ends: Boundary) -> None:
    """Of cells with what is given at the boundary; along normals, for viscous fluxes, traction and heat; at faces."""
    known = matrices_of(kind, ends)
    linear, cv = known.velocity_operators, known.volumes
    b = slopes(cv)[0]
    q = places(linear) @ b + 0.7
    g = cell_gradients(linear, q)
    near(g, np.broadcast_to(b, g.shape), np.abs(b))
    mean = at_faces(linear, g)
    difference = q[cv.faces[:, 1]] - q[cv.faces[:, 0]]
    normal = difference / np.einsum("ij,ij->i", linear.ways, cv.normals) + np.einsum("ij,ij->i", linear.tangents, mean)
    wanted = cv.normals @ b
    near(normal, wanted, np.abs(cv.normals) @ np.abs(b), 1e-8)
    value = known.operators.mean @ q + np.einsum("ij,ij->i", linear.skews, mean)
    centre = cv.centres[cv.faces[:, 0]] + np.concatenate([cv.arms[: cv.interior], cv.ways[cv.interior :]])
    near(value, centre @ b + 0.7, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_diffusion(kind: str) -> None:
    """What flows into a cell flows out of it."""
    known = matrices_of(kind)
    linear, cv = known.velocity_operators, known.volumes
    q = places(linear) @ slopes(cv)[0]
    mean = at_faces(linear, cell_gradients(linear, q))
    two_point = known.operators.normal_gradient @ q
    flux = two_point + np.einsum("ij,ij->i", linear.tangents, mean)
    size = abs(known.operators.divergence) @ np.abs(two_point)
    near(known.operators.divergence @ flux, np.zeros(cv.cells), size)


def twisted(linear: LinearOperators, u: np.ndarray, g: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what warped faces add to the velocity through them, and what they multiply gradients with, per area.

    Of velocities at their centres ``(faces, 3)`` with gradients ``(faces, 3, 3)``, at the boundary given ones.
    """
    cv = linear.volumes
    count = cv.elements - cv.cells
    rows, tensors = linear.warps(np.ones(count, dtype=bool), np.broadcast_to(given, (count, *given.shape)))
    through, swept = np.zeros(len(cv.faces)), np.zeros((len(cv.faces), cv.dimension))
    if rows.size:
        parts = tensors[:, 2:].reshape(-1, 3, 9)
        once, twice = parts[:, :, :3], parts[:, :, 3:][:, :, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
        through[rows] = tensors[:, 0] + tensors[:, 1] * np.einsum("fkn,fkn->f", once, g[rows])
        swept[rows] = np.einsum("fkm,fk->fm", once, u[rows]) + np.einsum("fknm,fkn->fm", twice, g[rows])
    return through, swept / cv.area[:, None]


@pytest.mark.parametrize("kind", KINDS)
def test_divergence_and_convection(kind: str) -> None:
    """Of a velocity; and of a velocity times a scalar, with second moments of the faces and their triangles."""
    known = matrices_of(kind)
    linear, cv, d = known.velocity_operators, known.volumes, known.volumes.dimension
    b, x = slopes(cv), places(linear)
    u, q = x @ b.T + 0.3, x @ slopes(cv, 1)[0] - 0.2
    gu = np.stack([at_faces(linear, cell_gradients(linear, u[:, k])) for k in range(d)], axis=1)
    gq = at_faces(linear, cell_gradients(linear, q))
    mean = known.operators.mean
    face = mean @ u + np.einsum("fl,fkl->fk", linear.skews, gu)
    through, swept = twisted(linear, face, gu, b)
    us = np.einsum("fk,fk->f", face, cv.normals) + through
    scale = abs(known.operators.divergence) @ np.abs(us)
    near(known.operators.divergence @ us, cv.volumes * np.trace(b), scale)
    moments = linear.moments(np.ones(cv.elements - cv.cells, dtype=bool))
    flux = us * (mean @ q + np.einsum("fl,fl->f", linear.skews, gq))
    flux += np.einsum("fml,fkl,fk,fm->f", moments, gu, cv.normals, gq) / cv.area + np.einsum("fm,fm->f", swept, gq)
    wanted = np.trace(b) * q[: cv.cells] + u[: cv.cells] @ slopes(cv, 1)[0]
    near(known.operators.divergence @ flux, cv.volumes * wanted, scale)


def pressure_gradient(known: FlowMatrices, p: np.ndarray) -> np.ndarray:
    """Return the gradient that velocities of cells are corrected with, ``(cells, d)``."""
    linear, cv, d = known.pressure_operators, known.volumes, known.volumes.dimension
    plain, found, carried = known.pressure_gradient(), linear.cell_gradients(), known.carried_pressure()
    g = with_images(linear, settled(linear, np.stack([found.matrix(cv.cells, k) @ p for k in range(d)], axis=1)))
    add = [sum(carried.matrix(cv.cells, d * k + m) @ g[:, m] for m in range(d)) for k in range(d)]
    return np.stack([plain.matrix(cv.cells, k) @ p for k in range(d)], axis=1) + np.stack(add, axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_pressure(kind: str) -> None:
    """Between walls nothing of it is given there."""
    known = matrices_of(kind)
    cv = known.volumes
    b = slopes(cv)[0]
    p = cv.centres[: cv.cells] @ b
    near(pressure_gradient(known, p), np.broadcast_to(b, (cv.cells, b.size)), np.abs(b).max(), 1e-8)


@pytest.mark.parametrize("kind", FLAT)
def test_pressure_at_an_outflow(kind: str) -> None:
    """It is zero there."""
    known = matrices_of(kind, Outflow())
    cv = known.volumes
    n = cv.normals[cv.interior + cv.patches["xmax"].start - cv.cells]
    p = (cv.centres[: cv.cells] - cv.centres[cv.patches["xmax"].start]) @ n
    near(pressure_gradient(known, p), np.broadcast_to(n, (cv.cells, n.size)), 1.0, 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_of_compressible_flow_and_shallow_water(kind: str) -> None:
    """Least squares of the differences across faces."""
    cv = volumes_of(kind)
    sides = Sides.of(cv)
    ways = cv.ways[sides.face] * sides.sign[:, None]
    b = slopes(cv)[0]
    weights = least_squares(ways, sides.cell, sides.cells)
    near(sides.sum(weights * (ways @ b)[:, None]), np.broadcast_to(b, (cv.cells, b.size)), np.abs(b), 1e-6)
