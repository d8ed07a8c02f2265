from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable, MeshError
from fluxloom.mesh import box2d, box3d, check, read_data, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.io.cgns.reader import open_cgns
from fluxloom_lab.attack.files.cgns import (
    base,
    condition,
    conditions,
    file_of,
    grid,
    mixed_section,
    node,
    polyhedral_sections,
    section,
    sections_of,
    unstructured,
    write_adf,
    write_hdf5,
)


def store(kind: str, path: Path, tree: tuple) -> Path:
    """Write a file in one of the containers."""
    if kind == "hdf5":
        pytest.importorskip("h5py")
        return write_hdf5(path, tree)
    return write_adf(path, tree, version=kind[-1], big=kind == "adf big B", chunks=3 if kind == "adf chunks A" else 1)


@pytest.fixture(params=["hdf5", "adf A", "adf B", "adf big B", "adf chunks A"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def plain(mesh: MeshData, *more: tuple, named: bool = True) -> tuple:
    """Return the tree of a mesh whose patches are boundary conditions."""
    sections, ranges = sections_of(mesh)
    listed = [
        condition(
            name, "PointRange", [list(ends)], "FaceCenter" if mesh.dimension == 3 else "EdgeCenter", name.split()[0]
        )
        for name, ends in ranges.items()
        if name not in mesh.cells
    ]
    zone = unstructured("Zone", mesh.points, mesh.n_cells, *sections, *([conditions(*listed)] if named else []), *more)
    return file_of(base(mesh.dimension, zone))


def same_patches(first: MeshData, second: MeshData) -> None:
    one, other = connectivity(first), connectivity(second)
    assert {n: len(p) for n, p in first.patches.items()} == {n: len(p) for n, p in second.patches.items()}
    assert one.patches == other.patches
    assert (one.boundary_patch >= 0).all()
    for name in first.patches:
        np.testing.assert_array_equal(first.patches[name].nodes(), second.patches[name].nodes())


def test_round_trip(tmp_path, kind, mixed_mesh, assert_same):
    for mesh in (box2d(4, 3, perturb=0.2), box2d(3, 2, kind="triangle"), box3d(3, 2, 2, kind="tetra"), mixed_mesh):
        again = read_data(store(kind, tmp_path / "mesh.cgns", plain(mesh)))
        assert_same(again, mesh)
        check(again)


def test_compressed(tmp_path, kind, assert_same):
    mesh = box2d(4, 3)
    path = store(kind, tmp_path / "mesh.cgns", plain(mesh))
    packed = tmp_path / "mesh.cgns.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert_same(read_data(packed), mesh)


def test_sections_without_conditions_are_patches(tmp_path, assert_same):
    mesh = box2d(4, 3)
    assert_same(read_data(write_adf(tmp_path / "mesh.cgns", plain(mesh, named=False))), mesh)


def test_inner_faces_of_unnamed_sections_are_left_out(tmp_path, two_quads):
    sections, _ = sections_of(two_quads)
    inner = section("inner", 3, 9, 1, [2, 5])
    again = read_data(
        write_adf(tmp_path / "a.cgns", file_of(base(2, unstructured("Z", two_quads.points, 2, *sections, inner))))
    )
    same_patches(again, two_quads)
    listed = conditions(condition("inner", "PointRange", [[9, 9]], "EdgeCenter"))
    zone = unstructured("Z", two_quads.points, 2, *sections, inner, listed)
    with pytest.raises(MeshError, match="patch 'inner', line 0 with the nodes 1, 4: it is not a boundary face"):
        check(read_data(write_adf(tmp_path / "b.cgns", file_of(base(2, zone)))))


@pytest.mark.parametrize("offsets", [True, False])
def test_mixed_sections(tmp_path, mixed_mesh, offsets):
    zone = unstructured("Zone", mixed_mesh.points, 4, mixed_section(mixed_mesh, offsets=offsets))
    again = read_data(write_adf(tmp_path / "mesh.cgns", file_of(base(3, zone))))
    assert set(again.cells) == set(mixed_mesh.cells)
    for name, block in mixed_mesh.cells.items():
        np.testing.assert_array_equal(again.cells[name], block)
    numbers = {name: found.tolist() for name, found in again.source.cell_numbers.items()}
    assert sorted(number for found in numbers.values() for number in found) == [0, 1, 2, 3]
    order = sorted(range(4), key=lambda k: k % 3)
    for place, name in enumerate(mixed_mesh.cells):
        assert numbers[name] == [order.index(place)]
    assert f"element {numbers['tetra'][0]}" in again.locate_cell(again.cell_ranges["tetra"].start)


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize("cells", ["hexahedron", "tetra", "prism", "pyramid", "mixed"])
def test_polyhedra(tmp_path, mixed_mesh, cells, offsets):
    mesh = mixed_mesh if cells == "mixed" else box3d(2, 3, 2, kind=cells, perturb=0.1)
    sections = polyhedral_sections(mesh, offsets=offsets)
    listed = condition(
        "skin",
        "PointList",
        np.arange(connectivity(mesh).n_interior, connectivity(mesh).n_faces)[:, None] + 1,
        "FaceCenter",
    )
    zone = unstructured("Zone", mesh.points, mesh.n_cells, *sections, conditions(listed))
    again = read_data(write_adf(tmp_path / "mesh.cgns", file_of(base(3, zone))), orient=False)
    assert {name: len(block) for name, block in again.cells.items()} == {n: len(b) for n, b in mesh.cells.items()}
    report = check(again)  # positive volumes: the faces were turned the right way
    assert report.volume_total == pytest.approx(check(mesh).volume_total, rel=1e-14)
    assert report.n_interior_faces == connectivity(mesh).n_interior
    assert list(report.patches) == ["skin"]


def test_polygons_are_cells_in_two_dimensions(tmp_path, two_quads):
    sections, _ = sections_of(two_quads)
    polygons = section("Cells", 22, 1, 2, [[4, 1, 2, 5, 4], [4, 2, 3, 6, 5]])
    again = read_data(
        write_adf(
            tmp_path / "a.cgns", file_of(base(2, unstructured("Z", two_quads.points, 2, polygons, *sections[1:])))
        )
    )
    np.testing.assert_array_equal(again.cells["quad"], two_quads.cells["quad"])
    same_patches(again, two_quads)


@pytest.mark.parametrize("child", ["PointList", "PointRange", "ElementList", "ElementRange"])
@pytest.mark.parametrize("place", ["EdgeCenter", "FaceCenter", "CellCenter"])
def test_conditions_on_elements(tmp_path, two_quads, child, place):
    sections, ranges = sections_of(two_quads)
    listed = []
    for name in two_quads.patches:
        first, last = ranges[name]
        numbers = [[first, last]] if "Range" in child else np.arange(first, last + 1)[:, None]
        listed.append(condition(f"BC {name}", child, numbers, place, family=name))
    zone = unstructured("Z", two_quads.points, 2, *sections, conditions(*listed))
    same_patches(read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone)))), two_quads)


