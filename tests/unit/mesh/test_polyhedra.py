"""Polyhedra and polygons: the dual of a mesh, geometry, checks, orders, and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import box2d, box3d, check, read_data, write
from fluxloom.mesh.data.mesh import MeshData, PatchFaces, Polyhedra
from fluxloom.mesh.data.ragged import Ragged
from fluxloom.mesh.generate.refine import refine
from fluxloom.mesh.geometry.connectivity import connectivity, half_faces
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.geometry.metrics import closure, geometry
from fluxloom.mesh.quality.measures import quality
from fluxloom.mesh.quality.orient import orient
from fluxloom.mesh.ranks.bind import bind
from fluxloom.mesh.ranks.renumber import renumber
from fluxloom.mesh.ranks.slices import cut
from fluxloom.mesh.ranks.wall_distance import wall_distance_of
from fluxloom_lab.attack.files.cgns import (
    base,
    condition,
    conditions,
    file_of,
    node,
    polyhedral_sections,
    section,
    unstructured,
    write_adf,
    write_hdf5,
)
from tests.unit.mesh.damages import as_polyhedra

SOLIDS = ["tetra", "hexahedron", "prism", "pyramid"]


def box(kind: str) -> MeshData:
    if kind in ("quad", "triangle"):
        return box2d(5, 4, kind=kind, perturb=0.2)
    return box3d(3, 2, 3, kind=kind, perturb=0.2)


def same(first: MeshData, second: MeshData) -> None:
    np.testing.assert_array_equal(first.points, second.points)
    assert first.cell_counts == second.cell_counts
    for name in first.cells:
        np.testing.assert_array_equal(first.cells[name], second.cells[name])
    if first.polyhedra is not None:
        assert second.polyhedra is not None
        np.testing.assert_array_equal(first.polyhedra.offsets, second.polyhedra.offsets)
        np.testing.assert_array_equal(first.polyhedra.faces.offsets, second.polyhedra.faces.offsets)
        np.testing.assert_array_equal(first.polyhedra.faces.indices, second.polyhedra.faces.indices)
    assert list(first.patches) == list(second.patches)
    for name, faces in first.patches.items():
        assert list(faces.blocks) == list(second.patches[name].blocks)
        for kind, block in faces.blocks.items():
            np.testing.assert_array_equal(block, second.patches[name].blocks[kind])


@pytest.mark.parametrize("kind", SOLIDS)
def test_polyhedra_have_the_geometry_of_the_elements_that_they_are(kind: str) -> None:
    mesh = box(kind)
    other = as_polyhedra(mesh)
    links, again = connectivity(mesh), connectivity(other)
    for name in ("interior_cells", "boundary_cells", "boundary_patch"):
        np.testing.assert_array_equal(getattr(links, name), getattr(again, name))
    np.testing.assert_array_equal(links.cell_faces.indices, again.cell_faces.indices)
    np.testing.assert_array_equal(links.edges, again.edges)
    np.testing.assert_array_equal(links.node_cells.indices, again.node_cells.indices)
    one, two = geometry(mesh, links), geometry(other, again)
    for name in ("cell_volumes", "cell_centroids", "face_normals", "face_centres", "boundary_normals"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=0, atol=1e-15)
    report = check(other)
    assert report.edge_ratio_max == pytest.approx(check(mesh).edge_ratio_max, rel=1e-14)
    assert report.elements == {"polyhedron": mesh.n_cells}


@pytest.mark.parametrize("kind", ["quad", "triangle", *SOLIDS])
def test_the_dual_fills_the_same_space(kind: str) -> None:
    """Cells are positive, closed to round-off, and as many as points; patches have their areas; it has a dual too."""
    mesh = box(kind)
    found = dual(mesh)
    report = check(found)
    assert found.n_cells == mesh.n_points
    assert report.volume_total == pytest.approx(1.0, rel=1e-14)
    assert report.volume_min > 0.0
    assert report.closure_max < 1e-15
    links = connectivity(found)
    terms = geometry(found, links)
    assert np.abs(closure(found, links, terms)).max() < 1e-16
    old = connectivity(mesh)
    for name, span in links.patches.items():
        area = geometry(mesh, old).boundary_normals[old.patches[name].start : old.patches[name].stop].sum(axis=0)
        np.testing.assert_allclose(terms.boundary_normals[span.start : span.stop].sum(axis=0), area, atol=1e-14)
    assert {item.name for item in quality(found, links, terms).measures} >= {"volume", "closure", "skewness"}
    assert control_volumes(found).volumes.sum() == pytest.approx(1.0, rel=1e-14)
    assert check(dual(found)).volume_total == pytest.approx(1.0, rel=1e-14)


def test_the_dual_of_a_uniform_lattice_is_a_lattice() -> None:
    found = dual(box3d(3, 3, 3))
    volumes = np.sort(geometry(found, connectivity(found)).cell_volumes)
    unit = 1.0 / 27.0
    np.testing.assert_allclose(volumes, np.sort([*[unit / 8] * 8, *[unit / 4] * 24, *[unit / 2] * 24, *[unit] * 8]))


def test_a_dual_needs_cells_that_hang_together() -> None:
    points = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]], dtype=float)
    mesh = MeshData(points, {"triangle": np.array([[0, 1, 2], [0, 3, 4]])})
    with pytest.raises(MeshError, match="do not hang together"):
        dual(mesh)


@pytest.mark.parametrize("kind", ["triangle", "tetra"])
def test_renumbering_and_turning(kind: str) -> None:
    found = dual(box(kind))
    again = renumber(found)
    assert check(again.mesh).volume_total == pytest.approx(1.0, rel=1e-14)
    before, after = (geometry(m, connectivity(m)).cell_centroids for m in (found, again.mesh))
    np.testing.assert_allclose(again.cells.move(before), after, atol=1e-15)
    wrong = np.arange(found.n_cells) % 3 == 0
    if found.polyhedra is None:
        cells = {
            name: np.where(wrong[part.start : part.stop, None], found.cells[name][:, ::-1], found.cells[name])
            for name, part in found.cell_ranges.items()
        }
        turned = replace(found, cells=cells)
    else:
        turned = replace(found, polyhedra=found.polyhedra.turned(wrong))
    with pytest.raises(MeshError, match="inverted"):
        check(turned)
    mended, count = orient(turned)
    assert count == wrong.sum()
    assert check(mended).volume_total == pytest.approx(1.0, rel=1e-14)


def test_check_names_what_is_wrong_with_polyhedra() -> None:
    mesh = replace(dual(box("tetra")), patches={})
    cells = mesh.polyhedra
    assert cells is not None
    row = int(cells.offsets[5])
    kept = np.delete(np.arange(len(cells.faces)), row)
    offsets = cells.offsets - (np.arange(len(cells) + 1) > 5)
    gap = Polyhedra(offsets, cells.faces.take(kept))
    with pytest.raises(MeshError, match=r"polyhedron element 5 at \(.*\): open: its faces do not close \(1 such"):
        check(replace(mesh, polyhedra=gap))
    first = int(cells.faces.offsets[row])
    nodes = cells.faces.indices.copy()
    nodes[first + 1] = nodes[first]
    with pytest.raises(MeshError, match=r"polyhedron element 5 at \(.*\): degenerate: a face has the node"):
        check(replace(mesh, polyhedra=Polyhedra(cells.offsets, Ragged(cells.faces.offsets, nodes))))
    nodes[first] = mesh.n_points
    with pytest.raises(MeshError, match=f"polyhedron element 5: node {mesh.n_points} is outside"):
        check(replace(mesh, polyhedra=Polyhedra(cells.offsets, Ragged(cells.faces.offsets, nodes))))
    with pytest.raises(MeshError, match="missing patch"):
        check(mesh)


def test_polyhedra_have_faces_with_nodes() -> None:
    faces = Ragged.from_counts(np.array([3, 3, 2]), np.arange(8))
    with pytest.raises(MeshError, match="face 2 has 2 nodes"):
        Polyhedra(np.array([0, 3]), faces)
    with pytest.raises(MeshError, match="ascend from 0 to 3"):
        Polyhedra(np.array([0, 2]), faces)
    with pytest.raises(MeshError, match="polyhedron 1 has no faces"):
        Polyhedra(np.array([0, 3, 3]), faces)


def test_what_takes_elements_alone_says_so(tmp_path: Path) -> None:
    for kind in ("triangle", "tetra"):
        mesh = dual(box(kind))
        with pytest.raises(MeshError, match="refinement is there for triangles"):
            refine(mesh)
        for suffix in ("su2", "msh"):
            with pytest.raises(MeshError, match="file is there for triangles"):
                write(tmp_path / f"a.{suffix}", mesh)
    with pytest.raises(MeshError, match=r"write a \.vtkhdf file"):
        write(tmp_path / "a.vtu", mesh)
    with pytest.raises(MeshError, match="is not cut into slices"):
        cut(mesh, 0, 2)


@pytest.mark.parametrize("kind", ["triangle", "tetra"])
def test_vtkhdf_files(tmp_path: Path, kind: str) -> None:
    """What is written is read; the arrays are those of the standard."""
    h5py = pytest.importorskip("h5py")
    mesh = dual(box(kind))
    values = np.arange(mesh.n_cells, dtype=float)
    write(tmp_path / "a.vtkhdf", mesh)
    same(read_data(tmp_path / "a.vtkhdf"), mesh)
    write(tmp_path / "b.vtkhdf", mesh, cell_data={"number": values})
    with h5py.File(tmp_path / "b.vtkhdf") as file:
        root = file["VTKHDF"]
        assert root["Types"].shape == (mesh.n_cells,)
        np.testing.assert_array_equal(root["CellData"]["number"], values)
        cells = mesh.polyhedra
        if cells is None:
            assert (np.unique(root["Types"]) == [7, 9]).all()
            return
        assert (np.asarray(root["Types"]) == 42).all()
        assert root.attrs["Version"].tolist() == [2, 5]
        assert int(root["NumberOfFaces"][0]) == len(cells.faces) == root["PolyhedronToFaces"].size
        assert int(root["NumberOfFaceConnectivityIds"][0]) == root["FaceConnectivity"].size
        np.testing.assert_array_equal(root["PolyhedronOffsets"], cells.offsets)


def test_a_damaged_vtkhdf_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    write(tmp_path / "a.vtkhdf", dual(box("tetra")))
    with h5py.File(tmp_path / "a.vtkhdf", "a") as file:
        file["VTKHDF"]["PolyhedronToFaces"][0] = 10**6
    with pytest.raises(MeshError, match="the faces of the polyhedra do not fit"):
        read_data(tmp_path / "a.vtkhdf")
    with h5py.File(tmp_path / "a.vtkhdf", "a") as file:
        del file["VTKHDF"]["FaceOffsets"]
    with pytest.raises(MeshError, match="the data set FaceOffsets is missing"):
        read_data(tmp_path / "a.vtkhdf")


def hybrid() -> MeshData:
    """Return tetrahedra with the cells about one of their corners fused: elements and a polyhedron."""
    mesh = box3d(2, 2, 2, kind="tetra", perturb=0.1)
    block = mesh.cells["tetra"]
    inside = (block == 13).any(axis=1)
    half = half_faces(mesh)
    outer = inside[half.cells] & (half.nodes != 13).all(axis=1)
    cell = Polyhedra(np.array([0, outer.sum()]), Ragged.from_padded(half.nodes[outer]))
    points = np.delete(mesh.points, 13, axis=0)
    number = np.arange(len(mesh.points)) - (np.arange(len(mesh.points)) > 13)
    patches = {
        name: PatchFaces({kind: number[rows].astype(np.int32) for kind, rows in faces.blocks.items()})
        for name, faces in mesh.patches.items()
    }
    return MeshData(points, {"tetra": number[block[~inside]].astype(np.int32)}, patches, polyhedra=cell.renamed(number))


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize("kind", ["hdf5", "adf"])
@pytest.mark.parametrize("cells", ["dual", "hybrid"])
def test_cgns_files(tmp_path: Path, kind: str, cells: str, offsets: bool) -> None:
    """Polygons and polyhedra of both containers; what is an element becomes one."""
    mesh = dual(box3d(2, 2, 1, kind="tetra", perturb=0.1)) if cells == "dual" else hybrid()
    links = connectivity(mesh)
    listed = [
        condition(name, "PointList", np.arange(span.start, span.stop)[:, None] + links.n_interior + 1, "FaceCenter")
        for name, span in links.patches.items()
    ]
    sections = polyhedral_sections(mesh, offsets=offsets)
    zone = unstructured("Zone", mesh.points, mesh.n_cells, *sections, conditions(*listed))
    if kind == "hdf5":
        pytest.importorskip("h5py")
    path = (write_hdf5 if kind == "hdf5" else write_adf)(tmp_path / "a.cgns", file_of(base(3, zone)))
    again = read_data(path, orient=False)
    wanted, found = check(mesh), check(again)
    assert found.patches == wanted.patches
    assert found.n_interior_faces == wanted.n_interior_faces
    assert found.volume_total == pytest.approx(1.0, rel=1e-14)
    assert found.closure_max < 1e-15
    assert found.elements["polyhedron"] == (1 if cells == "hybrid" else found.n_cells)
    if cells == "hybrid":
        assert found.elements["tetra"] == wanted.elements["tetra"]
        number = int(again.source.cell_numbers["polyhedron"][0])
        assert again.locate_cell(again.n_cells - 1).endswith(f"polyhedron element {number}")


def test_polygons_of_cgns_files(tmp_path: Path) -> None:
    mesh = dual(box("triangle"))
    rows = [row.tolist() for row in mesh.cell_nodes()]
    starts = node("ElementStartOffset", "DataArray_t", np.cumsum([0, *map(len, rows)]))
    polygons = section("Cells", 22, 1, len(rows), np.concatenate(rows) + 1, starts)
    lines, first = [], len(rows) + 1
    for name, faces in mesh.patches.items():
        lines.append(section(name, 3, first, len(faces), faces.blocks["line"] + 1))
        first += len(faces)
    zone = unstructured("Zone", mesh.points, mesh.n_cells, polygons, *lines)
    again = read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone))))
    assert again.cell_counts == mesh.cell_counts
    assert check(again).volume_total == pytest.approx(1.0, rel=1e-14)
    assert check(again).patches == {name: len(faces) for name, faces in mesh.patches.items()}


def hexagonal_prism() -> MeshData:
    """Return one cell of height 1 over a hexagon with sides of length 1."""
    angle = np.arange(6) * np.pi / 3.0
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.concatenate([np.column_stack([ring, np.full(6, z)]) for z in (0.0, 1.0)])
    low = np.arange(6, dtype=np.int32)
    after = np.roll(low, -1)
    sides = np.stack([low, after, after + 6, low + 6], axis=1)
    rows = [low[::-1], low + 6, *sides]
    faces = Ragged.from_counts(np.array([len(row) for row in rows]), np.concatenate(rows))
    patches = {
        "base": PatchFaces({"polygon6": low[None, ::-1].copy()}),
        "top": PatchFaces({"polygon6": low[None] + np.int32(6)}),
        "side": PatchFaces({"quad": sides}),
    }
    return MeshData(points, {}, patches, polyhedra=Polyhedra(np.array([0, 8]), faces))


def test_patches_of_polygons(tmp_path: Path) -> None:
    """They are matched, measured, are walls, and are written to files."""
    mesh = hexagonal_prism()
    report = check(mesh, ["base"])
    assert report.volume_total == pytest.approx(1.5 * np.sqrt(3.0), rel=1e-14)
    assert report.patches == {"base": 1, "top": 1, "side": 6}
    terms = geometry(mesh, connectivity(mesh))
    np.testing.assert_allclose(terms.cell_centroids, [[0.0, 0.0, 0.5]], atol=1e-15)
    np.testing.assert_allclose(terms.boundary_normals[0], [0.0, 0.0, -1.5 * np.sqrt(3.0)], atol=1e-15)
    np.testing.assert_allclose(terms.boundary_centres[1], [0.0, 0.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(wall_distance_of(mesh, ["base"]), [0.5], rtol=1e-14)
    np.testing.assert_allclose(wall_distance_of(mesh, ["side"]), [0.5 * np.sqrt(3.0)], rtol=1e-14)
    pytest.importorskip("h5py")
    write(tmp_path / "a.vtkhdf", mesh)
    same(read_data(tmp_path / "a.vtkhdf"), mesh)
    patches = {"base": {"polygon5": np.arange(5)[None]}}
    with pytest.raises(MeshError, match="patch 'base', polygon5 0 with the nodes 0, 1, 2, 3, 4: it is not a face"):
        check(replace(mesh, patches=patches))


def test_a_mesh_in_a_context() -> None:
    """Sets, maps and values of polyhedra are those of any cells."""
    mesh = bind(dual(box("tetra")), Context("reference"))
    assert "polyhedron" in repr(mesh)
    assert mesh.volumes.read().sum() == pytest.approx(1.0, rel=1e-14)
    normals, pairs = mesh.face_normals.read(), mesh.face_cells.table
    total = np.zeros((mesh.cells.size, 3))
    np.add.at(total, pairs[:, 0], normals)
    np.add.at(total, pairs[:, 1], -normals)
    np.add.at(total, mesh.boundary_cell.table[:, 0], mesh.boundary_normals.read())
    assert np.abs(total).max() < 1e-15
    assert len(mesh.patches["xmin"]) == len(mesh.data.patches["xmin"])
