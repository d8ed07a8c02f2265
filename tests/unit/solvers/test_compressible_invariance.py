"""A compressible flow is the same turned, moved, mirrored, in other units, and as the half of a whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import BoundaryCondition, NoSlipWall, SlipWall, SymmetryPlane
from fluxloom.fv.compressible.fluxes import AUSM, HLLC
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import BarthJespersen, Venkatakrishnan
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.problems.small.moved_meshes import moved, turn, with_image
from fluxloom_lab.strategies.cell_loop import OverCells

Array = npt.NDArray[np.float64]
STEPS = 12
EDDIES = SpalartAllmaras()


@pytest.fixture(scope="module")
def context() -> Context:
    return fl.Context("cpu", tuning=False)


def blast(places: Array) -> Array:
    """A pulse in gas that moves along a wall: plane waves from the walls, and changes as small as round-off."""
    d = places.shape[1]
    found = np.ones((len(places), d + 2))
    pulse = np.exp(-60.0 * ((places[:, 0] - 0.35) ** 2 + (np.abs(places[:, 1]) - 0.4) ** 2))
    found[:, 0], found[:, -1] = 1.0 + 2.0 * pulse, 1.0 + 9.0 * pulse
    found[:, 1], found[:, 2] = 0.4, 0.1 * places[:, 1]
    return found


def changed(
    context: Context, mesh: MeshData, limiter: str, matrix: Array, move: float = 0.0, size: float = 1.0
) -> Array:
    """Return the states after some steps in a mesh that is turned, moved and enlarged, as they are in the first one."""
    volumes = control_volumes(moved(mesh, matrix, move, size))
    gas, walls = Gas(constant=1.0), dict.fromkeys(volumes.patches, SlipWall())
    flow = CompressibleFlow(context, volumes, walls, gas, CompressibleScheme(limiter=limiter))

    def start(places: Array) -> Array:
        found = blast((places / size - move) @ matrix)
        found[:, 1:-1] = found[:, 1:-1] @ matrix.T
        return found

    flow.start(start)
    for _ in range(STEPS):
        flow.advance(size * 0.004)
    found = flow.states()
    found[:, 1:-1] = found[:, 1:-1] @ matrix
    return found


@pytest.mark.parametrize("limiter", [Venkatakrishnan(smoothness=1.0), BarthJespersen()], ids=strategy_name)
def test_places_and_units_do_not_matter(context: Context, limiter: str) -> None:
    mesh = box2d(20, 20)
    first = changed(context, mesh, limiter, np.eye(2))
    mirror = turn(2, 20.0) @ np.diag([1.0, -1.0])
    assert np.abs(changed(context, mesh, limiter, turn(2, 37.0)) - first).max() < 1e-11
    assert np.abs(changed(context, mesh, limiter, mirror) - first).max() < 1e-11
    assert np.abs(changed(context, mesh, limiter, np.eye(2), size=1e3) - first).max() < 1e-11
    assert np.abs(changed(context, mesh, limiter, turn(2, -5.0), size=0.3048e-3) - first).max() < 1e-11
    assert np.abs(changed(context, mesh, limiter, np.eye(2), move=1e3) - first).max() < 1e-9


def test_a_mirror_symmetry_lasts(context: Context) -> None:
    """Pulses beside a jet in a closed box, thousands of steps: the upper half stays the image of the lower one."""
    count = 16
    volumes = control_volumes(box2d(count, count, (2.0, 2.0), origin=(-1.0, -1.0)))
    scheme = CompressibleScheme(flux=HLLC(), limiter=BarthJespersen())
    walls = dict.fromkeys(volumes.patches, SlipWall())
    flow = CompressibleFlow(context, volumes, walls, Gas(constant=1.0), scheme)

    def start(places: Array) -> Array:
        x, y = places.T
        pulses = sum(np.exp(-20.0 * ((x + 0.3) ** 2 + (y - side * 0.4) ** 2)) for side in (1.0, -1.0))
        found = np.ones((len(places), 4))
        found[:, 0], found[:, 1], found[:, 3] = 1.0 + 0.4 * pulses, 0.5 * np.exp(-10.0 * y**2), 1.0 + 0.8 * pulses
        found[:, 2] = 0.0
        return found

    flow.start(start)
    for _ in range(3000):
        flow.advance()
    found = flow.states().reshape(count, count, 4)
    image = found[::-1] * np.array([1.0, 1.0, -1.0, 1.0])
    assert np.ptp(found[..., 1]) > 0.1
    assert np.abs(found - image).max() < 1e-11


def half_and_whole(
    context: Context,
    mesh: MeshData,
    scheme: CompressibleScheme,
    viscosity: float,
    act: Callable[[CompressibleFlow], None],
) -> tuple[Array, Array]:
    """Return the states of half a flow beside a plane at 30 degrees, and those of the same half of the whole."""
    matrix = turn(mesh.dimension, 30.0)
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(viscosity) if viscosity else None)

    def start(places: Array) -> Array:
        found = blast(places @ matrix)
        found[:, 1:-1] = found[:, 1:-1] @ matrix.T
        eddies = np.full((len(places), 1), 0.02) * found[:, :1]
        return np.concatenate([found, eddies], axis=1) if scheme.turbulence == EDDIES else found

    found = []
    for one in (mesh, with_image(mesh, "ymin")):
        volumes = control_volumes(one.with_points(one.points @ matrix.T))
        wall = NoSlipWall() if viscosity else SlipWall()
        sides: dict[str, BoundaryCondition] = {name: SlipWall() if name == "xmin" else wall for name in volumes.patches}
        if "ymin" in one.patches and one is mesh:
            sides["ymin"] = SymmetryPlane()
        places = volumes.centres[: volumes.cells] @ matrix
        distance = 0.01 + np.minimum(1.0 - np.abs(places[:, 1]), places[:, 0])
        flow = CompressibleFlow(
            context, volumes, sides, gas, scheme, distance if scheme.turbulence == EDDIES else None
        )
        flow.start(start)
        act(flow)
        found.append(flow.states()[: mesh.n_cells])
    return found[0], found[1]


@pytest.mark.parametrize(
    ("mesh", "scheme", "viscosity"),
    [
        (box2d(8, 8, kind="triangle", perturb=0.2), CompressibleScheme(), 0.0),
        (box2d(8, 8, perturb=0.2), CompressibleScheme(limiter=BarthJespersen(), flux=HLLC()), 0.01),
        (box2d(8, 8, kind="triangle", perturb=0.2), CompressibleScheme(turbulence=EDDIES, loops=OverCells()), 0.01),
        (box2d(8, 30, (1.0, 0.05)), CompressibleScheme(flux=AUSM()), 0.01),
        (box3d(4, 4, 3, kind="tetra", perturb=0.2), CompressibleScheme(order=1), 0.01),
    ],
    ids=["triangles", "quads", "eddies", "thin", "tetrahedra"],
)
def test_half_is_half_of_the_whole(
    context: Context, mesh: MeshData, scheme: CompressibleScheme, viscosity: float
) -> None:
    def act(flow: CompressibleFlow) -> None:
        for _ in range(STEPS):
            flow.advance(2e-4)

    steps: list[float] = []

    def with_steps(flow: CompressibleFlow) -> None:
        act(flow)
        flow.before()
        steps.append(float(flow.least.value))

    half, whole = half_and_whole(context, mesh, scheme, viscosity, with_steps)
    assert steps[0] == pytest.approx(steps[1], rel=1e-10)
    assert np.abs(whole - whole[0]).max() > 0.1
    assert np.abs(half - whole).max() < 1e-12


def test_a_plane_of_symmetry_takes_its_pressure_alone(context: Context) -> None:
    """What a half feels at the plane is along its normal, and neither mass nor energy passes."""
    mesh = box2d(8, 8, perturb=0.2)

    def act(flow: CompressibleFlow) -> None:
        for _ in range(STEPS):
            flow.advance(2e-4)
        if "ymin" not in flow.volumes.patches or not isinstance(flow.boundaries["ymin"], SymmetryPlane):
            return
        flow.before()
        span = flow.volumes.patches["ymin"]
        out = flow.outflow.read()[span.start : span.stop]
        normals = flow.volumes.normals[np.arange(span.start, span.stop) - flow.volumes.cells + flow.volumes.interior]
        push = np.einsum("ij,ij->i", out[:, 1:3], normals)
        np.testing.assert_allclose(out[:, 1:3], push[:, None] * normals, atol=1e-13)
        assert np.abs(out[:, [0, 3]]).max() < 1e-15
        assert (push > 0.5).all()

    half_and_whole(context, mesh, CompressibleScheme(limiter=BarthJespersen(), flux=HLLC()), 0.01, act)
