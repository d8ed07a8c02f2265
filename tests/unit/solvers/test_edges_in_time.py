"""Flow and transport on edges whose boundaries, forces, fluxes and sources change in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.fe.edges.point_mesh import PointMesh, point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box2d, box3d
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import Tracked
from fluxloom.solvers.edges.transport import EdgeTransport

TIGHT = Stop(rtol=1e-11, iterations=5000)


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def triangles(ctx: fl.Context) -> PointMesh:
    return point_mesh(ctx, box2d(6, 5, (1.5, 1.0), kind="triangle", perturb=0.2))


def tetrahedra(ctx: fl.Context) -> PointMesh:
    return point_mesh(ctx, box3d(4, 3, 3, (1.5, 1.0, 1.0), kind="tetra", perturb=0.1))


MESHES = {"triangles": triangles, "tetrahedra": tetrahedra}


def along(d: int, first: Any, second: Any = 0.0) -> tuple[Any, ...]:
    return (first, second, *[0.0] * (d - 2))


# ---------------------------------------------------------------------------------------------------- flow
def plate(ctx: fl.Context, steps: int) -> np.ndarray:
    """Return the velocity over a plate that swings, with subscales that do not depend on the step."""
    mesh = point_mesh(ctx, box2d(4, 8, (0.25, 1.0), kind="triangle"))
    sides = {"ymin": NoSlip(("cos(3 * t)", 0.0)), "ymax": NoSlip(), "xmin": Outflow(), "xmax": Outflow()}
    flow = EdgeFlow(mesh, 0.02, sides, stop=TIGHT, scheme=EdgeScheme(subscales=Tracked(), dynamic=0.0))
    flow.initialise()
    for _ in range(steps):
        flow.step(0.5 / steps).require()
    return flow.velocity()


def test_order_of_steps_beside_a_plate_that_swings(ctx: fl.Context) -> None:
    """Two stages have what is given in the middle of a step, two that at its end: second order stays."""
    coarse, middle, fine = (plate(ctx, n) for n in (20, 40, 80))
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > 1.9


@pytest.mark.parametrize("kind", MESHES)
def test_a_stream_that_swings(ctx: fl.Context, kind: str) -> None:
    """Between planes of symmetry the velocity is that of the inflow, to the order of a step."""
    errors = []
    for steps in (20, 40):
        mesh = MESHES[kind](ctx)
        d = mesh.dimension
        inlet = Inflow(along(d, "1 + 0.5 * sin(2 * t)"))
        flow = EdgeFlow(mesh, 0.01, dict.fromkeys(mesh.patches, Symmetry()) | {"xmin": inlet, "xmax": Outflow()},
                        stop=TIGHT)  # fmt: skip
        flow.initialise(along(d, 1.0))
        for _ in range(steps):
            flow.step(0.4 / steps).require()
        errors.append(np.abs(flow.velocity() - along(d, 1.0 + 0.5 * np.sin(0.8))).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 2.5


def test_a_force_that_swings_across_a_channel(ctx: fl.Context) -> None:
    """Womersley's flow: a uniform force, or one that differs from place to place by nothing."""
    k = (1 + 1j) * np.sqrt(0.5 / 0.04)
    mesh = point_mesh(ctx, box2d(2, 32, (0.25, 2.0), origin=(0.0, -1.0), kind="triangle"))

    def exact(y: np.ndarray, time: float) -> np.ndarray:
        return ((1 - np.cosh(k * y) / np.cosh(k)) * np.exp(1j * time)).imag

    sides = {"ymin": NoSlip(), "ymax": NoSlip(), "xmin": Outflow(), "xmax": Outflow()}
    for force, nu in ((("cos(t)", 0.0), 0.04), (("cos(t) + 0 * x", 0.0), "0.04 + 0 * t")):
        flow = EdgeFlow(mesh, nu, sides, force=force, stop=TIGHT)
        flow.initialise(lambda x: np.stack([exact(x[:, 1], 0.0), 0.0 * x[:, 1]], axis=1))
        for _ in range(50):
            flow.step(0.02).require()
        assert np.abs(flow.velocity()[:, 0] - exact(mesh.coordinates[:, 1], 1.0)).max() < 0.01


