"""Convection and diffusion of a scalar on edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fe.edges.operators import shared_edge_operators
from fluxloom.fe.edges.point_mesh import PointMesh, point_mesh
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import Advective, EdgeScheme
from fluxloom.solvers.edges.transport import EdgeTransport
from fluxloom_lab.problems.lid_cavity import lid_walls

Array = npt.NDArray[np.float64]

SKEW, ADVECTIVE = EdgeScheme(), EdgeScheme(convection=Advective())


@cache
def mesh_of(d: int, n: int, device: str = "cpu") -> PointMesh:
    """Return a perturbed mesh of the unit square or cube."""
    context = fl.Context(device, threads=1) if device == "cpu" else fl.Context(device)
    return point_mesh(context, box2d(n, n, kind="triangle", perturb=0.1) if d == 2 else
                      box3d(n, n, n, kind="tetra", perturb=0.1))  # fmt: skip


def march(transport: EdgeTransport, end: float, courant: float = 0.8) -> None:
    """Go on for a time with equal steps."""
    steps = ceil(end / transport.stable_step(courant))
    for _ in range(steps):
        transport.step(end / steps)


def norm(transport: EdgeTransport, error: Array) -> float:
    """Return the root of the mean square."""
    mass = transport.operators.mass.read()
    return float(np.sqrt((mass * error**2).sum() / mass.sum()))


def steady(d: int, n: int, kappa: float, scheme: EdgeScheme) -> float:
    """Return the error where ``c = sin(pi (x + y + z))`` is held by a source and given all round."""
    mesh, u = mesh_of(d, n), np.array([1.0, 0.5, 0.25])[:d]

    def exact(p: Array) -> Array:
        return np.sin(np.pi * p.sum(axis=1))

    def source(p: Array) -> Array:
        return np.pi * u.sum() * np.cos(np.pi * p.sum(axis=1)) + kappa * d * np.pi**2 * exact(p)

    transport = EdgeTransport(mesh, tuple(u), kappa, dict.fromkeys(mesh.patches, exact), source=source, scheme=scheme)
    transport.initialise(0.0)
    march(transport, 3.0)
    return norm(transport, transport.scalar() - exact(mesh.coordinates))


@pytest.mark.parametrize(
    ("d", "kappa", "scheme"),
    [
        (2, 1e-3, SKEW), (3, 0.05, SKEW), pytest.param(2, 0.05, SKEW, marks=pytest.mark.long),
        pytest.param(2, 1e-3, ADVECTIVE, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_second_order(d: int, kappa: float, scheme: EdgeScheme) -> None:
    sides = (8, 16) if d == 2 else (6, 12)
    coarse, fine = (steady(d, n, kappa, scheme) for n in sides)
    assert np.log2(coarse / fine) > 1.85
    assert fine < (0.02 if d == 2 else 0.05)


@pytest.mark.parametrize(("d", "bound"), [(2, 1.3e-3), (3, 5e-3)])
def test_decay(d: int, bound: float) -> None:
    kappa, end = 0.1, 0.2
    errors = []
    for n in (8, 16) if d == 2 else (6, 12):
        transport = EdgeTransport(mesh_of(d, n), (0.0,) * d, kappa)
        shape = np.cos(np.pi * transport.places).prod(axis=1)
        transport.initialise(lambda p: np.cos(np.pi * p).prod(axis=1))
        march(transport, end)
        errors.append(norm(transport, transport.scalar() - np.exp(-kappa * d * np.pi**2 * end) * shape))
    assert errors[1] < bound
    assert errors[0] / errors[1] > 3.6


def rotation(p: Array) -> Array:
    """Return the velocity of one turn in a unit of time about the middle."""
    along = np.zeros_like(p)
    along[:, 0], along[:, 1] = -2 * np.pi * (p[:, 1] - 0.5), 2 * np.pi * (p[:, 0] - 0.5)
    return along


def hill(p: Array, width: float = 0.08) -> Array:
    """Return a Gaussian hill."""
    return np.exp(-((p[:, 0] - 0.5) ** 2 + (p[:, 1] - 0.7) ** 2) / (2 * width**2))


def cone(p: Array) -> Array:
    """Return Zalesak's place with a cone on it."""
    return np.clip(1.0 - np.hypot(p[:, 0] - 0.5, p[:, 1] - 0.75) / 0.15, 0.0, None)


def turned(n: int, shape: Callable[[Array], Array]) -> tuple[float, float, float, float]:
    """Return peak, least value, and relative errors of the amount and of the shape after a turn."""
    transport = EdgeTransport(mesh_of(2, n), rotation, 0.0)
    transport.initialise(shape)
    before, start = transport.state(), transport.scalar()
    march(transport, 1.0)
    after = transport.state()
    error = norm(transport, transport.scalar() - start) / norm(transport, start)
    return after.most, after.least, after.amount / before.amount - 1.0, error


def test_rotating_hill() -> None:
    peak, least, amount, error = turned(64, hill)
    assert peak == pytest.approx(0.960, abs=0.01)
    assert least == pytest.approx(-0.030, abs=0.01)
    assert amount == pytest.approx(-0.0022, abs=1e-3)  # through the corners, where the velocity leaves the square
    assert error == pytest.approx(0.166, abs=0.01)


def test_rotating_cone() -> None:
    peak, least, amount, error = turned(64, cone)
    assert peak == pytest.approx(0.842, abs=0.01)
    assert least == pytest.approx(-0.099, abs=0.01)
    assert abs(amount) < 1e-3
    assert error == pytest.approx(0.332, abs=0.01)


