"""Forces of compressible flow: budgets, hydrostatics, shear, coefficients, values along patches and cuts."""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import BoundaryCondition, FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.monitors.walls import cut_patches
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import AerodynamicReference, SurfaceForce, SurfaceForces, patch_values

STREAM = FreeStream.at_angles(0.5, 1e5, 300.0, 3.0, dimension=2)
SMOOTH = CompressibleScheme(limiter=None)


def flow_of(
    mesh: MeshData, boundary: BoundaryCondition | dict[str, BoundaryCondition], gas: Gas | None = None,
    device: str = "cpu",
) -> CompressibleFlow:  # fmt: skip
    volumes = control_volumes(mesh)
    given = boundary if isinstance(boundary, dict) else dict.fromkeys(volumes.patches, boundary)
    return CompressibleFlow(Context(device, threads=1, tuning=False), volumes, given, gas, SMOOTH)


@pytest.mark.parametrize("d", [2, 3])
def test_budget_of_momentum(d: int) -> None:
    """What leaves through all patches is what the cells lose: mass, momentum and energy, to round-off."""
    mesh = box2d(6, 5, perturb=0.2) if d == 2 else box3d(4, 3, 3, perturb=0.2)
    stream = FreeStream.at_angles(0.4, 1.0, 1.0, 5.0, dimension=d)
    patches: dict[str, BoundaryCondition] = {name: FarField(stream) for name in control_volumes(mesh).patches}
    patches["ymin"] = SlipWall()
    flow = flow_of(mesh, patches, Gas(constant=1.0))
    bumps = np.random.default_rng(1).uniform(0.9, 1.1, (flow.volumes.cells, d + 2))
    flow.start(stream.state(flow.gas, d) * bumps)
    force = SurfaceForces(flow, {"all": list(patches)}).now()["all"]
    lost = flow.res.read()[: flow.volumes.cells].sum(axis=0)
    assert force.mass == pytest.approx(-lost[0], abs=1e-13)
    assert force.total == pytest.approx(-lost[1 : 1 + d], abs=1e-13)
    assert force.energy == pytest.approx(-lost[1 + d], abs=1e-12)
    assert force.through > abs(force.mass) > 1e-4
    assert force.area == pytest.approx(flow.volumes.area[flow.volumes.interior :].sum())


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_gas_at_rest(device: str) -> None:
    """Its pressure pushes on a side, about the corner with an arm of half the side; nothing but the excess counts."""
    flow = flow_of(box3d(2, 3, 4, (1.0, 2.0, 3.0)), SlipWall(), device=device)
    flow.start([1.0, 0.0, 0.0, 0.0, 5.0])
    groups = {"xmax": ["xmax"], "all": list(flow.volumes.patches)}
    found = SurfaceForces(flow, groups).now()
    assert found["xmax"].pressure == pytest.approx([30.0, 0.0, 0.0])
    assert found["xmax"].moment == pytest.approx([0.0, 45.0, -30.0])
    assert found["xmax"].friction == pytest.approx(np.zeros(3), abs=1e-13)
    assert found["xmax"].area == pytest.approx(6.0)
    assert np.abs(found["all"].total).max() < 1e-12
    assert np.abs(found["all"].moment).max() < 1e-11
    moved = SurfaceForces(flow, groups, pressure=4.0, points={"xmax": (1.0, 1.0, 1.0)}).now()["xmax"]
    assert moved.total == pytest.approx([6.0, 0.0, 0.0])
    assert moved.moment == pytest.approx([0.0, 6.0 * 0.5, 0.0], abs=1e-13)


def test_shear() -> None:
    """Gas between a wall at rest and one that slides: both feel ``mu U / h``, in opposite directions."""
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.01))
    walls: dict[str, BoundaryCondition] = {"ymin": NoSlipWall(), "ymax": NoSlipWall(velocity=(0.3, 0.0))}
    sides: dict[str, BoundaryCondition] = {name: SlipWall() for name in ("xmin", "xmax")}
    flow = flow_of(box2d(6, 8), walls | sides, gas)
    flow.start(lambda x: np.stack([np.ones(len(x)), 0.3 * x[:, 1], 0 * x[:, 0], np.ones(len(x))], axis=1))
    found = SurfaceForces(flow, {name: [name] for name in walls}, pressure=1.0).now()
    assert found["ymin"].friction == pytest.approx([0.003, 0.0], rel=1e-9, abs=1e-12)
    assert found["ymax"].friction == pytest.approx([-0.003, 0.0], rel=1e-9, abs=1e-12)
    assert found["ymin"].mass == found["ymin"].through == 0.0
    values = patch_values(flow, "ymin")
    assert values.friction[:, 0] == pytest.approx(0.003, rel=1e-9)
    assert values.y_plus == pytest.approx(np.sqrt(0.003) / 0.01 / 16, rel=1e-6)
    assert values.columns["tau_x"] == pytest.approx(0.003, rel=1e-9)
    assert list(values.columns) == [
        "x", "y", "nx", "ny", "area", "p", "tau_x", "tau_y", "y_plus", "T", "heat_flux", "conductivity",
    ]  # fmt: skip
    assert [set(patch_values(flow, name).moves.tolist()) for name in ("ymin", "ymax")] == [{0.0}, {1.0}]
    assert patch_values(flow, "ymax").heat == pytest.approx(0.0, abs=1e-12)  # less the work of the wall that slides


