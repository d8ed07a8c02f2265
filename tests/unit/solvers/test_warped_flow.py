"""Incompressible flow on cells with warped faces: linear fields are exact, noise fades, forces balance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box3d
from fluxloom.solvers.algebraic.step import AlgebraicStep
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.scalar import Scalar
from tests.unit.fv.oblique_meshes import WARPED, oblique_mesh

TIGHT = Stop(rtol=1e-12, iterations=5000)
STRAIN = np.array([[0.3, 1.0, -0.4], [0.2, -0.5, 0.6], [0.1, 0.3, 0.2]])


def strained(x: np.ndarray) -> np.ndarray:
    """Return a linear velocity without divergence."""
    return x @ STRAIN.T + 0.1


def sheared(x: np.ndarray) -> np.ndarray:
    return x[:, 1:2] * np.array([1.0, 0.0, 0.0])


def parabola(x: np.ndarray) -> np.ndarray:
    return 4.0 * (x[:, 1] * (1.0 - x[:, 1]))[:, None] * np.array([1.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def given(ctx: fl.Context, kind: str, velocity: object, **choices: object) -> Incompressible:
    """Return a flow whose velocity is given on all sides."""
    cv = control_volumes(oblique_mesh(kind))
    sides = dict.fromkeys(cv.patches, Inflow(velocity))  # type: ignore[arg-type]
    flow = Incompressible(ctx, cv, 0.1, sides, stop=TIGHT, **choices)  # type: ignore[arg-type]
    flow.initialise(velocity)  # type: ignore[arg-type]
    return flow


THICK = [kind for kind in WARPED if not kind.startswith("thin")]


@pytest.mark.parametrize("kind", THICK)
def test_linear_velocities_have_no_divergence(ctx: fl.Context, kind: str) -> None:
    """The projection leaves them as they are, also where they enter through warped faces."""
    flow = given(ctx, kind, strained)
    assert flow.matrices.oblique
    assert np.abs(flow.velocity() - strained(flow.volumes.centres[: flow.volumes.cells])).max() < 1e-12
    assert flow.state().imbalance < 1e-13


@pytest.mark.parametrize("kind", THICK)
def test_shear_flow_is_exact(ctx: fl.Context, kind: str) -> None:
    """A linear velocity that convection leaves alone, and heat that crosses it; all forces balance."""
    heat = Scalar("T", 0.2, dict.fromkeys(oblique_mesh(kind).patches, FixedValue(lambda x: x[:, 1])),
                  initial=lambda x: x[:, 1])  # fmt: skip
    flow = given(ctx, kind, sheared, scalars=[heat])
    for _ in range(20):
        flow.step(flow.stable_step())
    centres = flow.volumes.centres[: flow.volumes.cells]
    assert np.abs(flow.velocity() - sheared(centres)).max() < 1e-12
    assert np.abs(flow.scalars["T"].values() - centres[:, 1]).max() < 1e-12
    assert np.abs(flow.pressure()).max() < 1e-11
    assert np.abs(Forces(flow, list(flow.volumes.patches)).now().pressure).max() < 1e-11


@pytest.mark.parametrize("kind", THICK)
def test_a_force_is_balanced_by_the_pressure(ctx: fl.Context, kind: str) -> None:
    """In a closed box all stays at rest, and the walls carry the weight."""
    cv = control_volumes(oblique_mesh(kind))
    force = np.array([0.3, -1.0, 0.2])
    flow = Incompressible(ctx, cv, 0.01, dict.fromkeys(cv.patches, NoSlip()), force=force.tolist(), stop=TIGHT)
    flow.initialise((0.0, 0.0, 0.0))
    for _ in range(80):
        flow.step(flow.stable_step())
    assert np.abs(flow.velocity()).max() < 1e-8
    assert np.allclose(Forces(flow, list(cv.patches)).now().total, force * cv.volumes.sum(), atol=1e-7)


@pytest.mark.parametrize("kind", ["hexahedra in a box", "warped prism"])
def test_momentum_balances(ctx: fl.Context, kind: str) -> None:
    """In a steady flow that is nothing special, walls, entry and exit take what the fluid has to lose: nothing."""
    cv = control_volumes(oblique_mesh(kind))
    enter = Inflow(lambda x: np.stack([1.0 + x[:, 1], 0.3 * x[:, 2], -0.2 * x[:, 0]], axis=1))
    sides: dict[str, Boundary] = dict.fromkeys(cv.patches, NoSlip())
    flow = Incompressible(ctx, cv, 0.2, sides | {"xmin": enter, "xmax": Outflow()}, stop=TIGHT)
    flow.initialise((1.0, 0.0, 0.0))
    while flow.time < 3.0:
        flow.step(flow.stable_step())
    force = Forces(flow, list(cv.patches), balance=True).now()
    assert np.abs(force.momentum).max() > 0.1
    assert np.abs(force.total + force.momentum).max() < 1e-9


@pytest.mark.parametrize("kind", ["warped hexahedron", "warped prism", "hexahedra in a box", "prisms in a box"])
def test_random_velocities_fade(ctx: fl.Context, kind: str) -> None:
    """Without viscosity, in a box with slip walls: kinetic energy falls for 200 steps."""
    cv = control_volumes(oblique_mesh(kind))
    flow = Incompressible(ctx, cv, 0.0, dict.fromkeys(cv.patches, Symmetry()), stop=Stop(rtol=1e-7, iterations=2000))
    noise = np.random.default_rng(0)
    flow.initialise(lambda x: noise.standard_normal(x.shape))
    energy = [flow.state().kinetic_energy]
    for _ in range(4):
        for _ in range(50):
            flow.step(min(0.05, flow.stable_step()))
        energy.append(flow.state().kinetic_energy)
    assert (np.diff(energy) < 0.0).all()


def test_meshes_with_plane_faces_have_nothing_more(ctx: fl.Context) -> None:
    """Turned boxes, prisms and tetrahedra: no face is warped to round-off; one of six is if a corner moves."""
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for mesh in (box3d(3, 3, 3), box3d(3, 3, 3, kind="prism"), box3d(2, 2, 2, kind="tetra", perturb=0.2)):
        cv = control_volumes(replace(mesh, points=1e3 + mesh.points @ turn))
        assert cv.warps is not None
        assert cv.warps()[0].size == 0
        sides = dict.fromkeys(cv.patches, NoSlip())
        flow = Incompressible(ctx, cv, 0.1, sides, consistent=True)
        assert flow.corrections is not None
        assert flow.corrections.warped is None
    points = box3d(1, 1, 1).points.copy()
    points[-1] += 0.1 * (points[-1] - points[-2])
    moved = control_volumes(replace(box3d(1, 1, 1), points=points))
    assert moved.warps is not None
    assert moved.warps()[0].size in (1, 2)


def shaken(kind: str, n: int) -> ControlVolumes:
    """Return a box of hexahedra or prisms whose points inside and on the sides are moved."""
    mesh = box3d(n, n, n, kind=kind)
    x = mesh.points
    inside = (x > 1e-9) & (x < 1.0 - 1e-9)
    return control_volumes(replace(mesh, points=x + inside * np.random.default_rng(1).uniform(-0.1, 0.1, x.shape)))


def disturbed(context: fl.Context, cv: ControlVolumes, rtol: float = 1e-12, **choices: object) -> Incompressible:
    """Return a flow through a box with all kinds of sides."""
    sides: dict[str, Boundary] = {name: NoSlip() for name in cv.patches}
    sides |= {"xmin": Inflow(lambda x: np.stack([1.0 + x[:, 1], x[:, 2], -x[:, 0]], axis=1)), "xmax": Outflow(),
              "zmax": Symmetry()}  # fmt: skip
    flow = Incompressible(context, cv, 0.05, sides, stop=Stop(rtol=rtol, iterations=500), **choices)  # type: ignore[arg-type]
    flow.initialise((1.0, 0.2, -0.1))
    flow.step(0.01)
    return flow


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_devices_agree(ctx: fl.Context, device: str) -> None:
    """Velocity, pressure, a scalar, and forces."""
    cv = shaken("hexahedron", 2)
    sides = dict.fromkeys(cv.patches, Adiabatic()) | {"xmin": FixedValue(0.5), "xmax": Outflow()}
    heat = Scalar("T", 0.02, sides, initial=lambda x: x[:, 1] + x[:, 2])

    def run(context: fl.Context) -> list[np.ndarray]:
        flow = disturbed(context, cv, 1e-10, scalars=[heat])
        assert flow.corrections is not None
        assert flow.corrections.warped is not None
        force = Forces(flow, list(cv.patches)).now()
        return [flow.velocity(), flow.pressure(), flow.scalars["T"].values(), force.pressure, force.momentum]

    for mine, wanted in zip(run(fl.Context(device, tuning=False)), run(ctx), strict=True):
        assert np.allclose(mine, wanted, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("kind", ["hexahedron", "prism"])
def test_algebraic_steps_are_the_same(ctx: fl.Context, kind: str) -> None:
    flow = disturbed(ctx, shaken(kind, 3))
    step = AlgebraicStep(flow)
    for dt in (0.02, 0.01):
        step.step(dt)
        flow.step(dt)
    np.testing.assert_allclose(step.velocity(), flow.velocity(), rtol=0, atol=1e-11)
    np.testing.assert_allclose(step.pressure(), flow.pressure(), rtol=0, atol=1e-9)


@pytest.mark.long
def test_channel_flow_is_of_second_order(ctx: fl.Context) -> None:
    """Poiseuille's, on hexahedra under a smooth map: velocity, force of the walls, fall of the pressure."""
    sizes, errors = (6, 9, 12), []
    for n in sizes:
        mesh = box3d(2 * n, n, n, (2.0, 1.0, 1.0))
        y = mesh.points / (2.0, 1.0, 1.0)
        wave = np.sin(2.0 * np.pi * y[:, [1, 2, 0]] + 0.7) * np.cos(2.0 * np.pi * y[:, [2, 0, 1]] + 0.4)
        mesh = replace(mesh, points=mesh.points + np.array([0.12, 0.06, 0.06]) * np.sin(np.pi * y) * wave)
        cv = control_volumes(mesh)
        sides: dict[str, Boundary] = {name: Symmetry() for name in ("zmin", "zmax")}
        sides |= {"xmin": Inflow(parabola), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}
        flow = Incompressible(ctx, cv, 0.1, sides, stop=Stop(rtol=1e-5, iterations=3000))
        flow.initialise(parabola)
        walls, entry, now = Forces(flow, ["ymin", "ymax"]), Forces(flow, "xmin"), np.zeros(2)
        while flow.time < 2.0:
            for _ in range(25):
                flow.step(flow.stable_step(0.35, 0.4))
            last, now = now, np.array([walls.now().total[0], -entry.now().pressure[0]])
            if np.abs(now - last).max() < 5e-5 * np.abs(now).max():
                break
        wrong = flow.velocity() - parabola(cv.centres[: cv.cells])
        far = float(np.sqrt((cv.volumes[:, None] * wrong**2).sum() / cv.volumes.sum()))
        errors.append([far, *np.abs(now / 1.6 - 1.0).tolist()])
    orders = -np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert orders[0] > 1.8
    assert (orders[1:] > 1.5).all()