@pytest.mark.parametrize("with_sections", [True, False])
def test_conditions_on_vertices(tmp_path, with_sections):
    for mesh in (box2d(4, 3), box3d(3, 2, 2, kind="prism")):
        sections, _ = sections_of(mesh)
        sections = sections if with_sections else sections[: len(mesh.cells)]
        listed = [
            condition(f"BC {name}", "PointList", faces.nodes()[:, None] + 1, "", family=name)
            for name, faces in mesh.patches.items()
        ]
        zone = unstructured("Z", mesh.points, mesh.n_cells, *sections, conditions(*listed))
        again = read_data(write_adf(tmp_path / "a.cgns", file_of(base(mesh.dimension, zone))))
        assert {n: len(p) for n, p in again.patches.items()} == {n: len(p) for n, p in mesh.patches.items()}
        check(again)


@pytest.mark.parametrize("style", ["one section", "polygons"])
def test_conditions_on_vertices_come_before_sections(tmp_path, style):
    """One section holds faces of several patches, and some that no condition has."""
    mesh = box3d(3, 2, 2)
    sections, _ = sections_of(mesh)
    if style == "polygons":
        parts = polyhedral_sections(mesh, offsets=True)
    else:
        faces = np.concatenate([faces.blocks["quad"] for faces in mesh.patches.values()]) + 1
        parts = [sections[0], section("Faces", 7, 13, len(faces), faces)]
    listed = [condition(name, "PointList", mesh.patches[name].nodes()[:, None] + 1) for name in ("xmin", "ymax")]
    zone = unstructured("Zone", mesh.points, mesh.n_cells, *parts, conditions(*listed))
    report = check(read_data(write_adf(tmp_path / "a.cgns", file_of(base(3, zone)))))
    assert report.patches == {"xmin": 4, "ymax": 6, "Faces": 32 - 10}


