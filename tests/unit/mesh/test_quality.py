from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fluxloom.cli.verbs.mesh import build
from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d, check, orient, read_data, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.quality.measures import quality


def test_boxes():
    """Cells of 1 by 2 by 1/2."""
    found = quality(box3d(3, 2, 4, (3.0, 4.0, 2.0)))
    assert found.negative_volumes == 0
    assert (found.n_cells, found.n_faces, found.dimension) == (24, 98, 3)
    for name, value in {"volume": 1.0, "aspect ratio": 4.0, "volume ratio": 1.0}.items():
        item = found[name]
        assert (item.least, item.mean, item.percentile, item.most) == pytest.approx((value,) * 4, rel=1e-12)
    for name in ("non-orthogonality", "skewness", "warp", "closure"):
        assert found[name].most < 1e-6
    assert found["warp"].count == 98
    assert found["skewness"].count == 2 * 2 * 4 + 3 * 1 * 4 + 3 * 2 * 3


@pytest.mark.parametrize("kind", ["triangle", "tetra"])
def test_regular_simplices_have_no_aspect(kind):
    points = {
        "triangle": [[0, 0], [1, 0], [0.5, np.sqrt(0.75)]],
        "tetra": [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]],
    }[kind]
    mesh, _ = orient(MeshData(np.array(points, dtype=float), {kind: np.arange(len(points), dtype=np.int32)[None]}))
    found = quality(mesh)
    assert found["aspect ratio"].most == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(MeshError, match=r"no measure 'skewnes'.*known: volume, aspect ratio, closure"):
        found["skewnes"]  # a single cell has no interior faces


