"""Compressible flow: conservation, uniform flow, order, known flows, what is said when something is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.fluxes import AUSM, HLLC, Roe, Rusanov
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import BarthJespersen, Venkatakrishnan
from fluxloom.fv.time_schemes import RK2, RK5, SSPRK3
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.exact.riemann import SOD

LONG = pytest.mark.long

MESHES = {
    "quad": lambda: box2d(5, 4, perturb=0.2),
    "triangle": lambda: box2d(5, 4, kind="triangle", perturb=0.2),
    "stretched": lambda: box2d(4, 4, (1.0, 1e-5), perturb=0.2),
    **{kind: lambda kind=kind: box3d(3, 3, 2, kind=kind, perturb=0.2)
       for kind in ("hexahedron", "tetra", "prism", "pyramid")},
}  # fmt: skip


def flow_of(mesh: MeshData, boundary: Any = None, device: str = "cpu", periodic: Any = (), **options: Any) -> Any:
    """Return a flow with the same boundary all around."""
    volumes = control_volumes(mesh, periodic)
    boundaries = {name: boundary or SlipWall() for name in volumes.patches}
    context = fl.Context(device, threads=1, tuning=False)
    return CompressibleFlow(context, volumes, boundaries, **options)


def shocked(x: np.ndarray) -> np.ndarray:
    """Return the states of Sod's tube."""
    left, right = np.zeros(x.shape[1] + 2), np.zeros(x.shape[1] + 2)
    left[[0, -1]], right[[0, -1]] = 1.0, (0.125, 0.1)
    return np.where(x[:, :1] < 0.5, left, right)


@pytest.mark.parametrize(
    ("kind", "flux"),
    [*((kind, Roe()) for kind in MESHES),
     *(pytest.param(kind, flux, marks=LONG) for kind in ("triangle", "prism") for flux in (Rusanov(), HLLC(), AUSM()))],
)  # fmt: skip
def test_uniform_flow_stays(kind: str, flux: str) -> None:
    mesh = MESHES[kind]()
    state = np.array([1.2, 0.5, -0.3, 0.2, 0.9])[[0, 1, 2, 3, 4] if mesh.dimension == 3 else [0, 1, 2, 4]]
    gas = Gas(constant=1.0, viscosity=Sutherland(0.01, 1.0, 0.5))
    flow = flow_of(mesh, FarField(state), gas=gas, scheme=CompressibleScheme(flux=flux))
    flow.start(state)
    flow.iterate(3)
    np.testing.assert_allclose(flow.states(), np.broadcast_to(state, flow.states().shape), rtol=0, atol=2e-14)
    assert flow.residuals().clipped_faces == flow.residuals().clipped_cells == 0


@pytest.mark.parametrize(
    ("kind", "time"),
    [("quad", SSPRK3()), pytest.param("prism", RK2(), marks=LONG), pytest.param("quad", RK5(), marks=LONG)],
)
def test_nothing_is_lost_between_walls(kind: str, time: str) -> None:
    flow = flow_of(MESHES[kind](), scheme=CompressibleScheme(time=time))
    flow.start(shocked)
    before = flow.totals()
    for _ in range(4):
        flow.advance()
    np.testing.assert_allclose(flow.totals()[[0, -1]], before[[0, -1]], rtol=1e-14)


@pytest.mark.parametrize(
    ("flux", "limiter", "worst"),
    [(Roe(), Venkatakrishnan(), 0.0062), (HLLC(), BarthJespersen(), 0.0050),
     pytest.param(AUSM(), Venkatakrishnan(), 0.0092, marks=LONG),
     pytest.param(Rusanov(), Venkatakrishnan(), 0.0084, marks=LONG)],
)  # fmt: skip
def test_sods_tube(flux: str, limiter: str, worst: float) -> None:
    flow = flow_of(box2d(100, 2, (1.0, 0.02)), scheme=CompressibleScheme(flux=flux, limiter=limiter))
    flow.start(shocked)
    flow.advance_to(0.2)
    exact = SOD.at((flow.volumes.centres[:200, 0] - 0.5) / 0.2)
    assert flow.time == 0.2
    error = np.abs(flow.states()[:, 0] - exact[:, 0]).mean()
    assert 0.3 * worst < error < worst