def test_families(tmp_path, two_quads):
    """A family may belong to another one; names that say nothing leave that of the condition."""
    sections, ranges = sections_of(two_quads)
    words = {"bottom": "S_1", "right": "Unspecified", "top": "S_2", "left": ""}
    listed = [
        condition(f"bc-{n}", "PointRange", [list(ranges[n])], "EdgeCenter", family) for n, family in words.items()
    ]
    cells = condition("fluid", "PointRange", [[1, 2]], "CellCenter", "air")
    zone = unstructured("Z", two_quads.points, 2, *sections, conditions(*listed, cells))
    parents = [node(family, "Family_t", None, node("wall", "FamilyName_t", "wall")) for family in ("S_1", "S_2")]
    again = read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone, *parents))))
    assert {n: len(p) for n, p in again.patches.items()} == {"wall": 4, "bc-right": 1, "bc-left": 1}
    check(again)


def test_plane_in_space(tmp_path):
    mesh = box2d(4, 3)
    sections, _ = sections_of(mesh)
    for axis in range(3):
        points = np.insert(mesh.points, axis, 0.25, axis=1)
        zone = unstructured("Z", points, mesh.n_cells, *sections)
        again = read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone, physical=3))))
        np.testing.assert_array_equal(again.points, mesh.points)
    points[:, 1] += points[:, 0]
    points[:, 2] += points[:, 0] ** 2
    zone = unstructured("Z", points, mesh.n_cells, *sections)
    with pytest.raises(MeshError, match="a surface in space is not a mesh of cells"):
        read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone, physical=3))))


def test_points_without_cells_are_dropped(tmp_path, two_quads):
    points = np.insert(two_quads.points, 2, [9.0, 9.0], axis=0)
    number = np.array([0, 1, 3, 4, 5, 6]) + 1
    cells = section("Cells", 7, 1, 2, number[two_quads.cells["quad"]])
    again = read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, unstructured("Z", points, 2, cells)))))
    np.testing.assert_array_equal(again.points, two_quads.points)
    np.testing.assert_array_equal(again.cells["quad"], two_quads.cells["quad"])


def test_bases(tmp_path, two_quads):
    sections, _ = sections_of(two_quads)
    zone = unstructured("Z", two_quads.points, 2, *sections)
    path = write_adf(tmp_path / "a.cgns", file_of(base(2, zone, name="first"), base(2, zone, name="second")))
    with pytest.raises(MeshError, match=r"one of them is wanted \(bases: first, second\); give --zone NAME"):
        read_data(path)
    assert read_data(path, zone="second").n_cells == 2
    with pytest.raises(MeshError, match=r"no base 'third' \(bases: first, second\)"):
        read_data(path, zone="third")
    with pytest.raises(MeshError, match="the base holds no zones"):
        read_data(write_adf(tmp_path / "b.cgns", file_of(base(2))))


def quads(two_quads: MeshData, *sections: tuple) -> tuple:
    return file_of(base(2, unstructured("Z", two_quads.points, 2, *sections)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([section("Cells", 8, 1, 1, range(1, 9))], "elements of the type QUAD_8 are not supported; export linear"),
        ([section("Cells", 99, 1, 1, [1])], "elements of the type number 99 are not supported"),
        ([section("Cells", 7, 1, 2, [1, 2, 5, 4])], "4 nodes do not make 2 elements of type quad"),
        (
            [section("Cells", 7, 1, 1, [1, 2, 7, 4])],
            r"the quad 1 has the nodes \[1, 2, 7, 4\], but the zone has 6 points",
        ),
        ([section("Cells", 20, 1, 2, [7, 1, 2, 5, 4])], "there are fewer than 2 elements"),
        ([section("Cells", 20, 1, 1, [6, 1, 2, 5, 4])], "elements of the type TRI_6 are not supported"),
        ([section("Cells", 20, 1, 1, [7, 1, 2, 5, 4, 3])], "1 numbers are left over after 1 elements"),
        ([section("Cells", 22, 1, 1, [1, 1])], "a polygon has 1 nodes"),
        ([section("wall", 3, 1, 1, [1, 2])], "no section holds cells of 2 dimensions"),
        (
            [
                section("Cells", 7, 1, 1, [1, 2, 5, 4]),
                conditions(condition("wall", "PointRange", [[7, 8]], "EdgeCenter")),
            ],
            "Base/Z/ZoneBC/wall: the range 7 to 8 leaves the numbers 1 to 6 of the zone",
        ),
        (
            [section("Cells", 7, 1, 1, [1, 2, 5, 4]), conditions(condition("wall", "PointList", [[0]]))],
            "points 0 to 0, but the zone has 6",
        ),
        (
            [section("Cells", 7, 1, 1, [1, 2, 5, 4]), conditions(node("wall", "BC_t", "BCWall"))],
            "a boundary condition needs points or elements",
        ),
    ],
)
def test_what_is_wrong_in_sections(tmp_path, two_quads, parts, message):
    with pytest.raises(MeshError, match=message):
        read_data(write_adf(tmp_path / "a.cgns", quads(two_quads, *parts)))


