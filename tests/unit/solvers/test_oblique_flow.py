"""Incompressible flow where faces do not stand across the lines between cells: exact, at rest, of second order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedFlux, FixedValue
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import clustered
from fluxloom.mesh.generate.gmsh_session import gmsh_arrays, gmsh_session
from fluxloom.solvers.incompressible.energy import EnergyBudget
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.scalar import Scalar
from fluxloom_lab.problems.lid_cavity import lid_walls

Field = Callable[[np.ndarray], np.ndarray]
TIGHT = Stop(rtol=1e-12, iterations=5000)

MESHES: dict[str, Callable[[], MeshData]] = {
    "regular triangles": lambda: box2d(8, 8, (2.0, 1.0), kind="triangle"),
    "triangles": lambda: box2d(8, 8, (2.0, 1.0), kind="triangle", perturb=0.3, seed=1),
    "quads": lambda: box2d(8, 6, (2.0, 1.0), perturb=0.3, seed=2),
    "tetrahedra": lambda: box3d(4, 3, 3, (2.0, 1.0, 1.0), kind="tetra", perturb=0.2, seed=3),
    "prisms": lambda: box3d(4, 3, 2, (2.0, 1.0, 1.0), kind="prism"),
}


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def along(speed: Callable[[np.ndarray], np.ndarray]) -> Field:
    """Return a velocity along x that depends on y."""

    def velocity(x: np.ndarray) -> np.ndarray:
        found = np.zeros_like(x)
        found[:, 0] = speed(x[:, 1])
        return found

    return velocity


def channel(
    ctx: fl.Context, mesh: MeshData, profile: Field, lid: float = 0.0, viscosity: float = 0.1, **choices: object
) -> Incompressible:
    """Return a flow along x that enters with a profile, between walls, and planes of symmetry in space."""
    cv = control_volumes(mesh)
    top = (lid,) + (0.0,) * (cv.dimension - 1)
    sides: dict[str, Boundary] = {name: Symmetry() for name in ("zmin", "zmax") if name in cv.patches}
    sides |= {"xmin": Inflow(profile), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip(top)}
    choices = {"stop": TIGHT} | choices
    flow = Incompressible(ctx, cv, viscosity, sides, **choices)  # type: ignore[arg-type]
    flow.initialise(profile)
    return flow


def error(flow: Incompressible, profile: Field) -> float:
    cv = flow.volumes
    wrong = flow.velocity() - profile(cv.centres[: cv.cells])
    return float(np.sqrt((cv.volumes[:, None] * wrong**2).sum() / cv.volumes.sum()))


@pytest.mark.parametrize("name", list(MESHES))
def test_couette_flow_is_exact(ctx: fl.Context, name: str) -> None:
    """It stays as it begins; walls carry what they must, heat crosses it alike, and viscosity takes its energy."""
    profile = along(lambda y: y)
    heat = Scalar("T", 0.2, {"ymin": FixedValue(0.0), "ymax": FixedFlux(0.2), "xmin": FixedValue(lambda x: x[:, 1]),
                             "xmax": Outflow()} | ({} if "triangles" in name or name == "quads" else
                                                   {"zmin": Adiabatic(), "zmax": Adiabatic()}),
                  initial=lambda x: x[:, 1])  # fmt: skip
    flow = channel(ctx, MESHES[name](), profile, 1.0, scalars=[heat])
    assert flow.matrices.oblique
    for _ in range(20):
        flow.step(flow.stable_step())
    cv = flow.volumes
    assert np.abs(flow.velocity() - profile(cv.centres[: cv.cells])).max() < 1e-11
    assert np.abs(flow.scalars["T"].values() - cv.centres[: cv.cells, 1]).max() < 1e-11
    assert np.abs(flow.pressure()).max() < 1e-9
    assert flow.state().imbalance < 1e-12
    for balance in (False, True):
        bottom, top = (Forces(flow, side, balance=balance).now() for side in ("ymin", "ymax"))
        assert bottom.total[0] == pytest.approx(0.2, abs=1e-10)
        assert top.total[0] == pytest.approx(-0.2, abs=1e-10)
    assert flow.scalars["T"].flux("ymin").diffusive == pytest.approx(-0.4, abs=1e-10)
    assert EnergyBudget(flow).now().dissipation == pytest.approx(0.1 * cv.volumes.sum(), rel=1e-9)


@pytest.mark.parametrize("name", ["triangles", "tetrahedra"])
def test_a_force_is_balanced_by_the_pressure(ctx: fl.Context, name: str) -> None:
    """A uniform force in a closed box leaves all at rest, and its weight on the walls."""
    cv = control_volumes(MESHES[name]())
    force = (0.3, -1.0, 0.2)[: cv.dimension]
    walls = {side: NoSlip() for side in cv.patches}
    flow = Incompressible(ctx, cv, 0.01, walls, force=force, stop=TIGHT)
    flow.initialise((0.0,) * cv.dimension)
    for _ in range(60):
        flow.step(flow.stable_step())
    assert np.abs(flow.velocity()).max() < 1e-9
    weight = Forces(flow, list(cv.patches)).now().total
    assert np.allclose(weight, np.array(force) * cv.volumes.sum(), atol=1e-8)


def test_channel_flow_is_of_second_order(ctx: fl.Context) -> None:
    """Poiseuille's, on triangles: velocity, force of the walls, fall of the pressure; with plain operators none is."""
    profile = along(lambda y: 4.0 * y * (1.0 - y))
    errors = []
    for n in (4, 8):
        flow = channel(ctx, box2d(2 * n, n, (2.0, 1.0), kind="triangle", perturb=0.25, seed=7), profile, viscosity=1.0)
        for _ in range(14 * n * n):
            flow.step(flow.stable_step(0.35, 0.4))
        walls, entry = Forces(flow, ["ymin", "ymax"]).now(), Forces(flow, "xmin").now()
        errors.append([error(flow, profile), abs(walls.total[0] - 16.0) / 16.0, abs(entry.pressure[0] + 16.0) / 16.0])
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert orders[0] > 1.8
    assert (orders[1:] > 1.5).all()
    assert max(errors[1][1:]) < 0.03


