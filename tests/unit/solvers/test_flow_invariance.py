"""Incompressible flow and water are the same turned, moved, mirrored, in other units, and as the half of a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Smagorinsky
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.linalg import Stop
from fluxloom.mesh import bind, box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme, FullStress
from fluxloom.solvers.incompressible.energy import EnergyBudget
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.probes import Probes
from fluxloom.solvers.incompressible.scalar import Buoyancy, Scalar
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom_lab.problems.small.moved_meshes import moved, turn, with_image

Array = npt.NDArray[np.float64]
TIGHT = Stop(rtol=1e-12)
STEPS = 10


@pytest.fixture(scope="module")
def context() -> Context:
    return fl.Context("cpu", threads=1, tuning=False)


def swirl(x: Array) -> Array:
    """A velocity that is its own image in ``y = 0``, and does not fit the walls."""
    side, y = np.where(x[:, 1] < 0.0, -1.0, 1.0), np.abs(x[:, 1])
    along = np.sin(np.pi * x[:, 0]) * np.cos(0.5 * np.pi * y)
    through = side * 2.0 * np.cos(np.pi * x[:, 0]) * np.sin(0.5 * np.pi * y) * (y - 1.0)
    return np.stack([along, through, *(y * np.sin(2.0 * z) for z in x.T[2:])], axis=1)


def built(context: Context, solver: str, mesh: MeshData, nu: float, sides: dict[str, Any]) -> Any:
    if solver.startswith("incompressible"):
        form = False if solver.endswith("symmetric") else None
        return Incompressible(context, control_volumes(mesh), nu, sides, stop=TIGHT, consistent=form)
    more: dict[str, Any] = {}
    if solver == "edge flow, large eddies":
        more = {"model": Smagorinsky(), "scheme": EdgeScheme(stress=FullStress())}
    return EdgeFlow(point_mesh(context, mesh), nu, sides, stop=TIGHT, **more)


def run(
    context: Context, solver: str, mesh: MeshData, matrix: Array, move: float = 0.0, size: float = 1.0,
    speed: float = 1.0, through: bool = False,
) -> Array:  # fmt: skip
    """Return velocity and pressure after some steps, ``(n, d + 1)``, as they are in the mesh that was not moved."""
    mesh = moved(mesh, matrix, move, size)
    sides: dict[str, Any] = dict.fromkeys(mesh.patches, NoSlip())
    if through:
        sides |= {"xmin": Inflow(tuple(speed * matrix[:, 0])), "xmax": Outflow()}
    if "half" in mesh.patches:
        sides["half"] = Symmetry()
    flow = built(context, solver, mesh, 0.02 * size * speed, sides)
    flow.initialise(lambda x: speed * swirl((x / size - move) @ matrix) @ matrix.T)
    for _ in range(STEPS):
        flow.step(0.01 * size / speed)
    pressure = np.asarray(flow.pressure()) / speed**2
    return np.column_stack([flow.velocity() @ matrix / speed, pressure])


def box(kind: str) -> MeshData:
    return box3d(3, 3, 3, kind=kind, perturb=0.2) if kind == "tetra" else box2d(8, 7, kind=kind, perturb=0.2)


def turned(d: int, degrees: float) -> Array:
    """Return a matrix that turns, in space about no axis of the mesh."""
    once = turn(d, degrees)
    return once if d == 2 else once @ np.roll(np.eye(3), 1, axis=0) @ once


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize(
    ("solver", "kind"),
    [("incompressible", "quad"), ("incompressible", "triangle"), ("incompressible", "tetra"),
     ("edge flow", "triangle")],
)
def test_places_and_units_do_not_matter(context: Context, solver: str, kind: str, through: bool) -> None:
    mesh, d = box(kind), 3 if kind == "tetra" else 2
    still, image = np.eye(d), np.diag([1.0, -1.0, 1.0])[:d, :d]
    first = run(context, solver, mesh, still, through=through)
    assert np.abs(first[:, :2]).max() > 0.2
    changes: list[dict[str, Any]] = [
        {"matrix": turned(d, 37.0)}, {"matrix": turned(d, 20.0) @ image}, {"matrix": still, "size": 1e3},
        {"matrix": still, "speed": 1e3}, {"matrix": still, "move": 1e3},
    ]  # fmt: skip
    for change in changes:
        found = run(context, solver, mesh, through=through, **change)
        assert np.abs(found - first).max() < (1e-9 if "move" in change else 1e-12), change


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize(
    ("solver", "kind"),
    [("incompressible, symmetric", "triangle"), ("incompressible", "triangle"), ("incompressible", "tetra"),
     ("edge flow", "triangle"), ("edge flow, large eddies", "triangle")],
)
def test_half_is_half_of_the_whole(context: Context, solver: str, kind: str, through: bool) -> None:
    mesh = box(kind)
    half, matrix = half_of(mesh), turned(3 if kind == "tetra" else 2, 30.0)
    found = run(context, solver, half, matrix, through=through)
    whole = run(context, solver, with_image(mesh, "ymin"), matrix, through=through)[: len(found)]
    for one in (found, whole):
        one[:, -1] -= one[:, -1].mean()
    assert np.abs(found[:, :2]).max() > 0.2
    assert np.abs(found - whole).max() < 1e-11


def heated(context: Context, mesh: MeshData, steady: bool) -> tuple[Array, Array]:
    """Return velocity, heat and pressure behind steps of their own length, and what is seen at probes and walls."""
    d = 3 if "zmin" in mesh.patches else 2
    sides: dict[str, Any] = dict.fromkeys(mesh.patches, NoSlip())
    sides |= {"xmin": Inflow(np.eye(d)[0].tolist()), "xmax": Outflow()}
    heat: dict[str, Any] = dict.fromkeys(mesh.patches, Adiabatic()) | {"ymax": FixedValue(1.0), "xmin": FixedValue(0.3)}
    part = 0.5
    if "half" in mesh.patches:
        sides["half"], heat["half"], part = Symmetry(), Symmetry(), 1.0
    lift = Buoyancy([2.0, 0.0, 1.0][:d], 1.0)
    warm = Scalar("T", 0.03, heat, initial=lambda x: x[:, 0] + x[:, 1] ** 2, buoyancy=lift, bounded=False)
    flow = Incompressible(context, control_volumes(mesh), 0.02, sides, stop=TIGHT, model=Smagorinsky(), scalars=[warm],
                          force=[0.3, 0.0, 0.1][:d])  # fmt: skip
    if steady:
        flow.seek_steady()
    flow.initialise(swirl)
    probes = Probes(flow, {"near": [0.4, 0.02, 0.4][:d], "corner": [0.01, 0.05, 0.3][:d], "far": [0.6, 0.5, 0.5][:d]})
    for _ in range(STEPS):
        flow.step(0.5 * flow.stable_step())
    probes.sample()
    seen, pair = probes.series(), ("xmin", "ymax")
    force = [part * Forces(flow, side, balance=form).now().total[0] for side in pair for form in (False, True)]
    taken = [flow.scalars["T"].flux("ymax").diffusive, EnergyBudget(flow).now().dissipation]
    others = [flow.time, *force, *(part * value for value in taken)]
    fields = np.column_stack([flow.velocity(), flow.scalars["T"].values(), flow.pressure()])
    return fields, np.concatenate([others, seen.velocity.ravel(), seen.pressure.ravel(), seen.scalars["T"].ravel()])


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("kind", ["triangle", "tetra"])
def test_half_of_a_heated_flow(context: Context, kind: str, steady: bool) -> None:
    """With large eddies, buoyancy, probes beside the plane, forces, budgets, and steps as long as the flow allows."""
    mesh = box(kind)
    found, seen = heated(context, half_of(mesh), steady)
    whole, other = heated(context, with_image(mesh, "ymin"), steady)
    assert np.abs(found - whole[: len(found)]).max() < 1e-10
    assert np.abs(seen - other).max() < 1e-10


def half_of(mesh: MeshData) -> MeshData:
    return MeshData(mesh.points, mesh.cells, {("half" if k == "ymin" else k): v for k, v in mesh.patches.items()})


def basin(context: Context, mesh: MeshData, matrix: Array, move: float, size: float) -> Array:
    """Return depth and discharge of waves over a hill under water, as they are in the mesh that was not moved."""

    def at(height: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
        return lambda x, y: size * height((np.stack([x, y], axis=-1) / size - move) @ matrix)

    hill = at(lambda q: -0.6 + 0.3 * np.exp(-((q[..., 0] - 0.5) ** 2 + (q[..., 1] - 0.4) ** 2) / 0.03))
    hump = at(lambda q: 0.1 * np.exp(-((q[..., 0] - 0.2) ** 2 + (q[..., 1] - 0.3) ** 2) / 0.02))
    water = ShallowWater(bind(moved(mesh, matrix, move, size), context), hill, hump, scheme=ShallowScheme(order=2))
    water.advance_to(0.3 * size**0.5)
    found = water.u.read().copy()
    return np.column_stack([found[:, 0] / size, found[:, 1:] @ matrix / size**1.5])


@pytest.mark.parametrize("kind", ["triangle", "quad"])
def test_waves_know_no_axes(context: Context, kind: str) -> None:
    mesh = box2d(12, 12, kind=kind, perturb=0.2, seed=3)
    first = basin(context, mesh, np.eye(2), 0.0, 1.0)
    assert np.abs(first[:, 1:]).max() > 0.02
    mirror, still = turn(2, 20.0) @ np.diag([1.0, -1.0]), np.eye(2)
    for matrix, move, size in ((turn(2, 37.0), 0.0, 1.0), (mirror, 0.0, 1.0), (still, 1e3, 1.0), (still, 0.0, 1e3)):
        assert np.abs(basin(context, mesh, matrix, move, size) - first).max() < 1e-9
