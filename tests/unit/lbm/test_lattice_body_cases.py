"""Bodies of case files of lattice Boltzmann flow: surfaces from files, spinning, prescribed and free ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase, units_of
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.lbm.cells.links import find_links
from fluxloom.lbm.immersed import Elastic, Free
from fluxloom.lbm.lattices import D3Q19
from fluxloom.lbm.shapes.shapes import Sphere
from fluxloom.lbm.shapes.surface import Surface
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder
from tests.lattice_cases import immersed_of, solids_of

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")

SPACE: dict[str, Any] = {
    "case": {"name": "bodies", "solver": "lattice"},
    "run": {"iterations": 6},
    "mesh": {"nx": 8, "ny": 7, "nz": 8, "spacing": 0.1, "origin": [-0.4, -0.35, -0.4]},
    "fluid": {"viscosity": 0.05, "density": 3.0, "force": [2.0, 0.0, 0.0]},
    "time": {"lattice_velocity": 0.05, "residual_interval": 3},
}  # fmt: skip
PLANE: dict[str, Any] = SPACE | {
    "mesh": {"nx": 12, "ny": 12, "spacing": 0.1, "origin": [-0.6, -0.6]},
    "fluid": {"viscosity": 0.05, "density": 3.0},
}
DISK = {"shape": "circle", "center": [0.0, 0.0], "diameter": 0.5}
BALL = {"shape": "sphere", "center": [0, 0, 0], "diameter": 0.4, "condition": "immersed"}
LOW, HIGH = [-0.12, -0.13, -0.14], [0.16, 0.11, 0.22]


def load(tables: dict[str, Any], body: dict[str, Any], **others: Any) -> LatticeCase:
    """Return a case with one body, as it is loaded from a file."""
    case, _ = parse_case(Document(Path("case.toml"), tables | {"body": {"thing": body}} | others, {}))
    assert isinstance(case, LatticeCase)
    return case


def run(case: LatticeCase, folder: Path, steps: int) -> FlowRun[Lattice]:
    """Return a case after some steps."""
    runner = LatticeApplication().build(case, Context("reference"))
    runner.begin(ResultFolder(folder))
    for _ in range(steps):
        runner.advance()
    return runner


@pytest.fixture
def brick(tmp_path: Path) -> dict[str, Any]:
    """Return the table of a cuboid in a file, in hundredths and moved."""
    path = tmp_path / "brick.stl"
    bounds = [[100.0 * x + 7.0 for x in end] for end in (LOW, HIGH)]
    trimesh.creation.box(bounds=bounds).export(str(path))
    return {"shape": "surface", "file": str(path), "scale": 0.01, "translate": [-0.07] * 3}


def test_a_surface_is_the_box_that_it_is(brick: dict[str, Any]) -> None:
    """A cuboid from a file has the cells and links of the box of the same corners, to the precision of the file."""
    found = []
    for table in (brick, {"shape": "box", "low": LOW, "high": HIGH}):
        case = load(SPACE, table)
        (body,) = solids_of(case)
        box = Box(case.mesh.shape, (True,) * 3)
        labels = labels_of(box, [body.shape])
        found.append((labels, find_links(box, D3Q19, labels, [body.shape], [])[1]))
    (labels, links), (others, wanted) = found
    assert np.count_nonzero(labels) == 3 * 3 * 3
    np.testing.assert_array_equal(labels, others)
    np.testing.assert_array_equal(links.cells, wanted.cells)
    np.testing.assert_allclose(links.fractions, wanted.fractions, atol=1e-6)


def test_implicit_bodies() -> None:
    """A formula in the units of the case: a ball, whole and cut off, has the volume and links that it has."""
    formula = {"shape": "implicit", "function": "x**2 + y**2 + (z - 0.05)**2 - 0.21**2"}
    shapes = {}
    for name, table in (("whole", formula), ("half", formula | {"low": [-0.3] * 3, "high": [0.3, 0.3, 0.05]})):
        case = load(SPACE, table)
        units = units_of(case)
        (body,) = solids_of(case)
        shapes[name] = body.shape
    ball = Sphere(units.place([0.0, 0.0, 0.05]), 2.1)
    box = Box(case.mesh.shape, (True,) * 3)
    labels = labels_of(box, [ball])
    np.testing.assert_array_equal(labels_of(box, [shapes["whole"]]), labels)
    got, wanted = (find_links(box, D3Q19, labels, [one], [])[1].fractions for one in (shapes["whole"], ball))
    np.testing.assert_allclose(got, wanted, atol=1e-9)
    np.testing.assert_array_equal(labels_of(box, [shapes["half"]])[:5], labels[:5])
    assert not labels_of(box, [shapes["half"]])[5:].any()
    low, high = shapes["half"].bounds()
    assert (high - low) == pytest.approx([3.5, 6.0, 6.0])


def test_surfaces_that_spin(brick: dict[str, Any]) -> None:
    """The velocity of the surface is that of the table and of the spin about the middle of the box round it."""
    case = load(SPACE, brick | {"spin": [0.3, -0.2, 0.5], "velocity": [0.1, 0.0, 0.2], "condition": "bounce-back"})
    units = units_of(case)
    (body,) = solids_of(case)
    assert isinstance(body.shape, Surface)
    assert body.shape.volume * units.dx**3 == pytest.approx(np.prod(np.subtract(HIGH, LOW)), rel=1e-5)
    assert not body.condition.interpolated
    point = np.array([0.2, 0.1, -0.1])
    moved = body.condition.velocity(np.array([units.place(point)]))[0, ::-1] * units.speed
    turned = np.cross([0.3, -0.2, 0.5], point - np.add(LOW, HIGH) / 2)
    assert moved == pytest.approx(np.array([0.1, 0.0, 0.2]) + turned, rel=1e-5)


def test_an_endless_cylinder_spins() -> None:
    """About its axis; it has no middle along it."""
    drum = {"shape": "cylinder", "center": [0.1, 0.0, 0.0], "diameter": 0.4, "axis": "y", "spin": [0.0, 3.0, 0.0]}
    case = load(SPACE, drum)
    units = units_of(case)
    (body,) = solids_of(case)
    moved = body.condition.velocity(np.array([units.place([0.1, 0.3, 0.2])]))[0, ::-1] * units.speed
    assert moved == pytest.approx([0.6, 0.0, 0.0])


def test_immersed_surfaces(brick: dict[str, Any]) -> None:
    """Markers lie on the surface, as many as it has cells, and move as it spins."""
    case = load(SPACE, brick | {"condition": "immersed", "spin": [0.0, 0.0, 0.5]})
    units = units_of(case)
    boundary = immersed_of(case)
    assert boundary is not None
    markers = boundary.bodies[0].markers
    places = np.stack(units.points(markers.positions), axis=1)
    assert np.abs(np.abs((places - LOW) * (places - HIGH)).min(axis=1)).max() < 1e-7
    area = 2 * sum(a * b for a, b in ((0.28, 0.24), (0.28, 0.36), (0.24, 0.36))) / units.dx**2
    assert 0.7 * area < markers.count < 1.5 * area
    middle = np.add(LOW, HIGH) / 2
    moved = np.broadcast_to(markers.velocities, markers.positions.shape)[:, ::-1] * units.speed
    np.testing.assert_allclose(moved, np.cross([0.0, 0.0, 0.5], places - middle), atol=1e-6)


def test_a_disk_that_spins(tmp_path: Path) -> None:
    """The fluid near it goes round with it, counter-clockwise, as fast in x as in y."""
    for condition, near in (("interpolated", 1e-5), ("immersed", 0.02)):  # markers do not lie as the cells do
        flow = run(load(PLANE, DISK | {"spin": [2.0], "condition": condition}), tmp_path, 4).flow
        v, u = np.moveaxis(flow.velocity(), -1, 0)
        assert v[6, 9] > 1e-3, condition  # right of it
        assert u[9, 5] < -1e-3, condition  # above it
        assert v[6, 9] == pytest.approx(-u[9, 5], rel=near)


def test_a_prescribed_box(tmp_path: Path) -> None:
    """A box in the plane goes where the formulas say, and the fluid with it."""
    box = {"shape": "box", "low": [-0.2, -0.1], "high": [0.2, 0.1], "condition": "immersed", "motion": "prescribed"}
    ways = {"position_x": "0.4 * t", "position_y": "0.1 * t"}
    runner = run(load(PLANE, box | ways, history={"every": 1}), tmp_path, 4)
    t = runner.flow.time - runner.flow.units.dt  # where it was in the last step
    assert runner.history.column("thing.x")[-1] == pytest.approx(0.4 * t, abs=1e-9)
    assert runner.history.column("thing.y")[-1] == pytest.approx(0.1 * t, abs=1e-9)
    v, u = runner.flow.solver.velocity()[6, 6] * runner.flow.units.speed
    assert 0.1 < u < 0.8
    assert 0.02 < v < 0.15


def test_free_bodies(tmp_path: Path) -> None:
    """A disk sinks if it is heavier than the fluid and rises if it is lighter, slower than it would alone."""
    for density, way in ((6.0, -1), (1.5, 1)):
        table = DISK | {"condition": "immersed", "motion": "free", "density": density, "gravity": [0.0, -4.0]}
        runner = run(load(PLANE, table, history={"every": 1}), tmp_path, 4)
        fallen = runner.history.column("thing.y")[-1]
        alone = -0.5 * 4.0 * (1.0 - 3.0 / density) * runner.flow.time**2
        assert way * fallen > 0.05 * abs(alone)
        assert abs(fallen) < abs(alone)
        assert abs(runner.history.column("thing.x")[-1]) < 1e-9


def test_a_free_ball() -> None:
    """Mass, displaced mass and gravity of a ball are those of the table, on the lattice."""
    ball = {"shape": "sphere", "center": [0.1, 0.0, 0.0], "diameter": 0.6, "condition": "immersed", "motion": "free"}
    case = load(SPACE, ball | {"density": 7.5, "gravity": [0.0, 0.0, -9.0]})
    units = units_of(case)
    boundary = immersed_of(case)
    assert boundary is not None
    motion = boundary.bodies[0].motion
    assert isinstance(motion, Free)
    volume = np.pi / 6 * 6.0**3
    assert (motion.mass, motion.displaced) == pytest.approx((2.5 * volume, volume))
    assert motion.gravity == pytest.approx((-9.0 * units.dt**2 / units.dx, 0.0, 0.0))
    assert boundary.bodies[0].markers.centre == pytest.approx([3.5, 3.0, 4.5], abs=1e-3)


def test_elastic_bodies(tmp_path: Path) -> None:
    """A membrane goes with the fluid; stiffness is the tension at a strain of one, whatever the cells are."""
    table = {"condition": "immersed", "motion": "elastic", "stiffness": 0.8, "bending": 0.01}
    moved = {"initial": {"velocity_x": "0.5", "velocity_y": "0.2"}, "history": {"every": 1}}
    runner = run(load(PLANE, DISK | table, **moved), tmp_path, 4)
    assert runner.history.column("thing.x")[-1] == pytest.approx(0.5 * runner.flow.time, rel=0.02)
    assert runner.history.column("thing.y")[-1] == pytest.approx(0.2 * runner.flow.time, rel=0.02)
    for spacing in (0.1, 0.05):
        mesh = {"nx": 12, "ny": 12, "spacing": spacing, "origin": [-0.6, -0.6]}
        case = load(PLANE, DISK | table, mesh=mesh)
        units = units_of(case)
        boundary = immersed_of(case)
        assert boundary is not None
        (body,) = boundary.bodies
        assert isinstance(body.motion, Elastic)
        apart = 2.0 * 0.25 * np.sin(np.pi / body.markers.count)
        tension = body.motion.stiffness * 0.01 * apart / units.dx * units.force
        assert tension == pytest.approx(0.8 * 0.01, rel=1e-9)
        # a ring of radius R has the energy of bending pi b / R
        x = body.markers.positions * units.dx
        bent = np.roll(x, 1, axis=0) - 2.0 * x + np.roll(x, -1, axis=0)
        energy = 0.5 * body.motion.bending * (bent**2).sum() / units.dx * units.force
        assert energy == pytest.approx(np.pi * 0.01 / 0.25, rel=0.03)


def test_an_elastic_box_gets_round(tmp_path: Path) -> None:
    """Bending pulls the corners in and pushes the sides out."""
    box = {"shape": "box", "low": [-0.2, -0.2], "high": [0.2, 0.2], "condition": "immersed", "motion": "elastic"}
    runner = run(load(PLANE, box | {"stiffness": 1.0, "bending": 0.02}), tmp_path, 4)
    assert runner.flow.boundary is not None
    start = runner.flow.boundary.bodies[0].markers.positions - 5.5
    now = runner.flow.boundary.positions("thing") - 5.5
    far = np.linalg.norm(start, axis=1)
    change = np.linalg.norm(now, axis=1) - far
    assert (change[far > 2.7] < -1e-4).all()
    assert (change[far < 2.1] > 1e-5).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"shape": "surface"}, "body.thing: .*needs file"),
        ({"shape": "stl", "file": "none.stl"}, r"body\.thing\.file: none\.stl: cannot be read: No such file"),
        ({"shape": "surface", "file": "a.toml"}, r"body\.thing\.file: "),
        ({"shape": "surface", "file": "none.stl", "diameter": 1.0}, "has no diameter"),
        ({"shape": "surface", "file": "none.stl", "traslate": [0, 0, 0]}, "traslate.*did you mean 'translate'"),
        ({"shape": "surface", "file": "none.stl", "translate": [0.0, 0.0]}, r"body\.thing\.translate"),
        ({"shape": "sphere", "center": [0, 0, 0], "diameter": 0.4, "weld": 0.1}, "has no weld"),
        (BALL | {"motion": "elastic", "stiffness": 1.0}, 'elastic" needs a stiffness, above 0, and a circle or a box'),
        (BALL | {"stiffness": 1.0}, 'stiffness is of motion = "elastic"'),
        (BALL | {"motion": "prescribed"}, "needs one of position_x"),
        (BALL | {"motion": "free", "density": 2.0, "spin": [0, 0, 1]}, 'spin is of motion = "fixed"'),
        (BALL | {"condition": "interpolated", "motion": "free", "density": 2.0}, "needs condition"),
        ({"shape": "implicit"}, "needs function"),
        ({"shape": "implicit", "function": "x + r"}, "unknown name 'r'"),
        ({"shape": "implicit", "function": "x", "low": [0, 0, 0]}, "give both of low and high"),
        ({"shape": "implicit", "function": "log(x)"}, r"body\.thing\.function: "),
        ({"shape": "implicit", "function": "x", "spin": [0, 0, 1]}, r"body\.thing\.spin: a body without ends"),
        ({"shape": "implicit", "function": "x", "condition": "immersed"}, r"body\.thing\.condition: 'implicit' cannot"),
        ({"shape": "surface", "file": "none.stl", "spin": [1.0]}, r"body\.thing"),
        ({"shape": "surface", "file": "none.stl", "motion": "free", "density": 2, "condition": "immersed"}, "a sphere"),
    ],
)
def test_wrong_bodies(body: dict[str, Any], message: str) -> None:
    """What is wrong names the key, and the file."""
    with pytest.raises(CaseError, match=message):
        LatticeApplication().build(load(SPACE, body), Context("reference"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"diameter": 0.2}, "'other' has no cell: all of its cells are those of 'thing'"),
        ({"diameter": 0.2, "condition": "immersed"}, "'other': .* markers lie in a solid body"),
    ],
)
def test_bodies_in_bodies(other: dict[str, Any], message: str) -> None:
    """A body that another one covers is told by its name."""
    tables = PLANE | {"body": {"thing": DISK, "other": DISK | other}}
    case, _ = parse_case(Document(Path("case.toml"), tables, {}))
    assert isinstance(case, LatticeCase)
    with pytest.raises(CaseError, match=message):
        LatticeApplication().build(case, Context("reference"))


def test_open_surfaces(tmp_path: Path, brick: dict[str, Any]) -> None:
    """An open surface is told with its file and a place on its edge."""
    mesh = trimesh.load_mesh(brick["file"])
    mesh.update_faces(np.arange(len(mesh.faces)) > 0)
    mesh.export(str(tmp_path / "open.obj"))
    with pytest.raises(CaseError, match=r"body\.thing\.file: .*open\.obj: the surface is not closed: 3 of 18 edges"):
        LatticeApplication().build(load(SPACE, brick | {"file": str(tmp_path / "open.obj")}), Context("reference"))
    with pytest.raises(CaseError, match=r"body\.thing\.shape: 'surface' is none of a flow in 2 dimensions"):
        LatticeApplication().build(load(PLANE, {"shape": "surface", "file": brick["file"]}), Context("reference"))