@pytest.mark.parametrize("kind", MESHES)
def test_pressures_drive_a_stream(ctx: fl.Context, kind: str) -> None:
    """Between planes of symmetry ``du/dt = (p_0 - p_1) / 1.5``, to second order; the pressure is a straight line."""
    mesh = MESHES[kind](ctx)
    x, wanted = mesh.coordinates[:, 0], along(mesh.dimension, np.sin(1.6) / 4 + 0.2 * 0.4)
    errors = []
    for steps in (20, 40):
        sides = dict.fromkeys(mesh.patches, Symmetry()) | {"xmin": Outflow("1.5 * cos(4 * t)"), "xmax": Outflow(-0.3)}
        flow = EdgeFlow(mesh, 0.01, sides, stop=TIGHT)
        flow.initialise().require()
        for _ in range(steps):
            flow.step(0.4 / steps).require()
        line = (1.5 * np.cos(1.6) * (1.5 - x) - 0.3 * x) / 1.5
        errors.append([np.abs(flow.velocity() - wanted).max(), np.abs(flow.pressure() - line).max()])
        assert flow.state().imbalance < 1e-12
    assert max(errors[1]) < 2e-4
    assert errors[0][0] / errors[1][0] > 3.0


@pytest.mark.parametrize("tracked", [False, True])
def test_a_pressure_that_both_ends_have_does_nothing(ctx: fl.Context, tracked: bool) -> None:
    mesh = triangles(ctx)
    sides = dict.fromkeys(mesh.patches, NoSlip()) | dict.fromkeys(("xmin", "xmax"), Outflow("1 + sin(9 * t)"))
    scheme = EdgeScheme(subscales=Tracked(), dynamic=0.0) if tracked else None
    flow = EdgeFlow(mesh, 0.01, sides, stop=TIGHT, scheme=scheme)
    flow.initialise().require()
    for _ in range(10):
        flow.step(0.02).require()
    assert np.abs(flow.velocity()).max() < 1e-8
    np.testing.assert_allclose(flow.pressure(), 1 + np.sin(1.8), rtol=1e-8)


def test_a_lid_does_not_move_the_walls_beside_it(ctx: fl.Context) -> None:
    """What stays goes before what changes in time, though both are at rest at the start."""
    mesh = triangles(ctx)
    flow = EdgeFlow(mesh, 0.01, dict.fromkeys(mesh.patches, NoSlip()) | {"ymax": NoSlip(("t", 0.0))})
    flow.initialise()
    flow.step(0.1)
    top = mesh.patches["ymax"].points
    u = flow.velocity()[top, 0]
    corners = np.isin(top, [*mesh.patches["xmin"].points, *mesh.patches["xmax"].points])
    assert corners.sum() == 2
    np.testing.assert_allclose(u, np.where(corners, 0.0, 0.1), atol=1e-14)


def test_what_is_refused_in_time(ctx: fl.Context) -> None:
    mesh = triangles(ctx)
    walls = dict.fromkeys(mesh.patches, NoSlip())
    flow = EdgeFlow(mesh, 0.01, walls | {"xmin": Inflow(("t * y", 0.0))})
    flow.initialise()
    with pytest.raises(SolverError, match=r"at t = 0\.1 the given velocities let 0\.0\d* more in, and no patch"):
        flow.step(0.1)
    flow = EdgeFlow(mesh, 0.01, walls | {"ymax": NoSlip((1.0, "t"))})
    flow.initialise()
    flow.step(0.1)
    with pytest.raises(SolverError, match="part along its normal"):
        flow.step(0.4)
    flow = EdgeFlow(mesh, "0.1 - t", walls)
    flow.initialise()
    with pytest.raises(SolverError, match=r"viscosity: '0\.1 - t' is -0\.1"):
        flow.step(0.4)


# ------------------------------------------------------------------------------------------------ transport
def heated(ctx: fl.Context, steps: int) -> np.ndarray:
    mesh = point_mesh(ctx, box2d(6, 8, kind="triangle"))
    heat = EdgeTransport(mesh, (0.0, 0.0), 0.02, {"ymin": "sin(4 * t)"}, fluxes={"ymax": "cos(3 * t)"},
                         source="cos(5 * t) * y", bounded=False)  # fmt: skip
    heat.initialise(0.0)
    for _ in range(steps):
        heat.step(0.5 / steps)
    return heat.scalar()


