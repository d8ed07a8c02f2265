"""Scalars in a flow: order, conservation, bounds, boundaries, buoyancy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, RungeKutta
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedFlux, FixedValue
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.scalar import Buoyancy, Scalar
from fluxloom_lab.problems.lid_cavity import lid_walls

BOTH = (("xmin", "xmax"), ("ymin", "ymax"))
LENGTH = 2 * np.pi
TIGHT = Stop(rtol=1e-11)


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False, threads=1)


def waves(x: np.ndarray, time: float = 0.0, alpha: float = 0.0) -> np.ndarray:
    """``2 + exp(-2 alpha t) sin(x - U t) sin(y - V t)``, carried by ``(U, V) = (1, 0.5)``."""
    return 2 + np.exp(-2 * alpha * time) * np.sin(x[:, 0] - time) * np.sin(x[:, 1] - 0.5 * time)


def carried(ctx: fl.Context, n: int, steps: int, scheme: Any, kind: str = "quad") -> tuple[np.ndarray, np.ndarray]:
    """Return the waves at time 1, computed and exact."""
    alpha = 0.05
    volumes = control_volumes(box2d(n, n, (LENGTH, LENGTH), kind), BOTH)
    flow = Incompressible(ctx, volumes, 0.1, stop=TIGHT, scheme=scheme, scalars=[Scalar("c", alpha, initial=waves)])
    flow.initialise((1.0, 0.5))
    for _ in range(steps):
        flow.step(1.0 / steps)
    return flow.scalars["c"].values(), waves(volumes.centres[: volumes.cells], 1.0, alpha)


def test_second_order_in_space(ctx: fl.Context) -> None:
    errors = []
    for n in (12, 24):
        found, wanted = carried(ctx, n, 4 * n, AdamsBashforth())
        errors.append(np.sqrt(((found - wanted) ** 2).mean()))
    assert np.log2(errors[0] / errors[1]) > 1.85
    assert errors[1] < 0.01


@pytest.mark.parametrize(("scheme", "order"), [(AdamsBashforth(), 2), (RungeKutta(), 3)])
def test_order_in_time(ctx: fl.Context, scheme: Any, order: int) -> None:
    fine = carried(ctx, 8, 640, RungeKutta())[0]
    coarse = [np.abs(carried(ctx, 8, steps, scheme)[0] - fine).max() for steps in (20, 40)]
    assert np.log2(coarse[0] / coarse[1]) == pytest.approx(order, abs=0.15)


def made(ctx: fl.Context, n: int) -> float:
    """Return the error of a made-up steady solution in Couette's flow, with a given value and a given flux."""
    alpha, k = 0.3, 2 * np.pi

    def theta(x: np.ndarray) -> np.ndarray:
        return np.sin(k * x[:, 0]) * np.exp(x[:, 1]) + x[:, 1] ** 2

    def source(x: np.ndarray) -> np.ndarray:
        change = k * np.cos(k * x[:, 0]) * np.exp(x[:, 1])
        return 2 * x[:, 1] * change - alpha * ((1 - k * k) * np.sin(k * x[:, 0]) * np.exp(x[:, 1]) + 2)

    def flux(x: np.ndarray) -> np.ndarray:
        return alpha * (np.sin(k * x[:, 0]) * np.exp(x[:, 1]) + 2 * x[:, 1])

    volumes = control_volumes(box2d(n, n), [("xmin", "xmax")])
    made_up = Scalar("c", alpha, {"ymin": FixedValue(theta), "ymax": FixedFlux(flux)}, initial=theta, source=source)
    flow = Incompressible(ctx, volumes, 0.1, {"ymin": NoSlip(), "ymax": NoSlip((2.0, 0.0))}, scalars=[made_up])
    flow.initialise(lambda x: np.stack([2 * x[:, 1], 0 * x[:, 0]], axis=1))
    for _ in range(4 * n * n):
        flow.step(0.25 / (n * n))
    return float(np.sqrt(((flow.scalars["c"].values() - theta(volumes.centres[: volumes.cells])) ** 2).mean()))


