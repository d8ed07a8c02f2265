"""The length of a flow that has no other, and whether a mesh is a plane one, extruded."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.comm import SelfComm
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.symmetry_planes import extruded_along, is_flat, reference_length
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.generate.naca import naca_mesh

COMM = SelfComm()
CONTEXT = Context("reference")


def length(mesh: MeshData, walls: tuple[str, ...], planes: tuple[str, ...] = ()) -> float:
    return reference_length(control_volumes(mesh), walls, planes, CONTEXT)


def mirrors(volumes: ControlVolumes, *names: str) -> np.ndarray:
    spans = [volumes.patches[name] for name in names]
    return np.concatenate([np.arange(span.start, span.stop) for span in spans])


def test_length_of_a_plate_and_of_a_profile() -> None:
    assert length(box2d(50, 4, (3.0, 0.5)), ("ymin",)) == pytest.approx(3.0, rel=1e-3)
    assert length(naca_mesh("0012", 64, 8), ("airfoil",)) == pytest.approx(1.0, rel=0.05)


def test_length_does_not_depend_on_places_and_units() -> None:
    mesh, walls = box2d(20, 10, (2.0, 1.0)), ("xmin", "xmax", "ymin", "ymax")
    first = length(mesh, walls)
    matrix = np.array([[0.8, -0.6], [0.6, 0.8]])
    assert length(mesh.with_points(1e3 * mesh.points @ matrix.T + 1e6), walls) == pytest.approx(1e3 * first, rel=1e-10)


@pytest.mark.parametrize(("lengths", "plane"), [((2.0, 1.0), "ymin"), ((1.0, 2.0), "xmax"), ((3.0, 1.0), "xmin")])
def test_half_has_the_length_of_the_whole(lengths: tuple[float, float], plane: str) -> None:
    counts = [int(20 * size) for size in lengths]
    axis = "xy".index(plane[0])
    twice = [size * (1 + (k == axis)) for k, size in enumerate(lengths)]
    walls = ("xmin", "xmax", "ymin", "ymax")
    nx, ny = (n * (1 + (k == axis)) for k, n in enumerate(counts))
    whole = length(box2d(nx, ny, twice), walls)
    rest = tuple(name for name in walls if name != plane)
    assert length(box2d(counts[0], counts[1], lengths), rest, (plane,)) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("span", [0.01, 5.0])
def test_a_plane_mesh_that_is_extruded_has_its_length(span: float) -> None:
    plane = length(box2d(12, 6, (2.0, 1.0)), ("ymin",))
    solid = box3d(12, 6, 3, (2.0, 1.0, span))
    assert length(solid, ("ymin",), ("zmin", "zmax")) == pytest.approx(plane, rel=1e-12)
    periodic = control_volumes(solid, [("zmin", "zmax")])
    assert reference_length(periodic, ("ymin",), (), CONTEXT) == pytest.approx(plane, rel=1e-12)


@pytest.mark.parametrize("planes", [(), ("ymin",)])
def test_length_of_a_wing_is_its_chord(planes: tuple[str, ...]) -> None:
    """Not its span: half a wing 1 deep, 4 long, of which a plane of symmetry is the middle, or not."""
    wing = box3d(20, 80, 2, (1.0, 4.0, 0.1))
    assert length(wing, ("zmin", "zmax"), planes) == pytest.approx(1.0, rel=0.01)


def test_length_without_walls() -> None:
    plane, both = box2d(4, 4, (2.0, 1.0)), [("xmin", "xmax"), ("ymin", "ymax")]
    assert reference_length(control_volumes(plane, both), (), (), CONTEXT) == pytest.approx(2.0)
    assert reference_length(control_volumes(plane, both[:1]), ("ymin",), (), CONTEXT) == pytest.approx(2.0)


def test_flat_patches() -> None:
    mesh = control_volumes(naca_mesh("0012", 24, 6))
    assert not is_flat(mesh, "airfoil", COMM)
    box = control_volumes(box3d(3, 3, 3))
    assert is_flat(box, "zmin", COMM)


def test_extrusions() -> None:
    planes = ("zmin", "zmax")
    volumes = control_volumes(extrude(naca_mesh("0012", 24, 6), np.linspace(0.0, 0.3, 3)))
    axis = extruded_along(volumes, mirrors(volumes, *planes), COMM)
    assert axis is not None
    assert abs(axis[2]) == 1.0
    assert extruded_along(volumes, mirrors(volumes, "zmin"), COMM) is None
    bent = control_volumes(box3d(4, 4, 3, perturb=0.2))
    assert extruded_along(bent, mirrors(bent, *planes), COMM) is None
    flat = control_volumes(box2d(4, 4))
    assert extruded_along(flat, mirrors(flat, "ymin", "ymax"), COMM) is None