def test_polyhedra_that_are_no_elements(tmp_path):
    """Faces that make no element make a polyhedron, which is refused where it is open."""
    mesh = box3d(1, 1, 1)
    faces, cells = polyhedral_sections(mesh, offsets=True)
    starts = node("ElementStartOffset", "DataArray_t", [0, 5])
    five = section("Cells", 23, 7, 1, [1, 2, 3, 4, 5], starts)
    starts = node("ElementStartOffset", "DataArray_t", [0, 6])
    six = section("Cells", 23, 7, 1, [1, 1, 1, 4, 4, 5], starts)
    twice = section("Cells", 23, 7, 1, [1, 1, 3, 4, 5, 6], starts)  # its nodes are all there, its top is not
    for wrong in (five, six, twice):
        zone = unstructured("Z", mesh.points, 1, faces, wrong)
        path = write_adf(tmp_path / "a.cgns", file_of(base(3, zone)))
        with pytest.raises(MeshError, match=r"a\.cgns: polyhedron element 6 at \(.*\): open: its faces do not close"):
            read_data(path)
    absent = section("Cells", 23, 7, 1, [1, 1, 1, 4, 4, 9], starts)
    with pytest.raises(MeshError, match="the face 9 of a cell is no triangle"):
        read_data(write_adf(tmp_path / "a.cgns", file_of(base(3, unstructured("Z", mesh.points, 1, faces, absent)))))
    good = file_of(base(3, unstructured("Z", mesh.points, 1, faces, cells)))
    assert check(read_data(write_adf(tmp_path / "a.cgns", good))).volume_total == pytest.approx(1.0, rel=1e-14)


def test_coordinates(tmp_path, two_quads):
    sections, _ = sections_of(two_quads)
    kind = node("ZoneType", "ZoneType_t", "Unstructured")
    polar = node("GridCoordinates", "GridCoordinates_t", None, node("CoordinateR", "DataArray_t", np.ones(6)))
    short = grid(two_quads.points[:5])
    for part, message in (
        (polar, r"Cartesian coordinates are wanted.*found: CoordinateR"),
        (short, "5 values, but the zone has 6"),
    ):
        zone = node("Z", "Zone_t", [[6], [2], [0]], kind, part, *sections)
        with pytest.raises(MeshError, match=message):
            read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone))))
    zone = node("Z", "Zone_t", [[6], [2], [0]], kind, *sections)
    with pytest.raises(MeshError, match="the zone holds no GridCoordinates_t"):
        read_data(write_adf(tmp_path / "a.cgns", file_of(base(2, zone))))


def test_damaged_files(tmp_path, two_quads):
    with pytest.raises(MeshError, match="no such mesh file"):
        read_data(tmp_path / "none.cgns")
    path = tmp_path / "a.cgns"
    path.write_bytes(b"something else")
    with pytest.raises(MeshError, match="not a CGNS file: neither HDF5 nor ADF"):
        read_data(path)
    whole = write_adf(path, plain(two_quads)).read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(MeshError, match="cut off in its header"):
        read_data(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MeshError, match="damaged ADF file at byte"):
        read_data(path)
    path.write_bytes(whole[:266] + b"nOdE" + whole[270:])
    with pytest.raises(MeshError, match="damaged ADF file at byte 266: 'NoDe' is wanted"):
        read_data(path)
    path.write_bytes(whole.replace(b"Database Version B", b"Database Version Z", 1))
    with pytest.raises(MeshError, match="ADF version 'Z' is not supported"):
        read_data(path)
    (tmp_path / "a.cgns.gz").write_bytes(gzip.compress(whole)[:200])
    with pytest.raises(MeshError, match="cannot be read"):
        read_data(tmp_path / "a.cgns.gz")


def test_damaged_hdf5(tmp_path, two_quads):
    pytest.importorskip("h5py")
    path = write_hdf5(tmp_path / "a.cgns", plain(two_quads))
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(MeshError, match="not an HDF5 file, or damaged"):
        read_data(path)


def test_damage_is_told(tmp_path, kind, two_quads):
    """Whatever bytes of a file are wrong: it is read, or an error says what to mend."""
    path = store(kind, tmp_path / "a.cgns", plain(two_quads))
    whole = path.read_bytes()
    rng, told = np.random.default_rng(3), []
    for _ in range(80):
        broken = bytearray(whole)
        for place in rng.integers(len(whole), size=3):
            broken[place] = rng.integers(256)
        path.write_bytes(bytes(broken))
        try:
            read_data(path)
        except MeshError as error:
            told.append(str(error))
    assert 0 < len(told) < 80
    assert all(str(path) in words for words in told)