@pytest.mark.long
def test_first_order_is_worse() -> None:
    errors = []
    for order in (1, 2):
        flow = flow_of(box2d(50, 2, (1.0, 0.04)), scheme=CompressibleScheme(order=order))
        flow.start(shocked)
        flow.advance_to(0.2)
        exact = SOD.at((flow.volumes.centres[:100, 0] - 0.5) / 0.2)
        errors.append(np.abs(flow.states()[:, 0] - exact[:, 0]).mean())
    assert errors[0] > 2.0 * errors[1]


def vortex(x: np.ndarray, t: float = 0.0, beta: float = 5.0) -> np.ndarray:
    """Return an isentropic vortex that moves with (1, 1) in a box of 10 x 10."""
    r = np.mod(x - t, 10.0) - 5.0
    turn = beta / (2.0 * np.pi) * np.exp(0.5 * (1.0 - (r * r).sum(axis=1)))
    rho = (1.0 - 0.2 / 1.4 * turn * turn) ** 2.5
    return np.stack([rho, 1.0 - r[:, 1] * turn, 1.0 + r[:, 0] * turn, rho**1.4], axis=1)


@pytest.mark.parametrize(("kind", "least"), [("quad", 1.95), pytest.param("triangle", 1.9, marks=LONG)])
def test_second_order(kind: str, least: float) -> None:
    errors = []
    for n in (32, 64):
        mesh = box2d(n, n, (10.0, 10.0), kind)
        flow = flow_of(mesh, periodic=[("xmin", "xmax"), ("ymin", "ymax")], scheme=CompressibleScheme(limiter=None))
        flow.start(vortex)
        before = flow.totals()
        flow.advance_to(2.0)
        np.testing.assert_allclose(flow.totals(), before, rtol=1e-13)
        errors.append(np.abs(flow.states() - vortex(flow.volumes.centres, 2.0)).mean())
    assert np.log2(errors[0] / errors[1]) > least


@pytest.mark.parametrize("kind", ["quad", pytest.param("tetra", marks=LONG)])
def test_processor_as_the_reference(kind: str) -> None:
    mesh = box2d(4, 3, perturb=0.2) if kind == "quad" else box3d(2, 1, 1, kind="tetra", perturb=0.2)
    found = []
    for device in ("reference", "cpu"):
        gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.01))
        flow = flow_of(mesh, NoSlipWall(), device, gas=gas)
        flow.start(shocked)
        flow.advance()
        flow.iterate()
        found.append(flow.states())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-14)


def test_heat_between_two_walls() -> None:
    """Between walls of two temperatures the temperature becomes linear, and the walls exchange the same heat."""
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.05))
    volumes = control_volumes(box2d(2, 16), [("xmin", "xmax")])
    walls = {"ymin": NoSlipWall(temperature=1.0), "ymax": NoSlipWall(temperature=1.1)}
    flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes, walls, gas, CompressibleScheme())
    flow.start([1.0, 0.0, 0.0, 1.05])
    flow.iterate(2500)
    w, y = flow.states(), volumes.centres[: volumes.cells, 1]
    np.testing.assert_allclose(gas.temperature(w), 1.0 + 0.1 * y, atol=2e-6)
    out = flow.outflow.read()[volumes.cells :, 3]
    heat = 1.4 / 0.4 * 0.05 / 0.72 * 0.1
    np.testing.assert_allclose(out[:2], heat, rtol=1e-4)
    np.testing.assert_allclose(out[2:], -heat, rtol=1e-4)


def test_a_sliding_wall_drags() -> None:
    """Flow between a wall at rest and one that slides (Couette) has a linear velocity and the stress ``mu U / h``."""
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.05))
    volumes = control_volumes(box2d(2, 12, kind="triangle"), [("xmin", "xmax")])
    walls = {"ymin": NoSlipWall(temperature=1.0), "ymax": NoSlipWall(temperature=1.0, velocity=(0.01, 0.0))}
    flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes, walls, gas)
    flow.start([1.0, 0.0, 0.0, 1.0])
    flow.iterate(4000)
    w, y = flow.states(), volumes.centres[: volumes.cells, 1]
    np.testing.assert_allclose(w[:, 1], 0.01 * y, atol=2e-5)
    np.testing.assert_allclose(flow.outflow.read()[volumes.cells :, 1], [0.0005] * 2 + [-0.0005] * 2, rtol=5e-3)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(SolverError, match=r"flux: a flux is wanted.*not 'roee'; write flux=Roe"):
        CompressibleScheme(flux="roee")
    with pytest.raises(SolverError, match="cfl: a number above 0"):
        CompressibleScheme(cfl=-1.0)
    with pytest.raises(SolverError, match="gamma: a number above 1"):
        Gas(gamma=1.0)
    with pytest.raises(SolverError, match="has no boundary"):
        CompressibleFlow(fl.Context("cpu"), control_volumes(box2d(2, 2)), {})
    turbulent = CompressibleScheme(turbulence=SpalartAllmaras())
    with pytest.raises(SolverError, match="the gas has no viscosity"):
        flow_of(box2d(2, 2), scheme=turbulent)
    with pytest.raises(SolverError, match="distances from the wall"):
        flow_of(box2d(2, 2), scheme=turbulent, gas=Gas(viscosity=Sutherland()))
    flow = flow_of(box2d(2, 2))
    with pytest.raises(SolverError, match="density and pressure have to be positive"):
        flow.start([1.0, 0.0, 0.0, -1.0])
    with pytest.raises(SolverError, match="numbers of shape"):
        flow.start([1.0, 0.0])
    flow.start([1.0, 0.0, 0.0, 1.0])
    with pytest.raises(SolverError, match="cannot advance to -1"):
        flow.advance_to(-1.0)