def test_which_form(ctx: fl.Context) -> None:
    """Meshes whose lines cross at right angles keep the operators that keep energy, also with uneven spacing."""
    even = box2d(6, 5, axes=(clustered(1.0), None))
    assert not channel(ctx, even, along(lambda y: y)).matrices.oblique
    assert channel(ctx, even, along(lambda y: y), consistent=True).matrices.oblique
    assert not channel(ctx, MESHES["quads"](), along(lambda y: y), consistent=False).matrices.oblique
    with pytest.raises(SolverError, match="consistent: True, False or None is wanted, not 'symmetric'"):
        channel(ctx, even, along(lambda y: y), consistent="symmetric")


def test_flat_tetrahedra_are_stable(ctx: fl.Context) -> None:
    """Where the plain operators grow without bound whatever the step."""
    mesh = box3d(3, 3, 3, kind="tetra", perturb=0.4)
    energy = {}
    for consistent in (False, True):
        cv = control_volumes(mesh)
        walls = lid_walls(cv.patches, 3)
        with np.errstate() if consistent else pytest.warns(UserWarning, match="so flat"):
            flow = Incompressible(ctx, cv, 0.001, walls, consistent=consistent, stop=Stop(rtol=1e-8, iterations=2000))
        flow.initialise((0.0, 0.0, 0.0))
        for _ in range(150):
            flow.step(min(0.01, flow.stable_step()))
        energy[consistent] = flow.state().kinetic_energy
    assert energy[True] < 0.05


def drawn(shape: str, size: float) -> MeshData:
    """Return tetrahedra of Gmsh with the patches `end` and `wall`."""
    with gmsh_session(shape) as gmsh:
        model = gmsh.model
        if shape == "pipe":
            model.occ.addCylinder(0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.5)
        elif shape == "ball":
            model.occ.addSphere(0.0, 0.0, 0.0, 0.5)
        else:
            block, hole = model.occ.addBox(0, 0, 0, 1.5, 1, 0.5), model.occ.addCylinder(0.5, 0.5, 0, 0, 0, 0.5, 0.2)
            model.occ.cut([(3, block)], [(3, hole)])
        model.occ.synchronize()
        for which in ("Min", "Max"):
            gmsh.option.setNumber(f"Mesh.MeshSize{which}", size)
        patches: dict[str, list[int]] = {}
        for _, tag in model.getBoundary(model.getEntities(3), oriented=False):
            low, high = model.getBoundingBox(2, tag)[0], model.getBoundingBox(-1, -1)[3]
            patches.setdefault("end" if low > high - 1e-3 else "wall", []).append(tag)
        model.mesh.generate(3)
        return gmsh_arrays(gmsh, 3, patches, shape)


@pytest.mark.parametrize(("shape", "size"), [("pipe", 0.2), ("ball", 0.2), ("hole", 0.17)])
def test_noise_of_the_pressure_fades_at_walls(ctx: fl.Context, shape: str, size: float) -> None:
    """Tetrahedra with a face on a wall whose others leave a direction: with these alone it grew by 1.2 a step.

    Steps are so short that only the pressure acts.
    """
    pytest.importorskip("gmsh")
    cv = control_volumes(drawn(shape, size))
    sides: dict[str, Boundary] = {name: Outflow() if name == "end" else NoSlip() for name in cv.patches}
    flow = Incompressible(ctx, cv, 1e-12, sides, stop=Stop(rtol=1e-8, iterations=3000))
    noise = np.random.default_rng(0)
    flow.initialise(lambda x: noise.standard_normal(x.shape))
    size_of_pressure = []
    for _ in range(2):
        for _ in range(25):
            flow.step(1e-9)
        size_of_pressure.append(float(np.ptp(flow.pressure())))
    assert size_of_pressure[1] < 0.8 * size_of_pressure[0]


def test_noise_fades_in_flat_cells(ctx: fl.Context) -> None:
    """Perturbed tetrahedra, 16 so flat that Gauss's theorem would feed oscillations: random velocities do not grow."""
    cv = control_volumes(box3d(5, 4, 4, kind="tetra", perturb=0.45, seed=7))
    sides: dict[str, Boundary] = {name: Outflow() if name == "xmax" else NoSlip() for name in cv.patches}
    flow = Incompressible(ctx, cv, 1e-12, sides, stop=Stop(rtol=1e-8, iterations=3000))
    assert flow.matrices.flat.sum() == 16
    noise = np.random.default_rng(0)
    flow.initialise(lambda x: noise.standard_normal(x.shape))
    steps = []
    for _ in range(60):
        flow.step(1e-9)
        steps.append(float(np.abs(flow.pressure()).max()))
    assert steps[-1] < 0.7 * steps[29]
    assert np.abs(flow.velocity()).max() < 5.0


def test_thin_triangles_are_told(ctx: fl.Context) -> None:
    """Faces along the line between their cells."""
    mesh = box2d(4, 4, (1.0, 0.01), kind="triangle", diagonal="right")
    with pytest.warns(UserWarning, match="faces lie along the line"):
        Incompressible(ctx, control_volumes(mesh), 1.0, dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), NoSlip()))