def test_a_tree_without_end(tmp_path, two_quads):
    path = write_adf(tmp_path / "a.cgns", plain(two_quads))
    whole = path.read_bytes()
    first = re.search(rb"(?<!NoDe)Base {28}(.{12})", whole, re.DOTALL)
    child = re.search(rb"(?<!NoDe)Zone {28}", whole)
    assert first
    assert child
    path.write_bytes(whole[: child.end()] + first[1] + whole[child.end() + 12 :])
    with pytest.raises(MeshError, match="two nodes lead to it"):
        read_data(path)


def test_links_are_refused(tmp_path, two_quads):
    h5py = pytest.importorskip("h5py")
    path = write_hdf5(tmp_path / "a.cgns", plain(two_quads))
    with h5py.File(path, "a") as file:
        group = file["Base/Zone"].create_group("Away")
        group.attrs["label"], group.attrs["type"] = np.bytes_("Zone_t"), np.bytes_("LK")
    with pytest.raises(MeshError, match="Base/Zone/Away: links are not followed"):
        read_data(path)
    path = write_adf(path, plain(two_quads))
    path.write_bytes(path.read_bytes().replace(b"MT".ljust(32), b"LK".ljust(32), 2))
    with pytest.raises(MeshError, match="links are not followed"):
        read_data(path)


def test_the_tree(tmp_path, two_quads, kind):
    path = store(kind, tmp_path / "a.cgns", plain(two_quads))
    with open_cgns(path) as root:
        zone = root.need("Base").need("Zone")
        assert zone.label == "Zone_t"
        assert zone.integers().tolist() == [[6], [2], [0]]
        assert zone.need("ZoneType").text() == "Unstructured"
        assert zone.child("nothing") is None
        with pytest.raises(MeshError, match=r"Base/Zone: the node 'nothing' is missing \(nodes: .*ZoneType"):
            zone.need("nothing")
        with pytest.raises(MeshError, match="this GridCoordinates_t holds no data"):
            zone.need("GridCoordinates").array()
        with pytest.raises(MeshError, match="integers are wanted, not"):
            zone.need("GridCoordinates").need("CoordinateX").integers()


def test_without_h5py(tmp_path, two_quads, monkeypatch):
    pytest.importorskip("h5py")
    path = write_hdf5(tmp_path / "a.cgns", plain(two_quads))
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(DeviceUnavailable, match=r"reading CGNS files of the HDF5 kind needs h5py.*fluxloom\[mesh\]"):
        read_data(path)
    assert read_data(write_adf(path, plain(two_quads))).n_cells == 2


def test_cgns_files_are_not_written(tmp_path, two_quads):
    with pytest.raises(MeshError, match="the format 'cgns' can be read but not written"):
        write(tmp_path / "a.cgns", two_quads)


def test_shared_wedge(data, assert_same):
    """The same mesh as CGNS/HDF5 and as SU2."""
    pytest.importorskip("h5py")
    folder = data / "inviscid_misc"
    assert_same(read_data(folder / "mesh_wedge_inv.cgns"), read_data(folder / "mesh_wedge_inv.su2"))


def test_shared_bump(data):
    """ADF, version B, with 64-bit numbers: the grids that NASA's turbulence modeling resource names by their points."""
    for across, up in ((89, 41), (177, 81)):
        report = check(read_data(data / "bump_in_channel" / f"mesh_bump_2d_{across:04}x{up:03}.cgns.gz"))
        assert report.n_points == across * up
        assert report.elements == {"quad": (across - 1) * (up - 1)}
        assert report.patches["bump"] == (across - 1) * 40 // 88
        assert report.patches["upper"] == across - 1
        assert report.patches["inlet"] == report.patches["outlet"] == up - 1


def test_shared_cylinder(data):
    """ADF, version A; boundary conditions list vertices, sections hold the faces."""
    report = check(read_data(data / "cylinder" / "cylinder3D.cgns"))
    assert report.elements == {"tetra": 27591}
    assert report.patches == {
        "OUT": 128,
        "WALL": 512,
        "IN": 128,
        "CYLINDER_DOWN": 1040,
        "CYLINDER_UP": 1040,
        "SIDE": 1260,
    }
    # The box less a cylinder of radius 0.05 along y, of 20 sides and more.
    assert report.volume_total == pytest.approx(0.25 - np.pi * 0.05**2 * 0.5, rel=1e-3)
