"""Incompressible flow whose boundaries, forces and sources change in time: exact solutions, order, what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, RungeKutta
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedFlux, FixedValue
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.incompressible.drive import MeanVelocity
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.scalar import Scalar
from fluxloom.values.tables import TimeSeries
from fluxloom.values.value import Formula

TIGHT = Stop(rtol=1e-12, iterations=5000)
MESHES = {
    "quads": lambda: box2d(6, 5, (1.5, 1.0)),
    "triangles": lambda: box2d(6, 5, (1.5, 1.0), kind="triangle", perturb=0.2),
    "tetrahedra": lambda: box3d(4, 3, 3, (1.5, 1.0, 1.0), kind="tetra", perturb=0.1),
}


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def flow_of(
    ctx: fl.Context, mesh: MeshData, sides: Mapping[str, Boundary], nu: float = 0.01, *,
    periodic: tuple[tuple[str, str], ...] = (), other: Boundary | None = None, **options: Any,
) -> Incompressible:  # fmt: skip
    """Return a flow at rest, whose sides that are not named are planes of symmetry, or others."""
    volumes = control_volumes(mesh, periodic)
    every = dict.fromkeys(volumes.patches, Symmetry() if other is None else other)
    flow = Incompressible(ctx, volumes, nu, every | dict(sides), stop=TIGHT, **options)
    flow.initialise([0.0] * volumes.dimension)
    return flow


def along(d: int, *first: Any) -> tuple[Any, ...]:
    return (*first, *[0.0] * (d - len(first)))


# --------------------------------------------------------------------------------------------------- walls
def plate(ctx: fl.Context, scheme: Any, consistent: bool, steps: int) -> np.ndarray:
    """Return the velocity over a plate that swings."""
    mesh = box2d(3, 16, (0.2, 1.0))
    flow = flow_of(
        ctx, mesh, {"ymin": NoSlip(("cos(3 * t)", 0.0))}, 0.02, periodic=(("xmin", "xmax"),), other=NoSlip(),
        scheme=scheme, consistent=consistent,
    )  # fmt: skip
    for _ in range(steps):
        flow.step(0.5 / steps)
    return flow.velocity()


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize(("scheme", "order"), [(AdamsBashforth(), 1.9), (RungeKutta(), 2.9)], ids=str)
def test_order_of_steps_beside_a_plate_that_swings(
    ctx: fl.Context, scheme: Any, order: float, consistent: bool
) -> None:
    """What is given is that of the end of a step or stage: the order of the scheme stays."""
    coarse, middle, fine = (plate(ctx, scheme, consistent, n) for n in (20, 40, 80))
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > order


def test_stokes_second_problem(ctx: fl.Context) -> None:
    """``u = exp(-y) cos(t - y)`` over a plate that swings as ``cos(t)``, with lengths of ``sqrt(2 nu)``."""
    mesh = box2d(2, 64, (0.2, 6.4))
    volumes = control_volumes(mesh, (("xmin", "xmax"),))
    sides = {"ymin": NoSlip(("cos(t)", "0")), "ymax": Symmetry()}
    flow = Incompressible(ctx, volumes, 0.5, sides, scheme=RungeKutta())

    def exact(places: np.ndarray, time: float) -> np.ndarray:
        return np.stack([np.exp(-places[:, 1]) * np.cos(time - places[:, 1]), 0.0 * places[:, 1]], axis=1)

    flow.initialise(lambda places: exact(places, 0.0))
    for _ in range(200):
        flow.step(0.005)
    assert np.abs(flow.velocity() - exact(volumes.centres[: volumes.owned], 1.0)).max() < 2e-3
    force = Forces(flow, "ymin").now()
    assert force.friction[0] / 0.2 == pytest.approx(0.5 * (np.sin(1.0) - np.cos(1.0)), abs=0.02)


def test_a_wall_that_leaves_itself_is_refused(ctx: fl.Context) -> None:
    flow = flow_of(ctx, MESHES["quads"](), {"ymax": NoSlip((1.0, "0.5 * t"))}, other=NoSlip())
    flow.step(0.05)
    with pytest.raises(SolverError, match=r"patch 'ymax': at t = .*part along its normal"):
        flow.step(1.0)


# ------------------------------------------------------------------------------------------------- inflows
@pytest.mark.parametrize("kind", MESHES)
def test_a_stream_that_swings(ctx: fl.Context, kind: str) -> None:
    """Between planes of symmetry the velocity is that of the inflow, the pressure ``p = -u' (x - 1.5) + p_out``."""
    mesh = MESHES[kind]()
    d = 2 if kind != "tetrahedra" else 3
    sides = {"xmin": Inflow(along(d, "1 + 0.5 * sin(2 * t)")), "xmax": Outflow("0.3 * cos(t)")}
    flow = flow_of(ctx, mesh, sides, pressure=None)
    flow.initialise(along(d, 1.0))
    for _ in range(20):
        flow.step(0.02)
    near = 1e-8 if kind == "quads" else 2e-3  # oblique meshes have the pressure of the step before in it
    assert np.abs(flow.velocity() - along(d, 1.0 + 0.5 * np.sin(2 * 0.4))).max() < near
    x = flow.volumes.centres[: flow.volumes.owned, 0]
    middle = 0.4 - 0.01
    slope = (np.sin(0.8) - np.sin(0.76)) / 0.04
    wanted = slope * (1.5 - x) + 0.3 * np.cos(middle)
    assert np.abs(flow.pressure() - wanted).max() < (1e-6 if kind == "quads" else 0.02)