def test_made_up_solution_with_walls(ctx: fl.Context) -> None:
    coarse, fine = made(ctx, 8), made(ctx, 16)
    assert np.log2(coarse / fine) > 1.85
    assert fine < 0.03


@pytest.mark.parametrize("scheme", [AdamsBashforth(), RungeKutta()], ids=strategy_name)
def test_what_is_closed_keeps_its_content(ctx: fl.Context, scheme: Any) -> None:
    """And grows by what a source and a wall give, to round-off, on any mesh."""
    volumes = control_volumes(box2d(6, 5, kind="triangle", perturb=0.2, seed=1))
    sides = dict.fromkeys(volumes.patches, Adiabatic())
    closed = Scalar("closed", 0.02, sides, initial=lambda x: np.sin(5 * x[:, 0]))
    heated = Scalar("heated", 0.02, sides | {"ymin": FixedFlux(0.7)}, source=0.3)
    walls = lid_walls(volumes.patches)
    flow = Incompressible(ctx, volumes, 0.05, walls, stop=TIGHT, scheme=scheme, scalars=[closed, heated])
    flow.initialise((0.0, 0.0))
    start = flow.scalars["closed"].content()
    for k in range(20):
        flow.step(0.005 * (1 + k % 2))
    assert flow.scalars["closed"].content().total == pytest.approx(start.total, abs=1e-13)
    assert flow.scalars["closed"].content().square < start.square
    assert flow.scalars["heated"].content().total == pytest.approx((0.7 + 0.3) * flow.time, rel=1e-12)
    assert flow.scalars["heated"].flux("ymin").diffusive == pytest.approx(0.7, rel=1e-12)
    assert np.abs(flow.velocity()).max() > 0.1


