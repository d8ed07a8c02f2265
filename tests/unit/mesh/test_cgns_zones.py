"""Structured zones of CGNS files, and zones joined with one another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d, check, read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom_lab.attack.files.cgns import (
    PERIODIC,
    base,
    condition,
    conditions,
    file_of,
    grid,
    interfaces,
    lattice,
    node,
    one_to_one,
    section,
    sections_of,
    structured,
    unstructured,
    write_adf,
    write_hdf5,
)

NAMES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")


def read_bases(tmp_path: Path, dimension: int, *zones: tuple) -> MeshData:
    return read_data(write_adf(tmp_path / "a.cgns", file_of(base(dimension, *zones))))


def sides(counts: tuple[int, ...], style: str) -> list[tuple]:
    """Return boundary conditions of the sides of a block, in one of the ways in which files say it."""
    found = []
    for axis in range(len(counts)):
        for end, name in ((1, NAMES[2 * axis]), (counts[axis], NAMES[2 * axis + 1])):
            lower, upper = [1] * len(counts), list(counts)
            lower[axis] = upper[axis] = end
            if style == "vertices":
                found.append(condition(name, "PointRange", [upper, lower] if axis else [lower, upper]))
                continue
            last = [n if k == axis else n - 1 for k, n in enumerate(upper)]
            if style == "list of faces":
                axes = [np.arange(a, b + 1) for a, b in zip(lower, last, strict=True)]
                index = np.stack([part.reshape(-1) for part in np.meshgrid(*axes, indexing="ij")], axis=1)
                found.append(condition(name, "PointList", index, f"{'IJK'[axis]}FaceCenter"))
            elif style == "list of vertices":
                axes = [np.arange(a, b + 1) for a, b in zip(lower, upper, strict=True)]
                index = np.stack([part.reshape(-1) for part in np.meshgrid(*axes, indexing="ij")], axis=1)
                found.append(condition(name, "PointList", index, "Vertex"))
            else:
                found.append(condition(name, "PointRange", [lower, last], style.replace("?", "IJK"[axis])))
    return found


@pytest.mark.parametrize(
    "style", ["vertices", "FaceCenter", "EdgeCenter", "?FaceCenter", "list of faces", "list of vertices"]
)
@pytest.mark.parametrize("counts", [(5, 4), (3, 5, 4), (2, 3), (4, 2, 3)])
def test_blocks(tmp_path, counts, style):
    cells = tuple(n - 1 for n in counts)
    mesh = box2d(*cells, cells) if len(counts) == 2 else box3d(*cells, cells)
    again = read_bases(
        tmp_path, len(counts), structured("Z", lattice(counts), counts, conditions(*sides(counts, style)))
    )
    report, wanted = check(again), check(mesh)
    assert report.elements == wanted.elements
    assert report.patches == wanted.patches
    assert (report.volume_min, report.volume_max) == pytest.approx((1.0, 1.0), rel=1e-14)
    normals = connectivity(again)
    for name, faces in normals.patches.items():
        nodes = again.points[normals.boundary_nodes.take(np.arange(faces.start, faces.stop)).indices]
        axis = NAMES.index(name) // 2
        assert (nodes[:, axis] == (0 if NAMES.index(name) % 2 == 0 else cells[axis])).all()


def test_hdf5_holds_the_same(tmp_path):
    pytest.importorskip("h5py")
    counts = (3, 4, 2)
    tree = file_of(base(3, structured("Z", lattice(counts), counts, conditions(*sides(counts, "vertices")))))
    first, second = read_data(write_adf(tmp_path / "a.cgns", tree)), read_data(write_hdf5(tmp_path / "b.cgns", tree))
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.cells["hexahedron"], second.cells["hexahedron"])


def test_rind_planes(tmp_path):
    counts = (3, 4)
    points = lattice((6, 5), (-1.0, -1.0))
    rind = node("Rind", "Rind_t", [1, 2, 1, 0])
    zone = node("Z", "Zone_t", [[3, 4], [2, 3], [0, 0]], grid(points, rind, shape=(5, 6)))
    again = read_bases(tmp_path, 2, zone)
    np.testing.assert_array_equal(again.points, lattice(counts))


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (condition("w", "PointRange", [[1, 1], [2, 2]]), r"\[1, 1\] to \[2, 2\] is no face of the zone"),
        (condition("w", "PointRange", [[1, 1], [1, 9]]), r"indices \[1, 1\] to \[1, 9\] leave the 3 x 4 points"),
        (condition("w", "PointRange", [[2, 1], [2, 2]], "FaceCenter"), "is no face of the zone"),
        (condition("w", "PointRange", [[1, 1, 1], [1, 2, 1]]), "4 integers are wanted, not 6"),
        (condition("w", "PointList", [[1, 1]], "FaceCenter"), "points at 'FaceCenter' are not supported"),
        (node("w", "BC_t", "BCWall"), "needs a PointRange or a PointList"),
    ],
)
def test_wrong_conditions(tmp_path, listed, message):
    with pytest.raises(MeshError, match=message):
        read_bases(tmp_path, 2, structured("Z", lattice((3, 4)), (3, 4), conditions(listed)))


def test_wrong_zones(tmp_path):
    with pytest.raises(MeshError, match="two or three axes of at least two points"):
        read_bases(tmp_path, 2, structured("Z", lattice((3, 1)), (3, 1)))
    with pytest.raises(MeshError, match="a zone of 2 axes in a base of 3 dimensions"):
        read_bases(tmp_path, 3, structured("Z", lattice((3, 2)), (3, 2)))
    with pytest.raises(MeshError, match="cells of 1 dimensions are not supported"):
        read_bases(tmp_path, 1)


def turned(points: np.ndarray, counts: tuple[int, ...], order: tuple[int, ...], reverse: tuple[int, ...]) -> np.ndarray:
    """Return the points of a block whose axes are others: axis k of the new one is axis ``order[k]``."""
    table = points.reshape(*counts[::-1], len(counts))
    n = len(counts)
    table = np.transpose(table, [n - 1 - order[n - 1 - k] for k in range(n)] + [n])
    for axis in reverse:
        table = np.flip(table, n - 1 - axis)
    return table.reshape(-1, n)


@pytest.mark.parametrize(
    ("order", "reverse"), [((0, 1, 2), ()), ((1, 0, 2), (2,)), ((1, 2, 0), (0,)), ((2, 1, 0), (0, 1))]
)
def test_two_blocks_with_turned_axes(tmp_path, order, reverse):
    """The second block lies behind the first along x, its axes in another order and direction."""
    counts, other = (3, 4, 5), (2, 4, 5)
    there = tuple(other[k] for k in order)
    points = turned(lattice(other, (2.0, 0.0, 0.0)), other, order, reverse)

    def index(i: int, j: int, k: int) -> list[int]:
        plain = [(i, j, k)[axis] for axis in order]
        return [there[a] + 1 - plain[a] if a in reverse else plain[a] for a in range(3)]

    turn = [(order.index(axis) + 1) * (-1 if order.index(axis) in reverse else 1) for axis in range(3)]
    joint = one_to_one("B", [[3, 1, 1], [3, 4, 5]], [index(1, 1, 1), index(1, 4, 5)], turn)
    rest = [item for item in sides(counts, "vertices") if item[0] != "xmax"]
    # The joint is a boundary condition too, as Gmsh writes it.
    both = condition("both", "PointRange", [[3, 1, 1], [3, 4, 5]])
    mesh = read_bases(
        tmp_path, 3,
        structured("A", lattice(counts), counts, conditions(*rest, both), interfaces(joint)),
        structured("B", points, there, conditions(*sides(there, "vertices"))),
    )  # fmt: skip
    assert mesh.n_points == 4 * 4 * 5
    links = connectivity(mesh)
    assert links.n_interior == check(box3d(3, 3, 4)).n_interior_faces
    assert "both" not in mesh.patches
    assert check(mesh).volume_total == pytest.approx(36.0, rel=1e-14)
    assert len(np.unique(mesh.points, axis=0)) == mesh.n_points


def test_a_cut_of_one_zone_is_joined_with_itself(tmp_path):
    """An annulus: the first and the last line of points are the same."""
    around, up = 13, 4
    angle, radius = np.meshgrid(-np.linspace(0, 2 * np.pi, around), np.linspace(1, 2, up))
    points = np.stack([(radius * np.cos(angle)).ravel(), (radius * np.sin(angle)).ravel()], axis=1)
    joint = one_to_one("Z", [[1, 1], [1, up]], [[around, 1], [around, up]], [1, 2])
    walls = [
        condition("inner", "PointRange", [[1, 1], [around, 1]]),
        condition("outer", "PointRange", [[1, up], [around, up]]),
    ]
    mesh = read_bases(tmp_path, 2, structured("Z", points, (around, up), conditions(*walls), interfaces(joint)))
    assert mesh.n_points == 12 * up
    assert check(mesh).patches == {"inner": 12, "outer": 12}


def test_periodic_interfaces_become_patches(tmp_path):
    counts = (4, 3)
    left = one_to_one("Z", [[1, 1], [1, 3]], [[4, 1], [4, 3]], [1, 2], PERIODIC)
    right = ("right", *one_to_one("Z", [[4, 1], [4, 3]], [[1, 1], [1, 3]], [1, 2], PERIODIC)[1:])
    walls = [item for item in sides(counts, "vertices") if item[0][0] == "y"]
    mesh = read_bases(
        tmp_path, 2, structured("Z", lattice(counts), counts, conditions(*walls), interfaces(left, right))
    )
    assert mesh.n_points == 12
    assert check(mesh).patches == {"ymin": 3, "ymax": 3, "to Z": 2, "right": 2}


def test_wrong_interfaces(tmp_path):
    def zones(joint: tuple) -> tuple[tuple, tuple]:
        return (
            structured("A", lattice((3, 3)), (3, 3), interfaces(joint)),
            structured("B", lattice((3, 3), (2.0, 0.0)), (3, 3)),
        )

    good = one_to_one("B", [[3, 1], [3, 3]], [[1, 1], [1, 3]], [1, 2])
    assert read_bases(tmp_path, 2, *zones(good)).n_points == 15
    for joint, message in (
        (one_to_one("Bb", *[[[3, 1], [3, 3]]] * 2, [1, 2]), "there is no zone 'Bb'; did you mean 'B'"),
        (one_to_one("B", [[3, 1], [3, 3]], [[2, 1], [2, 3]], [1, 2]), "points on both sides are up to 1 apart; if the"),
        (one_to_one("B", [[3, 1], [3, 3]], [[1, 3], [1, 5]], [1, 2]), "lead out of zone 'B'; mend the interface"),
        (one_to_one("B", [[3, 1], [3, 3]], [[1, 1], [1, 3]], [1, 1]), r"Transform \[1, 1\] is no change of 2 axes"),
        (node("gap", "GridConnectivity_t", "B"), "structured zones are joined by GridConnectivity1to1_t alone"),
    ):
        with pytest.raises(MeshError, match=message):
            read_bases(tmp_path, 2, *zones(joint))


def test_blanks_in_the_names_of_zones(tmp_path):
    """Gmsh writes them in interfaces, and underscores in zones."""
    joint = one_to_one("a b", [[3, 1], [3, 3]], [[1, 1], [1, 3]], [1, 2])
    first = structured("A", lattice((3, 3)), (3, 3), interfaces(joint))
    assert read_bases(tmp_path, 2, first, structured("a_b", lattice((3, 3), (2.0, 0.0)), (3, 3))).n_points == 15


def test_zones_without_interfaces_are_joined_where_points_coincide(tmp_path):
    quads = box2d(2, 2, (2.0, 2.0))
    sections, _ = sections_of(quads)
    beside = unstructured("U", quads.points + np.array([2.0, 0.0]), 4, *sections)
    between = conditions(condition("between", "PointRange", [[3, 1], [3, 3]]))
    mesh = read_bases(tmp_path, 2, structured("S", lattice((3, 3)), (3, 3), between), beside)
    assert mesh.n_points == 15
    assert connectivity(mesh).n_interior == check(box2d(4, 2)).n_interior_faces
    # The sides between them are no patches any more.
    assert {n: len(p) for n, p in mesh.patches.items()} == {"xmax": 2, "ymin": 2, "ymax": 2}


def interface(kind: str, *children: tuple) -> tuple:
    word = node("GridConnectivityType", "GridConnectivityType_t", kind)
    return node("joint", "GridConnectivity_t", "B", word, *children)


def numbers(name: str, values: object) -> tuple:
    return node(name, "IndexArray_t", np.asarray(values)[:, None])


@pytest.mark.parametrize("style", ["vertices", "vertices of one side", "faces"])
def test_unstructured_interfaces(tmp_path, style):
    """Of tetrahedra, whose faces match."""
    mesh = box3d(2, 2, 2, kind="tetra")
    behind = mesh.points * np.array([-1.0, 1.0, 1.0])  # mirrored, so that the triangles at x = 0 are the same
    plane = np.flatnonzero(mesh.points[:, 0] == 0.0) + 1
    sections, ranges = sections_of(mesh)
    rest = [item for item in sections if item[0] != "xmin triangle"]
    where = node("GridLocation", "GridLocation_t", "FaceCenter")
    if style == "vertices":
        joint = interface("Abutting1to1", numbers("PointList", plane), numbers("PointListDonor", plane))
    elif style == "faces":
        joint = interface("Abutting1to1", node("PointRange", "IndexRange_t", [list(ranges["xmin triangle"])]), where)
        rest = sections
    else:
        joint = interface("Abutting1to1", numbers("PointList", plane))
    found = read_bases(
        tmp_path, 3,
        unstructured("A", mesh.points, mesh.n_cells, *rest, interfaces(joint)),
        unstructured("B", behind, mesh.n_cells, *[item for item in sections if item[0] != "xmin triangle"]),
    )  # fmt: skip
    report = check(found)
    assert found.n_points == 2 * mesh.n_points - plane.size
    assert report.volume_total == pytest.approx(2.0)
    assert "xmin triangle" not in report.patches
    assert report.patches["ymin triangle"] == 2 * len(mesh.patches["ymin"])


def test_wrong_unstructured_interfaces(tmp_path):
    mesh = box2d(2, 2)
    sections, _ = sections_of(mesh)
    for joint, message in (
        (interface("Overset", numbers("PointList", [1])), "an interface of the type 'Overset' is not supported"),
        (interface("Abutting1to1"), "an interface needs a PointList or a PointRange"),
        (interface("Abutting1to1", numbers("PointList", [99])), "points 99 to 99, but the zone has 9"),
        (interface("Abutting1to1", numbers("PointList", [1]), numbers("PointListDonor", [99])), "that do not exist"),
        (interface("Abutting1to1", numbers("PointList", [1, 2]), numbers("PointListDonor", [2, 1])), "0.5 apart"),
    ):
        with pytest.raises(MeshError, match=message):
            read_bases(
                tmp_path, 2, unstructured("A", mesh.points, 4, *sections, interfaces(joint)),
                unstructured("B", mesh.points, 4, *sections),
            )  # fmt: skip


def test_periodic_unstructured_interfaces_become_patches(tmp_path):
    mesh = box2d(2, 2)
    sections, ranges = sections_of(mesh)
    kept = [item for item in sections if item[0] not in ("xmin", "xmax")]
    left = interface("Abutting1to1", numbers("PointList", np.flatnonzero(mesh.points[:, 0] == 0) + 1), PERIODIC)
    where = node("GridLocation", "GridLocation_t", "EdgeCenter")
    number = ranges["xmax"]
    faces = section("other", 3, number[0], 2, mesh.patches["xmax"].blocks["line"] + 1)
    right = (
        "right",
        *interface("Abutting1to1", node("PointRange", "IndexRange_t", [list(number)]), where, PERIODIC)[1:],
    )
    zone = unstructured("B", mesh.points, 4, *kept, faces, interfaces(left, right))
    assert check(read_bases(tmp_path, 2, zone)).patches == {"right": 2, "ymin": 2, "ymax": 2, "joint": 2}


@pytest.mark.parametrize("blocks", [False, True])
def test_gmsh_writes_what_is_read(tmp_path, blocks):
    """Two cubes, as unstructured zone and as two blocks with an interface, written by the library of CGNS itself."""
    pytest.importorskip("h5py")
    gmsh = pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        first, second = (gmsh.model.occ.addBox(x, 0, 0, 1, 1, 1) for x in (0, 1))
        gmsh.model.occ.fragment([(3, first)], [(3, second)])
        gmsh.model.occ.synchronize()
        outside = [tag for _, tag in gmsh.model.getBoundary([(3, 1), (3, 2)], oriented=False)]
        gmsh.model.addPhysicalGroup(3, [1, 2], name="fluid")
        gmsh.model.addPhysicalGroup(2, outside[:3], name="wall")
        gmsh.model.addPhysicalGroup(2, outside[3:], name="rest")
        for dimension, make in ((1, "Curve"), (2, "Surface"), (3, "Volume")):
            for _, tag in gmsh.model.getEntities(dimension):
                getattr(gmsh.model.mesh, f"setTransfinite{make}")(tag, *([5] if dimension == 1 else []))
        gmsh.option.setNumber("Mesh.RecombineAll", 1)
        gmsh.model.mesh.generate(3)
        gmsh.option.setNumber("Mesh.CgnsExportStructured", int(blocks))
        gmsh.write(str(tmp_path / "a.cgns"))
    finally:
        gmsh.finalize()
    if blocks and tuple(int(word) for word in gmsh.__version__.split(".")[:3]) < (4, 15, 2):
        with pytest.raises(MeshError, match=r"V00002\): Transform .* is no change of 3 axes"):  # it wrote it wrongly
            read_data(tmp_path / "a.cgns")
        return
    report = check(read_data(tmp_path / "a.cgns"))
    assert report.elements == {"hexahedron": 128}
    assert report.patches == {"wall": 48, "rest": 112}
    assert (report.n_points, report.volume_total) == (225, pytest.approx(2.0))


@pytest.mark.parametrize("merged", [False, True])
def test_a_side_that_is_a_line(tmp_path: Path, merged: bool) -> None:
    """Structured blocks end at axes in cells without an edge; so do their nodes where a program made them one."""
    counts = (4, 3, 3)
    points = lattice(counts)
    axis = points[:, 0] == 0.0
    points[axis, 1] = 0.0
    mesh = read_bases(tmp_path, 3, structured("Z", points, counts)) if not merged else None
    if mesh is not None:
        with pytest.raises(MeshError, match=r"hexahedron element 0 at \(.*\): degenerate: its nodes 4 and 0 are"):
            check(mesh)
        return
    block = box3d(3, 2, 2).cells["hexahedron"]
    number = np.where(axis, np.arange(axis.size) // 12 * 12, np.arange(axis.size))  # the first node of each layer
    cells = section("Cells", 17, 1, len(block), number[block] + 1)
    with pytest.raises(MeshError, match=r"hexahedron element 0 at \(.*\): degenerate: node 0 is repeated"):
        read_bases(tmp_path, 3, unstructured("Z", points, len(block), cells))
