"""Compressible flow is exact for linear fields on every kind of cell: friction, heat, convection to first order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.mesh.geometry.dual import dual
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import SurfaceForces
from fluxloom_lab.bench.flows.compressible_domain import LOOPS
from tests.conformance.harness import rest_is_long
from tests.unit.fv.oblique_meshes import PLANE, THIN, WARPED, oblique_mesh, turned, warped


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
        Gas(constant=1.0, viscosity=ConstantViscosity(viscosity)), CompressibleScheme(limiter=None),
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
    """What friction adds to the force on each wall is the exact integral of the stress, corners and all.

    But in thin layers that bend, whose slopes leave linear fields by the sine of that: see
    `fluxloom.fv.geometry.cell_faces`.
    """
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
        flow = CompressibleFlow(context, cv, walls, gas, CompressibleScheme(limiter=None))
        flow.start(states)
        forces.append(SurfaceForces(flow, {name: [name] for name in cv.patches}).now())
    stress = growth + growth.T - 2.0 / 3.0 * np.trace(growth) * np.eye(d)
    for name, patch in cv.patches.items():
        faces = slice(cv.interior + patch.start - cv.cells, cv.interior + patch.stop - cv.cells)
        wanted = -(cv.areas[faces] @ stress).sum(axis=0)
        scale = np.abs(stress).max() * cv.area[faces].sum()
        close = 5e-2 if kind == "thin warped hexahedron" else 1e-9
        np.testing.assert_allclose(forces[1][name].total - forces[0][name].total, wanted, atol=close * scale)


def change(w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return the divergence of the convective fluxes of states ``(n, 5)`` with a gradient ``(5, 3)``, gamma 1.4."""
    rho, u, p, (dr, du, dp) = w[:, :1], w[:, 1:4], w[:, 4:], (g[0], g[1:4], g[4])
    mass = rho * np.trace(du) + (u @ dr)[:, None]
    enthalpy = 3.5 * p + 0.5 * rho * (u**2).sum(axis=1, keepdims=True)
    rise = 3.5 * dp + 0.5 * (u**2).sum(axis=1, keepdims=True) * dr + rho * (u @ du)
    energy = enthalpy * np.trace(du) + (u * rise).sum(axis=1, keepdims=True)
    return np.hstack([mass, u * mass + rho * (u @ du.T) + dp, energy])


WAVY: dict[str, Callable[[], MeshData]] = {
    "hexahedron": lambda: warped(5),
    "prism": lambda: turned(box3d(5, 5, 5, kind="prism"), 0.05),
    "polyhedron": lambda: dual(box3d(5, 5, 5, kind="tetra", perturb=0.1)),
}
STREAM = np.array([1.0, 0.3, 0.2, -0.1, 0.7])


def convecting(context: fl.Context, cv: ControlVolumes, loops: str, states: np.ndarray) -> CompressibleFlow:
    sides = {name: FarField(tuple(STREAM)) for name in cv.patches} | {next(iter(cv.patches)): SlipWall()}
    flow = CompressibleFlow(context, cv, sides, scheme=CompressibleScheme(limiter=None, loops=LOOPS[loops]))
    flow.start(states)
    flow.before()
    return flow


@pytest.mark.parametrize("loops", ["cells", "faces"])
@pytest.mark.parametrize("kind", rest_is_long(list(WAVY), keep=2))
def test_convection_through_warped_faces(kind: str, loops: str) -> None:
    """Exact to first order in the change of the states: what is wrong falls with its square; prisms had 0.01 of it."""
    cv, wrong = control_volumes(WAVY[kind]()), []
    rows = inside(cv)
    assert len(rows) >= 1
    gradient = np.random.default_rng(4).uniform(-1.0, 1.0, (5, 3))
    for size in (1e-3, 1e-5):
        states = STREAM + size * (cv.centres[: cv.cells] - 0.5) @ gradient.T
        flow = convecting(fl.Context("cpu", threads=1, tuning=False), cv, loops, states)
        found = flow.res.read()[: cv.cells] / cv.volumes[:, None] + change(states, size * gradient)
        wrong.append(float(np.abs(found[rows]).max()) / size)
    assert wrong[0] < 2e-4
    assert wrong[1] < 2e-6


@pytest.mark.parametrize("kind", list(WAVY))
def test_uniform_flow_through_warped_faces(kind: str) -> None:
    cv = control_volumes(WAVY[kind]())
    context = fl.Context("cpu", threads=1, tuning=False)
    flow = CompressibleFlow(context, cv, {name: FarField(tuple(STREAM)) for name in cv.patches})
    flow.start(tuple(STREAM))
    flow.iterate(20)
    np.testing.assert_allclose(flow.states(), np.tile(STREAM, (cv.cells, 1)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl)])
@pytest.mark.parametrize("loops", ["cells", "faces"])
def test_warped_faces_on_devices(device: str, loops: str) -> None:
    """Residuals of cells beside walls too; over cells and over faces they are the same."""
    cv = control_volumes(turned(box3d(3, 2, 2, kind="prism"), 0.05))
    states = STREAM + 0.1 * np.sin(3.0 * cv.centres[: cv.cells, [0, 1, 2, 0, 1]])
    contexts = [fl.Context("cpu", threads=1, tuning=False), fl.Context(device, tuning=False)]
    wanted, mine = (convecting(context, cv, form, states).res.read()[: cv.cells]
                    for context, form in zip(contexts, ("cells", loops), strict=True))  # fmt: skip
    np.testing.assert_allclose(mine, wanted, rtol=0, atol=1e-13)


def test_gas_at_rest_is_held_by_warped_walls() -> None:
    """A uniform pressure pushes nothing; a closed box with waves in it keeps mass and energy."""
    cv = control_volumes(WAVY["prism"]())
    flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), cv, dict.fromkeys(cv.patches, SlipWall()))
    flow.start(lambda x: np.column_stack([1.0 + 0.2 * np.sin(5.0 * x[:, 0]), 0.0 * x, np.ones(len(x))]))
    flow.iterate(20)
    assert np.abs(flow.states()[:, 1:4]).max() < 1e-13
    flow.start(lambda x: np.column_stack([np.ones(len(x)), 0.0 * x, 1.0 + 0.2 * np.sin(5.0 * x[:, 0])]))
    before = flow.totals()
    for _ in range(100):
        flow.advance()
    assert np.abs((flow.totals() - before)[[0, 4]]).max() < 1e-12
    assert flow.limits == 0