def test_turning_changes_nothing_but_the_place():
    mesh = box3d(3, 3, 3, (1.0, 2.0, 3.0), perturb=0.3)
    turn, _ = np.linalg.qr(np.random.default_rng(1).random((3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    first, second = quality(mesh), quality(mesh.with_points(mesh.points @ turn.T))
    for a, b in zip(first.measures, second.measures, strict=True):
        if a.name == "closure":
            continue
        assert (a.least, a.mean, a.percentile, a.most) == pytest.approx(
            (b.least, b.mean, b.percentile, b.most), rel=1e-9
        )
        assert (a.worst, a.cells) == (b.worst, b.cells)
        np.testing.assert_allclose(turn @ a.place, b.place, atol=1e-12)


def test_sheared_cells():
    """Angles are that of the shear across both families of faces."""
    mesh = box2d(4, 4)
    points = mesh.points.copy()
    points[:, 0] += 0.75 * points[:, 1]
    item = quality(mesh.with_points(points))["non-orthogonality"]
    assert (item.least, item.most) == pytest.approx((np.degrees(np.arctan(0.75)),) * 2, rel=1e-9)


def two_cells(shift: float, width: float = 1.0) -> MeshData:
    """A unit square, and a parallelogram to the right of it that rises by ``shift``."""
    points = [[0, 0], [1, 0], [1, 1], [0, 1], [1 + width, shift], [1 + width, 1 + shift]]
    cells = {"quad": np.array([[0, 1, 2, 3], [1, 4, 5, 2]], dtype=np.int32)}
    return MeshData(np.array(points, dtype=float), cells)


def test_skewness():
    """The line of centroids from (1/2, 1/2) to (3/2, 1) meets the face x = 1 at 3/4, its centre is at 1/2."""
    found = quality(two_cells(1.0))
    item = found["skewness"]
    assert item.most == pytest.approx(0.25 / np.sqrt(1.25), rel=1e-12)
    assert (item.worst, item.cells, item.place, item.count) == (0, (0, 1), (1.0, 0.5), 1)
    assert found["non-orthogonality"].most == pytest.approx(np.degrees(np.arctan(0.5)), rel=1e-12)


def test_volume_ratio_and_smallest_volume():
    for width in (0.25, 4.0):
        found = quality(two_cells(0.0, width))
        assert found["volume ratio"].most == pytest.approx(4.0, rel=1e-12)
        item = found["volume"]
        assert (item.least, item.most) == pytest.approx((min(1.0, width), max(1.0, width)))
        assert (item.worst, item.cells) == ((1, (1,)) if width < 1.0 else (0, (0,)))
        assert item.place == pytest.approx((1.0 + width / 2 if width < 1.0 else 0.5, 0.5))


def test_warp():
    """A corner of a unit square lifted by 1: 60 degrees over one diagonal, 54.7 over the other."""
    mesh = box3d(1, 1, 1)
    for corner in range(8):
        points = mesh.points.copy()
        points[corner, 2] += 1.0 if points[corner, 2] > 0.5 else -1.0
        item = quality(mesh.with_points(points))["warp"]
        assert item.most == pytest.approx(60.0, rel=1e-12)
        assert item.count == 6


def test_percentile():
    """Of 200 cells 198 are not above it."""
    widths = np.random.default_rng(2).permutation(np.arange(1.0, 201.0))
    mesh = box2d(200, 1)
    x = np.concatenate([[0.0], np.cumsum(widths)])
    points = np.stack([x[np.rint(mesh.points[:, 0] * 200).astype(int)], mesh.points[:, 1]], axis=1)
    item = quality(mesh.with_points(points))["volume"]
    assert (item.least, item.percentile, item.most, item.mean) == pytest.approx((1.0, 198.0, 200.0, 100.5))
    assert item.worst == int(np.argmin(widths))


def test_inverted_and_flat_cells(change):
    inverted = quality(change(cells={"quad": np.array([[0, 1, 4, 3], [1, 4, 5, 2]])}))
    assert inverted.negative_volumes == 1
    assert (inverted["volume"].least, inverted["volume"].worst) == (-1.0, 1)
    mesh = two_cells(0.0)
    points = mesh.points.copy()
    points[4:, 0] = 1.0
    flat = quality(mesh.with_points(points))
    assert flat.negative_volumes == 1
    assert flat["aspect ratio"].most == flat["volume ratio"].most == np.inf
    assert flat["aspect ratio"].worst == 1


def test_flat_faces():
    """A wedge: the edge of a hexahedron collapsed to a line."""
    mesh = box3d(2, 1, 3)
    points = mesh.points.copy()
    points[points[:, 0] == 0.0, 1] = 0.0
    found = quality(mesh.with_points(points))
    assert (found.flat_faces, found.negative_volumes) == (3, 0)
    assert quality(mesh).flat_faces == 0


def test_the_report_has_the_same_numbers(mixed_mesh):
    for mesh in (box2d(5, 4, perturb=0.3), box3d(3, 3, 3, kind="tetra", perturb=0.2), mixed_mesh):
        report, found = check(mesh), quality(mesh)
        assert report.non_orthogonality_max == found["non-orthogonality"].most
        assert report.non_orthogonality_mean == found["non-orthogonality"].mean
        assert report.volume_ratio_max == found["volume ratio"].most
        assert (report.volume_min, report.volume_max) == (found["volume"].least, found["volume"].most)
        assert report.closure_max == found["closure"].most < 1e-15


def test_faces_of_the_boundary_are_counted_after_those_inside():
    mesh = box3d(2, 1, 1)
    points = mesh.points.copy()
    points[(points == [1.0, 1.0, 1.0]).all(axis=1)] += [0.0, 0.0, 0.5]
    mesh = mesh.with_points(points)
    links, item = connectivity(mesh), quality(mesh)["warp"]
    nodes = links.boundary_nodes[item.worst - links.n_interior]
    assert item.cells == (int(links.boundary_cells[item.worst - links.n_interior]),)
    assert points[nodes][:, 0].max() == 1.0
    assert item.place[0] == pytest.approx(points[nodes].mean(axis=0)[0], abs=0.1)


def test_table_and_record():
    found = quality(box3d(3, 3, 3, perturb=0.2))
    lines = str(found).splitlines()
    assert lines[0].split() == ["measure", "least", "mean", "99", "%", "most", "worst", "at"]
    names = [line.split("  ")[0].removesuffix(" (degrees)") for line in lines[1:-2]]
    assert names == ["volume", "aspect ratio", "non-orthogonality", "skewness", "volume ratio", "warp", "closure"]
    assert lines[-2:] == ["negative volumes: 0 of 27 cells", "flat faces: 0 of 108"]
    record = json.loads(json.dumps(found.as_dict()))
    assert record["measures"]["skewness"]["most"] == found["skewness"].most
    assert tuple(record["measures"]["skewness"]["place"]) == found["skewness"].place


def test_command(tmp_path):
    mesh = box3d(3, 2, 2, perturb=0.2)
    write(tmp_path / "box.su2", mesh)
    done = CliRunner().invoke(build(), ["check", str(tmp_path / "box.su2"), "--json", str(tmp_path / "box.json")])
    assert done.exit_code == 0
    found = quality(read_data(tmp_path / "box.su2"))
    for row in found.rows():
        assert all(word in done.output for word in row)
    record = json.loads((tmp_path / "box.json").read_text())
    assert record["n_cells"] == 12
    assert record["turned"] == 0
    assert record["quality"]["measures"]["warp"]["most"] == found["warp"].most


def test_shared_bump(data):
    """Structured grids of the turbulence modeling resource: orthogonal at the wall, stretched by one tenth a cell."""
    found = quality(read_data(data / "bump_in_channel" / "mesh_bump_2d_0353x161.cgns.gz"))
    assert found.negative_volumes == 0
    assert found["volume ratio"].most < 1.2
    assert found["aspect ratio"].most > 1e3
    assert found["closure"].most < 1e-12
