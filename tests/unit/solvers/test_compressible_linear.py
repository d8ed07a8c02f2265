"""Friction and heat of compressible flow are exact where velocity and temperature are linear, on every kind of cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.compressible_boundary import FarField, NoSlipWall
from fluxloom.fv.control_volumes import ControlVolumes, control_volumes
from fluxloom.fv.gas import ConstantViscosity, Gas
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.compressible_forces import SurfaceForces
from fluxloom.solvers.compressible_scheme import CompressibleScheme
from tests.conformance.harness import rest_is_long
from tests.unit.fv.oblique_meshes import PLANE, THIN, WARPED, oblique_mesh


def mesh_of(kind: str) -> MeshData:
    """Return cells whose faces are plane and do not stand across the lines between them."""
    if kind in ("triangle", "quad"):
        return box2d(9, 8, kind=kind, perturb=0.25)
    if kind == "tetra":
        return box3d(6, 6, 6, kind=kind, perturb=0.2)
    mesh = box3d(7, 6, 6, kind=kind)
    return replace(mesh, points=mesh.points @ (np.eye(3) + np.triu(np.full((3, 3), 0.4), 1)).T)


def inside(cv: ControlVolumes) -> np.ndarray:
    """Return the cells that have two cells between them and the boundary, whose states are not linear."""
    near = np.zeros(cv.elements, dtype=bool)
    near[cv.cells :] = True
    for _ in range(2):
        hit = near[cv.faces].any(axis=1)
        grown = near.copy()
        grown[cv.faces[hit].reshape(-1)] = True
        near = grown
    return np.flatnonzero(~near[: cv.cells])


def residual(cv: ControlVolumes, viscosity: float, states: np.ndarray) -> np.ndarray:
    """Return the residual of the cells."""
    d = cv.dimension
    stream = FarField((1.0, *[0.0] * d, 1.0))
    flow = CompressibleFlow(
        fl.Context("cpu", threads=1, tuning=False), cv, dict.fromkeys(cv.patches, stream),
        Gas(constant=1.0, viscosity=ConstantViscosity(viscosity)), CompressibleScheme(limiter="none"),
    )  # fmt: skip
    flow.start(states)
    flow.before()
    return flow.res.read()[: cv.cells]


@pytest.mark.parametrize("kind", rest_is_long(["triangle", "tetra", "quad", "hexahedron", "prism", "pyramid"], keep=2))
def test_friction_and_heat(kind: str) -> None:
    """Stress and flux of heat are constant: momentum gets nothing, energy the work that stress does on the strain."""
    cv = control_volumes(mesh_of(kind))
    d, x = cv.dimension, cv.centres[: cv.cells]
    rng = np.random.default_rng(2)
    a, b = 1e-2 * rng.uniform(-1.0, 1.0, (d, d)), 1e-2 * rng.uniform(-1.0, 1.0, d)
    states = np.column_stack([np.ones(cv.cells), x @ a.T, 1.0 + x @ b])
    found = (residual(cv, 2.0, states) - residual(cv, 1.0, states)) / cv.volumes[: cv.cells, None]
    strain = a + a.T - 2.0 / 3.0 * np.trace(a) * np.eye(d)
    rows = inside(cv)
    assert len(rows) >= 1
    np.testing.assert_allclose(found[rows, 1 : 1 + d], 0.0, atol=1e-11)
    np.testing.assert_allclose(found[rows, 1 + d], (strain * a).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    "kind", rest_is_long([*PLANE, *THIN, *WARPED], keep=3)
)  # fmt: skip
def test_traction_at_walls(kind: str) -> None:
    """What friction adds to the force on each wall is the exact integral of the stress, corners and all."""
    cv = control_volumes(oblique_mesh(kind))
    d, x, span = cv.dimension, cv.centres[: cv.cells], np.ptp(cv.centres, axis=0)
    rng = np.random.default_rng(0)
    growth, slope = 1e-2 * rng.uniform(0.5, 2.0, (d, d)) / span, 0.1 * rng.uniform(0.5, 2.0, d) / span
    walls = dict.fromkeys(cv.patches, NoSlipWall(velocity=lambda x: x @ growth.T))
    states = np.column_stack([np.ones(cv.cells), x @ growth.T, 1.0 + x @ slope])
    forces = []
    for viscosity in (1.0, 2.0):
        gas = Gas(constant=1.0, viscosity=ConstantViscosity(viscosity))
        context = fl.Context("cpu", threads=1, tuning=False)
        flow = CompressibleFlow(context, cv, walls, gas, CompressibleScheme(limiter="none"))
        flow.start(states)
        forces.append(SurfaceForces(flow, {name: [name] for name in cv.patches}).now())
    stress = growth + growth.T - 2.0 / 3.0 * np.trace(growth) * np.eye(d)
    for name, patch in cv.patches.items():
        faces = slice(cv.interior + patch.start - cv.cells, cv.interior + patch.stop - cv.cells)
        wanted = -(cv.areas[faces] @ stress).sum(axis=0)
        scale = np.abs(stress).max() * cv.area[faces].sum()
        np.testing.assert_allclose(forces[1][name].total - forces[0][name].total, wanted, atol=1e-9 * scale)
