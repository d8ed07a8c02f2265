"""A stratified fluid at rest stays at rest: buoyancy and pressure are in balance in every cell and at every face."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.strategies import strategy_name
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.incompressible.boundary import NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, ProjectionScheme, RungeKutta
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.linalg import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d, clustered
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.scalar import Buoyancy, Scalar

Made = Callable[[], MeshData]
SIDEWAYS = [("xmin", "xmax")]


def speed(
    comm: Comm, mesh: MeshData, profile: Any, *, scheme: ProjectionScheme | None = None, periodic: Any = (),
    open_top: bool = False, down: tuple[float, ...] = (), diffusivity: float = 0.0,
) -> float:  # fmt: skip
    """Return the largest velocity of cells and faces after ten steps of a fluid that begins at rest.

    Buoyancy goes from -0.5 to 0.5: without balance the first step alone gives 0.05.
    """
    volumes = control_volumes(mesh, periodic) if comm.size == 1 else shared_volumes(
        distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), periodic)  # fmt: skip
    d = volumes.dimension
    gravity = down or (0.0,) * (d - 1) + (-1.0,)
    top = f"{'xyz'[d - 1]}max"
    walls: dict[str, Any] = {name: NoSlip() if name.startswith("y") else Symmetry() for name in volumes.patches}
    sides: dict[str, Any] = dict.fromkeys(volumes.patches, Adiabatic())
    if open_top:
        walls[top] = Outflow()
    if diffusivity:
        sides |= {f"{'xyz'[d - 1]}min": FixedValue(0.0), top: FixedValue(1.0)}
    heat = Scalar("T", diffusivity, sides, initial=profile, buoyancy=Buoyancy(gravity, 1.0, reference=0.5))
    flow = Incompressible(fl.Context("cpu", comm=comm, tuning=False, threads=1), volumes, 0.01, walls, scalars=[heat],
                          scheme=scheme, stop=Stop(rtol=1e-13, iterations=2000))  # fmt: skip
    flow.initialise(np.zeros(d).tolist())
    for _ in range(10):
        assert flow.step(0.1).converged
    assert np.ptp(flow.pressure()) > 0.05
    found = np.array([np.abs(flow.u.read()).max(initial=0.0), np.abs(flow.us.read()).max(initial=0.0)])
    return float(comm.reduce(found, "max").max())


def alone(mesh: MeshData, profile: Any, **choices: Any) -> float:
    return run_threads(1, lambda comm: speed(comm, mesh, profile, **choices))[0]


@pytest.mark.parametrize("scheme", [AdamsBashforth(), RungeKutta()], ids=strategy_name)
@pytest.mark.parametrize("n", [8, 16])
def test_stratified_between_plates(n: int, scheme: ProjectionScheme) -> None:
    """Also with conduction, which keeps a linear profile. Forces in the cells left 0.039 and 0.016 at the plates."""
    linear = lambda x: x[:, 1]  # noqa: E731
    assert alone(box2d(n, n), linear, scheme=scheme, diffusivity=0.01) < 1e-11


@pytest.mark.parametrize(
    "profile",
    [lambda x: np.tanh(5 * (x[:, 1] - 0.4)), lambda x: np.where(x[:, 1] > 0.5, 1.0, -1.0)],
    ids=["layer", "step"],
)
def test_any_profile_on_levels(profile: Any) -> None:
    """Where cells lie in levels, also on meshes that get finer towards the plates, up to an open top."""
    mesh = box2d(6, 12, axes=(None, clustered(1.5)))
    assert alone(mesh, profile) < 1e-9
    assert alone(mesh, profile, open_top=True) < 1e-9


@pytest.mark.parametrize("periodic", [(), SIDEWAYS], ids=["walls", "periodic"])
@pytest.mark.parametrize(
    "make",
    [lambda: box2d(6, 7, perturb=0.2), lambda: box2d(6, 7, kind="triangle", perturb=0.1),
     lambda: box3d(4, 4, 4, kind="prism"), lambda: box3d(4, 3, 4, perturb=0.2)],
    ids=["quads", "triangles", "prisms", "hexahedra"],
)  # fmt: skip
def test_linear_on_any_mesh(make: Made, periodic: Any) -> None:
    """A linear profile has a potential of second degree, whose differences are exact between any two centres."""
    mesh = make()
    assert alone(mesh, lambda x: x[:, -1], periodic=periodic) < 1e-11


def test_gravity_along_no_axis() -> None:
    along = np.array([0.6, 0.8])
    assert alone(box2d(7, 6, kind="triangle"), lambda x: x @ along, down=(-0.6, -0.8)) < 1e-11


def test_ranks() -> None:
    mesh = box2d(6, 7, kind="triangle", perturb=0.1)
    found = run_threads(2, lambda comm: speed(comm, mesh, lambda x: x[:, 1], periodic=SIDEWAYS))
    assert max(found) < 1e-11


def test_the_reference_is_part_of_the_pressure() -> None:
    """Between walls a flow that buoyancy drives does not depend on the value of which gravity is pressure."""
    found = []
    for reference in (0.0, 0.7):
        volumes = control_volumes(box2d(8, 9, perturb=0.1))
        heat = Scalar(
            "T", 0.01, {"xmin": FixedValue(1.0), "xmax": FixedValue(0.0), "ymin": Adiabatic(), "ymax": Adiabatic()},
            initial=lambda x: 1 - x[:, 0], buoyancy=Buoyancy((0.0, -1.0), 1.0, reference),
        )  # fmt: skip
        walls = dict.fromkeys(volumes.patches, NoSlip())
        flow = Incompressible(fl.Context("cpu", tuning=False, threads=1), volumes, 0.01, walls, scalars=[heat],
                              stop=Stop(rtol=1e-13))  # fmt: skip
        flow.initialise((0.0, 0.0))
        for _ in range(20):
            flow.step(0.05)
        found.append(flow.velocity())
    assert np.abs(found[0]).max() > 0.05
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)


def test_a_uniform_force_is_that_of_the_cells() -> None:
    """What all cells have alike accelerates them all alike, where faces stand across the line between two cells."""
    volumes = control_volumes(box2d(5, 4), [("xmin", "xmax"), ("ymin", "ymax")])
    heat = Scalar("T", 0.0, initial=1.0, buoyancy=Buoyancy((-3.0, 2.0), 0.5))
    flow = Incompressible(fl.Context("cpu", tuning=False, threads=1), volumes, 0.01, scalars=[heat])
    flow.initialise((0.0, 0.0))
    flow.step(0.1)
    np.testing.assert_allclose(flow.velocity(), np.broadcast_to([0.15, -0.1], (volumes.cells, 2)), atol=1e-12)