def test_values_of_every_kind(ctx: fl.Context) -> None:
    """A formula, a table and functions give the same flow."""
    times = np.linspace(0.0, 1.0, 401)
    series = TimeSeries(times=tuple(times), numbers=tuple(np.sin(3 * times)))

    def profile(places: np.ndarray, time: float) -> np.ndarray:
        y = places[:, 1]
        return np.stack([4 * y * (1 - y) * np.sin(3 * time), 0 * y], axis=1)

    found = []
    for velocity in (
        ("4 * y * (1 - y) * sin(3 * t)", "0"), profile, (Formula("4 * y * (1 - y)") * series, 0.0),
    ):  # fmt: skip
        flow = flow_of(ctx, MESHES["quads"](), {"xmin": Inflow(velocity), "xmax": Outflow()}, other=NoSlip())
        for _ in range(10):
            flow.step(0.02)
        found.append(flow.velocity())
    assert np.abs(found[0]).max() > 0.3
    assert np.abs(found[1] - found[0]).max() < 1e-12
    assert np.abs(found[2] - found[0]).max() < 1e-4


def test_a_closed_box_balances_at_every_time(ctx: fl.Context) -> None:
    """As much in as out: what two sides give may change together; else the time and the rest are said."""
    both = {"xmin": Inflow(("sin(t)", 0.0)), "xmax": Inflow(("sin(t)", 0.0))}
    flow = flow_of(ctx, MESHES["quads"](), both)
    for _ in range(10):
        flow.step(0.02)
    assert np.abs(flow.velocity()[:, 0] - np.sin(0.2)).max() < 1e-9
    flow = flow_of(ctx, MESHES["quads"](), both | {"xmax": Inflow(("sin(t) * (1 + t)", 0.0))})
    with pytest.raises(SolverError, match=r"at t = 0\.02 the given velocities let 0\.0003\d* more out, and no patch"):
        flow.step(0.02)


# -------------------------------------------------------------------------------------------------- forces
@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("force", [("sin(5 * t)", "1 - 2 * t"), ("cos(2 * x) * t", "-3 * y"), ("x * t", "sin(9 * t)")])
def test_a_potential_leaves_a_fluid_in_a_box_at_rest(ctx: fl.Context, kind: str, force: tuple[str, str]) -> None:
    d = 2 if kind != "tetrahedra" else 3
    flow = flow_of(ctx, MESHES[kind](), {}, force=along(d, *force), other=NoSlip())
    for _ in range(5):
        flow.step(0.01)
    assert np.abs(flow.velocity()).max() < (1e-9 if kind == "quads" or "cos" not in force[0] else 1e-3)


