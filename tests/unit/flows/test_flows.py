"""Flows that scripts make: what they take, what they refuse, on tetrahedra and on two ranks as on one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fv.compressible.boundary import BoundaryCondition
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.io.formats import write
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.compressible.flow import CompressibleFlow

Array = npt.NDArray[np.float64]

SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")
STREAM = fl.FreeStream(0.4, 1.0, 1.0, (1.0, 0.0, 0.0), nu_tilde=4.0)
GAS = fl.Gas(constant=1.0)


def context(comm: Comm | None = None) -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False, comm=comm)


def tetrahedra() -> MeshData:
    return fl.mesh.box3d(4, 3, 3, kind="tetra", perturb=0.1)


def bump(at: Array) -> Array:
    return np.exp(-8.0 * ((at - 0.5) ** 2).sum(axis=1))


def gas(mesh: MeshData, where: fl.Context, **given: Any) -> fl.Compressible:
    ends: Mapping[str, BoundaryCondition] = {"xmin": fl.FarField(), "xmax": fl.FarField()}
    start = {"density": lambda at: 1.0 + 0.1 * bump(at)}
    walls = {name: fl.SlipWall() for name in SIDES if name not in ends}
    chosen: dict[str, Any] = {"boundaries": {**ends, **walls}, "gas": GAS, "stream": STREAM, "start": start}
    chosen["steps"] = fl.Explicit(0.5)
    return fl.Compressible(mesh, where, **chosen | given)


def channel() -> dict[str, Any]:
    return {"xmin": fl.Inflow((1.0, 0.0, 0.0)), "xmax": fl.Outflow()} | {name: fl.NoSlip() for name in SIDES[2:]}


def liquid(mesh: MeshData, where: fl.Context) -> fl.Incompressible:
    return fl.Incompressible(mesh, where, viscosity=0.1, boundaries=channel(), start=(1.0, 0.0, 0.0),
                             pressure=fl.Pressure(stop=fl.Stop(rtol=1e-12)))  # fmt: skip


def edges(mesh: MeshData, where: fl.Context) -> fl.EdgeFlow:
    return fl.EdgeFlow(mesh, where, viscosity=0.1, boundaries=channel(), steps=fl.StepLengths(dt=0.01),
                       stop=fl.Stop(rtol=1e-12))  # fmt: skip


def scalar(mesh: MeshData, where: fl.Context) -> fl.Transport:
    return fl.Transport(mesh, where, velocity=(1.0, 0.5, 0.0), diffusivity=0.01, start=bump,
                        boundaries={name: 0.0 if name == "xmin" else None for name in SIDES})  # fmt: skip


def heat(mesh: MeshData, where: fl.Context) -> fl.Diffusion:
    ends = {"xmin": "sin(t)", "xmax": fl.Convective(2.0, "y"), "ymin": fl.FixedFlux("z * t")}
    return fl.Diffusion(mesh, where, conductivity="1 + x", source="t", start=bump, dt=0.01, stop=fl.Stop(rtol=1e-13),
                        boundaries={name: ends.get(name) for name in SIDES})  # fmt: skip


def prisms() -> MeshData:
    return fl.mesh.box3d(4, 3, 3, kind="prism", perturb=0.1)


def water(mesh: MeshData, where: fl.Context) -> fl.ShallowWater:
    return fl.ShallowWater(mesh, where, plan=fl.Plan(0.2, 4), bed=-1.0,
                           elevation=lambda x, y: 0.1 * bump(np.stack([x, y], axis=1)))  # fmt: skip


def plane() -> MeshData:
    return fl.mesh.box2d(6, 5, kind="triangle", perturb=0.1)


FLOWS: dict[str, tuple[Callable[[], Any], Callable[[Any, fl.Context], Any], fl.Until]] = {
    "compressible": (tetrahedra, gas, fl.Steps(3)),
    "incompressible": (tetrahedra, liquid, fl.Steps(3)),
    "edge_flow": (tetrahedra, edges, fl.Steps(3)),
    "transport": (tetrahedra, scalar, fl.Steps(3)),
    "diffusion": (prisms, heat, fl.Steps(3)),
    "shallow_water": (plane, water, fl.Time(0.2)),
    "airfoil": (lambda: (12, 8), lambda shape, where: fl.Airfoil(shape, where), fl.Steps(3)),
}
"""What makes the mesh, and the flow; how far it goes."""


LONG = ("airfoil", "shallow_water")  # quick tests of their own have ranks


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in FLOWS]
)
def test_on_two_ranks_as_on_one(name: str) -> None:
    make, flow, until = FLOWS[name]

    def run(comm: Comm) -> tuple[fl.Result, Mapping[str, Array], Any]:
        result = fl.run(flow(make(), context(comm)), until)
        return result, result.fields, result.flow.partition

    ((alone, wanted, undivided),) = fl.run_threads(1, run)
    assert undivided is None
    (both, found, divided), _ = fl.run_threads(2, run)
    assert divided.ranks == 2
    assert set(found) == set(wanted)
    for key, values in wanted.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-9, atol=1e-11, err_msg=key)
    assert max(float(np.ptp(values)) for values in wanted.values()) > 1e-3
    np.testing.assert_array_equal(both.mesh.points, alone.mesh.points)
    assert (both.flow.steps, both.flow.cells) == (alone.flow.steps, alone.flow.cells)
    assert list(both.flow.patches) == list(alone.flow.patches)


# ------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (fl.Compressible, {"stream": STREAM}),
        (fl.Incompressible, {"viscosity": 0.1}),
        (fl.EdgeFlow, {"viscosity": 0.1}),
        (fl.Transport, {}),
        (fl.Diffusion, {"conductivity": 1.0}),
    ],
)
def test_patches_and_conditions_fit(kind: Callable[..., Any], values: dict[str, Any]) -> None:
    condition = {fl.Compressible: fl.SlipWall(), fl.Transport: 0.0, fl.Diffusion: 0.0}.get(kind, fl.NoSlip())  # type: ignore[call-overload]
    ends = dict.fromkeys(SIDES, condition)
    lacking = {name: end for name, end in ends.items() if name != "ymax"}
    with pytest.raises(MeshError, match=r"boundaries: the patch 'ymax' has none \(patches: xmin, .*\)"):
        kind(tetrahedra(), context(), boundaries=lacking, **values)
    with pytest.raises(MeshError, match=r"boundaries: the mesh has no patch 'ymxa'; did you mean 'ymax'\?"):
        kind(tetrahedra(), context(), boundaries=ends | {"ymxa": condition}, **values)
    with pytest.raises(MeshError, match="mesh: a mesh, the path of one, or a function that makes it is wanted, not 7"):
        kind(7, context(), boundaries=ends, **values)


def test_a_name_that_is_no_patch_of_the_water() -> None:
    with pytest.raises(MeshError, match="boundaries: the mesh has no patch 'ymx'; did you mean"):
        fl.ShallowWater(plane(), context(), plan=fl.Plan(1.0, 1), bed=-1.0, boundaries={"ymx": fl.Incident(
            0.0)})  # fmt: skip


def test_slopes_that_are_none() -> None:
    with pytest.raises(SolverError, match="gradients: 'nodes' is unknown"):
        fl.CompressibleScheme(gradients="nodes")  # type: ignore[arg-type]


def test_every_rank_hears_of_a_patch_without_a_condition() -> None:
    def make(comm: Comm) -> None:
        fl.Incompressible(tetrahedra(), context(comm), viscosity=0.1, boundaries={})

    with pytest.raises(MeshError, match="the patch 'xmin' has none"):
        fl.run_threads(2, make)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stream": None, "start": None}, "boundaries.xmin: it has no state: give it one, or give the flow a stream"),
        ({"start": {"pressure": "x - 1.0"}}, "start.pressure: above 0 is wanted, not -"),
        ({"start": {"presure": "x"}}, "start: unknown name 'presure'; did you mean 'pressure'?"),
        ({"start": [1.0, 0.0, 1.0]}, "start: numbers of shape"),
        ({"boundaries": dict.fromkeys(SIDES, fl.NoSlipWall())}, "boundaries.xmin: a wall with friction needs a gas"),
        ({"steps": 0.5}, "steps: Explicit, Implicit or Multigrid is wanted, not 0.5"),
        ({"flux": fl.Venkatakrishnan()}, "flux: "),
    ],
)  # fmt: skip
def test_a_gas_that_does_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=re.escape(message)):
        gas(tetrahedra(), context(), **given)


def test_a_gas_needs_a_start_or_a_stream() -> None:
    """Nothing is taken for granted: without both a flow would begin at rest, with a density and a pressure of 1."""
    walls = {name: fl.SlipWall() for name in SIDES}
    with pytest.raises(SolverError, match="start: give the states at the start, or a stream"):
        fl.Compressible(tetrahedra(), context(), boundaries=walls)
    with pytest.raises(SolverError, match=r"start\.velocity_x: it is not given, and there is no stream"):
        fl.Compressible(tetrahedra(), context(), boundaries=walls, start={"density": "1.0 + x"})
    flow = fl.Compressible(tetrahedra(), context(), boundaries=walls, start=[1.2, 0.0, 0.0, 0.0, 1e5])
    np.testing.assert_array_equal(flow.fields()["rho"], 1.2)
    solver = CompressibleFlow(context(), flow.solver.volumes, walls)
    for step in (solver.advance, solver.iterate):
        with pytest.raises(SolverError, match=r"no states yet: call start\(values\)"):
            step()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": (1.0,)}, "start: a vector of 3 components is wanted"),
        ({"start": lambda at: at[:, 0]}, "start: a vector of 3 components is wanted, or a function that returns"),
        ({"scheme": fl.RungeKutta()}, "scheme: IncompressibleScheme(...) is wanted, not RungeKutta()"),
        ({"pressure": fl.Jacobi()}, "pressure: Pressure(...) is wanted, not Jacobi()"),
        ({"steps": 0.1}, "steps: StepLengths(...) is wanted, not 0.1"),
        ({"force": (1.0, 0.0, 0.0), "mean_velocity": (1.0, 0.0, 0.0)}, "force: give only one of force and mean"),
    ],
)  # fmt: skip
def test_a_liquid_that_does_not_fit(given: dict[str, Any], message: str) -> None:
    ends = {name: fl.NoSlip() for name in SIDES}
    with pytest.raises(SolverError, match=re.escape(message)):
        fl.Incompressible(tetrahedra(), context(), viscosity=0.1, boundaries=ends, **given)


def test_steps_towards_a_steady_flow_have_no_time() -> None:
    flow = gas(tetrahedra(), context(), steps=None)
    assert flow.time is None
    with pytest.raises(SolverError, match="until: these steps lead towards a steady flow"):
        fl.run(flow, fl.Time(1.0))


def test_an_end_at_a_steady_liquid_wants_a_scheme_for_it() -> None:
    with pytest.raises(SolverError, match=r"give scheme=IncompressibleScheme\(steady=True\)"):
        fl.run(liquid(tetrahedra(), context()), fl.Steady(orders=2))


def test_the_water_goes_no_further_than_its_plan() -> None:
    with pytest.raises(SolverError, match=r"until: the plan of this flow ends at 0\.2, before 1"):
        fl.run(water(plane(), context()), fl.Time(1.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cfl": 0.0}, "cfl: a number above 0 is wanted, not 0.0"),
        ({"ramp": 3}, "ramp is there but cfl_start is not"),
        ({"dt": -1.0}, "dt: a number of at least 0 is wanted, not -1.0"),
        ({"dt": 0.1, "local": True}, "dt is the length of all steps in time, and there is local"),
        ({"dt": 0.1, "ramp": 3, "cfl_start": 0.1}, "dt is the length of all steps in time, and there is ramp"),
        ({"cfl_start": 2.0, "ramp": 3}, "cfl_start (2) is more than cfl (0.8)"),
    ],
)
def test_explicit_steps_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=re.escape(message)):
        fl.Explicit(**given)


def given_steps(dt: float, **given: Any) -> fl.Compressible:
    smooth = {"scheme": fl.CompressibleScheme(limiter=None)}
    return gas(tetrahedra(), context(), steps=fl.Explicit(0.8, dt=dt), **smooth | given)


def test_explicit_steps_of_a_given_length() -> None:
    """Equal steps hit the end, no longer than what is given; errors fall with the order of the stages, the third."""
    found = []
    for dt in (0.016, 0.008, 0.004):
        flow = given_steps(dt)
        assert fl.run(flow, fl.Time(0.16)).status == "end reached"
        assert (flow.steps, flow.time) == (round(0.16 / dt), 0.16)
        found.append(flow.solver.states())
    coarse, middle, fine = found
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > 2.6
    flow = given_steps(0.012)
    fl.run(flow, fl.Time(0.16))
    assert (flow.steps, flow.time) == (14, 0.16)


def test_explicit_steps_that_are_too_long() -> None:
    """They are refused; where the gas heats up until they are, the run ends there."""
    with pytest.raises(SolverError, match=r"dt: steps of 0.5 are longer than cfl = 0.8 allows, 0\.0"):
        fl.run(given_steps(0.5), fl.Time(1.0))
    flow = given_steps(0.01, source=[0.0, 0.0, 0.0, 0.0, "2000 * t"])
    with pytest.raises(SolverError, match=r"diverged: at step \d+.*: steps of 0.01 are longer than cfl = 0.8"):
        fl.run(flow, fl.Time(1.0))
    assert 0.05 < flow.solver.time < 0.9


@pytest.mark.parametrize(
    ("wall", "message"),
    [
        (fl.NoSlip((0.0, 1.0, 0.0)), r"boundaries\.ymax\.velocity: a wall slides along itself"),
        (fl.Inflow((0.0, -1.0, 0.0)), "boundaries: the given velocities let .* more in, and no patch is an outflow"),
    ],
)
@pytest.mark.parametrize("kind", [fl.Incompressible, fl.EdgeFlow])
def test_velocities_that_do_not_fit(kind: Callable[..., Any], wall: object, message: str) -> None:
    ends = {name: fl.NoSlip() for name in SIDES} | {"ymax": wall}
    mesh = fl.mesh.box3d(3, 3, 3, kind="tetra")
    with pytest.raises(SolverError, match=message):
        kind(mesh, context(), viscosity=0.1, boundaries=ends)


# ------------------------------------------------------------------------------------------ what is given


def test_the_stream_stands_where_nothing_is_given() -> None:
    """Its state and its turbulence at far fields, its state in the cells; what is given stays."""
    air = fl.Gas(constant=1.0, viscosity=fl.ConstantViscosity(0.01))
    ends = {name: fl.FarField() for name in SIDES} | {
        "ymin": fl.NoSlipWall(), "ymax": fl.FarField((1.0, 0.1, 0.0, 0.0, 1.0), turbulence=0.5),
        "xmax": fl.PressureOutlet(1.0),
    }  # fmt: skip
    flow = fl.Compressible(
        tetrahedra(), context(), boundaries=ends, gas=air, stream=STREAM,
        scheme=fl.CompressibleScheme(turbulence=fl.SpalartAllmaras()),
    )  # fmt: skip
    nut = STREAM.turbulence(air)
    assert nut == pytest.approx(4.0 * 0.01)
    found: Any = flow.solver.boundaries
    assert (found["xmin"].state, found["xmin"].turbulence, found["xmax"].turbulence) == (STREAM, nut, nut)
    assert (found["ymax"].state[1], found["ymax"].turbulence) == (0.1, 0.5)
    np.testing.assert_array_equal(flow.fields()["nu_tilde"], nut)
    np.testing.assert_array_equal(flow.fields()["u"], STREAM.state(air, 3)[1])


def test_flux_and_limiter_take_the_place_of_those_of_the_scheme() -> None:
    scheme = fl.CompressibleScheme(low_mach=True)
    flow = gas(tetrahedra(), context(), scheme=scheme, flux=fl.HLLC(), limiter=fl.BarthJespersen())
    assert (flow.solver.scheme.flux, flow.solver.scheme.limiter) == (fl.HLLC(), fl.BarthJespersen())
    assert flow.solver.scheme.low_mach


def test_a_start_by_name_is_one_of_places() -> None:
    def states(at: Array) -> Array:
        found = np.tile(STREAM.state(GAS, 3), (len(at), 1))
        found[:, 0] = 1.0 + 0.1 * bump(at)
        return found

    one, other = gas(tetrahedra(), context()), gas(tetrahedra(), context(), start=states)
    for key, values in one.fields().items():
        np.testing.assert_array_equal(other.fields()[key], values)


def test_steps_in_time_hit_the_end_and_need_none() -> None:
    result = fl.run(gas(tetrahedra(), context()), fl.Time(0.1))
    assert result.time == 0.1
    counted = fl.run(gas(tetrahedra(), context()), fl.Steps(4))
    assert counted.steps == 4
    assert counted.time is not None
    assert 0.0 < counted.time < 0.1 * 4


def test_a_mesh_from_a_file_whose_sides_are_joined(tmp_path: Path) -> None:
    """Taylor and Green's vortices decay as they should, on a mesh that a path names."""
    path, size = tmp_path / "box.vtu", 2.0 * np.pi
    write(path, fl.mesh.box2d(24, 24, (size, size)))

    def vortices(at: Array) -> Array:
        x, y = at.T
        return np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)], axis=1)

    joined = fl.Domain(path, periodic=[("xmin", "xmax"), ("ymin", "ymax")])
    flow = fl.Incompressible(joined, context(), viscosity=0.1, boundaries={}, start=vortices)
    before = flow.columns()["kinetic_energy"]
    result = fl.run(flow, fl.Time(1.0))
    decay = flow.columns()["kinetic_energy"] / before
    assert decay == pytest.approx(np.exp(-4.0 * 0.1), rel=5e-3)
    assert result.mesh.n_cells == 576