def test_content_changes_by_what_flows_through(ctx: fl.Context) -> None:
    """A step of Euler's: exactly by the fluxes at its start."""
    volumes = control_volumes(box2d(8, 5, (2.0, 1.0)))
    sides = {"xmin": FixedValue(1.0), "xmax": Outflow(), "ymin": FixedValue(0.4), "ymax": Symmetry()}
    flow = Incompressible(
        ctx, volumes, 0.1, {"xmin": Inflow((1.0, 0.0)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry()},
        stop=TIGHT, scalars=[Scalar("c", 0.05, sides, initial=lambda x: np.cos(3 * x[:, 0]))],
    )  # fmt: skip
    flow.initialise((1.0, 0.0))
    scalar = flow.scalars["c"]
    entering = sum(scalar.flux(name).diffusive + scalar.flux(name).convective for name in volumes.patches)
    before = scalar.content().total
    flow.step(0.01)
    assert scalar.content().total - before == pytest.approx(0.01 * entering, rel=1e-10)
    assert scalar.flux("ymin").area == pytest.approx(2.0)
    assert scalar.flux("xmin").convective == pytest.approx(1.0)


def test_stays_in_its_bounds_where_cells_are_fine_enough(ctx: fl.Context) -> None:
    """With less than 2 for the Peclet number of cells, ``u h / alpha``; it does not with far more."""

    def extremes(alpha: float) -> tuple[float, float]:
        volumes = control_volumes(box2d(16, 16))
        sides = {"xmin": FixedValue(1.0), "xmax": Outflow(), "ymin": Adiabatic(), "ymax": Adiabatic()}
        slip = {"ymin": Symmetry(), "ymax": Symmetry()}
        flow = Incompressible(
            ctx,
            volumes,
            0.1,
            slip | {"xmin": Inflow((1.0, 0.0)), "xmax": Outflow()},
            scalars=[Scalar("c", alpha, sides, bounded=False)],
        )
        flow.initialise((1.0, 0.0))
        low, high = 0.0, 1.0
        for _ in range(100):
            flow.step(0.004)
            found = flow.scalars["c"].content()
            low, high = min(low, found.least), max(high, found.largest)
        return low, high

    low, high = extremes(1 / 30)
    assert low >= -1e-6
    assert high <= 1 + 1e-6
    assert extremes(1e-4)[1] > 1.05


@dataclass(frozen=True)
class Constant(EddyViscosity):
    """An eddy viscosity that is the same everywhere."""

    @fl.func
    def __call__(self, g, area):
        return 0.03


def test_an_eddy_viscosity_carries_scalars_too(ctx: fl.Context) -> None:
    volumes = control_volumes(box2d(8, 8, (LENGTH, LENGTH)), BOTH)
    found = []
    for alpha, model in ((0.04 + 0.03 / 0.6, None), (0.04, Constant())):
        scalar = Scalar("c", alpha, initial=waves, turbulent_prandtl=0.6)
        flow = Incompressible(ctx, volumes, 0.1 if model is None else 0.07, model=model, scalars=[scalar], stop=TIGHT)
        flow.initialise((1.0, 0.5))
        for _ in range(5):
            flow.step(0.05)
        found.append(flow.scalars["c"].values())
    assert np.abs(found[0] - found[1]).max() < 1e-12


def test_diffusion_limits_steps(ctx: fl.Context) -> None:
    volumes = control_volumes(box2d(8, 8), BOTH)
    limits = []
    for alpha in (0.0, 0.5):
        flow = Incompressible(ctx, volumes, 0.01, scalars=[Scalar("c", alpha)])
        flow.initialise((0.1, 0.0))
        limits.append((flow.stable_step(), flow.stable_step(c2=0.1)))
    assert limits[1][0] == pytest.approx(0.2 / (0.5 * 4 * 64))
    assert limits[1][1] == pytest.approx(0.1 / (0.5 * 4 * 64))
    assert limits[0][0] > 5 * limits[1][0]


def test_what_is_warm_rises(ctx: fl.Context) -> None:
    """And by itself it starts with ``-g beta (theta - theta_0)``, but for the pressure."""
    volumes = control_volumes(box2d(8, 8))
    warm = Scalar(
        "T", 0.01, dict.fromkeys(volumes.patches, Adiabatic()), buoyancy=Buoyancy((0.0, -9.81), 0.1),
        initial=lambda x: np.exp(-20 * ((x - 0.5) ** 2).sum(axis=1)),
    )  # fmt: skip
    flow = Incompressible(ctx, volumes, 0.01, dict.fromkeys(volumes.patches, NoSlip()), scalars=[warm], stop=TIGHT)
    flow.initialise((0.0, 0.0))
    for _ in range(10):
        flow.step(0.01)
    theta, v = flow.scalars["T"].values(), flow.velocity()[:, 1]
    assert v[theta.argmax()] > 0.01
    assert (volumes.volumes * v * theta).sum() > 0
    assert (volumes.volumes * v).sum() == pytest.approx(0.0, abs=0.1 * (volumes.volumes * abs(v)).sum())


def heat(ctx: fl.Context, n: int, rayleigh: float, time: float) -> tuple[float, float]:
    """Return Nusselt's number at both walls of a square with a hot and a cold side; Pr = 0.71."""
    nu, alpha = np.sqrt(0.71 / rayleigh), 1 / np.sqrt(0.71 * rayleigh)
    volumes = control_volumes(box2d(n, n))
    air = Scalar(
        "T", alpha, {"xmin": FixedValue(1.0), "xmax": FixedValue(0.0), "ymin": Adiabatic(), "ymax": Adiabatic()},
        initial=lambda x: 1 - x[:, 0], buoyancy=Buoyancy((0.0, -1.0), 1.0, reference=0.5),
    )  # fmt: skip
    flow = Incompressible(ctx, volumes, nu, dict.fromkeys(volumes.patches, NoSlip()), scalars=[air])
    flow.initialise((0.0, 0.0))
    dt = flow.stable_step()
    while flow.time < time:
        if flow.steps % 20 == 0:
            dt = flow.stable_step()
        flow.step(dt)
    scalar = flow.scalars["T"]
    return scalar.flux("xmin").diffusive / alpha, -scalar.flux("xmax").diffusive / alpha


def test_square_with_a_hot_and_a_cold_side(ctx: fl.Context) -> None:
    """G. de Vahl Davis, Int. J. Numer. Methods Fluids 3, 1983: Nu = 2.243 at Ra = 1e4. Two meshes and their limit."""
    (coarse, other), (fine, _) = heat(ctx, 10, 1e4, 30.0), heat(ctx, 20, 1e4, 30.0)
    assert coarse == pytest.approx(other, rel=1e-4)
    assert fine == pytest.approx(2.243, rel=0.03)
    assert (4 * fine - coarse) / 3 == pytest.approx(2.243, rel=0.01)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_devices_agree(ctx: fl.Context, device: str) -> None:
    volumes = control_volumes(box2d(4, 3, kind="triangle", perturb=0.2))
    sides = {"xmin": FixedValue(lambda x: x[:, 1]), "xmax": Outflow(), "ymin": FixedFlux(0.3), "ymax": Symmetry()}
    lift = Buoyancy((0.0, -1.0), 0.5)
    other = Scalar("b", 0.0, sides | {"ymin": Adiabatic()}, initial=0.5, source=0.1)
    scalars = [Scalar("a", 0.1, sides, buoyancy=lift), other]
    walls = {"xmin": Inflow((1.0, 0.1)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry()}

    def run(context: fl.Context) -> list[np.ndarray]:
        flow = Incompressible(context, volumes, 0.05, walls, stop=TIGHT, scalars=scalars)
        flow.initialise((1.0, 0.0))
        for dt in (0.01, 0.02):
            flow.step(dt)
        return [flow.scalars["a"].values(), flow.scalars["b"].values(), flow.velocity()]

    for mine, wanted in zip(run(fl.Context(device, tuning=False)), run(ctx), strict=True):
        assert np.allclose(mine, wanted, rtol=1e-9, atol=1e-9)


def test_wrong_input(ctx: fl.Context) -> None:
    volumes = control_volumes(box2d(3, 3))
    good: dict[str, Any] = dict.fromkeys(volumes.patches, Adiabatic())
    for scalars, message in (
        ([Scalar("T", -1.0, good)], "scalar 'T': diffusivity: a number at least 0 is wanted, not -1.0"),
        ([Scalar("T", 1.0, good, turbulent_prandtl=0.0)], "turbulent_prandtl: a number above 0 is wanted"),
        ([Scalar("T", 1.0)], "scalar 'T': patch 'xmin' has no boundary: give FixedValue"),
        ([Scalar("T", 1.0, good | {"xmni": Adiabatic()})], "scalar 'T': .*no patch 'xmni'.*did you mean 'xmin'"),
        ([Scalar("T", 1.0, good | {"xmin": FixedValue(np.nan)})], "patch 'xmin': nan is not finite"),
        ([Scalar("T", 1.0, good | {"xmin": FixedValue(lambda _x: [1.0, 2.0])})], r"returns \(3,\) numbers"),
        ([Scalar("T", 0.0, good | {"xmin": FixedFlux(1.0)})], "a flux needs a diffusivity above 0"),
        ([Scalar("T", 1.0, good, buoyancy=Buoyancy((1.0,), 1.0))], "buoyancy: gravity of 2 components"),
        ([Scalar("T", 1.0, good), Scalar("T", 1.0, good)], "scalars: 'T' is there twice"),
    ):
        with pytest.raises(SolverError, match=message):
            Incompressible(ctx, volumes, 0.1, dict.fromkeys(volumes.patches, NoSlip()), scalars=scalars)
    flow = Incompressible(
        ctx, volumes, 0.1, dict.fromkeys(volumes.patches, NoSlip()), scalars=[Scalar("heat", 1.0, good)]
    )
    with pytest.raises(SolverError, match=r"no scalar 'haet'.*did you mean 'heat'"):
        flow.scalars["haet"]
    with pytest.raises(SolverError, match=r"no patch 'ymxa'.*did you mean 'ymax'"):
        flow.scalars["heat"].flux("ymxa")
    flow.scalars["heat"].theta.write(np.full((volumes.elements, 1), np.nan))
    with pytest.raises(SolverError, match="scalar 'heat': not finite at time 0"):
        flow.scalars["heat"].content()