def test_order_of_steps_of_a_scalar(ctx: fl.Context) -> None:
    """Each stage has what is given at its time: the method stays of fourth order."""
    coarse, middle, fine = (heated(ctx, n) for n in (10, 20, 40))
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > 3.8


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("bounded", [False, True])
def test_walls_and_sources_give_what_they_say(ctx: fl.Context, kind: str, bounded: bool) -> None:
    mesh = MESHES[kind](ctx)
    heat = EdgeTransport(mesh, (0.0,) * mesh.dimension, 0.05, fluxes={"xmin": "cos(t)", "ymax": 0.3},
                         source="0.3 * sin(2 * t)", bounded=bounded)  # fmt: skip
    heat.initialise(0.2)
    for _ in range(50):
        heat.step(0.01)
    wanted = 1.5 * (0.2 + 0.15 * (1 - np.cos(1.0))) + np.sin(0.5) + 0.3 * 1.5 * 0.5
    assert heat.state().amount == pytest.approx(wanted, rel=1e-9)


def test_a_flux_that_stays(ctx: fl.Context) -> None:
    """Between a wall that gives heat and one that is cold the temperature is a straight line."""
    mesh = triangles(ctx)
    heat = EdgeTransport(mesh, (0.0, 0.0), 0.5, {"xmin": 0.0}, fluxes={"xmax": 0.25})
    heat.initialise(lambda x: 0.5 * x[:, 0])
    for _ in range(20):
        heat.step(0.001)
    np.testing.assert_allclose(heat.scalar(), 0.5 * mesh.coordinates[:, 0], atol=1e-12)


def test_a_stream_that_carries_to_and_fro(ctx: fl.Context) -> None:
    mesh = point_mesh(ctx, box2d(16, 16, kind="triangle"))
    smoke = EdgeTransport(mesh, ("0.3 * cos(2 * pi * t)", 0.0), "0.001 * (1 + t)")
    smoke.initialise(lambda x: np.exp(-60 * ((x[:, 0] - 0.4) ** 2 + (x[:, 1] - 0.5) ** 2)))
    mass = smoke.operators.mass.read()
    for time in (0.25, 0.5):
        for _ in range(10):
            smoke.step(0.025)
        c = smoke.scalar() * mass
        middle = (c * mesh.coordinates[:, 0]).sum() / c.sum()
        assert middle == pytest.approx(0.4 + 0.3 * np.sin(2 * np.pi * time) / (2 * np.pi), abs=2e-3)


# ---------------------------------------------------------------------------------------------------- ranks
def driven(comm: Comm) -> tuple[np.ndarray, float, float]:
    """Return sums of a flow and of what it carries, of which everything changes in time."""
    context = fl.Context("cpu", threads=1, tuning=False, comm=comm)
    mesh = point_mesh(context, box2d(9, 6, kind="triangle", perturb=0.2))
    sides = {
        "xmin": Inflow(("y * (1 - y) * (1 + sin(9 * t))", 0.0)), "xmax": Outflow("0.2 * sin(8 * t) + 0.1 * y"),
        "ymin": NoSlip(), "ymax": NoSlip(("t", 0.0)),
    }  # fmt: skip
    flow = EdgeFlow(mesh, "0.02 + 0.01 * x * t", sides, force=("y * sin(7 * t)", "cos(t)"), stop=TIGHT)
    flow.initialise()
    heat = EdgeTransport(mesh, flow.u, 0.02, {"xmin": "sin(5 * t)"}, fluxes={"ymin": "x * t"}, source="t * x",
                         operators=flow.operators)  # fmt: skip
    heat.initialise(0.1)
    for _ in range(5):
        flow.step(0.02).require()
        heat.step(0.02)
    state = flow.state()
    return state.momentum, state.kinetic_energy, heat.state().amount


def test_two_ranks_are_as_one() -> None:
    one, two = (run_threads(n, driven)[0] for n in (1, 2))
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-8)
