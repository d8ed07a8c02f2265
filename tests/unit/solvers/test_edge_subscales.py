"""Flow on edges whose subscales of the pressure are followed in time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm import run_threads
from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.edges.boundary import EdgePatch
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import Tracked
from fluxloom_lab.problems.lid_cavity import lid_walls
from fluxloom_lab.verify.edge_flow_time import IN_TIME

Array = npt.NDArray[np.float64]


def vortices(x: Array) -> Array:
    (s, t), (c, d) = np.sin(np.pi * x).T, np.cos(np.pi * x).T
    return np.stack([s * d, -c * t], axis=1)


def flow_on(
    context: fl.Context, *, open_end: bool = False, recipe: Preconditioner | None = None, n: int = 6
) -> EdgeFlow:  # fmt: skip
    """Return vortices between planes, or a flow from an inlet to an outlet between walls."""
    mesh = box2d(n + 1, n, kind="triangle", perturb=0.2)
    sides: dict[str, EdgePatch] = dict.fromkeys(mesh.patches, Symmetry())
    if open_end:
        sides = {"xmin": Inflow((1.0, 0.0)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}
    points = point_mesh(context, mesh if context.comm.rank == 0 else None, method="rcb")
    flow = EdgeFlow(points, 0.02, sides, scheme=IN_TIME, stop=Stop(rtol=1e-12), preconditioner=recipe)
    flow.initialise(vortices if not open_end else (0.0, 0.0))
    return flow


def advanced(flow: EdgeFlow, *steps: float) -> EdgeFlow:
    for dt in steps:
        assert flow.step(dt).converged
    return flow


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


@pytest.mark.parametrize("open_end", [True, pytest.param(False, marks=pytest.mark.long)])
def test_devices_agree(context: fl.Context, open_end: bool) -> None:
    steps = 0.02, 0.03
    cpu, reference = (
        advanced(flow_on(at, open_end=open_end, n=3), *steps) for at in (context, fl.Context("reference"))
    )
    assert np.abs(cpu.velocity() - reference.velocity()).max() < 1e-10
    assert np.abs(cpu.pressure() - reference.pressure()).max() < 1e-8
    assert cpu.state().imbalance < 1e-9


def test_first_pressure(context: fl.Context) -> None:
    """Before the first step it is that of the vortices already: ``(cos 2 pi x + cos 2 pi y) / 4``."""
    flow = flow_on(context)
    x = flow.loops.places
    wanted = 0.25 * np.cos(2.0 * np.pi * x).sum(axis=1)
    found = flow.pressure()
    assert np.corrcoef(found, wanted)[0, 1] > 0.995
    assert np.ptp(found) == pytest.approx(np.ptp(wanted), rel=0.2)
    assert flow.steps == 0
    after = advanced(flow, 1e-6).pressure()
    assert np.abs(after - found).max() < 0.01 * np.ptp(found)


@pytest.mark.long
def test_steady_flow_does_not_know_the_step(context: fl.Context) -> None:
    """Subscales of a steady flow are ``e / rho``, whatever the step."""
    lid = lid_walls(("xmin", "xmax", "ymin", "ymax"))
    found = []
    for dt in (0.04, 0.02):
        mesh = point_mesh(context, box2d(6, 6, kind="triangle", perturb=0.2))
        flow = EdgeFlow(mesh, 0.1, lid, scheme=IN_TIME, stop=Stop(rtol=1e-8))
        flow.initialise()
        found.append(advanced(flow, *[dt] * round(8.0 / dt)).velocity())
    assert np.abs(found[0] - found[1]).max() < 1e-8
    assert np.abs(found[0][:, 0]).max() == 1.0


def test_preparing_changes_nothing(context: fl.Context) -> None:
    """The matrix of another step may be looked at between steps."""
    plain, prepared = flow_on(context), flow_on(context)
    for flow in (plain, prepared):
        advanced(flow, 0.02)
        if flow is prepared:
            flow.prepare(0.3)
        advanced(flow, 0.02)
    np.testing.assert_allclose(prepared.velocity(), plain.velocity(), rtol=0, atol=1e-12)


@pytest.mark.long
def test_multigrid(context: fl.Context) -> None:
    pytest.importorskip("pyamg")
    one, other = (advanced(flow_on(context, recipe=recipe), 0.02, 0.02) for recipe in (None, SmoothedAggregation()))
    assert np.abs(one.velocity() - other.velocity()).max() < 1e-10


def _of_ranks(comm: Comm) -> Array | None:
    flow = advanced(flow_on(fl.Context("cpu", threads=1, tuning=False, comm=comm)), 0.02, 0.03, 0.02)
    return flow.mesh.gather(flow.velocity())


@pytest.mark.long
def test_ranks(context: fl.Context) -> None:
    wanted = advanced(flow_on(context), 0.02, 0.03, 0.02).velocity()
    found = run_threads(2, _of_ranks)[0]
    assert found is not None
    assert np.abs(found - wanted).max() < 1e-10


def test_checkpoint(tmp_path: Path) -> None:
    """What goes on from a checkpoint has the subscales too, bit by bit."""

    def run(steps: int, file: Path | None) -> Array:
        context = fl.Context("cpu", threads=1, tuning=False)
        flow = flow_on(context)
        if file is None:
            return advanced(flow, *[0.02] * steps).velocity()
        saver = Checkpoints(file, place="marked")
        with saver.watch(context):
            for step in range(steps):
                advanced(flow, 0.02)
                if step == 2:
                    saver.mark()
            return flow.velocity()

    whole = run(8, None)
    run(5, tmp_path / "subscales.h5")
    np.testing.assert_array_equal(run(8, tmp_path / "subscales.h5"), whole)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (partial(EdgeScheme, **{"subscales": "trakced"}), r"subscales: .* not 'trakced'; write subscales=Tracked\(\)"),
        (partial(EdgeScheme, subscales=Tracked(), pressure=0.0), "pressure: a number above 0 is wanted with subscales"),
    ],
)
def test_wrong_choices(make: partial[EdgeScheme], expected: str) -> None:
    with pytest.raises(SolverError, match=expected):
        make()


def test_bound_of_tau(context: fl.Context) -> None:
    """Without the step and without friction ``tau`` is infinite at walls: refused."""
    mesh = point_mesh(context, box2d(3, 3, kind="triangle"))
    sides = dict.fromkeys(mesh.patches, NoSlip())
    with pytest.raises(SolverError, match=r"viscosity: tau has no bound with dynamic = 0 where .* take dynamic = 1"):
        EdgeFlow(mesh, 0.0, sides, scheme=IN_TIME)
    assert EdgeFlow(mesh, 0.0, sides).scheme.dynamic == 1.0
