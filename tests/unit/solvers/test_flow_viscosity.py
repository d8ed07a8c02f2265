"""Incompressible flow with a viscosity in space and time: layers, order, walls, ranks, what is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Wale
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, RungeKutta
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.algebraic.step import AlgebraicStep
from fluxloom.solvers.incompressible.energy import EnergyBudget
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom_lab.problems.small.state_cases import CASES, changed

TIGHT = Stop(rtol=1e-12, iterations=5000)
AROUND = (("xmin", "xmax"),)


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def flow_of(
    ctx: fl.Context, mesh: MeshData, nu: Any, sides: Mapping[str, Boundary], *,
    periodic: tuple[tuple[str, str], ...] = AROUND, other: Boundary | None = None, **options: Any,
) -> Incompressible:  # fmt: skip
    """Return a flow at rest, whose sides that are not named are walls, or others."""
    volumes = control_volumes(mesh, periodic)
    every = dict.fromkeys(volumes.patches, NoSlip() if other is None else other)
    flow = Incompressible(ctx, volumes, nu, every | dict(sides), stop=TIGHT, **options)
    flow.initialise([0.0] * volumes.dimension)
    return flow


def layers(x: np.ndarray) -> np.ndarray:
    """Return the viscosity of two layers."""
    return np.where(x[:, 1] < 0.5, 0.4, 0.1)


# --------------------------------------------------------------------------------------------- exact flows
def test_two_layers_between_plates(ctx: fl.Context) -> None:
    """The shear stress is the same everywhere: the velocity is exact in each cell, and so is what the walls feel."""
    flow = flow_of(ctx, box2d(3, 8, (0.3, 1.0)), layers, {"ymax": NoSlip((1.0, 0.0))})
    y, stress = flow.volumes.centres[: flow.volumes.owned, 1], 1.0 / (0.5 / 0.4 + 0.5 / 0.1)
    exact = np.where(y < 0.5, stress * y / 0.4, 1.0 - stress * (1.0 - y) / 0.1)
    flow.initialise(lambda x: np.stack([exact, 0.0 * exact], axis=1))
    while flow.time < 1.0:
        flow.step(flow.stable_step())
    np.testing.assert_allclose(flow.velocity(), np.stack([exact, 0.0 * exact], axis=1), atol=1e-9)
    for patch, sign in (("ymin", 1.0), ("ymax", -1.0)):
        assert Forces(flow, patch).now().friction[0] == pytest.approx(0.3 * sign * stress, rel=1e-8)
    assert EnergyBudget(flow).now().dissipation == pytest.approx(0.3 * stress, rel=1e-8)


def stream_error(ctx: fl.Context, n: int) -> float:
    """Return the error of two layers that a force drives between walls, as a part of the largest velocity."""
    flow = flow_of(ctx, box2d(3, n, (0.3, 1.0)), layers, {}, force=(1.0, 0.0))
    y = flow.volumes.centres[: flow.volumes.owned, 1]
    drop = (0.125 / 0.4 + 0.375 / 0.1) / (0.5 / 0.4 + 0.5 / 0.1)  # the stress at the lower wall
    lower = (drop * y - y**2 / 2) / 0.4
    upper = ((1.0 - y**2) / 2 - drop * (1.0 - y)) / 0.1
    exact = np.where(y < 0.5, lower, upper)
    flow.initialise(lambda x: np.stack([exact, 0.0 * exact], axis=1))
    while flow.time < 2.0:
        flow.step(flow.stable_step())
    assert Forces(flow, "ymin").now().friction[0] == pytest.approx(0.3 * drop, rel=1e-3)
    return float(np.abs(flow.velocity()[:, 0] - exact).max() / exact.max())


def test_two_layers_that_a_force_drives(ctx: fl.Context) -> None:
    coarse, fine = stream_error(ctx, 8), stream_error(ctx, 16)
    assert fine < 0.02
    assert np.log2(coarse / fine) > 1.9


def turning_error(ctx: fl.Context, n: int, kind: str) -> tuple[float, float]:
    """Return the errors of velocity and torque between cylinders, the inner one turning, with ``nu = r``."""
    mesh = box2d(n, 2 * n, kind=kind)
    points, angle = mesh.points.copy(), 0.5 * np.pi * mesh.points[:, 1]
    points[:, 0], points[:, 1] = (1.0 + mesh.points[:, 0]) * np.cos(angle), (1.0 + mesh.points[:, 0]) * np.sin(angle)

    def exact(x: np.ndarray) -> np.ndarray:
        factor = (np.linalg.norm(x, axis=1) ** -3.0 - 1.0 / 8.0) * 8.0 / 7.0  # nu r^3 d(factor)/dr is a constant
        return np.stack([-x[:, 1] * factor, x[:, 0] * factor], axis=1)

    ends = Inflow(exact)
    flow = flow_of(ctx, replace(mesh, points=points), "sqrt(x * x + y * y)",
                   {"xmin": NoSlip(("-y", "x")), "ymin": ends, "ymax": ends}, periodic=())  # fmt: skip
    flow.initialise(exact)
    while flow.time < 0.25:
        flow.step(flow.stable_step())
    error = flow.velocity() - exact(flow.volumes.centres[: flow.volumes.owned])
    torque = 0.5 * np.pi * 3.0 * 8.0 / 7.0
    found = Forces(flow, "xmin").now().moment[-1]
    return float(np.sqrt((error**2).mean())), abs(found / torque + 1.0)


@pytest.mark.parametrize(("kind", "n"), [("quad", 6), ("triangle", 4)])
def test_cylinders_that_turn(ctx: fl.Context, kind: str, n: int) -> None:
    """The transposed part acts on a wall that turns: without it the torque is not that of the gap."""
    coarse, fine = turning_error(ctx, n, kind), turning_error(ctx, 2 * n, kind)
    assert fine[0] < 0.004
    assert fine[1] < 0.025
    assert min(np.log2(np.divide(coarse, fine))) > 1.5


def vortex_error(ctx: fl.Context, n: int, kind: str, other: Boundary | None) -> float:
    """Return the error of a steady vortex in a box, of a force with a viscosity that is smooth in space."""
    volumes = control_volumes(box2d(n, n, kind=kind, perturb=0.0 if kind == "quad" else 0.1), ())

    def exact(x: np.ndarray) -> np.ndarray:
        a, b = np.pi * x.T
        return np.stack([np.sin(a) ** 2 * np.sin(2 * b), -np.sin(2 * a) * np.sin(b) ** 2], axis=1)

    def viscosity(x: np.ndarray) -> np.ndarray:
        return 0.1 + 0.05 * np.sin(3 * x[:, 0] + 2 * x[:, 1])

    def force(x: np.ndarray) -> np.ndarray:
        a, b = np.pi * x.T
        u, v = exact(x).T
        ux, uy = np.pi * np.sin(2 * a) * np.sin(2 * b), 2 * np.pi * np.sin(a) ** 2 * np.cos(2 * b)
        vx, vy = -2 * np.pi * np.cos(2 * a) * np.sin(b) ** 2, -np.pi * np.sin(2 * a) * np.sin(2 * b)
        lu = 2 * np.pi**2 * np.cos(2 * a) * np.sin(2 * b) - 4 * np.pi**2 * np.sin(a) ** 2 * np.sin(2 * b)
        lv = 4 * np.pi**2 * np.sin(2 * a) * np.sin(b) ** 2 - 2 * np.pi**2 * np.sin(2 * a) * np.cos(2 * b)
        nu, slope = viscosity(x), 0.05 * np.cos(3 * x[:, 0] + 2 * x[:, 1])
        fu = u * ux + v * uy - nu * lu - slope * (3 * 2 * ux + 2 * (uy + vx))
        fv = u * vx + v * vy - nu * lv - slope * (3 * (uy + vx) + 2 * 2 * vy)
        return np.stack([fu - np.pi * np.sin(a) * np.cos(b), fv - np.pi * np.cos(a) * np.sin(b)], axis=1)

    sides = dict.fromkeys(volumes.patches, NoSlip() if other is None else other)
    flow = Incompressible(ctx, volumes, viscosity, sides, force=force)
    flow.initialise(exact)
    while flow.time < 1.0:
        flow.step(flow.stable_step())
    return float(np.sqrt(((flow.velocity() - exact(volumes.centres[: volumes.owned])) ** 2).mean()))


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_a_smooth_viscosity_is_of_second_order(ctx: fl.Context, kind: str) -> None:
    coarse, fine = vortex_error(ctx, 8, kind, None), vortex_error(ctx, 16, kind, None)
    assert fine < 0.01
    assert np.log2(coarse / fine) > 1.7


@pytest.mark.parametrize(("kind", "near"), [("hexahedron", 1e-4), ("tetra", 3e-3)])
def test_plates_in_space(ctx: fl.Context, kind: str, near: float) -> None:
    """Between plates with ``nu = 1 + y`` the velocity is a logarithm."""
    mesh = box3d(3, 4, 3, (0.5, 1.0, 0.5), kind=kind, perturb=0.0 if kind == "hexahedron" else 0.05)
    ends = Inflow(("log(1 + y) / log(2)", 0.0, 0.0))
    sides = {"ymin": NoSlip(), "ymax": NoSlip((1.0, 0.0, 0.0)), "xmin": ends, "xmax": ends}
    flow = flow_of(ctx, mesh, "1 + y", sides, periodic=(), other=Symmetry())
    exact = np.zeros((flow.volumes.owned, 3))
    exact[:, 0] = np.log2(1.0 + flow.volumes.centres[: flow.volumes.owned, 1])
    flow.initialise(lambda _: exact)
    while flow.time < 0.1:
        flow.step(flow.stable_step())
    assert np.abs(flow.velocity() - exact).max() < near
    assert Forces(flow, "ymax").now().friction[0] == pytest.approx(-0.25 / np.log(2.0), rel=0.02)


def test_dissipation_is_what_energy_loses(ctx: fl.Context) -> None:
    """The transposed part takes 8 % off it here."""
    flow = flow_of(ctx, box2d(16, 16), "0.1 + 0.09 * sin(5 * x)", {}, periodic=())
    a, b = np.pi * flow.volumes.centres[: flow.volumes.owned].T
    vortex = np.stack([np.sin(a) ** 2 * np.sin(2 * b), -np.sin(2 * a) * np.sin(b) ** 2], axis=1)
    flow.initialise(lambda _: vortex)
    found = []
    for _ in range(12):
        flow.step(2e-4)
        found.append((flow.state().kinetic_energy, EnergyBudget(flow).now().dissipation))
    (before, _), (_, lost), (after, _) = found[-3:]
    assert lost == pytest.approx((before - after) / 4e-4, rel=1e-3)


# ------------------------------------------------------------------------------------------- what must not differ
@pytest.mark.parametrize("scheme", [AdamsBashforth(), RungeKutta()], ids=str)
@pytest.mark.parametrize("kind", ["quads", "triangles", "tetrahedra"])
def test_a_constant_formula_is_a_constant(ctx: fl.Context, kind: str, scheme: Any) -> None:
    mesh = box3d(3, 3, 3, kind="tetra", perturb=0.1) if kind == "tetrahedra" else (
        box2d(6, 5, kind="quad" if kind == "quads" else "triangle", perturb=0.1))  # fmt: skip
    found = []
    for nu in (0.02, "0.01 + 0.01", "0.02 + 0 * t"):
        flow = flow_of(ctx, mesh, nu, {"ymax": NoSlip((1.0, 0.0, 0.0)[: mesh.dimension])}, periodic=(), scheme=scheme)
        for _ in range(10):
            flow.step(0.01)
        found.append((flow.velocity(), Forces(flow, "ymax").now().friction, EnergyBudget(flow).now().dissipation))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


def swung(ctx: fl.Context, scheme: Any, steps: int) -> np.ndarray:
    """Return the velocity over a plate in a fluid whose viscosity swings."""
    flow = flow_of(ctx, box2d(3, 12, (0.2, 1.0)), "0.02 * (2 + sin(6 * t) + y * cos(5 * t))",
                   {"ymin": NoSlip((1.0, 0.0))}, scheme=scheme)  # fmt: skip
    for _ in range(steps):
        flow.step(0.5 / steps)
    return flow.velocity()


@pytest.mark.parametrize(("scheme", "order"), [(AdamsBashforth(), 1.9), (RungeKutta(), 2.8)], ids=str)
def test_order_of_steps(ctx: fl.Context, scheme: Any, order: float) -> None:
    coarse, middle, fine = (swung(ctx, scheme, n) for n in (40, 80, 160))
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > order


def driven(comm: Comm | None) -> np.ndarray:
    """Return momentum, energy, dissipation and the friction at a wall of a flow whose viscosity differs and changes."""
    mesh = box2d(9, 6, kind="triangle", perturb=0.2)
    context = fl.Context("cpu", threads=1, tuning=False) if comm is None else fl.Context(
        "cpu", threads=1, tuning=False, comm=comm)  # fmt: skip
    volumes = control_volumes(mesh, ()) if comm is None else (
        shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), ()))  # fmt: skip
    sides: dict[str, Boundary] = {
        "xmin": Inflow(("y * (1 - y)", 0.0)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry(),
    }  # fmt: skip
    flow = Incompressible(context, volumes, "0.02 + 0.01 * sin(5 * x + 3 * y + 9 * t)", sides, stop=TIGHT)
    flow.initialise((0.0, 0.0))
    for _ in range(6):
        flow.step(0.02)
    state = flow.state()
    return np.array([*state.momentum, state.kinetic_energy, EnergyBudget(flow).now().dissipation,
                     *Forces(flow, "ymin").now().friction, flow.stable_step()])  # fmt: skip


def test_two_ranks_are_as_one() -> None:
    np.testing.assert_allclose(run_threads(2, driven)[0], driven(None), rtol=1e-8, atol=1e-12)


# --------------------------------------------------------------------------------------------------- refused
def test_what_is_refused(ctx: fl.Context) -> None:
    mesh = box2d(4, 4)
    with pytest.raises(SolverError, match=r"viscosity: a number of at least 0 is wanted, not -1"):
        flow_of(ctx, mesh, -1.0, {})
    with pytest.raises(SolverError, match=r"viscosity: .* is -0.125 at \(0.125, .*above 0 is wanted"):
        flow_of(ctx, mesh, "x - 0.25", {})
    with pytest.raises(SolverError, match="beside a model of large eddies, which adds to a number"):
        flow_of(ctx, mesh, "0.1 + x", {}, model=Wale())
    flow = flow_of(ctx, mesh, "0.3 + x - t", {})
    with pytest.raises(SolverError, match="balance"):
        Forces(flow, "ymin", balance=True)
    with pytest.raises(SolverError, match="the viscosity is a number"):
        AlgebraicStep(flow)
    flow.step(0.2)
    with pytest.raises(SolverError, match=r"viscosity: .*at t = .*above 0 is wanted"):
        flow.step(0.6)


def built(case: dict[str, Any]) -> None:
    model, application = parse_case(Document(Path("case"), case, {}))
    application.build(model, fl.Context("cpu", threads=1, tuning=False))


@pytest.mark.parametrize(
    ("given", "message"),
    [("0.1 + q", "'q'"), (-1.0, "fluid.viscosity"), ("0.1 + z", "'z'"), ("x - 10", "above 0 is wanted")],
)
def test_messages_name_the_key(given: Any, message: str) -> None:
    case = changed(tomllib.loads(CASES["incompressible closed"][0]), {"fluid.viscosity": given})
    with pytest.raises((CaseError, SolverError), match=message) as found:
        built(case)
    assert "fluid.viscosity" in str(found.value)
