"""Boundaries and sources of compressible flow that depend on the time: against exact solutions, on any mesh, ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import (
    FarField,
    MassFlowInlet,
    NoSlipWall,
    PressureOutlet,
    SlipWall,
    SupersonicInlet,
    SymmetryPlane,
    TotalInlet,
    VelocityInlet,
)
from fluxloom.fv.compressible.boundary_states import TemperatureState
from fluxloom.fv.compressible.free_stream import FreeStreamInTime
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.time_schemes import RK2, SSPRK3
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.given import stage_times
from fluxloom.values.fluctuation import Fluctuation
from fluxloom.values.tables import TimeSeries
from fluxloom.values.value import value_of

SOUND = np.sqrt(1.4)


def flow_in(
    mesh: MeshData, sides: dict[str, Any], device: str = "cpu", *, gas: Gas | None = None, comm: Comm | None = None,
    **more: Any,
) -> CompressibleFlow:  # fmt: skip
    """Return gas at rest in a box whose other sides are walls without friction."""
    if comm is None or comm.size == 1:
        volumes = control_volumes(mesh)
    else:
        shared = distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS)
        volumes = shared_volumes(shared, [])
    context = fl.Context(device, tuning=False, threads=1, comm=comm)
    every = {name: SlipWall() for name in volumes.patches} | sides
    flow = CompressibleFlow(context, volumes, every, gas or Gas(constant=1.0), **more)
    flow.start([1.0, *(0.0,) * mesh.dimension, 1.0])
    return flow


def duct(cells: int) -> MeshData:
    return box2d(cells, 1, (1.0, 1.0 / cells))


@pytest.mark.parametrize(
    "given", ["total", pytest.param("outlet", marks=pytest.mark.long), pytest.param("series", marks=pytest.mark.long)]
)
def test_waves_of_a_pressure_that_changes_are_those_of_linear_acoustics(given: str) -> None:
    """Behind the front p' is what was given at ``t - s / c``, and the error falls with the square of the cells."""
    size, rate = 1e-5, 15.0

    def pulse(time: np.ndarray) -> np.ndarray:
        return size * np.where(time > 0.0, np.sin(rate * time) ** 2, 0.0)

    text = f"1 + {size} * sin({rate} * t)**2"
    times = np.linspace(0.0, 1.0, 4001)
    side = {
        "total": {"xmin": TotalInlet(text, f"(1 + {size} * sin({rate} * t)**2)**(2 / 7)")},
        "outlet": {"xmin": PressureOutlet(text)},
        "series": {"xmin": PressureOutlet(TimeSeries(times=times, numbers=1.0 + pulse(times)) * "1 + 0 * y")},
    }[given]
    errors = []
    for cells in (50, 100):
        flow = flow_in(duct(cells), side)
        flow.advance_to(0.5)
        x, p = flow.volumes.centres[:cells, 0], flow.states()[:, -1] - 1.0
        errors.append(np.abs(p - pulse(0.5 - x / SOUND)).mean() / size)
    assert errors[1] < 0.02
    assert errors[0] > 2.5 * errors[1]


def test_stages_have_their_own_time() -> None:
    """A closed box that is heated gains what the source is at the time of each stage, exactly where it is linear."""
    assert stage_times(RK2().stages) == [0.0, 0.5]
    assert stage_times(SSPRK3().stages) == [0.0, 1.0, 0.5]
    flow = flow_in(duct(4), {}, source=[0.0, 0.0, 0.0, "2 * t * x"])
    before = flow.totals()[-1]
    for _ in range(3):
        flow.advance(0.01)
    gained = flow.volumes.volumes @ flow.volumes.centres[:4, 0] * flow.time**2
    assert flow.totals()[-1] - before == pytest.approx(gained, rel=1e-10)
    flow.start([1.0, 0.0, 0.0, 1.0])
    flow.positivity.begin()  # guarded steps have stages of their own
    flow.advance(0.01)
    assert flow.totals()[-1] - before == pytest.approx(gained / 9.0, rel=1e-10)
    steady = flow_in(duct(4), {}, source=lambda x: np.column_stack([0.0 * x, 0.0 * x[:, 0], x[:, 0]]))
    assert steady.given.given == []


@pytest.mark.parametrize(("kind", "device"), [
    ("tetra", "cpu"), *(pytest.param(*one, marks=pytest.mark.long) for one in (("prism", "cpu"), ("tetra", "opencl"))),
])  # fmt: skip
def test_a_wall_gives_heat(kind: str, device: str) -> None:
    """The energy of a closed box grows by the heat flux through its wall; it changes its sign with x."""
    if device == "opencl":
        pytest.importorskip("pyopencl")
    wall = NoSlipWall(heat_flux="2 * t * (1 + x)")
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.01))
    flow = flow_in(box3d(3, 3, 3, kind=kind), {"ymin": wall}, device, gas=gas)
    before = flow.totals()
    for _ in range(4):
        flow.advance(0.005)
    after = flow.totals()
    span = flow.volumes.patches["ymin"]
    outer = slice(span.start + flow.volumes.interior - flow.volumes.cells,
                  span.stop + flow.volumes.interior - flow.volumes.cells)  # fmt: skip
    heat = flow.volumes.area[outer] @ (1.0 + flow.volumes.centres[span.start : span.stop, 0])
    assert after[-1] - before[-1] == pytest.approx(heat * flow.time**2, rel=1e-9)
    assert after[0] == pytest.approx(before[0], rel=1e-12)