@pytest.mark.long
def test_rotating_hill_converges() -> None:
    errors = [turned(n, hill)[3] for n in (32, 64, 128)]
    assert errors[1] / errors[2] > 3.4
    assert errors[0] / errors[1] > 2.0


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("scheme", [SKEW, ADVECTIVE])
def test_amount_stays(d: int, scheme: EdgeScheme) -> None:
    """Away from the boundary neither convection by a rotation, nor diffusion, nor stabilisation makes any of it."""
    transport = EdgeTransport(mesh_of(d, 24 if d == 2 else 12), rotation, 1e-3, scheme=scheme)
    inner = (np.abs(transport.places - 0.5) < 0.12).all(axis=1)
    transport.c.write(np.where(inner, np.random.default_rng(3).uniform(0.5, 1.5, inner.size), 0.0))
    before = transport.state()
    transport.step(0.5 * transport.stable_step())
    after = transport.state()
    assert after.amount == pytest.approx(before.amount, rel=1e-12)
    assert after.square < (1.0 - 1e-3) * before.square


def test_skew_form_without_stabilisation_keeps_the_square() -> None:
    """Only the Runge-Kutta method is left, whose loss is of sixth order in the step."""
    mesh = mesh_of(2, 24)
    transport = EdgeTransport(mesh, rotation, 0.0, scheme=EdgeScheme(dynamic=1e12))
    transport.c.write(hill(transport.places + np.array([0.0, 0.15]), 0.05))
    before = transport.state()
    for _ in range(5):
        transport.step(0.1 * transport.stable_step())
    assert transport.state().square == pytest.approx(before.square, rel=1e-9)


def test_stabilisation_calms() -> None:
    """A layer at an outflow that the mesh does not resolve: without subscales the whole field oscillates."""
    calm, wild = (
        _layer(EdgeScheme(dynamic=dynamic)) for dynamic in (1.0, 1e12)
    )  # fmt: skip
    assert calm < 0.5 * wild


def _layer(scheme: EdgeScheme) -> float:
    """Return the overshoot away from the layer."""
    transport = EdgeTransport(mesh_of(2, 16), (1.0, 0.0), 2e-3, {"xmin": 1.0, "xmax": 0.0}, scheme=scheme)
    transport.initialise(1.0)
    march(transport, 1.0)
    return float(np.abs(transport.scalar() - 1.0)[transport.places[:, 0] < 0.7].max())


def spread(p: Array) -> Array:
    """Return a diffusivity that varies."""
    return 0.01 + 0.1 * p[:, 0]


@pytest.mark.parametrize("d", [2, 3])
def test_devices_agree(d: int) -> None:
    found = []
    for device in ("reference", "cpu"):
        mesh = mesh_of(d, 4 if d == 2 else 2, device)
        transport = EdgeTransport(
            mesh, rotation, lambda p: 0.01 + 0.1 * p[:, 0], {"xmin": lambda p: p[:, 1]}, source=1.0
        )
        transport.initialise(hill)
        transport.step(1e-2)
        transport.step(2e-2)
        found.append(transport.scalar())
        on = transport.places[:, 0] == 0.0
        assert np.array_equal(found[-1][on], transport.places[on, 1])
    assert np.allclose(found[0], found[1], rtol=0, atol=1e-13)


def test_coefficients_follow_the_velocity_of_a_flow() -> None:
    mesh = mesh_of(2, 3, "reference")
    flow = EdgeFlow(mesh, 0.01, lid_walls(mesh.patches))
    flow.initialise()
    smoke = EdgeTransport(mesh, flow.u, 1e-3, {"ymax": 1.0}, operators=flow.operators)
    smoke.initialise(0.0)
    for _ in range(3):
        flow.step(0.01)
        smoke.step(0.01)
    fresh = EdgeTransport(mesh, lambda p: flow.velocity(), 1e-3, {"ymax": 1.0}, operators=flow.operators)
    fresh.c.write(smoke.scalar())
    flow.step(0.01)
    fresh.u.write(flow.velocity())
    for transport in (smoke, fresh):
        transport.step(0.01)
    assert np.array_equal(smoke.scalar(), fresh.scalar())
    assert smoke.time == pytest.approx(0.04)
    assert smoke.steps == 4


def test_refusals() -> None:
    mesh = mesh_of(2, 8)
    with pytest.raises(SolverError, match="given: no patch 'xmim'; did you mean 'xmin'"):
        EdgeTransport(mesh, (1.0, 0.0), 0.0, {"xmim": 1.0})
    with pytest.raises(SolverError, match="diffusivity: numbers of at least 0 are wanted, the least one is -1"):
        EdgeTransport(mesh, (1.0, 0.0), -1.0)
    with pytest.raises(SolverError, match="velocity: a vector of 2 components is wanted"):
        EdgeTransport(mesh, (1.0, 0.0, 0.0), 0.0)
    with pytest.raises(MeshError, match="operators are of another mesh"):
        EdgeTransport(mesh, (1.0, 0.0), 0.0, operators=shared_edge_operators(mesh_of(2, 16)))
    transport = EdgeTransport(mesh, (1.0, 0.0), 0.0)
    with pytest.raises(SolverError, match=r"velocity: 'c' has shape \(\)"):
        EdgeTransport(mesh, transport.c, 0.0)
    with pytest.raises(SolverError, match="dt"):
        transport.step(0.0)
    with pytest.raises(SolverError, match="courant: a positive number is wanted, not -1"):
        transport.stable_step(-1.0)
    with pytest.raises(MeshError, match=r"mesh: what fluxloom.fe.edges.point_mesh.point_mesh"):
        EdgeTransport(mesh.mesh, (1.0, 0.0), 0.0)  # pyright: ignore[reportArgumentType]
    transport.c.write(np.inf)
    with pytest.raises(SolverError, match=r"step 0, time 0: the scalar is not finite; take dt smaller"):
        transport.state()