def test_control_volumes_serve_several_flows() -> None:
    """What is dealt out once is taken by each of them."""
    from fluxloom.flows.volumes import flow_volumes

    where = context()
    volumes = flow_volumes(tetrahedra(), where, SIDES)
    for mach in (0.2, 0.5):
        flow = gas(volumes, where, stream=fl.FreeStream(mach, 1.0, 1.0, (1.0, 0.0, 0.0)))  # type: ignore[arg-type]
        FlowRun(flow, "gas", fl.Steps(1)).advance()
        assert flow.solver.volumes is volumes.volumes


def test_staggered_starts_alike() -> None:
    """A vector, a function and values at faces are the same start."""
    line = np.linspace(0.0, 1.0, 9)
    grid = fl.StaggeredGrid((line, line, line), (True, True, True))
    at_faces = [np.full(np.broadcast_shapes(*(p.shape for p in grid.places(a))), 0.5 * (a == 0)) for a in range(3)]
    starts: list[Any] = [(0.5, 0.0, 0.0), lambda at: np.tile([0.5, 0.0, 0.0], (len(at), 1)), at_faces]
    for start in starts:
        flow = fl.Staggered(grid, context(), viscosity=0.1, start=start)
        result = fl.run(flow, fl.Steps(2))
        np.testing.assert_allclose(result.fields["u"], 0.5, rtol=1e-14)
