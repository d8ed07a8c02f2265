"""Boxes, channels and steps meshed by Gmsh: conforming, exact, without slivers, repeatable; what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable, MeshError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.gmsh_mesh import GmshBox, GmshCylinder, GmshShape, GmshStep, gmsh_mesh, gmsh_sizes
from fluxloom.mesh.quality.check import check


@pytest.fixture(autouse=True, scope="module")
def _gmsh() -> None:
    try:
        import gmsh  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"Gmsh cannot be loaded: {error}")


def sizes_of(mesh: MeshData, patch: str) -> np.ndarray:
    """Return the lengths or areas of the faces of a patch."""
    (faces,) = mesh.patch(patch).blocks.values()
    corners = mesh.points[faces]
    if mesh.dimension == 2:
        return np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
    return 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)


def least_angle(mesh: MeshData) -> float:
    """Return the smallest angle of triangles, or between faces of tetrahedra, in degrees."""
    ((_, cells),) = mesh.cells.items()
    corners, d = mesh.points[cells], mesh.dimension
    inverse = np.linalg.inv(corners[:, 1:] - corners[:, :1])  # columns: gradients of the shape functions
    slopes = np.concatenate([-inverse.sum(axis=2)[:, None], inverse.transpose(0, 2, 1)], axis=1)
    unit = slopes / np.linalg.norm(slopes, axis=2)[..., None]
    cosines = [-np.einsum("ij,ij->i", unit[:, a], unit[:, b]) for a in range(d + 1) for b in range(a)]
    return float(np.degrees(np.arccos(np.max(cosines))))


def sound(shape: GmshShape, names: str) -> MeshData:
    """Return the mesh of a shape: checked, with its patches and no others, and as many cells as was estimated."""
    mesh = gmsh_mesh(shape)
    report = check(mesh)
    assert list(mesh.patches) == names.split()
    assert mesh.n_points == len(np.unique(np.concatenate([block.reshape(-1) for block in mesh.cells.values()])))
    assert report.closure_max < 1e-12
    cells, nodes, dimension = gmsh_sizes(shape)
    assert dimension == mesh.dimension
    assert 0.75 < mesh.n_cells / cells < 1.3
    assert 0.7 < mesh.n_points / nodes < 1.45
    return mesh


SIDES = "xmin xmax ymin ymax zmin zmax"


def test_a_rectangle() -> None:
    mesh = sound(GmshBox(x=(-1.0, 2.0), y=(0.5, 1.5), size=0.1), "xmin xmax ymin ymax")
    assert check(mesh).volume_total == pytest.approx(3.0, rel=1e-13)
    for name, axis, value, length in (("xmin", 0, -1.0, 1.0), ("xmax", 0, 2.0, 1.0), ("ymax", 1, 1.5, 3.0)):
        assert (mesh.points[mesh.patch(name).nodes(), axis] == value).all()
        assert sizes_of(mesh, name).sum() == pytest.approx(length, rel=1e-13)
    assert least_angle(mesh) > 35.0


def test_a_box() -> None:
    mesh = sound(GmshBox(size=0.15, x=(0.0, 2.0), z=(-1.0, 0.0)), SIDES)
    assert list(mesh.cells) == ["tetra"]
    assert check(mesh).volume_total == pytest.approx(2.0, rel=1e-12)
    assert sizes_of(mesh, "zmin").sum() == pytest.approx(2.0, rel=1e-12)
    assert (mesh.points[mesh.patch("zmin").nodes(), 2] == -1.0).all()
    assert least_angle(mesh) > 10.0


@pytest.mark.parametrize("z", [(), (0.0, 1.0)], ids=["triangles", "tetrahedra"])
def test_finer_at_walls(z: tuple[float, ...]) -> None:
    fine, size = (0.02, 0.1) if not z else (0.06, 0.2)
    mesh = sound(GmshBox(size=size, z=z, wall_size=fine), SIDES if z else SIDES[:19])
    d = mesh.dimension
    regular = 1.0 if d == 2 else np.sqrt(3.0) / 4.0
    assert np.mean(sizes_of(mesh, "ymin")) == pytest.approx(regular * fine ** (d - 1), rel=0.2)
    (cells,) = mesh.cells.values()
    middle = np.abs(mesh.points[cells].mean(axis=1) - 0.5).max(axis=1) < 0.15
    edges = np.linalg.norm(np.diff(mesh.points[cells[middle]][:, :2], axis=1)[:, 0], axis=1)
    assert np.mean(edges) > 2.0 * fine
    assert least_angle(mesh) > (25.0 if d == 2 else 8.0)


def test_a_cylinder_in_a_channel() -> None:
    shape = GmshCylinder(size=0.06, size_cylinder=0.012)
    mesh = sound(shape, "xmin xmax ymin ymax cylinder")
    around = mesh.points[mesh.patch("cylinder").nodes()] - shape.centre
    np.testing.assert_allclose(np.linalg.norm(around, axis=1), 0.05, rtol=1e-15 * 8)
    lengths = sizes_of(mesh, "cylinder")
    assert len(lengths) == len(around)
    assert lengths.max() < 1.25 * 0.012
    half = 0.5 * lengths / 0.05  # chords of a circle: their angles are its whole
    assert 2.0 * np.arcsin(half).sum() == pytest.approx(2.0 * np.pi, rel=1e-12)
    hole = 0.5 * 0.05**2 * np.sin(2.0 * np.arcsin(half)).sum()
    assert check(mesh).volume_total == pytest.approx(2.2 * 0.41 - hole, rel=1e-12)
    assert least_angle(mesh) > 25.0


def test_the_circumference_converges() -> None:
    errors = []
    for size in (0.02, 0.01):
        mesh = gmsh_mesh(GmshCylinder(size=0.1, size_cylinder=size))
        errors.append(0.1 * np.pi - sizes_of(mesh, "cylinder").sum())
    assert errors[1] > 0.0
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)


@pytest.mark.parametrize(("upstream", "area"), [(1.0, 4.5), (0.0, 4.0)])
def test_a_step(upstream: float, area: float) -> None:
    mesh = sound(GmshStep(size=0.1, size_step=0.02, upstream=upstream, downstream=4.0), "inlet outlet wall")
    assert check(mesh).volume_total == pytest.approx(area, rel=1e-13)
    assert sizes_of(mesh, "inlet").sum() == pytest.approx(0.5)
    assert sizes_of(mesh, "outlet").sum() == pytest.approx(1.0)
    assert sizes_of(mesh, "wall").sum() == pytest.approx(4.0 + 4.0 + 2 * upstream + 0.5)
    edge = np.linalg.norm(mesh.points, axis=1)
    assert edge.min() == 0.0
    assert np.sort(edge)[1] < 0.03
    assert least_angle(mesh) > 25.0


def test_a_step_with_a_span() -> None:
    mesh = sound(GmshStep(size=0.12, upstream=0.5, downstream=2.0, span=0.6), "inlet outlet wall zmin zmax")
    assert check(mesh).volume_total == pytest.approx(2.25 * 0.6, rel=1e-12)
    for name, area in (("inlet", 0.3), ("outlet", 0.6), ("zmin", 2.25), ("zmax", 2.25), ("wall", 0.6 * 5.5)):
        assert sizes_of(mesh, name).sum() == pytest.approx(area, rel=1e-12)
    assert (mesh.points[mesh.patch("zmax").nodes(), 2] == 0.6).all()
    assert least_angle(mesh) > 8.0


def test_the_same_twice(assert_same: Callable[[MeshData, MeshData], None]) -> None:
    for shape in (GmshBox(size=0.2, z=(0.0, 1.0)), GmshCylinder(size=0.1)):
        assert_same(gmsh_mesh(shape), gmsh_mesh(shape))


def test_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    gmsh_mesh(GmshBox(size=0.3, z=(0.0, 1.0)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GmshBox(size=2.0), "size: above 0 and at most 1, the shortest side is wanted, not 2.0"),
        (lambda: GmshBox(size=0.0), "size: above 0"),
        (lambda: GmshBox(size=0.1, y=(1.0, 0.0)), r"y: the lower and the upper end is wanted, not \[1.0, 0.0\]"),
        (lambda: GmshBox(size=0.1, z=(0.0,)), "z: the lower"),
        (lambda: GmshBox(size=0.1, wall_size=0.2), "wall_size: at most the size"),
        (lambda: GmshBox(size=0.1, growth=0.0), "growth: between 0.01 and 1"),
        (lambda: GmshCylinder(size=0.1, radius=0.1), "three radii"),
        (lambda: GmshCylinder(size=0.1, size_cylinder=0.06), "size_cylinder"),
        (lambda: GmshCylinder(size=0.1, centre=(0.2,)), "centre: two numbers"),
        (lambda: GmshStep(size=0.1, step=1.0), "height: above the step is wanted, not 1.0"),
        (lambda: GmshStep(size=0.1, downstream=0.0), "downstream: above 0"),
        (lambda: GmshStep(size=0.3, span=0.2), "size: above 0 and at most 0.2"),
        (
            lambda: gmsh_mesh(GmshBox(size=1e-3, z=(0.0, 1.0))),
            "more than most_cells = 5,000,000; make the sizes larger",
        ),
        (lambda: gmsh_sizes(GmshCylinder(size=0.01, most_cells=100)), "more than most_cells = 100"),
    ],
)
def test_what_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(MeshError, match=message):
        make()


def test_without_gmsh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gmsh", None)
    with pytest.raises(DeviceUnavailable, match=r"pip install 'fluxloom\[mesh\]', and on Debian apt install"):
        gmsh_mesh(GmshBox(size=0.5))


def test_a_session_of_the_program() -> None:
    import gmsh

    gmsh.initialize(interruptible=False)
    try:
        with pytest.raises(MeshError, match=r"uses Gmsh already; call gmsh\.finalize\(\) before"):
            gmsh_mesh(GmshBox(size=0.5))
        assert gmsh.isInitialized()
    finally:
        gmsh.finalize()
