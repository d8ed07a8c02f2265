"""Boundaries of flow on edges: what holds where patches meet, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind
from fluxloom.solvers.edges.boundary import EdgeBoundary, WallLaw, edge_boundary

Array = npt.NDArray[np.float64]
SQUARE, CUBE = box2d(3, 3, kind="triangle"), box3d(2, 2, 2, kind="tetra")


def boundary_of(data: MeshData, boundaries: dict[str, Any]) -> EdgeBoundary:
    mesh = PointMesh.of(bind(data, fl.Context("reference")))
    return edge_boundary(mesh.patches, mesh.coordinates, boundaries)


def at(found: EdgeBoundary, data: MeshData, *place: float) -> tuple[Array, Array]:
    """Return projection and given velocity of the point at a place."""
    number = int(np.argmin(np.abs(data.points - np.array(place)).sum(axis=1)))
    k = int(np.searchsorted(found.points, number))
    assert found.points[k] == number
    return found.projection[k], found.given[k]


@pytest.mark.parametrize("order", [1, -1])
def test_the_slower_velocity_holds(order: int) -> None:
    """Whatever the order of the patches: a lid does not move the corners of walls at rest."""
    sides = dict.fromkeys(["xmin", "xmax", "ymin"], NoSlip()) | {"ymax": NoSlip((2.0, 0.0))}
    mesh = PointMesh.of(bind(SQUARE, fl.Context("reference")))
    patches = dict(list(mesh.patches.items())[::order])
    found = edge_boundary(patches, mesh.coordinates, sides)
    assert np.array_equal(at(found, SQUARE, 0.0, 1.0)[1], [0.0, 0.0])
    assert np.array_equal(at(found, SQUARE, 1.0, 1.0)[1], [0.0, 0.0])
    assert np.array_equal(at(found, SQUARE, 1.0 / 3.0, 1.0)[1], [2.0, 0.0])
    assert not found.projection.any()
    assert not found.outlet.any()
    assert found.points.size == 12
    assert found.through == (0.0, pytest.approx(2.0 * (1.0 - 1.0 / 3.0)))


def test_sliding_planes() -> None:
    """One plane takes the normal, an edge of two leaves what is along both, a corner of three leaves nothing."""
    found = boundary_of(CUBE, dict.fromkeys(["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"], Symmetry()))
    assert at(found, CUBE, 0.5, 0.5, 0.0)[0] == pytest.approx(np.diag([1.0, 1.0, 0.0]))
    assert at(found, CUBE, 0.5, 0.0, 1.0)[0] == pytest.approx(np.diag([1.0, 0.0, 0.0]), abs=1e-15)
    assert at(found, CUBE, 0.0, 0.0, 1.0)[0] == pytest.approx(np.zeros((3, 3)), abs=1e-15)
    assert not found.given.any()


def test_a_given_velocity_goes_before_sliding_and_beside_outlets() -> None:
    sides: dict[str, Any] = {
        "xmin": Inflow(lambda x: np.stack([1.0 + x[:, 1], 0.0 * x[:, 0]], axis=1)), "xmax": Outflow(),
        "ymin": NoSlip(), "ymax": WallLaw(0.1),
    }  # fmt: skip
    found = boundary_of(SQUARE, sides)
    assert np.array_equal(at(found, SQUARE, 0.0, 1.0)[1], [2.0, 0.0])
    assert not at(found, SQUARE, 0.0, 1.0)[0].any()
    assert np.array_equal(at(found, SQUARE, 0.0, 0.0)[1], [0.0, 0.0])  # of the wall, which is slower
    assert at(found, SQUARE, 1.0, 1.0)[0] == pytest.approx(np.diag([1.0, 0.0]))
    assert np.array_equal(np.flatnonzero(found.outlet), np.flatnonzero(SQUARE.points[:, 0] > 0.99))
    net = -sum(w * (1.0 + y) for w, y in ((1 / 3, 1 / 3), (1 / 3, 2 / 3), (1 / 6, 1.0)))
    assert found.through == pytest.approx((net, -net))


@pytest.mark.parametrize(("angle", "directions"), [(5.0, 1), (30.0, 0)])
def test_an_angle_between_two_planes(angle: float, directions: int) -> None:
    """Normals that nearly agree are one plane; from some degrees on the velocity is along both: none in the plane."""
    bend = np.deg2rad(angle)
    places = np.array([[0.0, 0.0], [1.0, 0.0], [1.0 + np.cos(bend), np.sin(bend)]])
    patches = {
        name: PatchPoints.of(np.array([pair], dtype=np.int32), places) for name, pair in (("a", (0, 1)), ("b", (1, 2)))
    }
    found = edge_boundary(patches, places, {"a": Symmetry(), "b": Symmetry()})
    assert np.linalg.matrix_rank(found.projection[1], tol=1e-9) == directions


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"ymax": None}, "patch 'ymax' has no boundary: give NoSlip"),
     ({"yMax": NoSlip()}, "no patch 'yMax'.*patches: xmin"),
     ({"ymax": Inflow((1.0, 2.0, 3.0))}, "patch 'ymax'"),
     ({"ymax": Inflow((float("nan"), 0.0))}, "patch 'ymax'")],
)  # fmt: skip
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        boundary_of(SQUARE, dict.fromkeys(["xmin", "xmax", "ymin", "ymax"], NoSlip()) | changes)


@pytest.mark.parametrize("name", ["distance", "kappa", "constant"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_wall_laws_have_positive_numbers(name: str, value: float) -> None:
    with pytest.raises(SolverError, match=f"WallLaw: {name} is a positive number"):
        WallLaw(**{"distance": 0.1, name: value})
