"""Multigrid for compressible flow: what a cycle leaves alone, what is conserved, how fast it is, what is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SlipWall, SupersonicInlet, SupersonicOutlet
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.compressible.multigrid import corrected
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.agglomeration import Coarse, hierarchy
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.solvers.compressible.cycles import (
    Cycle,
    ExplicitSmoother,
    ImplicitSmoother,
    LevelSmoother,
    Multigrid,
    VCycle,
    WCycle,
)
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.multigrid import MultigridSteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme

STREAM = [1.0, 0.5 * 1.4**0.5, 0.0, 1.0]


def pushed(x: np.ndarray) -> np.ndarray:
    """Return a source of momentum across the stream."""
    found = np.zeros((len(x), x.shape[1] + 2))
    found[:, 2] = 0.3 * np.exp(-30.0 * ((x - 0.5) ** 2).sum(axis=1))
    return found


def flow_of(mesh: MeshData, device: str = "cpu", walls: Any = None, **options: Any) -> CompressibleFlow:
    """Return a channel in which a force pushes the gas aside."""
    volumes = control_volumes(mesh)
    stream = [*STREAM[:3], *[0.0] * (mesh.dimension - 2), 1.0]
    boundaries = {name: FarField(stream) if name[0] == "x" else walls or SlipWall() for name in volumes.patches}
    context = fl.Context(device, threads=1, tuning=False)
    options = {"scheme": CompressibleScheme(time=RK5(), cfl=1.15), "source": pushed} | options
    flow = CompressibleFlow(context, volumes, boundaries, **options)
    flow.start(stream)
    return flow


def coarse_of(flow: CompressibleFlow) -> list[Coarse]:
    """Return one coarse level, however few cells there are."""
    return hierarchy(flow.volumes, 1, fewest=4)


def solved_of(how: Multigrid) -> MultigridSteps:
    """Return cycles of a flow that is steady as it is: its source is what its residual lacks."""
    flow = flow_of(box2d(12, 10, kind="triangle", perturb=0.2), source=np.zeros(4))
    wave = lambda x: 1.0 + 0.1 * np.sin(3.0 * x[:, :1] + 2.0 * x[:, 1:])  # noqa: E731
    flow.start(lambda x: np.array(STREAM) * wave(x) + [0.0, 0.0, 0.05, 0.0])
    steps = MultigridSteps(flow, how)
    steps.norms()
    volume = flow.volume.read()[:, None]
    assert flow.source is not None
    flow.source.write(np.where(volume > 0.0, -flow.res.read() / np.where(volume > 0.0, volume, 1.0), 0.0))
    assert steps.total() < 1e-15
    return steps


@pytest.mark.long
@pytest.mark.parametrize(("cycle", "smoother"), [(VCycle(), ImplicitSmoother()), (WCycle(), ExplicitSmoother())])
def test_a_cycle_leaves_a_solution_alone(cycle: Cycle, smoother: LevelSmoother) -> None:
    steps = solved_of(Multigrid(levels=2, cycle=cycle, smoother=smoother))
    before = steps.flow.states().copy()
    steps.step()
    np.testing.assert_allclose(steps.flow.states(), before, rtol=0.0, atol=1e-13)
    assert steps.lessened() == 0
    steps.passages[0].sources()  # without its forcing the coarse level goes another way
    coarse = steps.levels[1]
    there = coarse.states().copy()
    coarse.iterate()
    assert np.abs(coarse.states() - there).max() > 1e-3


@pytest.mark.parametrize("kind", ["triangle", pytest.param("tetra", marks=pytest.mark.long)])
def test_nothing_is_lost_between_levels(kind: str) -> None:
    mesh = box2d(9, 8, kind=kind, perturb=0.2) if kind == "triangle" else box3d(4, 4, 3, kind=kind, perturb=0.2)
    flow = flow_of(mesh, source=None)
    flow.start(lambda x: np.tile(flow.states()[0], (len(x), 1)) * (1.0 + 0.3 * np.sin(3.0 * x[:, :1])))
    steps = MultigridSteps(flow, Multigrid(levels=1, start=1))
    steps.passages[0].down()
    coarse = steps.levels[1]
    np.testing.assert_allclose(coarse.totals(), flow.totals(), rtol=1e-13)
    cells = flow.volumes.cells
    forced = coarse.res.read() + coarse.volume.read()[:, None] * coarse.source.read()  # type: ignore[union-attr]
    sums = np.zeros_like(forced)
    np.add.at(sums, steps.coarse[0].group[:cells], flow.res.read()[:cells])
    few = coarse.volumes.cells
    np.testing.assert_allclose(forced[:few], sums[:few], rtol=0.0, atol=1e-13)
    steps.passages[0].hand_down()
    np.testing.assert_array_equal(flow.states(), coarse.states()[steps.coarse[0].group[:cells]])


@pytest.mark.long
@pytest.mark.parametrize("cycle", [VCycle(), WCycle()])
def test_ten_steps_of_the_flow_alone_do_less_than_a_cycle_of_stages(cycle: Cycle) -> None:
    how = Multigrid(levels=2, cycle=cycle, smoother=ExplicitSmoother(), smoothing=2)
    steps = MultigridSteps(flow_of(box2d(32, 16, (2.0, 1.0))), how)
    norms = steps.solve(1e-9, 20)
    alone = flow_of(box2d(32, 16, (2.0, 1.0)))
    alone.iterate(200)
    steps.flow.w.write(alone.w.read())
    assert norms[-1] < 0.2 * norms[0]
    assert norms[-1] < 0.7 * steps.total()


def cycles_of(mesh: MeshData, levels: int, **options: Any) -> int:
    """Return the cycles that the channel needs to 1e-10, without a limiter."""
    flow = flow_of(mesh, scheme=CompressibleScheme(limiter=None))
    steps = MultigridSteps(flow, Multigrid(levels=levels, **options))
    norms = steps.solve(1e-10, 120)
    assert norms[-1] <= 1e-10 * norms[0]
    assert (steps.refused, steps.part) == (0, 1.0)
    return steps.cycles


@pytest.mark.long
def test_cycles_are_few() -> None:
    assert cycles_of(box2d(16, 8, (2.0, 1.0)), 1) < 26


@pytest.mark.long
def test_cycles_grow_slowly_with_the_mesh_and_mixing_makes_them_fewer() -> None:
    few, many = (cycles_of(box2d(2 * n, n, (2.0, 1.0)), 3, recall=0) for n in (16, 32))
    assert many < 1.6 * few  # twice as many and more without coarse levels
    assert many < 60
    assert cycles_of(box2d(64, 32, (2.0, 1.0)), 3) < many


@pytest.mark.long
def test_transonic_airfoil() -> None:
    """Two shocks, with a limiter, in no more cycles than a third of the steps that Newton's method needs."""
    gas, stream = Gas(constant=1.0), FreeStream.at_angles(0.8, 1.0, 1.0, 1.25, dimension=2)
    volumes = control_volumes(naca_mesh("0012", 64, 24, 20.0))
    flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes,
                            {"airfoil": SlipWall(), "far_field": FarField(stream)}, gas)  # fmt: skip
    flow.start(stream.state(gas, 2))
    norms = MultigridSteps(flow).solve(1e-10, 100)
    assert norms[-1] <= 1e-10 * norms[0]


