"""Boxes around bodies of STL files: cubes, a ball, the Ahmed body; charts of surfaces; files that are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.gmsh_mesh import GmshBody, GmshRefinement, gmsh_mesh, gmsh_sizes
from fluxloom.mesh.generate.gmsh_surface import charts_of, read_stl
from fluxloom.mesh.quality.check import check

Triangles = np.ndarray


@pytest.fixture(scope="module")
def gmsh_there() -> None:
    try:
        import gmsh  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"Gmsh cannot be loaded: {error}")


def write_stl(path: Path, triangles: Triangles, text: bool = False) -> str:
    """Write corners ``(m, 3, 3)`` and return the name of the file."""
    if text:
        loops = ["\n".join(f"vertex {x} {y} {z}" for x, y, z in corners) for corners in triangles.tolist()]
        facets = [f"facet normal 0 0 0\nouter loop\n{loop}\nendloop\nendfacet" for loop in loops]
        path.write_text("\n".join(["solid body", *facets, "endsolid"]))
        return str(path)
    rows = np.zeros(len(triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    rows["corners"] = triangles
    path.write_bytes(bytes(80) + len(triangles).to_bytes(4, "little") + rows.tobytes())
    return str(path)


def cube(low: float = 0.0) -> Triangles:
    """Return the sides of a unit cube above a height, two triangles each."""
    corners = np.array([[k & 1, k >> 1 & 1, k >> 2 & 1] for k in range(8)]) + np.array([0.0, 0.0, low])
    quads = np.array([[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]])
    return corners[np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])]


def ball(count: int) -> Triangles:
    """Return a ball of radius 0.5 about (0.5, 0.5, 0.5): a cube whose divided sides are blown up."""
    at = np.tan(np.linspace(-np.pi / 4, np.pi / 4, count + 1))
    a, b = np.meshgrid(at, at, indexing="ij")
    found = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            side = np.stack(np.roll([np.full_like(a, sign), a * sign, b], axis, axis=0), axis=-1)
            side = 0.5 + 0.5 * side / np.linalg.norm(side, axis=-1)[..., None]
            p, q, r, s = side[:-1, :-1], side[1:, :-1], side[1:, 1:], side[:-1, 1:]
            found += [np.stack(t, axis=2).reshape(-1, 3, 3) for t in ((p, q, r), (p, r, s))]
    return np.concatenate(found)


def around(file: str, **changes: object) -> GmshBody:
    """Return a box around a body in the unit cube."""
    ends = (-1.0, 3.0)
    plain = GmshBody(file, x=ends, y=ends, z=(-1.0, 3.0), size_body=0.2, size_far=0.8, growth=0.4)
    return replace(plain, **changes)


def area_of(mesh: MeshData, patch: str) -> float:
    """Return the area of a patch."""
    corners = mesh.points[mesh.patch(patch).blocks["triangle"]]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return 0.5 * float(np.linalg.norm(across, axis=1).sum())


def least_dihedral(mesh: MeshData) -> float:
    """Return the smallest angle between two faces of a tetrahedron, in degrees."""
    corners = mesh.points[mesh.cells["tetra"]]
    slopes = np.linalg.inv(corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    slopes = np.concatenate([-slopes.sum(axis=1)[:, None], slopes], axis=1)
    unit = slopes / np.linalg.norm(slopes, axis=2)[..., None]
    cosines = [-np.einsum("ij,ij->i", unit[:, a], unit[:, b]) for a in range(4) for b in range(a)]
    return float(np.degrees(np.arccos(np.max(cosines))))


def sound(body: GmshBody, least: float) -> MeshData:
    """Return the mesh around a body: checked, without slivers, about as large as was estimated."""
    mesh = gmsh_mesh(body)
    assert check(mesh).closure_max < 1e-12
    assert list(mesh.patches) == ["body", "xmin", "xmax", "ymin", "ymax", "zmin", "zmax"]
    assert least_dihedral(mesh) > least
    cells, _, dimension = gmsh_sizes(body)
    assert dimension == 3
    assert 0.6 < mesh.n_cells / cells < 1.6
    return mesh


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
def test_a_file(tmp_path: Path, text: bool) -> None:
    surface = read_stl(write_stl(tmp_path / "cube.stl", cube(), text))
    surface.check_closed()
    assert (len(surface.points), len(surface.triangles)) == (8, 12)
    np.testing.assert_allclose(surface.vectors().sum(axis=0), 0.0, atol=1e-15)
    places, normals = surface.samples(0.25)
    np.testing.assert_allclose(np.abs(normals).max(axis=1), 1.0)
    nearest = np.linalg.norm(places[:, None] - np.random.default_rng(1).permutation(places)[None], axis=2)
    assert np.sort(nearest, axis=1)[:, 1].max() < 0.3
    np.testing.assert_allclose(np.abs(places - 0.5).max(axis=1), 0.5, rtol=1e-14)


def test_a_body_turned_inside_out_is_turned_back(tmp_path: Path) -> None:
    """Each of two bodies by itself; a hollow in one, which has its normals inward by right, stays as it is."""
    beside, hollow = cube() + np.array([0.0, 1.5, 0.0]), (ball(4)[:, ::-1] - 0.5) * 0.4 + 0.5
    right = np.concatenate([cube(), beside, hollow])
    for wrong in ((cube()[:, ::-1], beside, hollow), (cube(), beside[:, ::-1], hollow), (cube(), beside, hollow)):
        found = around(write_stl(tmp_path / "bodies.stl", np.concatenate(wrong))).surface
        corners = found.points[found.triangles]
        volume = np.einsum("td,td->t", found.vectors(), corners.mean(axis=1)).sum() / 3.0
        whole = np.einsum("td,td->t", np.cross(right[:, 1], right[:, 2]), right[:, 0]).sum() / 6.0
        assert volume == pytest.approx(whole, rel=1e-6)


def test_charts(tmp_path: Path) -> None:
    flat = read_stl(write_stl(tmp_path / "cube.stl", cube()))
    chart, even = charts_of(flat, 20.0, 0.2)
    assert even.all()
    np.testing.assert_array_equal(np.bincount(chart), [2] * 6)
    round_ = read_stl(write_stl(tmp_path / "ball.stl", ball(12)))
    chart, even = charts_of(round_, 20.0, 0.2)
    assert not even.any()
    assert len(even) == 6  # one about each axis
    normals = round_.vectors() / np.linalg.norm(round_.vectors(), axis=1)[:, None]
    for number in range(len(even)):
        own = normals[chart == number]
        assert (own @ own.mean(axis=0)).min() > 0.3  # seen from one side as a whole


@pytest.mark.usefixtures("gmsh_there")
def test_a_cube_in_the_air(tmp_path: Path) -> None:
    mesh = sound(around(write_stl(tmp_path / "cube.stl", cube())), 9.0)
    assert area_of(mesh, "body") == pytest.approx(6.0, rel=1e-12)
    assert area_of(mesh, "zmin") == pytest.approx(16.0, rel=1e-12)
    assert check(mesh).volume_total == pytest.approx(63.0, rel=1e-12)
    wall = mesh.points[mesh.patch("body").nodes()]
    np.testing.assert_allclose(np.abs(wall - 0.5).max(axis=1), 0.5, rtol=1e-12)


@pytest.mark.usefixtures("gmsh_there")
def test_a_cube_on_the_ground(tmp_path: Path) -> None:
    box = GmshRefinement((1.0, 0.0, 0.0), (2.0, 1.0, 1.0), 0.2)
    body = around(write_stl(tmp_path / "cube.stl", cube(-1.0)), refine=(box,))
    mesh = sound(body, 8.0)
    assert area_of(mesh, "body") == pytest.approx(5.0, rel=1e-12)
    assert area_of(mesh, "zmin") == pytest.approx(15.0, rel=1e-12)
    assert (mesh.points[mesh.patch("zmin").nodes(), 2] == -1.0).all()
    assert check(mesh).volume_total == pytest.approx(63.0, rel=1e-12)
    assert gmsh_sizes(body)[0] > 1.1 * gmsh_sizes(replace(body, refine=()))[0]


@pytest.mark.usefixtures("gmsh_there")
def test_a_ball(tmp_path: Path) -> None:
    triangles = ball(16)
    file = write_stl(tmp_path / "ball.stl", triangles)
    errors = []
    for size in (0.2, 0.1):
        mesh = sound(around(file, size_body=size), 5.0)
        errors.append(np.pi - area_of(mesh, "body"))
        distance = np.linalg.norm(mesh.points[mesh.patch("body").nodes()] - 0.5, axis=1)
        assert (distance < 0.5 + 1e-7).all()  # on the triangles of the file
        assert (distance > 0.5 * np.cos(np.pi / 4 / 16 * 2.0)).all()
    assert 0.0 < errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.02 * np.pi


@pytest.mark.usefixtures("gmsh_there")
def test_the_ahmed_body(data: Path) -> None:
    file = str(data / "ahmed_body" / "ahmed_body_raw.stl")
    body = GmshBody(file, (-1.5, 4.0), (-1.0, 1.0), (0.0, 1.4), size_body=0.04, size_far=0.4, growth=0.3)
    mesh = sound(body, 2.0)
    whole, standing = (float(np.linalg.norm(part.vectors(), axis=1).sum()) for part in (read_stl(file), body.surface))
    feet = whole - standing
    assert feet == pytest.approx(4.0 * np.pi * 0.015**2, rel=1e-2)  # four round legs stand on the ground
    assert area_of(mesh, "body") == pytest.approx(1.5386 - feet, rel=5e-3)
    assert area_of(mesh, "zmin") == pytest.approx(11.0 - feet, rel=1e-4)
    assert check(mesh).volume_total == pytest.approx(15.4 - 0.1101, rel=1e-4)


def dropped(triangles: Triangles) -> Triangles:
    return triangles[1:]


def turned(triangles: Triangles) -> Triangles:
    return np.concatenate([triangles[:1, ::-1], triangles[1:]])


def twice(triangles: Triangles) -> Triangles:
    return np.concatenate([triangles, triangles[:1]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dropped, r"cube\.stl: 3 edges belong to one triangle only: the surface has holes; one is that from \("),
        (turned, r"cube\.stl: 3 edges join triangles that turn differently.*let all normals point outwards"),
        (twice, r"cube\.stl: 3 edges belong to more than two triangles"),
        (lambda t: t + np.array([0.0, 0.0, -1.1]), r"cube\.stl: z: the body reaches from -1\.1 to -0\.1"),
        (lambda t: t + np.array([2.5, 0.0, 0.0]), r"cube\.stl: x: the body reaches from 2\.5 to 3\.5"),
    ],
)
def test_broken_surfaces(tmp_path: Path, change: Callable[[Triangles], Triangles], message: str) -> None:
    with pytest.raises(MeshError, match=message):
        gmsh_sizes(around(write_stl(tmp_path / "cube.stl", change(cube()))))


def test_a_body_on_an_edge(tmp_path: Path) -> None:
    half = np.sqrt(0.5)
    tilted = cube() @ np.array([[half, 0.0, half], [0.0, 1.0, 0.0], [-half, 0.0, half]])
    with pytest.raises(MeshError, match=r"touches the ground z = 0 at \[.*leave a gap"):
        gmsh_sizes(around(write_stl(tmp_path / "cube.stl", tilted), z=(0.0, 3.0)))


def test_broken_files(tmp_path: Path) -> None:
    file = tmp_path / "cube.stl"
    with pytest.raises(MeshError, match=r"cube\.stl: cannot be read: No such file"):
        read_stl(file)
    whole = Path(write_stl(file, cube())).read_bytes()
    file.write_bytes(whole[:-7])
    with pytest.raises(MeshError, match=r"cube\.stl: not an STL file, or one that was cut off"):
        read_stl(file)
    file.write_text("solid\nfacet\nouter loop\nvertex 0 0 0\nvertex 1 0 a\nvertex 0 1 0\nendloop\nendfacet\nendsolid")
    with pytest.raises(MeshError, match=r":5: the coordinate 'a' is no number"):
        read_stl(file)
    write_stl(file, cube()[:0])
    with pytest.raises(MeshError, match="no triangles"):
        read_stl(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size_body": 0.9}, "size_body: above 0 and at most size_far is wanted, not 0.9"),
        ({"size_far": 9.0}, "size_far: above 0 and at most 4"),
        ({"x": (0.0,)}, "x: the lower and the upper end"),
        ({"growth": 2.0}, "growth"),
        ({"angle": 0.0}, "angle: between 1 and 60 degrees"),
    ],
)
def test_wrong_numbers(changes: dict[str, object], message: str) -> None:
    with pytest.raises(MeshError, match=message):
        around("cube.stl", **changes)


def test_wrong_refinements() -> None:
    with pytest.raises(MeshError, match="three numbers in lower and in upper"):
        GmshRefinement((0.0, 0.0), (1.0, 1.0), 0.1)
    with pytest.raises(MeshError, match=r"refine\.size: above 0"):
        GmshRefinement((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 0.0)