def test_a_steady_heat_flux_is_conducted() -> None:
    """Between a wall that gives heat and one that is cold, the temperature becomes linear: ``dT / dy = -q / k``."""
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.05), prandtl=0.7)
    conductivity = 3.5 * 0.05 / 0.7
    sides = {"ymin": NoSlipWall(heat_flux=0.05), "ymax": NoSlipWall(temperature="1 + 0 * x")}
    flow = flow_in(box2d(1, 8, (0.1, 1.0)), sides, gas=gas)
    flow.iterate(6000)
    temperature = flow.gas.temperature(flow.states())
    wanted = 1.0 + 0.05 / conductivity * (1.0 - flow.volumes.centres[:8, 1])
    assert temperature == pytest.approx(wanted, abs=1e-4)


def test_each_kind_of_boundary_is_refreshed() -> None:
    """What is given in time is what numbers give that are those of that time."""
    half = 0.02
    steady = {
        "xmin": [TotalInlet(1.3, 1.02, (1.0, 0.3)), VelocityInlet((0.22, 0.01), temperature=1.04),
                 MassFlowInlet(0.24, 1.02, (1.0, 0.1)), SupersonicInlet((1.02, 2.0, 0.1, 1.0)),
                 FarField((1.0, 0.32, 0.0, 1.02))],
        "xmax": [PressureOutlet(0.98)],
    }  # fmt: skip
    changing = {
        "xmin": [TotalInlet("1.28 + t", "1 + t + 0 * y", ("1 + 0 * t * x", 0.3)),
                 VelocityInlet(("0.2 + t + 0 * x", "t / 2"), temperature="1 + 2 * t + 0 * y"),
                 MassFlowInlet("0.22 + t + 0 * y", "1 + t", (1.0, 0.1)),
                 SupersonicInlet(("1 + t", 2.0, lambda x, t: 0.1 + 0.0 * x[:, 0], 1.0)),
                 FarField(("1", "0.3 + t", "0 * x * t", value_of("1") + "t"))],
        "xmax": [PressureOutlet("1 - t")],
    }  # fmt: skip
    gas = Gas(constant=1.7)
    for name, pairs in steady.items():
        for one, other in zip(pairs, changing[name], strict=True):
            rows = []
            for side in (one, other):
                flow = flow_in(box2d(3, 3, kind="triangle"), {name: side}, gas=gas)
                flow.given.prepare(half)
                for loop in flow.given.loops(0):
                    loop()
                span = flow.volumes.patches[name]
                rows.append(flow.par.read()[span.start : span.stop])
            assert rows[1] == pytest.approx(rows[0], rel=1e-12), one


def test_what_is_measured_has_the_values_of_now() -> None:
    """Behind a step, who asks for the residual of the present states has the pressure of their time."""
    flow = flow_in(duct(4), {"xmin": PressureOutlet("1 + t + 0 * x")})
    flow.advance(0.01)
    flow.before()
    assert flow.par.read()[flow.volumes.patches["xmin"].start, 3] == pytest.approx(1.0 + flow.time, rel=1e-14)
    flow.start([1.0, 0.0, 0.0, 1.0])
    flow.before()
    assert flow.par.read()[flow.volumes.patches["xmin"].start, 3] == 1.0


def test_a_run_goes_on_in_the_middle() -> None:
    """The values depend on the time alone: behind a restart the bits are those of one run."""
    sides = {"xmin": TotalInlet("1.1 + 0.1 * sin(40 * t)", "1 + t * y"), "xmax": PressureOutlet("1 - t")}
    whole, other = flow_in(duct(8), sides), flow_in(duct(8), sides)
    for _ in range(2):
        whole.advance()
    other.start(whole.states())
    other.scale.value = whole.scale.value
    other.memory = whole.memory
    for flow in (whole, other):
        flow.advance()
        flow.advance()
    assert other.time == whole.time
    assert other.states().tolist() == whole.states().tolist()


