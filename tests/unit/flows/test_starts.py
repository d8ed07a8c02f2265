"""Flows of scripts that start from the results of others, and go on in their own directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.flows.lattice.given.numerics import Numerics
from fluxloom.flows.lattice.given.start import Start as LatticeStart
from fluxloom.flows.lattice.given.units import Units
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.lbm.streaming.schemes import InPlace, Pull, Streaming
from fluxloom.mesh.generate.boxes import box2d

SIDES = ("xmin", "xmax", "ymin", "ymax")
STEPS, DT = 5, 0.01


def context(comm: Any = None) -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False, comm=comm)


def cavity(n: int, where: fl.Context | None = None, **given: Any) -> fl.Incompressible:
    walls = {name: fl.NoSlip() for name in SIDES[:3]} | {"ymax": fl.NoSlip((1.0, 0.0))}
    chosen: dict[str, Any] = {"viscosity": 0.05, "boundaries": walls, "steps": fl.StepLengths(dt=DT)}
    stop = fl.Pressure(stop=fl.Stop(rtol=1e-12))
    return fl.Incompressible(box2d(n, n), where or context(), pressure=stop, **chosen | given)


@pytest.fixture
def before(tmp_path: Path) -> fl.Result:
    """A run whose result others start from."""
    return fl.run(cavity(8), fl.Steps(STEPS), directory=tmp_path / "before")


def test_a_run_starts_from_a_result(before: fl.Result, tmp_path: Path) -> None:
    """The same from its folder, from what the run returned, and where the flow is told to; the record names it."""
    assert before.directory is not None
    flow = cavity(12)
    start = fl.Start(before.directory, flow.context.comm)
    flow.start_from(start)
    start.close()
    assert np.abs(flow.fields()["u"]).max() > 0.1
    flow.advance(fl.Steps(1))
    for one in (before, before.directory, str(before.directory / "final.vtkhdf")):
        found = fl.run(cavity(12), fl.Steps(1), start=one)
        np.testing.assert_array_equal(found.flow.fields()["u"], flow.fields()["u"])
    fl.run(cavity(12), fl.Steps(1), start=before, directory=tmp_path / "b")
    initial = json.loads((tmp_path / "b" / "run.json").read_text())["case"]["initial"]
    assert initial == {"file": str(before.directory), "outside": "", "keep_time": False}


def test_time_goes_on(before: fl.Result, tmp_path: Path) -> None:
    """Time and steps that are kept count; the run goes on in its directory from its own checkpoint alone."""

    def again(steps: int, flow: fl.Incompressible, **given: Any) -> fl.Result:
        start = fl.Start(before, flow.context.comm, keep_time=True)
        return fl.run(flow, fl.Steps(steps), start=start, directory=tmp_path / "b", checkpoint=fl.Every(1), **given)

    found = again(STEPS + 2, cavity(9))
    assert found.time == pytest.approx((STEPS + 2) * DT)
    assert len(found.residuals) == 2
    longer = again(STEPS + 4, cavity(9))
    whole = fl.run(cavity(9), fl.Steps(STEPS + 4), start=fl.Start(before, context().comm, keep_time=True))
    np.testing.assert_array_equal(longer.flow.fields()["u"], whole.flow.fields()["u"])
    with pytest.raises(CaseError, match=r"it holds results of another case .*initial"):
        fl.run(cavity(9), fl.Steps(STEPS + 4), directory=tmp_path / "b")


def test_on_two_ranks(before: fl.Result) -> None:
    one = fl.run(cavity(11), fl.Steps(2), start=before).flow.fields()["u"]

    def found(comm: Any) -> tuple[Any, Any]:
        flow = cavity(11, context(comm))
        values = fl.run(flow, fl.Steps(2), start=before.directory).flow.fields()["u"]
        assert flow.part is not None
        return flow.part.numbers[: flow.part.owned], values

    for numbers, values in run_threads(2, found):
        np.testing.assert_allclose(values, one[numbers], rtol=0, atol=1e-10)


def test_a_fluid_that_only_the_result_moves(before: fl.Result) -> None:
    """Without viscosity the largest step is that of the velocity at the start, not of what it takes the place of."""
    slip = {name: fl.Symmetry() for name in SIDES}
    free: dict[str, Any] = {"viscosity": 0.0, "boundaries": slip, "steps": fl.StepLengths()}
    assert fl.run(cavity(8, **free), fl.Steps(1), start=before).time > 0.0  # pyright: ignore[reportOptionalOperand]
    with pytest.raises(SolverError, match="dt: a fluid at rest without viscosity has no largest stable step"):
        fl.run(cavity(8, **free), fl.Steps(1))


@pytest.mark.parametrize("streaming", [Pull(), InPlace()])
@pytest.mark.parametrize("steps", [6, 7])
def test_a_lattice_keeps_the_time(streaming: Streaming, steps: int, tmp_path: Path) -> None:
    """Also from an odd number of steps, in place too: populations at a start are those that even steps read."""

    def wave() -> fl.Lattice:
        start = LatticeStart(lambda at: np.stack([np.sin(2.0 * np.pi * at[:, 1]), 0.0 * at[:, 0]], axis=1))
        numerics = Numerics(streaming=streaming, precision="float64")
        return fl.Lattice((4, 32), Units.of(1.0 / 32, viscosity=0.01), context(), start=start, numerics=numerics)

    before = fl.run(wave(), fl.Steps(steps), directory=tmp_path)
    flow = wave()
    start = fl.Start(before, flow.context.comm, keep_time=True)
    flow.start_from(start)
    start.close()
    assert flow.steps == 2 * ((steps + 1) // 2)
    np.testing.assert_allclose(flow.fields()["u"], before.flow.fields()["u"], atol=1e-6)
    for _ in range(8):
        flow.advance(fl.Steps(100))
    for _ in range(flow.steps - steps):
        before.flow.advance(fl.Steps(100))
    np.testing.assert_allclose(flow.fields()["u"], before.flow.fields()["u"], atol=5e-3)


def test_what_depends_on_the_time_has_its_values(tmp_path: Path) -> None:
    """A source in t, and a start that keeps the time: the next steps are those of a run that goes on.

    All but the scale of limiters, which is that of the start.
    """

    def gas() -> fl.Compressible:
        walls = {name: fl.SlipWall() for name in SIDES}
        return fl.Compressible(box2d(6, 5), context(), boundaries=walls, gas=fl.Gas(constant=1.0),
                               start={"density": "1 + 0.1*x", "velocity_x": 0, "velocity_y": 0, "pressure": 1},
                               source=["2*sin(40*t)", 0, 0, "x*cos(30*t)"], steps=fl.Explicit(0.5))  # fmt: skip

    end = fl.Time(1.0)
    before = fl.run(gas(), fl.Steps(4), directory=tmp_path)
    flow = gas()
    start = fl.Start(tmp_path, flow.context.comm, keep_time=True)
    flow.start_from(start)
    start.close()
    for one in (flow, before.flow):
        one.advance(end)
        one.advance(end)
    assert flow.time == pytest.approx(before.time, rel=1e-8)
    np.testing.assert_allclose(flow.fields()["rho"], before.flow.fields()["rho"], rtol=1e-8)
    np.testing.assert_allclose(flow.fields()["p"], before.flow.fields()["p"], rtol=1e-8)


# ------------------------------------------------------------------------------- boundaries that change in time
SIZE = 80.0
"""Of a box so large that few steps reach t = 2."""

Ends = dict[str, Any]


def volumes(n: int, ends: Ends, where: fl.Context, start: tuple[float, ...]) -> Any:
    return fl.Incompressible(box2d(n, n, (SIZE, SIZE)), where, viscosity=1.0, boundaries=ends, start=start,
                             steps=fl.StepLengths(dt=0.5), pressure=fl.Pressure(stop=fl.Stop(rtol=1e-12)))  # fmt: skip


def edges(n: int, ends: Ends, where: fl.Context, start: tuple[float, ...]) -> Any:
    mesh = box2d(n, n, (SIZE, SIZE), kind="triangle")
    return fl.EdgeFlow(mesh, where, viscosity=1.0, boundaries=ends, start=start, steps=fl.StepLengths(dt=0.5),
                       stop=fl.Stop(rtol=1e-12))  # fmt: skip


def staggered(n: int, ends: Ends, where: fl.Context, start: tuple[float, ...]) -> Any:
    grid = StaggeredGrid((np.linspace(0.0, SIZE, n + 1),) * 2, (False, False))
    return fl.Staggered(grid, where, viscosity=1.0, boundaries=ends, start=start, steps=fl.StepLengths(dt=0.5))


def stream(speed: Any) -> Ends:
    return {"xmin": fl.Inflow((speed, 0.0)), "xmax": fl.Outflow(), "ymin": fl.Symmetry(), "ymax": fl.Symmetry()}


def lid(speed: Any) -> Ends:
    return {name: fl.NoSlip() for name in SIDES[:3]} | {"ymax": fl.NoSlip((speed, 0.0))}


def given_now(flow: Any, patch: str) -> np.ndarray:
    """Return the first component of the velocity at a patch, along it at a lid, through it at an inflow."""
    if isinstance(flow, fl.Staggered):
        tables = flow.solver.faces()[0]
        if patch == "xmin":
            return tables[:, 0]
        inner = tables[-1, 1:-1]
        beyond = flow.solver.fields.u.read()[flow.solver.grid.full_shape[0] - 1, 2 : 1 + len(inner) + 1, 0]
        return 0.5 * (inner + beyond)
    if isinstance(flow, fl.EdgeFlow):
        at = flow.domain.patches[patch].points
        inside = np.abs(flow.domain.coordinates[at] - SIZE / 2).min(axis=1) < 0.45 * SIZE  # beside the corners
        return flow.solver.velocity()[at[inside], 0]
    cv = flow.solver.volumes
    return flow.solver.u.read()[flow.solver.spaces.elements.local(cv.patches[patch]), 0]


def started_at_two(make: Any, ends: Any, tmp_path: Path, n: int, where: fl.Context | None = None) -> Any:
    """Return a flow whose start keeps the time 2 of one that was made with 8 cells a side."""
    start = (1.0 if ends is stream else 0.0, 0.0)
    if not (tmp_path / "run.json").exists():
        assert fl.run(make(8, ends("1 + t"), context(), start), fl.Steps(4), directory=tmp_path).time == 2.0
    flow = make(n, ends("1 + t"), where or context(), start)
    kept = fl.Start(tmp_path, flow.context.comm, keep_time=True)
    flow.start_from(kept)
    kept.close()
    assert (flow.time, flow.steps) == (2.0, 4)
    return flow


@pytest.mark.parametrize("n", [8, 11])
@pytest.mark.parametrize("make", [volumes, staggered])
def test_an_inflow_is_that_of_the_kept_time(make: Any, n: int, tmp_path: Path) -> None:
    """A stream of ``1 + t``: at the inflow and everywhere it is 3 at t = 2, and 3.5 a step later."""
    flow = started_at_two(make, stream, tmp_path, n)
    for speed in (3.0, 3.5):
        np.testing.assert_allclose(given_now(flow, "xmin"), speed, rtol=1e-12)
        np.testing.assert_allclose(flow.fields()["u"], speed, rtol=1e-7)
        np.testing.assert_allclose(flow.fields()["v"], 0.0, atol=1e-7)
        assert flow.advance(fl.Steps(1)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("ends", [stream, lid])
@pytest.mark.parametrize("make", [volumes, edges, staggered])
def test_boundaries_of_the_kept_time_are_as_those_that_stay(make: Any, ends: Any, tmp_path: Path) -> None:
    """The velocity without divergence is that of the same result between boundaries with 3 at all times."""
    flow = started_at_two(make, ends, tmp_path, 11)
    still = make(11, ends(3.0), context(), (0.0, 0.0))
    start = fl.Start(tmp_path, still.context.comm)
    still.start_from(start)
    start.close()
    for name in ("u", "v"):
        np.testing.assert_allclose(flow.fields()[name], still.fields()[name], rtol=0, atol=1e-8)
    patch = "ymax" if ends is lid else "xmin"
    np.testing.assert_allclose(given_now(flow, patch), 3.0, rtol=1e-12)
    assert np.isfinite(flow.advance(fl.Steps(1)))
    np.testing.assert_allclose(given_now(flow, patch), 3.5, rtol=1e-12)


@pytest.mark.parametrize("make", [volumes, edges])
def test_the_kept_time_on_two_ranks(make: Any, tmp_path: Path) -> None:
    started_at_two(make, stream, tmp_path, 8)
    near = 0.1 if make is edges else 1e-6  # subscales do not leave the stream as it is
    for u in run_threads(2, lambda comm: started_at_two(make, stream, tmp_path, 11, context(comm)).fields()["u"]):
        np.testing.assert_allclose(u, 3.0, rtol=0, atol=near)


def test_coordinates_that_are_too_large(tmp_path: Path) -> None:
    mesh = box2d(3, 3)
    points = mesh.points.copy()
    points[5, 0] = 1e160
    fl.mesh.write(tmp_path / "final.vtu", mesh.with_points(points), cell_data={"u": np.ones(9)})
    start = fl.Start(tmp_path / "final.vtu", fl.Context("reference").comm, outside="nearest")
    places = np.array([[0.2, 0.3], [0.7, 0.9], [0.5, 0.5]])
    with pytest.raises(SolverError, match=r"final\.vtu: .* large"), np.errstate(all="ignore"):
        start.at(places, ["u"])