def test_uniform_flow_has_no_force_on_open_ends() -> None:
    """What enters a box on one side leaves on the others; with the free stream's pressure left out nothing is left."""
    flow = flow_of(box2d(4, 4), FarField(STREAM))
    flow.start(STREAM.state(flow.gas, 2))
    found = SurfaceForces(flow, {"all": list(flow.volumes.patches)}, pressure=STREAM.pressure).now()["all"]
    assert np.abs(found.total).max() < 1e-8 * STREAM.pressure
    assert abs(found.mass) < 1e-12 * found.through


def sample(moment: tuple[float, float, float], *force: float) -> SurfaceForce:
    return SurfaceForce(np.array(force), np.zeros(len(force)), np.array(moment), 0.0, 0.0, 0.0, 1.0)


def test_coefficients_in_two_dimensions() -> None:
    """Drag along the stream, lift to its left; a force upwards ahead of the point lifts the nose."""
    gas, a = Gas(), radians(3.0)
    q = 0.7 * 1e5 * 0.25
    found = AerodynamicReference(STREAM, gas, area=2.0, length=0.5).of(sample((0.0, 0.0, -q), 2 * q, 0.0))
    assert found.drag == pytest.approx(cos(a))
    assert found.lift == pytest.approx(-sin(a))
    assert found.moment == pytest.approx(1.0)


@pytest.mark.parametrize(("up", "moment", "force"), [(2, (0.0, 1.0, 0.0), (0, 0, 1)), (1, (0.0, 0.0, -1.0), (0, 1, 0))])
def test_coefficients_with_a_span(up: int, moment: tuple[float, float, float], force: tuple[float, ...]) -> None:
    """With the axis that leads up z or y, and with sideslip: lift is across the flow and the span."""
    stream = FreeStream.at_angles(0.5, 1e5, 300.0, 4.0, 7.0, up=up)
    reference = AerodynamicReference(stream, Gas(), up=up)
    drag, lift = reference.directions
    assert drag @ lift == pytest.approx(0.0, abs=1e-15)
    assert lift[3 - up] == 0.0
    q = stream.dynamic_pressure(Gas())
    found = reference.of(sample(moment, *force))
    assert found.moment == pytest.approx(1.0 / q)
    assert found.lift == pytest.approx(cos(radians(4.0)) / q)


def test_airfoil_values() -> None:
    """Along an airfoil in uniform flow: one row a face, and the pressures add up to the force."""
    flow = flow_of(naca_mesh("0012", 32, 12, 5.0), {"airfoil": SlipWall(), "far_field": FarField(STREAM)})
    flow.start(STREAM.state(flow.gas, 2))
    flow.iterate(3)
    values = patch_values(flow, ["airfoil"])
    assert len(values) == 32
    force = SurfaceForces(flow, {"airfoil": ["airfoil"]}, pressure=STREAM.pressure).now()["airfoil"]
    pushed = ((values.pressure - STREAM.pressure) * values.area) @ values.normals
    assert force.pressure == pytest.approx(pushed, rel=1e-9)
    assert np.abs(values.friction).max() < 1e-9 * STREAM.pressure
    assert np.isnan(values.y_plus).all()
    assert values.places[:, 0].min() < 0.02


def test_cuts() -> None:
    """A plane cuts the sides of a box in their middles; values go with their faces, which are in another order."""
    mesh = box3d(3, 4, 5)
    flow = flow_of(mesh, SlipWall())
    flow.start([1.0, 0.0, 0.0, 0.0, 1.0])
    values = patch_values(flow, ["zmax", "xmin"])
    cut = cut_patches(mesh, ["zmax", "xmin"], values.places, 1, 0.3)
    assert len(cut.places) == 3 + 5
    assert cut.places[:, 1] == pytest.approx(0.3)
    top = cut.places[:, 2] == 1.0
    assert np.sort(cut.places[top, 0]) == pytest.approx([1 / 6, 0.5, 5 / 6])
    faces = values.places[cut.face]
    assert faces[:, ::2] == pytest.approx(cut.places[:, ::2])
    assert faces[:, 1] == pytest.approx(0.375)


def test_refused() -> None:
    mesh = box3d(2, 2, 2)
    flow = flow_of(mesh, SlipWall())
    flow.start([1.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(SolverError, match=r"no patch 'xmn'; did you mean 'xmin'\?"):
        SurfaceForces(flow, {"a": ["xmn"]})
    with pytest.raises(SolverError, match="forces on a: a point of 3 coordinates"):
        SurfaceForces(flow, {"a": ["xmin"]}, points={"a": (0.0, 0.0)})
    with pytest.raises(SolverError, match="at rest"):
        AerodynamicReference(FreeStream(0.0, 1.0, 1.0, (1.0, 0.0)), Gas())
    with pytest.raises(SolverError, match="reference: area"):
        AerodynamicReference(STREAM, Gas(), area=0.0)
    with pytest.raises(SolverError, match=r"a cut at y = 2 misses xmin: 0 to 1 there"):
        cut_patches(mesh, ["xmin"], patch_values(flow, "xmin").places, 1, 2.0)
    with pytest.raises(SolverError, match="the values are not those of the faces"):
        cut_patches(mesh, ["xmin"], patch_values(flow, "xmax").places, 1, 0.5)
