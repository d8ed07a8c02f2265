"""Scalars with bounds: nothing outside them, no sum lost, smooth parts as good as before, chosen by the start."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, RungeKutta
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.edges.transport import EdgeTransport
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.scalar import Scalar

Array = npt.NDArray[np.float64]
BOTH = (("xmin", "xmax"), ("ymin", "ymax"))
TIGHT = Stop(rtol=1e-12)


def block(x: Array) -> Array:
    """1 in a box left of the middle, else 0."""
    return (np.abs(x - np.array([0.35, 0.5, 0.5])[: x.shape[1]]) < 0.13).all(axis=1).astype(float)


def bell(x: Array) -> Array:
    return np.exp(-((x[:, 0] - 0.3) ** 2 + (x[:, 1] - 0.5) ** 2) / 0.02)


def turning(x: Array) -> Array:
    found = np.zeros_like(x)
    found[:, 0], found[:, 1] = 0.5 - x[:, 1], x[:, 0] - 0.5
    return found


def carried(d: int, n: int, start: Any, end: float, device: str = "cpu", **options: Any) -> EdgeTransport:
    """Return a scalar on perturbed triangles or tetrahedra after a time."""
    context = fl.Context(device, threads=1, tuning=False) if device == "cpu" else fl.Context(device)
    mesh = point_mesh(context, box2d(n, n, kind="triangle", perturb=0.2) if d == 2 else
                      box3d(n, n, n, kind="tetra", perturb=0.1))  # fmt: skip
    transport = EdgeTransport(mesh, turning, options.pop("kappa", 0.0), dict.fromkeys(mesh.patches, 0.0), **options)
    transport.initialise(start)
    steps = ceil(end / transport.stable_step())
    for _ in range(steps):
        transport.step(end / steps)
    return transport


@pytest.mark.parametrize(("d", "n", "kappa"), [(2, 24, 0.0), (2, 16, 1e-3), (3, 8, 0.0)])
def test_edges_keep_bounds(d: int, n: int, kappa: float) -> None:
    found = carried(d, n, block, 1.0, kappa=kappa)
    state = found.state()
    assert found.bounded is not None
    assert state.least >= -1e-14
    assert state.most <= 1.0 + 1e-14
    assert state.most > 0.6
    at_first = float(found.operators.mass.read() @ block(found.places))
    assert state.amount == pytest.approx(at_first, rel=1e-6 if n == 24 else 0.03)
    free = carried(d, n, block, 1.0, kappa=kappa, bounded=False).state()
    assert free.most - free.least > 1.0 + 1e-3


def test_smooth_parts_on_edges() -> None:
    """A bell turned round: nearly second order, and no worse than without bounds."""

    def error(n: int, bounded: bool) -> float:
        found = carried(2, n, bell, np.pi / 2, bounded=bounded)
        x, mass = found.places, found.operators.mass.read()
        at = np.stack([0.5 + (x[:, 1] - 0.5), 0.5 - (x[:, 0] - 0.5)], axis=1)
        return float((mass * np.abs(found.scalar() - bell(at))).sum())

    coarse, fine = error(16, True), error(32, True)
    assert np.log2(coarse / fine) > 1.6
    assert fine < 1.05 * error(32, False)


@pytest.mark.parametrize("level", [300.0, -5.0])
def test_the_range_is_that_of_the_values(level: float) -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    transport = EdgeTransport(point_mesh(context, box2d(4, 4, kind="triangle")), (0.0, 0.0), 0.0)
    transport.initialise(lambda x: level + x[:, 0])
    for _ in range(2):
        assert (transport.state().least, transport.state().most) == (level, level + 1.0)


def test_edges_on_devices() -> None:
    found, wanted = (carried(2, 8, block, 0.2, device).scalar() for device in ("cpu", "reference"))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_too_long_steps_on_edges() -> None:
    found = carried(2, 8, block, 0.1)
    with pytest.raises(SolverError, match="a bounded scalar takes steps of at most"):
        found.step(2.0 * found.stable_step() / 0.8)


def test_chosen_by_the_start() -> None:
    assert carried(2, 8, block, 0.01).bounded is not None
    assert carried(2, 8, lambda x: np.tanh((x[:, 0] - 0.5) / 1e-5), 0.01).bounded is not None
    assert carried(2, 16, lambda x: 0.5 * (1.0 - np.tanh((x[:, 0] - 0.5) / 0.02)), 0.01).bounded is not None
    assert carried(2, 16, lambda x: np.exp(-(((x[:, 0] - 0.6) / 0.05) ** 2)), 0.01).bounded is not None
    assert carried(2, 16, bell, 0.01).bounded is None
    assert carried(2, 8, 0.0, 0.01).bounded is None
    assert carried(2, 8, 1.0, 0.01).bounded is not None  # 0 comes in


@pytest.mark.parametrize(("initial", "bounded"), [
    (lambda x: np.sin(2.0 * np.pi * x[:, 0]), False), (lambda x: x[:, 0], True),  # it jumps from side to side
    (lambda x: np.exp(-(((x[:, 0] - 0.6) / 0.04) ** 2)), True), (block, True),
])  # fmt: skip
def test_chosen_by_the_start_in_periodic_boxes(initial: Any, bounded: bool) -> None:
    volumes = control_volumes(box2d(16, 16), BOTH)
    context = fl.Context("cpu", threads=1, tuning=False)
    flow = Incompressible(context, volumes, 1e-3, scalars=[Scalar("c", 0.0, initial=initial)])
    assert (flow.scalars["c"].bounded is not None) == bounded


def mixed(kind: str, scheme: Any, comm: Comm | None = None, **options: Any) -> Incompressible:
    """Return eddies in a periodic box that have stirred a block for a while."""
    mesh = box2d(16, 16, (1.0, 1.0), kind, perturb=0.15 if kind == "triangle" else 0.0)
    if comm is None or comm.size == 1:
        volumes, context = control_volumes(mesh, BOTH), fl.Context("cpu", tuning=False, threads=1)
    else:
        part = distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS)
        volumes, context = shared_volumes(part, BOTH), fl.Context("cpu", comm=comm, tuning=False, threads=1)
    flow = Incompressible(context, volumes, 1e-3, stop=TIGHT, scheme=scheme,
                          scalars=[Scalar("c", 0.0, initial=block, **options)])  # fmt: skip
    k = 2 * np.pi
    flow.initialise(lambda x: np.stack(
        [np.sin(k * x[:, 0]) * np.cos(k * x[:, 1]), -np.cos(k * x[:, 0]) * np.sin(k * x[:, 1])], axis=1))  # fmt: skip
    for _ in range(16):
        flow.step(0.012)
    return flow


@pytest.mark.parametrize("kind", ["quad", "triangle"])
@pytest.mark.parametrize("scheme", [AdamsBashforth(), RungeKutta()], ids=strategy_name)
def test_volumes_keep_bounds(kind: str, scheme: Any) -> None:
    flow = mixed(kind, scheme)
    found, volumes = flow.scalars["c"].content(), flow.volumes
    assert found.least >= -1e-13
    assert found.largest <= 1.0 + 1e-13
    assert found.largest > 0.8
    start = (volumes.volumes * block(volumes.centres[: volumes.cells])).sum()
    assert found.total == pytest.approx(start, rel=1e-10)
    free = mixed(kind, scheme, bounded=False).scalars["c"].content()
    assert free.largest - free.least > 1.05


@pytest.mark.parametrize("source", [0.0, lambda x: np.zeros(len(x))])
def test_what_flows_in_keeps_bounds(source: Any) -> None:
    """A front through a channel: nothing above what comes in, and a start that differs from it is a jump.

    A source that is a formula, as that of every case file is, may be zero too.
    """
    sides = {"xmin": Inflow((1.0, 0.0)), "xmax": Outflow(), "ymin": Symmetry(), "ymax": Symmetry()}
    found = {"xmin": FixedValue(2.0), "xmax": Outflow(), "ymin": Adiabatic(), "ymax": Symmetry()}
    context, volumes = fl.Context("cpu", tuning=False, threads=1), control_volumes(box2d(24, 4, (1.0, 0.25)))
    flow = Incompressible(context, volumes, 0.01, sides, stop=TIGHT, scalars=[
        Scalar("smoke", 1e-4, found, source=source), Scalar("air", 1e-4, found, initial=2.0)])  # fmt: skip
    flow.initialise((1.0, 0.0))
    for _ in range(40):
        flow.step(0.0125)
    smoke, air = flow.scalars["smoke"], flow.scalars["air"]
    assert smoke.bounded is not None
    assert air.bounded is None
    content = smoke.content()
    assert content.least >= -1e-13
    assert content.largest <= 2.0 + 1e-13
    assert content.total == pytest.approx(2.0 * 0.5 * 0.25, rel=0.01)


def through(kind: str, periodic: bool, kappa: float, source: float) -> Incompressible:
    """Return a block and a jet of scalar in a channel, whose sides are walls, planes of symmetry, or periodic."""
    d = 3 if kind == "tetra" else 2
    mesh = box2d(8, 8, kind=kind, perturb=0.2) if d == 2 else box3d(5, 4, 3, kind=kind, perturb=0.15)
    volumes = control_volumes(mesh, (("ymin", "ymax"),) if periodic else ())
    stream = (1.0,) + (0.0,) * (d - 1)
    flows: dict[str, Any] = {
        "xmin": Inflow(stream), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry(), "zmin": Symmetry(),
        "zmax": Symmetry(),
    }  # fmt: skip
    scalars: dict[str, Any] = {
        "xmin": FixedValue(lambda x: (np.abs(x[:, 1] - 0.5) < 0.3).astype(float)), "xmax": Outflow(),
        "ymin": FixedValue(1.0) if kappa else Adiabatic(), "ymax": Symmetry(), "zmin": Symmetry(),
        "zmax": Adiabatic(),
    }  # fmt: skip
    flows, scalars = ({k: v for k, v in given.items() if k in volumes.patches} for given in (flows, scalars))
    flow = Incompressible(
        fl.Context("cpu", tuning=False, threads=1), volumes, 0.01, flows, stop=TIGHT,
        scalars=[Scalar("c", kappa, scalars, initial=block, source=source)],
    )  # fmt: skip
    flow.initialise(stream)
    return flow


@pytest.mark.parametrize(
    ("kind", "periodic", "kappa", "source"),
    [("triangle", False, 0.02, 0.0), ("tetra", False, 1e-3, 0.2), ("quad", True, 0.0, 0.2), ("tetra", True, 0.05, 0.0)],
)
def test_sides_of_volumes_keep_bounds(kind: str, periodic: bool, kappa: float, source: float) -> None:
    """What comes in, leaves, crosses or diffuses into walls makes no extremum; a source adds what it has."""
    flow = through(kind, periodic, kappa, source)
    assert flow.scalars["c"].bounded is not None
    time = 0.0
    for _ in range(20):
        step = flow.stable_step()
        flow.step(step)
        time += step
        found = flow.scalars["c"].content()
        assert found.least >= -1e-10
        assert found.largest <= 1.0 + source * time + 1e-10
    assert flow.scalars["c"].content().largest > 0.5


@pytest.mark.parametrize("kind", ["triangle", "quad", "tetra"])
def test_bounded_scalars_are_exact_where_they_are_linear(kind: str) -> None:
    """Heat between walls: what two points lack at the boundary too is in the flux, and all fluxes sum to nothing."""
    mesh = box2d(8, 6, kind=kind, perturb=0.25) if kind != "tetra" else box3d(4, 3, 3, kind=kind, perturb=0.2)
    volumes = control_volumes(mesh)

    def linear(x: Array) -> Array:
        return 0.3 + x @ np.array([0.2, 0.4, -0.3])[: x.shape[1]]

    flow = Incompressible(
        fl.Context("cpu", tuning=False, threads=1), volumes, 0.1, dict.fromkeys(volumes.patches, NoSlip()), stop=TIGHT,
        scalars=[Scalar("c", 0.2, dict.fromkeys(volumes.patches, FixedValue(linear)), initial=linear, bounded=True)],
    )  # fmt: skip
    flow.initialise((0.0,) * volumes.dimension)
    for _ in range(40):
        flow.step(flow.stable_step())
    scalar = flow.scalars["c"]
    assert np.abs(scalar.values() - linear(volumes.centres[: volumes.cells])).max() < 1e-12
    assert scalar.flux("ymax").diffusive == pytest.approx(0.2 * 0.4, rel=1e-12)
    assert abs(sum(scalar.flux(patch).diffusive for patch in volumes.patches)) < 1e-12


def test_tight_boxes_lose_no_scalar() -> None:
    """Between adiabatic walls and planes of symmetry, with diffusion, on tetrahedra."""
    volumes = control_volumes(box3d(4, 4, 3, kind="tetra", perturb=0.15))
    sides = {name: Symmetry() if name[0] == "z" else NoSlip() for name in volumes.patches}
    lid = sides | {"ymax": NoSlip((1.0, 0.0, 0.0))}
    closed = {name: Symmetry() if name[0] == "z" else Adiabatic() for name in volumes.patches}
    flow = Incompressible(fl.Context("cpu", tuning=False, threads=1), volumes, 0.01, lid, stop=Stop(rtol=1e-13),
                          scalars=[Scalar("c", 1e-3, closed, initial=block)])  # fmt: skip
    flow.initialise((0.0, 0.0, 0.0))
    start = flow.scalars["c"].content().total
    for _ in range(20):
        flow.step(flow.stable_step())
    found = flow.scalars["c"].content()
    assert found.total == pytest.approx(start, rel=1e-12)
    assert found.least >= -1e-12
    assert found.largest <= 1.0 + 1e-12


@pytest.mark.parametrize(("d", "kappa", "source"), [(2, 0.0, 0.0), (2, 0.02, 0.3), (3, 1e-3, 0.0)])
def test_sides_of_edges_keep_bounds(d: int, kappa: float, source: float) -> None:
    """A jet comes in on one side and all of it leaves on others."""
    mesh = box2d(10, 8, kind="triangle", perturb=0.2) if d == 2 else box3d(5, 4, 4, kind="tetra", perturb=0.1)
    transport = EdgeTransport(
        point_mesh(fl.Context("cpu", threads=1, tuning=False), mesh), (1.0, 0.3, 0.0)[:d], kappa,
        {"xmin": lambda x: (np.abs(x[:, 1] - 0.5) < 0.25).astype(float)}, source=source, bounded=True,
    )  # fmt: skip
    transport.initialise(block)
    time = 0.0
    for _ in range(40):
        step = transport.stable_step()
        transport.step(step)
        time += step
        state = transport.state()
        assert state.least >= -1e-10
        assert state.most <= 1.0 + source * time + 1e-10


def test_too_long_steps_of_a_flow() -> None:
    flow = mixed("quad", AdamsBashforth())
    flow.step(0.2)
    with pytest.raises(SolverError, match=r"scalar 'c': a step was .* times the longest one that keeps its bounds"):
        flow.step(0.02)


def test_ranks() -> None:
    """On two ranks what one finds."""
    alone = run_threads(1, lambda comm: mixed("quad", AdamsBashforth(), comm).scalars["c"].content())[0]
    for found in run_threads(2, lambda comm: mixed("quad", AdamsBashforth(), comm).scalars["c"].content()):
        assert found.total == pytest.approx(alone.total, rel=1e-9)
        assert found.square == pytest.approx(alone.square, rel=1e-7)
        assert found.largest <= 1.0 + 1e-13