@pytest.mark.parametrize("kind", MESHES)
def test_pressures_drive_a_stream(ctx: fl.Context, kind: str) -> None:
    """Between planes of symmetry ``du/dt = (p_0 - p_1) / 1.5``; the forces on both ends are those of the pressures."""
    mesh = MESHES[kind]()
    flow = flow_of(ctx, mesh, {"xmin": Outflow("1.5 * cos(4 * t)"), "xmax": Outflow(-0.3)})
    for _ in range(40):
        flow.step(0.01)
    wanted = np.sin(1.6) / 4 + 0.2 * 0.4
    assert np.abs(flow.velocity() - along(flow.dimension, wanted)).max() < 1e-3
    ends = [Forces(flow, name).now() for name in ("xmin", "xmax")]
    pressures = np.array([1.5 * np.cos(4 * 0.395), -0.3])
    np.testing.assert_allclose([one.pressure[0] for one in ends], pressures * [-1, 1], rtol=1e-9)
    np.testing.assert_allclose([one.mean_pressure for one in ends], pressures, rtol=1e-9)
    np.testing.assert_allclose([one.moment[2] for one in ends], -0.5 * pressures * [-1, 1], atol=1e-2)


@pytest.mark.parametrize(("scheme", "steps"), [(AdamsBashforth(), 64), (RungeKutta(), 32)], ids=lambda one: (
    strategy_name(one) if not isinstance(one, int) else ""))  # fmt: skip
def test_a_force_that_swings_across_a_channel(ctx: fl.Context, scheme: Any, steps: int) -> None:
    """Womersley's flow; the force acts at the middle of a step, or at the times of its stages."""
    nu = 0.04
    k = (1 + 1j) * np.sqrt(0.5 / nu)

    def exact(y: np.ndarray, time: float) -> np.ndarray:
        return ((1 - np.cosh(k * y) / np.cosh(k)) * np.exp(1j * time)).imag

    volumes = control_volumes(box2d(3, 32, (0.2, 2.0), origin=(0.0, -1.0)), (("xmin", "xmax"),))
    sides = {"ymin": NoSlip(), "ymax": NoSlip()}
    flow = Incompressible(ctx, volumes, nu, sides, force=("cos(t)", 0.0), scheme=scheme)
    flow.initialise(lambda x: np.stack([exact(x[:, 1], 0.0), 0.0 * x[:, 1]], axis=1))
    for _ in range(steps):
        flow.step(1.0 / steps)
    assert np.abs(flow.velocity()[:, 0] - exact(volumes.centres[: volumes.owned, 1], 1.0)).max() < 8e-3


