from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d, check, read_data, write
from fluxloom.mesh.data.mesh import FloatArray, MeshData, MeshSource, PatchFaces, Ragged
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.generate.refine import refine
from fluxloom.mesh.generate.refine_cells import CHILDREN
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.metrics import cell_geometry, face_geometry

KINDS = ("triangle", "quad", "tetra", "pyramid", "prism", "hexahedron")


def box(kind: str, *, perturb: float = 0.0) -> MeshData:
    if kind in ("triangle", "quad"):
        return box2d(4, 3, (2.0, 0.7), kind=kind, perturb=perturb)
    return box3d(3, 2, 2, (1.0, 2.0, 0.6), kind=kind, perturb=perturb)


def sheared(mesh: MeshData) -> MeshData:
    """Return the mesh under an affine map that keeps volumes positive and no length or angle."""
    shear = np.array([[1.3, 0.4, -0.2], [0.1, 0.8, 0.3], [-0.3, 0.2, 1.1]])[: mesh.dimension, : mesh.dimension]
    return mesh.with_points(mesh.points @ shear.T + 0.37)


def patch_areas(mesh: MeshData, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the area vectors and centres of a patch, its faces turned as they are listed."""
    parts = [face_geometry(mesh.points, Ragged.from_table(block)) for block in mesh.patches[name].blocks.values()]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def assert_conserved(coarse: MeshData, fine: MeshData) -> None:
    """Volumes and areas of patches are kept, the mesh is conforming, cells have the right sides in."""
    before, after = check(coarse), check(fine)
    assert after.volume_total == pytest.approx(before.volume_total, rel=1e-13)
    assert after.volume_min > 0.0
    assert after.closure_max < 1e-12
    np.testing.assert_array_equal(fine.points[: coarse.n_points], coarse.points)
    assert list(fine.patches) == list(coarse.patches)
    links = connectivity(fine)
    assert (links.boundary_patch >= 0).all()
    for name, faces in coarse.patches.items():
        assert len(fine.patches[name]) == len(faces) * (2 if coarse.dimension == 2 else 4)
        first, second = patch_areas(coarse, name)[0], patch_areas(fine, name)[0]
        size = np.linalg.norm(first, axis=1).sum()
        assert np.linalg.norm(second, axis=1).sum() == pytest.approx(size, rel=1e-13)
        np.testing.assert_allclose(second.sum(axis=0), first.sum(axis=0), atol=1e-13 * size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [1, 2])
def test_volumes_areas_and_counts(kind: str, times: int) -> None:
    coarse = sheared(box(kind))
    fine = refine(coarse, times)
    assert_conserved(refine(coarse, times - 1), fine)
    counts = {kind: coarse.n_cells}
    for _ in range(times):
        counts = {
            child: sum(n * CHILDREN[name].get(child, 0) for name, n in counts.items())
            for child in (*counts, *CHILDREN[kind])
        }
    assert {name: len(block) for name, block in fine.cells.items()} == counts
    assert fine.source.path == f"{coarse.source.path} (refined)"


@pytest.mark.parametrize("kind", ["triangle", "quad", "tetra", "prism", "hexahedron"])
def test_children_fill_their_parent(kind: str) -> None:
    """They follow one another, have equal parts of an affine cell, and its centroid."""
    coarse = sheared(box(kind))
    fine = refine(coarse)
    volumes, centroids = cell_geometry(coarse)
    children = fine.n_cells // coarse.n_cells
    parts, places = cell_geometry(fine)
    np.testing.assert_allclose(parts, np.repeat(volumes / children, children), rtol=1e-11)
    np.testing.assert_allclose(places.reshape(-1, children, coarse.dimension).mean(axis=1), centroids, atol=1e-13)


def test_children_of_pyramids() -> None:
    coarse = sheared(box("pyramid"))
    fine = refine(coarse)
    volumes, centroids = cell_geometry(coarse)
    parts, places = cell_geometry(fine)
    n = 6 * coarse.n_cells
    np.testing.assert_allclose(parts[:n], np.repeat(volumes / 8, 6), rtol=1e-11)
    np.testing.assert_allclose(parts[n:], np.repeat(volumes / 16, 4), rtol=1e-11)
    moments = (parts[:, None] * places)[:n].reshape(-1, 6, 3).sum(axis=1)
    moments += (parts[:, None] * places)[n:].reshape(-1, 4, 3).sum(axis=1)
    np.testing.assert_allclose(moments / volumes[:, None], centroids, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_faces_of_patches_fill_theirs(kind: str) -> None:
    coarse = sheared(box(kind))
    fine = refine(coarse)
    children = 2 if coarse.dimension == 2 else 4
    for name in coarse.patches:
        areas, centres = patch_areas(coarse, name)
        parts, places = patch_areas(fine, name)
        np.testing.assert_allclose(parts, np.repeat(areas / children, children, axis=0), atol=1e-14)
        np.testing.assert_allclose(places.reshape(-1, children, coarse.dimension).mean(axis=1), centres, atol=1e-13)


@pytest.mark.parametrize("kind", ["quad", "hexahedron"])
def test_same_as_a_finer_box(kind: str) -> None:
    make = {"quad": lambda n: box2d(2 * n, n), "hexahedron": lambda n: box3d(2 * n, n, n)}[kind]
    fine, wanted = refine(make(2), 2), make(8)
    order = [np.lexsort(np.round(mesh.points, 9).T) for mesh in (fine, wanted)]
    np.testing.assert_allclose(fine.points[order[0]], wanted.points[order[1]], atol=1e-15)
    assert check(fine).non_orthogonality_max == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("kind", ["quad", "hexahedron"])
def test_neighbours_follow_one_another(kind: str) -> None:
    """From each child to the next a face is crossed, and from the last one of a cell to the next cell of the row."""
    fine = refine(box2d(5, 1, kind=kind) if kind == "quad" else box3d(5, 1, 1))
    rows = connectivity(fine).cell_cells
    assert all(cell + 1 in rows[cell] for cell in range(fine.n_cells - 1))


def test_warped_and_uneven_meshes_stay_conforming() -> None:
    for kind in KINDS:
        report = check(refine(box(kind, perturb=0.25)))
        assert report.closure_max < 1e-12
        assert report.volume_total == pytest.approx(1.4 if kind in ("triangle", "quad") else 1.2)


def test_mixed(mixed_mesh: MeshData) -> None:
    assert_conserved(mixed_mesh, refine(mixed_mesh))
    fine = refine(mixed_mesh, 2)
    assert_conserved(refine(mixed_mesh), fine)
    assert check(fine).elements == {"hexahedron": 64, "pyramid": 36, "prism": 64, "tetra": 64 + 4 * 8 + 6 * 4}


def test_mixed_in_a_plane() -> None:
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [1.8, 0.4]])
    cells = {"triangle": np.array([[1, 4, 2]]), "quad": np.array([[0, 1, 2, 3]])}
    skin = PatchFaces({"line": np.array([[0, 1], [1, 4], [4, 2], [2, 3], [3, 0]])})
    mesh = MeshData(points, cells, {"skin": skin}, MeshSource("plane"))
    assert_conserved(mesh, refine(mesh))
    assert check(refine(mesh, 3)).elements == {"triangle": 64, "quad": 64}


def test_sphere(data: Path) -> None:
    path = data / "sphere" / "slice_2syms.su2"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    mesh = read_data(path)
    fine = refine(mesh)
    assert check(fine).elements == {"tetra": 8 * 342 + 4 * 354, "prism": 8 * 7758, "pyramid": 6 * 354}
    assert cell_geometry(fine)[0].sum() == pytest.approx(cell_geometry(mesh)[0].sum(), rel=1e-9)
    for name, faces in mesh.patches.items():
        assert len(fine.patches[name]) == 4 * len(faces)
        np.testing.assert_allclose(
            patch_areas(fine, name)[0].sum(axis=0), patch_areas(mesh, name)[0].sum(axis=0), atol=1e-10
        )


def test_shortest_diagonal() -> None:
    mesh = box3d(3, 3, 3, (1.0, 0.7, 0.4), kind="tetra", perturb=0.3, seed=3)
    fine = refine(mesh)
    inner = fine.cells["tetra"].reshape(-1, 8, 4)[:, 4:]
    assert (inner[:, :, :2] == inner[:, :1, :2]).all()
    a, b, c, d = (mesh.points[mesh.cells["tetra"][:, k]] for k in range(4))
    ways = [np.linalg.norm(0.5 * way, axis=1) for way in (a + b - c - d, b + c - a - d, a + c - b - d)]
    chosen = np.linalg.norm(fine.points[inner[:, 0, 0]] - fine.points[inner[:, 0, 1]], axis=1)
    np.testing.assert_allclose(chosen, np.min(ways, axis=0), rtol=1e-8)
    assert len(np.unique(np.argmin(ways, axis=0))) == 3  # all three are met


def test_tetrahedra_of_a_box_keep_their_shape() -> None:
    mesh = box3d(1, 1, 1, (0.3, 0.3, 0.3), kind="tetra")
    report = check(refine(mesh, 3))
    assert report.edge_ratio_max == pytest.approx(check(mesh).edge_ratio_max, rel=1e-9)


@pytest.mark.parametrize("solid", [False, True])
def test_two_faces_with_one_diagonal(solid: bool) -> None:
    """Faces with three common nodes are two faces."""
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.45, 0.55]])
    lines = PatchFaces({"line": np.array([[0, 1], [1, 2], [2, 3], [3, 0]])})
    mesh = MeshData(points, {"quad": np.array([[0, 1, 2, 4], [0, 4, 2, 3]])}, {"skin": lines})
    mesh = extrude(mesh, np.array([0.0, 0.5, 1.0])) if solid else mesh
    fine = refine(mesh)
    assert fine.n_points == (5 + 6 + 2) * (5 if solid else 1)
    assert_conserved(mesh, fine)


@pytest.mark.parametrize("suffix", [".su2", ".vtu"])
def test_round_trip(
    tmp_path: Path, suffix: str, mixed_mesh: MeshData, assert_same: Callable[[MeshData, MeshData], None]
) -> None:
    for mesh in (refine(box("triangle")), refine(mixed_mesh)):
        write(tmp_path / f"mesh{suffix}", mesh)
        assert_same(read_data(tmp_path / f"mesh{suffix}"), mesh)


def test_no_times_and_no_cells() -> None:
    mesh = box("quad")
    assert refine(mesh, 0) is mesh
    empty = refine(MeshData(np.zeros((0, 3)), {"pyramid": np.empty((0, 5), dtype=np.int32)}))
    assert (empty.n_points, empty.n_cells, list(empty.cells)) == (0, 0, ["pyramid"])


def test_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MeshError, match="cannot be refined -1 times; give 0 or more"):
        refine(box("quad"), -1)
    with pytest.raises(MeshError, match=r"<box3d>: refined 11 times, it has 8,589,934,592 cells; .* refine 10 times"):
        refine(box3d(1, 1, 1), 40)
    monkeypatch.setattr(import_module("fluxloom.mesh.generate.refine"), "_MOST", 24)
    with pytest.raises(MeshError, match="refined, it has 25 points; at most 24 can be numbered"):
        refine(box2d(2, 2))


def test_broken_meshes(change: Callable[..., MeshData], two_quads: MeshData) -> None:
    def with_patch(mesh: MeshData, **blocks: list[list[int]]) -> MeshData:
        faces = PatchFaces({name: np.array(rows, dtype=np.int32) for name, rows in blocks.items()})
        return MeshData(mesh.points, mesh.cells, {"odd": faces}, mesh.source)

    with pytest.raises(MeshError, match=r"patch 'odd', line 1 with the nodes 0, 4 is not a face of any cell \(1 such"):
        refine(with_patch(two_quads, line=[[0, 1], [0, 4]]))
    with pytest.raises(MeshError, match=r"patch 'odd', quad 0 with the nodes 0, 1, 3, 2 is not a face"):
        refine(with_patch(box3d(1, 1, 1, kind="tetra"), quad=[[0, 1, 3, 2]]))
    with pytest.raises(MeshError, match="patch 'odd': a quad in a mesh of 2 dimensions"):
        refine(with_patch(two_quads, quad=[[0, 1, 4, 3]]))
    with pytest.raises(MeshError, match=r"patch 'odd', line 0: node 6 is outside 0 \.\.\. 5"):
        refine(with_patch(two_quads, line=[[0, 6]]))
    with pytest.raises(MeshError, match=r"two_quads\.su2:\d+: quad element 0: node -3 is outside 0 \.\.\. 5"):
        refine(change(cells={"quad": np.array([[0, 1, 4, -3]])}))
    with pytest.raises(MeshError, match="cells: a quad in a mesh of 3 dimensions"):
        refine(MeshData(np.zeros((4, 3)), {"quad": np.array([[0, 1, 2, 3]])}))
