"""Incompressible flow and water are the same turned, moved, mirrored, in other units, and as the half of a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.dsl.context import Context
from fluxloom.fe.point_mesh import point_mesh
from fluxloom.fv.control_volumes import control_volumes
from fluxloom.fv.eddy_viscosity import Smagorinsky
from fluxloom.fv.incompressible_boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.shallow_scheme import ShallowScheme
from fluxloom.linalg import Stop
from fluxloom.mesh import bind, box2d
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.edge_flow import EdgeFlow
from fluxloom.solvers.edge_scheme import EdgeScheme
from fluxloom.solvers.incompressible import Incompressible
from fluxloom.solvers.shallow_water import ShallowWater
from tests.unit.solvers.moved_meshes import moved, turn, with_image

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
    return np.stack([along, side * 2.0 * np.cos(np.pi * x[:, 0]) * np.sin(0.5 * np.pi * y) * (y - 1.0)], axis=1)


def built(context: Context, solver: str, mesh: MeshData, nu: float, sides: dict[str, Any]) -> Any:
    if solver.startswith("incompressible"):
        form = "symmetric" if solver.endswith("symmetric") else "auto"
        return Incompressible(context, control_volumes(mesh), nu, sides, stop=TIGHT, form=form)
    more: dict[str, Any] = {}
    if solver == "edge flow, large eddies":
        more = {"model": Smagorinsky(), "scheme": EdgeScheme(stress="full")}
    return EdgeFlow(point_mesh(context, mesh), nu, sides, stop=TIGHT, **more)


def run(
    context: Context, solver: str, mesh: MeshData, matrix: Array, move: float = 0.0, size: float = 1.0,
    speed: float = 1.0, through: bool = False,
) -> Array:  # fmt: skip
    """Return velocity and pressure after some steps, ``(n, 3)``, as they are in the mesh that was not moved."""
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


def square(kind: str, **options: Any) -> MeshData:
    return box2d(8, 7, kind=kind, perturb=0.2, **options)


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize(("solver", "kind"), [("incompressible", "quad"), ("edge flow", "triangle")])
def test_places_and_units_do_not_matter(context: Context, solver: str, kind: str, through: bool) -> None:
    mesh, still = square(kind), np.eye(2)
    first = run(context, solver, mesh, still, through=through)
    assert np.abs(first[:, :2]).max() > 0.2
    changes: list[dict[str, Any]] = [
        {"matrix": turn(2, 37.0)}, {"matrix": turn(2, 20.0) @ np.diag([1.0, -1.0])}, {"matrix": still, "size": 1e3},
        {"matrix": still, "speed": 1e3}, {"matrix": still, "move": 1e3},
    ]  # fmt: skip
    for change in changes:
        found = run(context, solver, mesh, through=through, **change)
        assert np.abs(found - first).max() < (1e-9 if "move" in change else 1e-12), change


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize(
    ("solver", "kind"),
    [("incompressible, symmetric", "triangle"), ("edge flow", "triangle"), ("edge flow, large eddies", "triangle")],
)
def test_half_is_half_of_the_whole(context: Context, solver: str, kind: str, through: bool) -> None:
    mesh = square(kind)
    half = MeshData(mesh.points, mesh.cells, {("half" if k == "ymin" else k): v for k, v in mesh.patches.items()})
    found = run(context, solver, half, turn(2, 30.0), through=through)
    whole = run(context, solver, with_image(mesh, "ymin"), turn(2, 30.0), through=through)[: len(found)]
    for one in (found, whole):
        one[:, 2] -= one[:, 2].mean()
    assert np.abs(found[:, :2]).max() > 0.2
    assert np.abs(found - whole).max() < 1e-11


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