def test_a_cycle_that_makes_things_worse_is_refused(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states are those before it, CFL numbers fall until a cycle is good, or there are no smaller ones."""
    scheme = CompressibleScheme(time=RK5(), cfl=40.0)
    flow = flow_of(box2d(9, 8, kind="triangle", perturb=0.2), scheme=scheme, source=None)
    flow.start(lambda x: np.array(STREAM) * (1.0 + 0.3 * np.sin(3.0 * x[:, :1])))
    steps = MultigridSteps(flow, Multigrid(levels=1, smoother=ExplicitSmoother()))
    first, before = steps.total(), flow.states()
    assert steps.step() == first
    np.testing.assert_array_equal(flow.states(), before)
    assert (steps.refused, steps.part, flow.cfl, steps.levels[1].cfl) == (1, 0.5, 20.0, 1.25)
    assert "cycle 1 is refused" in caplog.text
    while steps.step() == first:
        assert steps.refused < 10
    assert steps.part < 0.2
    monkeypatch.setattr(steps, "_measure", lambda: np.inf)
    with pytest.raises(SolverError, match=r"is refused.* of the CFL numbers: take fewer levels"):
        _ = [steps.step() for _ in range(20)]


@pytest.mark.long
def test_start_on_coarse_levels() -> None:
    flow = flow_of(box2d(32, 16, (2.0, 1.0)))
    begin = flow.states().copy()
    steps = MultigridSteps(flow, Multigrid(levels=2, start=15))
    steps.start()
    handed = flow.states().copy()
    steps.flow.iterate(600)
    found = flow.states()
    assert np.abs(handed - found).mean() < 0.5 * np.abs(begin - found).mean()


@pytest.mark.long
def test_friction_and_turbulence() -> None:
    mesh = box2d(20, 16, (2.0, 1.0))
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(2e-3))
    scheme = CompressibleScheme(time=RK5(), cfl=1.0, turbulence=SpalartAllmaras())
    volumes = control_volumes(mesh)
    distance = np.minimum(volumes.centres[: volumes.cells, 1], 1.0 - volumes.centres[: volumes.cells, 1])
    boundaries = {name: FarField(STREAM, 0.01) if name[0] == "x" else NoSlipWall() for name in volumes.patches}
    flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes, boundaries, gas, scheme, distance)
    flow.start([*STREAM, 0.01])
    steps = MultigridSteps(flow, Multigrid(levels=2))
    norms = steps.solve(1e-4, 30)
    assert norms[-1] < 0.06 * norms[0]
    steps.passages[0].down()
    coarse = steps.levels[1]
    before = coarse.states()
    coarse.iterate(2)
    after = coarse.states()
    np.testing.assert_allclose(after[:, 0] * after[:, -1], before[:, 0] * before[:, -1], rtol=1e-13)
    assert after[:, -1].max() > 0.005


@pytest.mark.long
@pytest.mark.parametrize(("smoother", "rounding"), [(ImplicitSmoother(), 1e-9), (ExplicitSmoother(), 1e-13)])
def test_reference_device(smoother: LevelSmoother, rounding: float) -> None:
    """The linearisation has differences at boundary faces, with steps of 1e-6, and their rounding."""
    found = []
    for device in ("cpu", "reference"):
        flow = flow_of(box2d(6, 5), device)
        steps = MultigridSteps(flow, Multigrid(levels=1, smoother=smoother, smoothing=1), coarse_of(flow))
        steps.start()
        steps.step()
        found.append(flow.states())
    assert np.abs(found[0] - STREAM).max() > 1e-3
    np.testing.assert_allclose(found[1], found[0], rtol=10.0 * rounding, atol=rounding)


def test_corrections_leave_gas() -> None:
    flow = flow_of(box2d(4, 4))
    change = np.zeros((flow.volumes.elements, 4))
    change[0], change[1], change[2] = [-3.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.1]
    lessened = flow.context.scalar(0.0, "lessened")
    dat = flow.context.dat(flow.elements, change, "change")
    before = flow.states().copy()
    Loop(corrected, flow.elements, dat, flow.volume, flow.w, lessened, most=0.5, gamma=1.4, nv=4, d=2)()
    after = flow.states()
    np.testing.assert_allclose(after[0, 0], 0.5, rtol=1e-14)
    assert 0.5 <= after[1, 3] < 0.9
    assert after[2, 0] == pytest.approx(1.1)
    np.testing.assert_allclose(after[3:], before[3:], rtol=1e-14)
    assert lessened.value == 2.0


def test_errors() -> None:
    for options, message in (
        ({"cycle": "F"}, "cycle: a cycle is wanted"),
        ({"cycle": "W"}, r"write Multigrid: cycle=WCycle\(\)"),
        ({"smoother": "sweep"}, r"smoother=ImplicitSmoother\(\)"),
        ({"levels": -1}, "levels is a whole number"),
        ({"before": 0, "after": 0}, "both 0"),
        ({"smoothing": 1.5}, "smoothing is a whole number"),
        ({"change": 1.0}, "change: a number between 0 and 1"),
    ):
        with pytest.raises(SolverError, match=message):
            Multigrid(**options)  # type: ignore[arg-type]
    for kind, options, message in (
        (ImplicitSmoother, {"sweeps": 0}, "sweeps is 0"),
        (ImplicitSmoother, {"cfl": 0.0}, "cfl: a number above 0"),
        (ExplicitSmoother, {"coarse_cfl": 0.0}, "coarse_cfl: a number above 0"),
    ):
        with pytest.raises(SolverError, match=message):
            kind(**options)  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="no coarse level"):
        MultigridSteps(flow_of(box2d(3, 2)))
    with pytest.raises(SolverError, match="the mesh turns"):
        MultigridSteps(flow_of(box2d(8, 8), rotation=Rotation(0.1)))
    steps = MultigridSteps(flow_of(box2d(8, 8), source=None))
    with pytest.raises(SolverError, match="drop lies between"):
        steps.solve(2.0)
    steps.flow.w.write(np.full_like(steps.flow.w.read(), np.nan))
    with pytest.raises(SolverError, match="is not finite"):
        steps.norms()


def test_explicit_stages_are_guarded() -> None:
    """A stream that meets next to nothing: once guarded, cells are lost no more."""
    stream = [1.0, 3.0 * 1.4**0.5, 0.0, 1.0]
    sides = {"xmin": SupersonicInlet(stream), "xmax": SupersonicOutlet(), "ymin": SlipWall(), "ymax": SlipWall()}
    scheme = CompressibleScheme(time=RK5(), cfl=2.0, limiter=None)
    context = fl.Context("cpu", threads=1, tuning=False)
    volumes = control_volumes(box2d(24, 12, (2.0, 1.0)))
    flow = CompressibleFlow(context, volumes, sides, Gas(constant=1.0), scheme)
    flow.start(lambda x: np.where(x[:, :1] < 0.5, stream, [1e-3, 0.0, 0.0, 1e-5]))
    steps = MultigridSteps(flow, Multigrid(levels=1, smoother=ExplicitSmoother()))
    lost = []
    for _ in range(54):
        steps.step()
        lost.append(flow.residuals().clipped_cells)
    assert lost[0] > 0
    assert not any(lost[4:])
    assert flow.limits > 0
    np.testing.assert_allclose(flow.states(), np.tile(stream, (volumes.cells, 1)), atol=1e-6)