def forced(ctx: fl.Context, n: int, kind: str) -> float:
    """Return the error of a vortex in a closed box that a force in space and time keeps swinging, ``cos(2 t)``."""
    u, v, g = "sin(pi*x)**2*sin(2*pi*y)", "-sin(2*pi*x)*sin(pi*y)**2", "cos(2*t)"
    ux, uy = "pi*sin(2*pi*x)*sin(2*pi*y)", "2*pi*sin(pi*x)**2*cos(2*pi*y)"
    vx, vy = "-2*pi*cos(2*pi*x)*sin(pi*y)**2", "-pi*sin(2*pi*x)*sin(2*pi*y)"
    du = "2*pi*pi*cos(2*pi*x)*sin(2*pi*y) - 4*pi*pi*sin(pi*x)**2*sin(2*pi*y)"
    dv = "4*pi*pi*sin(2*pi*x)*sin(pi*y)**2 - 2*pi*pi*sin(2*pi*x)*cos(2*pi*y)"
    force = (
        f"-2*sin(2*t)*{u} + {g}**2*({u}*{ux} + ({v})*{uy}) - 0.02*{g}*({du}) - pi*sin(pi*x)*sin(pi*y)*{g}",
        f"-2*sin(2*t)*({v}) + {g}**2*({u}*({vx}) + ({v})*({vy})) - 0.02*{g}*({dv}) + pi*cos(pi*x)*cos(pi*y)*{g}",
    )
    volumes = control_volumes(box2d(n, n, kind=kind, perturb=0.1), ())
    flow = Incompressible(ctx, volumes, 0.02, dict.fromkeys(volumes.patches, NoSlip()), force=force)

    def exact(x: np.ndarray, time: float) -> np.ndarray:
        a, b = np.pi * x[:, 0], np.pi * x[:, 1]
        return np.cos(2 * time) * np.stack([np.sin(a) ** 2 * np.sin(2 * b), -np.sin(2 * a) * np.sin(b) ** 2], axis=1)

    flow.initialise(lambda x: exact(x, 0.0))
    for _ in range(10 * n):
        flow.step(0.05 / n)
    return float(np.sqrt(((flow.velocity() - exact(volumes.centres[: volumes.owned], 0.5)) ** 2).mean()))


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_a_force_in_space_and_time_is_of_second_order(ctx: fl.Context, kind: str) -> None:
    coarse, fine = forced(ctx, 8, kind), forced(ctx, 16, kind)
    assert fine < 0.01
    assert np.log2(coarse / fine) > 1.6


# ------------------------------------------------------------------------------------------------- scalars
@pytest.mark.parametrize(("kind", "bounded"), [*((kind, False) for kind in MESHES), ("quads", True)])
def test_sources_and_fluxes_in_time(ctx: fl.Context, kind: str, bounded: bool) -> None:
    """A fluid at rest has what walls and sources have given it."""
    volumes = control_volumes(MESHES[kind](), ())
    sides = {name: Adiabatic() for name in volumes.patches}
    sides |= {"xmin": FixedFlux("cos(t)"), "ymax": FixedFlux("0.5 * t")}
    scalar = Scalar("heat", 0.1, sides, 0.2, "0.3 * sin(2 * t)", bounded=bounded)
    flow = Incompressible(ctx, volumes, 0.01, dict.fromkeys(volumes.patches, NoSlip()), scalars=[scalar])
    flow.initialise([0.0] * volumes.dimension)
    for _ in range(50):
        flow.step(0.01)
    wanted = 1.5 * (0.2 + 0.15 * (1 - np.cos(1.0))) + np.sin(0.5) + 1.5 * 0.25 * 0.25
    assert flow.scalars["heat"].content().total == pytest.approx(wanted, abs=2e-5)
    assert flow.scalars["heat"].flux("xmin").diffusive == pytest.approx(np.cos(0.5), rel=1e-6)


def heated(ctx: fl.Context, scheme: Any, steps: int) -> np.ndarray:
    """Return the temperature between a wall whose temperature swings and one that gives heat in swings."""
    sides = {"ymin": FixedValue("sin(4 * t)"), "ymax": FixedFlux("cos(3 * t)")}
    flow = flow_of(
        ctx, box2d(3, 12, (0.2, 1.0)), {}, periodic=(("xmin", "xmax"),), other=NoSlip(), scheme=scheme,
        scalars=[Scalar("heat", 0.02, sides, 0.0, "cos(5 * t) * y")],
    )  # fmt: skip
    for _ in range(steps):
        flow.step(0.5 / steps)
    return flow.scalars["heat"].values()


@pytest.mark.parametrize(("scheme", "order"), [(AdamsBashforth(), 1.9), (RungeKutta(), 2.9)], ids=str)
def test_order_of_steps_of_a_scalar(ctx: fl.Context, scheme: Any, order: float) -> None:
    coarse, middle, fine = (heated(ctx, scheme, n) for n in (20, 40, 80))
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > order


