"""Forces at points where patches meet: each bears its part, and all together the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.solvers.edges.boundary import EdgePatch, WallLaw
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.forces import force_shares


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("reference")


def corner() -> dict[str, PatchPoints]:
    """Return two sides of lengths 1 and 3 that meet at a right angle in the point 1."""
    places = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 3.0]])
    pairs = {"floor": (0, 1), "side": (1, 2)}
    return {name: PatchPoints.of(np.array([pair], dtype=np.int32), places) for name, pair in pairs.items()}


@pytest.mark.parametrize(
    ("side", "share"), [(NoSlip(), 0.25), (WallLaw(0.1), 0.25), (Inflow((1.0, 0.0)), 1.0), (Outflow(), 1.0),
                        (Symmetry(), 1.0)],
)  # fmt: skip
def test_shares_of_a_corner(side: EdgePatch, share: float) -> None:
    """Walls divide by their areas what is not pressure; beside a wall nobody else has any."""
    boundaries: dict[str, EdgePatch] = {"floor": NoSlip(), "side": side}
    floor, other = (force_shares(corner(), boundaries, [name], 3) for name in ("floor", "side"))
    assert floor.points.tolist() == [0, 1]
    assert floor.share == pytest.approx([1.0, share, 0.0])
    assert other.share == pytest.approx([0.0, 1.0 - share, 1.0])
    assert floor.push[1] == pytest.approx(np.array([0.0, -0.5]) - share * np.array([1.5, -0.5]))
    assert np.abs(floor.push + other.push).max() < 1e-15
    both = force_shares(corner(), boundaries, ["side", "floor"], 3)
    assert both.share.tolist() == [1.0, 1.0, 1.0]
    assert not both.push.any()


def test_shares_without_a_wall() -> None:
    found = force_shares(corner(), {"floor": Symmetry(), "side": Outflow()}, ["floor"], 3)
    assert found.share == pytest.approx([1.0, 0.25, 0.0])


def test_a_patch_that_folds_back() -> None:
    """Vectors of area of the two sides of a plate cancel; their areas do not."""
    places = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    plate = PatchPoints.of(np.array([[0, 1], [1, 0]], dtype=np.int32), places)
    floor = PatchPoints.of(np.array([[1, 2]], dtype=np.int32), places)
    assert plate.size == pytest.approx([0.0, 0.0])
    assert plate.extents == pytest.approx([1.0, 1.0])
    found = force_shares({"plate": plate, "floor": floor}, {"plate": NoSlip(), "floor": NoSlip()}, ["plate"], 3)
    assert found.share == pytest.approx([1.0, 2.0 / 3.0, 0.0])


def duct(context: fl.Context, dimension: int) -> EdgeFlow:
    """Return flow with every kind of boundary, a step after a start that is not in balance."""
    mesh = (
        box2d(3, 3, kind="triangle", perturb=0.2)
        if dimension == 2
        else box3d(2, 2, 2, (2.0, 1.0, 1.0), kind="tetra", perturb=0.2)
    )
    stream = Inflow(lambda x: np.eye(dimension)[0] * (4.0 * x[:, 1:2] * (1.0 - x[:, 1:2])))
    sides: dict[str, Any] = {"xmin": stream, "xmax": Outflow(), "ymin": NoSlip(), "ymax": WallLaw(0.05)}
    sides |= {"zmin": Symmetry(), "zmax": NoSlip()} if dimension == 3 else {}
    flow = EdgeFlow(point_mesh(context, mesh), 0.05, sides, force=(0.3, -0.2, 0.1)[:dimension], stop=Stop(rtol=1e-10))
    flow.initialise(lambda x: np.cos(3.0 * x[:, ::-1]))
    flow.step(0.01)
    return flow


@pytest.mark.parametrize("dimension", [2, 3])
def test_patches_add_up(context: fl.Context, dimension: int) -> None:
    """The forces of single patches are that of all of them, and of two that meet that of the two."""
    flow = duct(context, dimension)
    patches = tuple(flow.mesh.patches)
    single = {name: flow.force(name) for name in patches}
    whole = flow.force(*patches)
    scale = 1e-12 * max(np.abs(force).max() for force in single.values())
    assert np.abs(sum(single.values()) - whole).max() < scale
    assert np.abs(single["xmin"] + single["ymax"] - flow.force("ymax", "xmin")).max() < scale
    points = np.unique(np.concatenate([patch.points for patch in flow.mesh.patches.values()]))
    alone = force_shares(flow.mesh.patches, flow.loops.boundaries, patches, flow.mesh.points.size)
    assert np.array_equal(alone.points, points)
    assert (alone.share[points] == 1.0).all()


def test_walls_bear_the_depth_above_them(context: fl.Context) -> None:
    """At rest in a box the pressure pushes each wall along its normal, corners included."""
    mesh = box2d(6, 5, kind="triangle")
    flow = EdgeFlow(point_mesh(context, mesh), 0.3, dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), NoSlip()))
    flow.initialise()
    flow.step(1e-3)
    flow.loops.u.write(0.0)
    flow.loops.old.write(0.0)
    flow.loops.body.write(np.tile([0.0, -2.0], (flow.mesh.points.size, 1)))
    flow.loops.p.write(3.0 - 2.0 * flow.mesh.coordinates[:, 1])
    assert flow.force("ymin") == pytest.approx([0.0, -3.0], abs=0.05)
    assert flow.force("ymax") == pytest.approx([0.0, 1.0], abs=0.05)
    assert flow.force("xmax") == pytest.approx([2.0, 0.0], abs=0.05)
    assert flow.force(*flow.mesh.patches) == pytest.approx([0.0, -2.0], abs=1e-12)
