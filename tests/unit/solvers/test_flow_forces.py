"""Forces: exact and of second order for given fields, and in balance with the momentum of the flow."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d, box3d, clustered
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import ForceReference, Forces
from fluxloom.solvers.incompressible.probes import Probes
from tests.conformance.harness import rest_is_long
from tests.unit.fv.oblique_meshes import PLANE, STRAIGHT, THIN, WARPED, oblique_mesh

TIGHT = Stop(rtol=1e-12)
SIDES = ("xmin", "xmax", "ymin", "ymax")


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False, threads=1)


def closed(ctx: fl.Context, mesh: fl.mesh.MeshData) -> Incompressible:
    volumes = control_volumes(mesh)
    return Incompressible(ctx, volumes, 0.1, dict.fromkeys(volumes.patches, NoSlip()))


@pytest.mark.parametrize("d", [2, 3])
def test_a_linear_pressure_is_exact(ctx: fl.Context, d: int) -> None:
    """On each side; and on all of them Archimedes' force, gradient times volume."""
    flow = closed(ctx, box2d(4, 3, (2.0, 1.0)) if d == 2 else box3d(3, 4, 2, (2.0, 1.0, 0.5)))
    cv, slope = flow.volumes, np.array([3.0, -1.0, 0.5])[:d]
    flow.phi.write((cv.centres @ slope + 2.0)[: cv.cells])
    right = Forces(flow, "xmax").now()
    area = 1.0 if d == 2 else 0.5
    middle = np.array([2.0, 0.5, 0.25])[:d]
    assert right.pressure[0] == pytest.approx((middle @ slope + 2.0) * area, rel=1e-12)
    assert np.allclose(Forces(flow, list(cv.patches)).now().pressure, slope * cv.volumes.sum(), atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_a_linear_pressure_is_exact_on_uneven_boxes(ctx: fl.Context, d: int) -> None:
    """With the symmetric form, whose projection takes plain means: on each side, and at a probe."""
    uneven = clustered(1.4)
    flow = closed(ctx, box2d(5, 4, axes=(uneven, uneven)) if d == 2 else box3d(3, 4, 3, axes=(uneven, None, uneven)))
    cv, slope = flow.volumes, np.array([3.0, -1.0, 0.5])[:d]
    flow.phi.write((cv.centres @ slope + 2.0)[: cv.cells])
    for name, patch in cv.patches.items():
        places = cv.centres[patch.start : patch.stop]
        areas = cv.areas[cv.interior :][patch.start - cv.cells : patch.stop - cv.cells]
        wanted = ((places @ slope + 2.0)[:, None] * areas).sum(axis=0)
        np.testing.assert_allclose(Forces(flow, name).now().pressure, wanted, atol=1e-13 * np.abs(wanted).max())
    probes = Probes(flow, {"corner": [0.03] * d})
    probes.sample()
    assert probes.series().pressure[0, 0] == pytest.approx(0.03 * slope.sum() + 2.0, rel=1e-12)


def test_order_of_the_pressure(ctx: fl.Context) -> None:
    """Second with the pressure at the wall, first with that of the cell behind."""
    errors: dict[bool, list[float]] = {False: [], True: []}
    for n in (16, 32):
        flow = closed(ctx, box2d(n, n))
        x = flow.volumes.centres[: flow.volumes.cells]
        flow.phi.write(np.exp(2 * x[:, 0]) * (1 + x[:, 1] ** 2))
        for balance, found in errors.items():
            force = Forces(flow, "xmax", balance=balance).now()
            found.append(abs(force.pressure[0] - np.exp(2) * 4 / 3))
    assert np.log2(errors[False][0] / errors[False][1]) > 1.8
    assert np.log2(errors[True][0] / errors[True][1]) < 1.2
    assert errors[False][1] < 0.05 * errors[True][1]


def test_friction_of_a_linear_shear(ctx: fl.Context) -> None:
    flow = closed(ctx, box2d(4, 4))
    x = flow.volumes.centres
    flow.u.write(np.stack([2.0 * x[:, 1], 0.3 * x[:, 1]], axis=1))
    low, high = Forces(flow, "ymin").now(), Forces(flow, "ymax").now()
    assert np.allclose(low.friction, [0.1 * 2.0, 0.0], atol=1e-13)
    assert np.allclose(high.friction, [-0.1 * 2.0, 0.0], atol=1e-13)
    assert Forces(flow, "ymin", balance=True).now().friction[1] == pytest.approx(0.1 * 0.3)


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_forces_are_the_change_of_momentum(ctx: fl.Context, kind: str) -> None:
    """A step of Euler's: friction and momentum at its start, the pressure that it finds, and the body force."""
    volumes = control_volumes(box2d(6, 5, (2.0, 1.0), kind, perturb=0.2, seed=4))
    sides = {"xmin": Inflow((1.0, 0.2)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry()}
    flow = Incompressible(ctx, volumes, 0.05, sides, force=(0.3, -0.2), stop=TIGHT)
    flow.initialise((1.0, 0.0))
    forces = Forces(flow, SIDES, balance=True)
    before, old = forces.now(), flow.state().momentum
    flow.step(0.01)
    change = (flow.state().momentum - old) / 0.01
    wanted = np.array([0.3, -0.2]) * 2.0 - before.friction - before.momentum - forces.now().pressure
    assert np.allclose(change, wanted, rtol=0, atol=1e-9)
    assert np.abs(change).max() > 0.1


def test_friction_balances_what_drives_a_channel(ctx: fl.Context) -> None:
    """Steady flow between plates: the walls carry ``f h``, exactly; friction of both forms is the same."""
    volumes = control_volumes(box2d(2, 8), [("xmin", "xmax")])
    flow = Incompressible(ctx, volumes, 0.5, {"ymin": NoSlip(), "ymax": NoSlip()}, force=(3.0, 0.0), stop=TIGHT)
    y = volumes.centres[: volumes.cells, 1]
    flow.initialise(lambda _x: np.stack([3.0 * y * (1 - y), 0 * y], axis=1))
    for _ in range(1200):
        flow.step(0.003)
    for balance in (False, True):
        force = Forces(flow, ["ymin", "ymax"], balance=balance).now()
        assert force.friction[0] == pytest.approx(3.0, rel=1e-6)
        assert np.abs(force.pressure).max() < 1e-9
    assert Forces(flow, "ymin").now().friction[0] == pytest.approx(1.5, rel=1e-6)


def test_friction_balances_the_fall_of_pressure(ctx: fl.Context) -> None:
    """Steady flow through a channel: the walls carry what comes in, ``p n A`` and momentum, less what leaves."""
    volumes = control_volumes(box2d(10, 8, (2.0, 1.0)))
    inflow = Inflow(lambda x: np.stack([4 * x[:, 1] * (1 - x[:, 1]), 0 * x[:, 1]], axis=1))
    sides = {"xmin": inflow, "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}
    flow = Incompressible(ctx, volumes, 0.3, sides, stop=TIGHT)
    flow.initialise((1.0, 0.0))
    for _ in range(800):
        flow.step(0.004)
    walls, ends = (
        Forces(flow, ("ymin", "ymax"), balance=True).now(),
        Forces(flow, ("xmin", "xmax"), balance=True).now(),
    )
    assert walls.friction[0] == pytest.approx(-ends.total[0] - ends.momentum[0], rel=1e-6)
    assert walls.friction[0] == pytest.approx(8 * 0.3 * 2.0, rel=0.03)
    assert np.abs(walls.momentum).max() == 0.0


def test_coefficients_and_series(ctx: fl.Context) -> None:
    flow = closed(ctx, box2d(4, 4))
    flow.initialise(lambda x: np.stack([np.sin(3 * x[:, 1]), np.cos(3 * x[:, 0])], axis=1))
    forces = Forces(flow, "ymin", ForceReference(speed=2.0, area=0.5, drag=(3.0, 0.0), lift=(0.0, -1.0)))
    for _ in range(3):
        flow.step(0.01)
        found = forces.sample()
        assert found.drag == pytest.approx(found.total[0])  # U^2 A / 2 = 1
        assert found.lift == pytest.approx(-found.total[1])
    series = forces.series()
    assert series.time == pytest.approx([0.01, 0.02, 0.03])
    assert np.array_equal(series.pressure[2], found.pressure)
    assert np.array_equal(series.friction[2], found.friction)
    assert np.array_equal(series.signal("drag").values, series.drag)
    assert np.isnan(Forces(flow, "ymin").now().drag)


def test_devices_agree(ctx: fl.Context) -> None:
    def run(context: fl.Context) -> np.ndarray:
        flow = closed(context, box2d(3, 3, kind="triangle"))
        flow.initialise(lambda x: np.stack([np.sin(3 * x[:, 1]), np.cos(3 * x[:, 0])], axis=1))
        flow.step(0.01)
        found = Forces(flow, SIDES).now()
        return np.concatenate([found.pressure, found.friction])

    assert np.allclose(run(fl.Context("reference", tuning=False)), run(ctx), rtol=1e-6, atol=1e-8)


def test_wrong_input(ctx: fl.Context) -> None:
    flow = closed(ctx, box2d(3, 3))
    for patches, reference, message in (
        ("ymni", None, "no patch 'ymni'.*did you mean 'ymin'"),
        (("ymin", "ymin"), None, "patch 'ymin' is named twice"),
        ("ymin", ForceReference(0.0, 1.0), "reference: speed: a positive number"),
        ("ymin", ForceReference(1.0, np.nan), "reference: area: a positive number"),
        ("ymin", ForceReference(1.0, 1.0, drag=(0.0, 0.0)), "drag: a direction of 2 components"),
    ):
        with pytest.raises(SolverError, match=message):
            Forces(flow, patches, reference)
    with pytest.raises(SolverError, match="no sample yet"):
        Forces(flow, "ymin").series()
    flow.u.write(np.full((flow.volumes.elements, 2), np.nan))
    with pytest.raises(SolverError, match="forces on ymin: not finite at time 0"):
        Forces(flow, "ymin").now()


def pushed(mesh: fl.mesh.MeshData, patch: str, slope: np.ndarray) -> np.ndarray:
    """Return what pushes a patch where the pressure is ``slope . x + 2``: of quads, about the mean of their nodes."""
    total = np.zeros(3)
    for block in mesh.patch(patch).blocks.values():
        nodes = mesh.points[block]
        middle = nodes.mean(axis=1)
        for k in range(nodes.shape[1]):
            triangle = np.stack([nodes[:, k - 1], nodes[:, k], middle])
            area = 0.5 * np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
            total += (triangle.mean(axis=0) @ slope + 2.0) @ area
    return total


@pytest.mark.parametrize("kind", rest_is_long([*PLANE, *THIN, *WARPED], keep=4))
def test_traction_of_linear_fields_is_exact(ctx: fl.Context, kind: str) -> None:
    """Of a linear velocity and pressure, on every side, to the exact integral, whatever the cells."""
    mesh = oblique_mesh(kind)
    cv = control_volumes(mesh)
    span = np.ptp(cv.centres, axis=0)
    rng = np.random.default_rng(0)
    growth, slope = rng.uniform(0.5, 2.0, (cv.dimension,) * 2) / span, rng.uniform(0.5, 2.0, cv.dimension) / span
    sides = dict.fromkeys(cv.patches, Inflow(lambda x: x @ growth.T))
    flow = Incompressible(ctx, cv, 0.1, sides, consistent=True)
    flow.u.write(cv.centres @ growth.T)
    flow.phi.write((cv.centres @ slope + 2.0)[: cv.cells])
    for name, patch in cv.patches.items():
        faces = slice(cv.interior + patch.start - cv.cells, cv.interior + patch.stop - cv.cells)
        areas, places = cv.areas[faces], cv.centres[patch.start : patch.stop]
        normal = areas / cv.area[faces][:, None]
        change = normal @ growth.T
        along = change - normal * (change * normal).sum(axis=1, keepdims=True)
        push = (places @ slope + 2.0) @ areas
        if kind in WARPED and kind not in STRAIGHT:
            push = pushed(mesh, name, slope)
            push *= np.sign(push @ areas.sum(axis=0))
        scale = 0.1 * np.abs(growth).max() * cv.area[faces].sum()
        for balance, part in ((False, along), (True, change)):
            found = Forces(flow, name, balance=balance).now()
            wanted = -0.1 * (cv.area[faces][:, None] * part).sum(axis=0)
            np.testing.assert_allclose(found.friction, wanted, atol=1e-12 * scale)
            np.testing.assert_allclose(found.pressure, push, rtol=1e-12, atol=1e-12 * np.abs(push).max())


@pytest.mark.parametrize(
    ("kind", "plane"), [("triangle", True), ("prisms in a box", True), ("warped hexahedron", False)]
)
def test_moments_of_the_pressure(ctx: fl.Context, kind: str, plane: bool) -> None:
    """A constant pressure turns no closed body, about any point; a linear one acts at the middle of the volume."""
    flow = closed(ctx, oblique_mesh(kind))
    cv, d = flow.volumes, flow.dimension
    flow.phi.write(np.full(cv.cells, 2.0))
    constant = Forces(flow, list(cv.patches), about=(0.3, 0.2, 0.7)[:d]).now()
    assert np.abs(constant.moment).max() < (1e-14 if plane else 1e-5)
    slope = np.zeros(3)
    slope[:d] = np.array([3.0, -1.0, 0.5])[:d]
    flow.phi.write((cv.centres @ slope[:d])[: cv.cells])
    middle = np.zeros(3)
    middle[:d] = cv.volumes[: cv.cells] @ cv.centres[: cv.cells]
    found = Forces(flow, list(cv.patches)).now()
    assert found.moment == pytest.approx(np.cross(middle, slope), abs=2e-3)
    assert np.abs(found.moment).max() > 1.0
    with pytest.raises(SolverError, match="point: "):
        Forces(flow, list(cv.patches), about=(1.0,))