def test_a_state_that_is_not_finite_is_found() -> None:
    flow = flow_of(box2d(4, 2))
    flow.start([1.0, 0.0, 0.0, 1.0])
    flow.advance()
    w = flow.w.read().copy()
    w[5] = np.nan
    flow.w.write(w)
    with pytest.raises(SolverError, match=r"the state of cell 5 at \[0.375, 0.75\] is not finite; lower cfl"):
        flow.check()
    with pytest.raises(SolverError, match="is not finite"):
        flow.advance()


@pytest.mark.long
def test_limiters_keep_a_front_within_bounds() -> None:
    for limiter in (None, BarthJespersen(), Venkatakrishnan(smoothness=0.1)):
        flow = flow_of(box2d(40, 2), scheme=CompressibleScheme(limiter=limiter))
        flow.start(shocked)
        for _ in range(10):
            flow.advance()
        over = flow.states()[:, 0].max() - 1.0
        assert (over > 1e-3) == (limiter == "none")


@pytest.mark.parametrize("kind", ["triangle", pytest.param("hexahedron", marks=LONG)])
def test_gas_that_does_not_turn_with_the_mesh(kind: str) -> None:
    """Seen from a mesh that turns a uniform flow stays uniform, and turns back: ``du/dt = -omega x u``."""
    mesh = MESHES[kind]()
    d = mesh.dimension
    rate = np.array([0.0, 0.0, 0.3]) if d == 2 else np.array([0.2, -0.1, 0.3])
    state = np.array([1.2, 0.5, -0.3, 0.2, 0.9])[[0, 1, 2, 3, 4] if d == 3 else [0, 1, 2, 4]]
    rotation = Rotation(rate, (0.4, 0.2, 0.1))
    flow = flow_of(mesh, FarField(state), rotation=rotation)
    flow.start(state)
    flow.before()
    u = np.append(state[1:-1], 0.0)[:3]
    wanted = np.zeros(d + 2)
    wanted[1:-1] = -state[0] * np.cross(rate, u)[:d]
    wanted[-1] = 0.0
    found = flow.res.read()[: flow.volumes.cells] / flow.volumes.volumes[:, None]
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), atol=2e-13)


@pytest.mark.long
def test_gas_that_turns_with_its_walls() -> None:
    """Gas that turns as a solid with the box around it stays: its pressure balances the centrifugal force."""
    rotation = Rotation(0.8, (0.5, 0.5))

    def solid(x: np.ndarray) -> np.ndarray:
        r2 = ((x - 0.5) ** 2).sum(axis=1)
        p = np.exp(0.5 * 0.64 * r2)  # of one temperature: dp/dr = rho omega^2 r with rho = p
        return np.column_stack([p, rotation.velocity(x), p])

    errors = []
    for n in (8, 16):
        flow = flow_of(
            box2d(n, n), SlipWall(rotation.velocity), rotation=rotation, scheme=CompressibleScheme(limiter=None)
        )
        flow.start(solid)
        mass = flow.totals()[0]
        flow.advance_to(1.0)
        np.testing.assert_allclose(flow.totals()[0], mass, rtol=1e-13)
        errors.append(np.abs(flow.states() - solid(flow.volumes.centres[: n * n])).mean())
    assert errors[1] < 4e-4
    assert np.log2(errors[0] / errors[1]) > 2.0


def test_a_rotation_is_three_numbers() -> None:
    with pytest.raises(SolverError, match="rotation: one or three finite numbers"):
        Rotation((1.0, 2.0))