def test_a_stream_whose_angle_grows() -> None:
    stream = FreeStreamInTime(0.5, 1.0, 1.0, alpha="10 * t", dimension=2)
    flow = flow_in(box2d(3, 3), {name: FarField(stream) for name in ("xmin", "xmax", "ymin", "ymax")})
    flow.given.prepare(3.0)
    for loop in flow.given.loops(0):
        loop()
    row = flow.par.read()[flow.volumes.patches["xmax"].start]
    assert row[1:3] == pytest.approx(0.5 * SOUND * np.array([np.cos(np.pi / 6), 0.5]))
    box = box3d(2, 2, 2)
    for planes, numbers, fits in (
        (("zmin", "zmax"), {"mach": 0.5, "alpha": "t", "up": 1}, True),
        (("zmin", "zmax"), {"mach": 0.5, "beta": "t", "up": 1}, False),
        (("ymin",), {"mach": 0.5, "alpha": "t", "up": 1}, False),
        (("ymin",), {"mach": "t", "alpha": 3.0, "up": 1}, False),
    ):
        far = FarField(FreeStreamInTime(pressure=1.0, temperature=1.0, **numbers))
        sides = {name: SymmetryPlane() if name in planes else far for name in control_volumes(box).patches}
        if fits:
            flow_in(box, sides)
        else:
            with pytest.raises(SolverError, match="the free stream, which depends on the time, crosses this plane"):
                flow_in(box, sides)
    with pytest.raises(SolverError, match="alpha: it is uniform"):
        FreeStreamInTime(0.5, 1.0, 1.0, alpha="x", dimension=2)
    with pytest.raises(SolverError, match="beta: there is none in 2 dimensions"):
        FreeStreamInTime(0.5, 1.0, 1.0, beta="t", dimension=2)


def test_what_is_wrong_is_told() -> None:
    flow = flow_in(duct(4), {"xmin": PressureOutlet("1 - 100 * t + 0 * x")})
    with pytest.raises(SolverError, match=r"boundary.xmin: '1 - 100 \* t \+ 0 \* x' is -.* at \(0, .*\), at t = "):
        flow.advance_to(0.1)
    flow = flow_in(duct(4), {"xmin": PressureOutlet(TimeSeries(times=(0.0, 0.01), numbers=(1.0, 1.0)))})
    with pytest.raises(SolverError, match=r"boundary.xmin: a series: it goes from 0 to 0.01 and has no value at t = "):
        flow.advance_to(0.1)
    with pytest.raises(SolverError, match=r"boundary.xmin: 't' \+ 1 depends on the time, and steps towards a steady"):
        flow_in(duct(4), {"xmin": TotalInlet(1.0, value_of("t") + 1.0)}).iterate()
    with pytest.raises(SolverError, match="direction: it depends on the time, and what the boundary condition"):
        flow_in(duct(4), {"xmin": MassFlowInlet(1.0, 1.0, ("1 + t * x", 0.0))})


@dataclass(frozen=True)
class ColdFront(fl.BoundaryCondition):
    """A condition of somebody else: the density is that of a temperature, which the pressure inside follows."""

    temperature: Any = 1.0

    def rows(self, faces: Any) -> np.ndarray:
        return faces.row(2.0 * faces.thermal(self.temperature), 0.0, 0.0)

    @property
    def formula(self) -> Any:
        return TemperatureState()


def test_conditions_of_others_take_values() -> None:
    for given in ("1 + 2 * t + 0 * y", lambda x, t: 1.0 + 2.0 * t + 0.0 * x[:, 1]):
        flow = flow_in(duct(4), {"xmin": ColdFront(given)}, gas=Gas(constant=3.0))
        flow.advance(0.01)
        flow.before()
        row = flow.par.read()[flow.volumes.patches["xmin"].start]
        assert row[0] == pytest.approx(6.0 * (1.0 + 2.0 * flow.time), rel=1e-14)


def driven(comm: Comm, mesh: MeshData) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and states of the cells of a box that is driven in every way."""
    mean = value_of("0.5 + 0.1 * sin(9 * t)**2 * (1 + y)")
    first, *rest = Fluctuation(0.02, 0.3, (0.5, 0.0, 0.0), modes=8).parts(3)
    velocity = (mean + first, *rest)
    spin = NoSlipWall(1.0, ("sin(9 * t) * z", 0.0, "-sin(9 * t) * x"), slides=True)
    sides = {
        "xmin": VelocityInlet(velocity, temperature=lambda x, t: 1.0 + t * x[:, 1]),
        "xmax": PressureOutlet(TimeSeries(times=(0.0, 9.0), numbers=(1.0, 0.5))),
        "ymin": spin, "zmin": NoSlipWall(heat_flux="t"),
    }  # fmt: skip
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.01))
    flow = flow_in(mesh, sides, comm=comm, gas=gas, source=["0.1 * t * x", 0.0, 0.0, 0.0, 0.0])
    for _ in range(4):
        flow.advance()
    shared = flow.volumes.shared
    return shared.cells.numbers[: shared.cells.owned], flow.states()


def test_two_ranks() -> None:
    mesh = box3d(4, 3, 3, kind="tetra")
    (_, alone), *_ = run_threads(1, lambda comm: driven(comm, mesh))
    together = np.empty_like(alone)
    for number, states in run_threads(2, lambda comm: driven(comm, mesh)):
        together[number] = states
    assert np.abs(alone[:, 1]).max() > 1e-3
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-14)