# --------------------------------------------------------------------------------------------------- ranks
def driven(comm: Comm | None) -> tuple[np.ndarray, float, float]:
    """Return the momentum, the energy and the heat of a flow of which everything changes in time."""
    mesh = box2d(9, 6, kind="triangle", perturb=0.2)
    context = fl.Context("cpu", threads=1, tuning=False) if comm is None else fl.Context(
        "cpu", threads=1, tuning=False, comm=comm)  # fmt: skip
    if comm is None:
        volumes = control_volumes(mesh, ())
    else:
        volumes = shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), ())
    sides: dict[str, Boundary] = {
        "xmin": Inflow(("y * (1 - y) * (1 + sin(9 * t))", 0.0)), "xmax": Outflow("0.2 * sin(8 * t) + 0.1 * y"),
        "ymin": NoSlip(), "ymax": NoSlip(("t", 0.0)),
    }  # fmt: skip
    heat: dict[str, Any] = {
        "xmin": FixedValue("sin(5 * t)"), "xmax": Outflow(), "ymin": FixedFlux("x * t"), "ymax": Adiabatic(),
    }
    flow = Incompressible(
        context, volumes, 0.02, sides, stop=TIGHT, force=("y * sin(7 * t)", "cos(t)"),
        scalars=[Scalar("heat", 0.02, heat, 0.1, "t * x")],
    )  # fmt: skip
    flow.initialise((0.0, 0.0))
    for _ in range(6):
        flow.step(0.02)
    state = flow.state()
    return state.momentum, state.kinetic_energy, flow.scalars["heat"].content().total


def test_two_ranks_are_as_one() -> None:
    one, two = driven(None), run_threads(2, driven)[0]
    np.testing.assert_allclose(two[0], one[0], rtol=1e-8)
    np.testing.assert_allclose(two[1:], one[1:], rtol=1e-8)


def test_what_does_not_go_with_a_force_in_time(ctx: fl.Context) -> None:
    """A force that keeps the mean velocity would be set twice; the balance of forces knows a uniform one alone."""
    sides = {"ymin": NoSlip(), "ymax": NoSlip()}
    options: dict[str, Any] = {"periodic": (("xmin", "xmax"),)}
    flow = flow_of(ctx, MESHES["quads"](), sides, force=("cos(t)", 0.0), **options)
    with pytest.raises(SolverError, match="mean velocity: the flow has a force that changes in space or time"):
        MeanVelocity(flow, (1.0, 0.0))
    flow = flow_of(ctx, MESHES["quads"](), sides, force=("y * cos(t)", 0.0), **options)
    with pytest.raises(SolverError, match="where a force differs from place to place"):
        Forces(flow, "ymin", balance=True)


@pytest.mark.parametrize("other", [NoSlip(), Symmetry()], ids=["walls", "planes"])
@pytest.mark.parametrize("kind", MESHES)
def test_balance_of_forces_with_a_uniform_force_in_time(ctx: fl.Context, kind: str, other: Boundary) -> None:
    """At rest under ``f(t)`` the sides bear ``f`` times the volume, that of the middle of the last step.

    Force and moment, of all sides and of one, are those under a force that stays as it is then.
    """
    d = 2 if kind != "tetrahedra" else 3
    acting = along(d, np.sin(5 * 0.045), 1 - 2 * 0.045)
    found: list[list[np.ndarray]] = []
    for force in (along(d, "sin(5 * t)", "1 - 2 * t"), acting):
        flow = flow_of(ctx, MESHES[kind](), {}, force=force, other=other)
        for _ in range(5):
            flow.step(0.01)
        every = [Forces(flow, names, balance=True, about=along(d, 0.3, 0.2)).now()
                 for names in (list(flow.boundaries), ["xmin", "ymin"])]  # fmt: skip
        found.append([part for one in every for part in (one.total, one.moment)])
    whole, turn = found[0][:2]
    np.testing.assert_allclose(whole, 1.5 * np.array(acting), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(turn[2], 1.5 * (0.45 * acting[1] - 0.3 * acting[0]), rtol=0.05)
    for moving, steady in zip(*found, strict=True):
        np.testing.assert_allclose(moving, steady, rtol=1e-6, atol=1e-8)
