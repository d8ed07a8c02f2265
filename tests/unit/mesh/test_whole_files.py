"""Nothing of a mesh file is dropped without a word: pieces, groups, parts, steps, zones, numbers, strange dress."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError, SolverError
from fluxloom.lbm.shapes.files import read_triangles
from fluxloom.mesh import box2d, box3d, check, read_data, read_fields, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.gmsh_surface import read_stl
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.io import Fields
from fluxloom.mesh.io.stl import read_stl_corners
from fluxloom_lab.attack.files.texts import (
    ENTITIES,
    LEFT,
    RIGHT,
    SQUARE_CELLS,
    SQUARE_SIDES,
    SU2,
    cube,
    msh2,
    msh4,
    stl,
    vtkhdf,
    vtu,
)

SIDES = '1 1 "a"\n1 2 "b"\n1 3 "c"\n1 4 "d"\n'


def size(mesh: MeshData) -> float:
    return float(np.abs(cell_geometry(mesh)[0]).sum())


def counts(mesh: MeshData) -> dict[str, int]:
    return {name: len(faces) for name, faces in mesh.patches.items()}


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same_three(fields: Fields) -> None:
    assert (fields.mesh.n_points, fields.mesh.n_cells, size(fields.mesh)) == (6, 3, 2.0)
    assert sorted(fields.cell_data["c"].tolist()) == [1.0, 2.0, 3.0]


# ---------- pieces, parts, steps
ENCODINGS = [
    ("ascii", "", "UInt64", False), ("binary", "", "UInt64", False), ("binary", "", "UInt32", True),
    ("binary", "vtkZLibDataCompressor", "UInt32", False), ("binary", "vtkLZMADataCompressor", "UInt64", False),
    ("raw", "", "UInt32", False), ("raw", "vtkZLibDataCompressor", "UInt64", False), ("base64", "", "UInt64", True),
    ("base64", "", "UInt32", False), ("base64", "vtkZLibDataCompressor", "UInt64", False),
]  # fmt: skip


@pytest.mark.parametrize("how", ENCODINGS, ids=lambda how: "-".join(map(str, how)))
def test_pieces_of_a_vtu(tmp_path, how):
    same_three(read_fields(vtu(tmp_path / "a.vtu", [LEFT, RIGHT], *how)))


def test_copies_of_cells_go_and_seams_close(tmp_path):
    text = vtu(tmp_path / "a.vtu", [LEFT, (*RIGHT[:3], [3.0])]).read_text()
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 0, 0], [2, 1, 0]]
    both = vtu(tmp_path / "b.vtu", [LEFT, (points, [[0, 1, 3], [1, 4, 5, 3]], [5, 9], [1.0, 3.0])]).read_text()
    ghosts = '<DataArray type="UInt8" Name="vtkGhostType" format="ascii">{}</DataArray></CellData>'
    first, second = both.split("</CellData>", 1)
    both = first + ghosts.format("0 0") + second.replace("</CellData>", ghosts.format("1 0"), 1)
    same_three(read_fields(put(tmp_path / "c.vtu", both)))
    noisy = text.replace("1 0 0 2", "1.0000000000000002 0 0 2").replace(
        "1.0 0.0 0.0 2.0", "1.0000000000000002 0.0 0.0 2.0"
    )
    assert noisy != text
    same_three(read_fields(put(tmp_path / "d.vtu", noisy)))


def test_empty_pieces_count_for_nothing(tmp_path):
    text = vtu(tmp_path / "a.vtu", [LEFT, RIGHT]).read_text()
    empty = '<Piece NumberOfPoints="0" NumberOfCells="0"><Points/><Cells/></Piece>'
    same_three(read_fields(put(tmp_path / "b.vtu", text.replace("<Piece", empty + "<Piece", 1))))


def test_two_points_at_a_seam_are_told(tmp_path):
    crack = ([*LEFT[0], [1, 0, 0]], [[0, 4, 3], [0, 3, 2], [0, 1, 3]], [5, 5, 5], [1.0, 2.0, 2.0])
    with pytest.raises(MeshError, match=r"a\.vtu: a piece has two points at \(1, 0, 0\), and another piece one"):
        read_fields(vtu(tmp_path / "a.vtu", [crack, RIGHT]))


def test_data_that_some_piece_lacks_are_told(tmp_path):
    text = vtu(tmp_path / "a.vtu", [LEFT, RIGHT]).read_text()
    path = put(tmp_path / "b.vtu", text[::-1].replace('"c"'[::-1], '"d"'[::-1], 1)[::-1])
    with pytest.warns(UserWarning, match="the data '[cd]' on cells are not the same in all pieces; they are left out"):
        assert not read_fields(path).cell_data.keys() & {"c", "d"}


def test_cells_of_other_kinds_of_vtk(tmp_path):
    brick = [[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    assert size(read_data(vtu(tmp_path / "a.vtu", [(brick, [list(range(8))], [11], [1.0])]))) == 1.0
    assert size(read_data(vtu(tmp_path / "b.vtu", [(LEFT[0], [[0, 1, 2, 3]], [8], [1.0])]))) == 1.0
    five = [[0, 0, 0], [2, 0, 0], [2, 1, 0], [1, 1.5, 0], [0, 1, 0]]
    for packed in ("", "vtkZLibDataCompressor"):
        mesh = read_data(vtu(tmp_path / "c.vtu", [(five, [[0, 1, 2, 3, 4]], [7], [1.0])], "binary", packed))
        assert (mesh.cell_counts, size(mesh)) == ({"polygon5": 1}, 2.5)
    with pytest.raises(MeshError, match=r"d\.vtu: VTK cell type 6 is not supported"):
        read_data(vtu(tmp_path / "d.vtu", [(LEFT[0], [[0, 1, 2, 3]], [6], [1.0])]))
    text = (
        vtu(tmp_path / "e.vtu", [LEFT], "binary")
        .read_text()
        .replace("><Unst", ' compressor="vtkLZ4DataCompressor"><Unst', 1)
    )
    with pytest.raises(
        MeshError, match=r"e\.vtu: compressed by vtkLZ4DataCompressor, which is not read; save it with ZLib"
    ):
        read_data(put(tmp_path / "e.vtu", text))


def test_polyhedra_of_a_vtu(tmp_path):
    """A cube given by its faces."""
    points = [[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    faces = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    stream = [6, *(n for face in faces for n in (4, *face))]
    text = vtu(tmp_path / "a.vtu", [(points, [list(range(8))], [42], [1.0])]).read_text()
    more = f'<DataArray type="Int64" Name="faces" format="ascii">{" ".join(map(str, stream))}</DataArray>'
    more += f'<DataArray type="Int64" Name="faceoffsets" format="ascii">{len(stream)}</DataArray></Cells>'
    mesh = read_data(put(tmp_path / "b.vtu", text.replace("</Cells>", more)))
    assert (mesh.cell_counts, size(mesh)) == ({"polyhedron": 1}, pytest.approx(1.0))


def test_parts_and_steps_of_vtkhdf(tmp_path):
    same_three(read_fields(vtkhdf(tmp_path / "a.vtkhdf", steps=False)))
    path = vtkhdf(tmp_path / "b.vtkhdf", steps=True)
    with pytest.warns(UserWarning, match=r"the last of 2 steps is read \(t = 0.75\); --step 0 ... 1 chooses one"):
        last = read_fields(path)
    assert (size(last.mesh), last.cell_data["c"].tolist(), last.mesh.n_cells) == (1.0, [3.0], 1)
    first = read_fields(path, step=0)
    assert (size(first.mesh), first.cell_data["c"].tolist(), first.mesh.n_cells) == (1.0, [1.0, 2.0], 2)
    with pytest.raises(MeshError, match=r"there is no step 2; give --step 0 ... 1"):
        read_fields(path, step=2)
    with pytest.raises(MeshError, match=r"vtu files have no steps; leave step out"):
        read_fields(vtu(tmp_path / "a.vtu", [LEFT]), step=1)


# ---------- groups
def test_groups_of_one_name_are_one_patch(tmp_path):
    names = SIDES.replace('"b"', '"a"')
    assert counts(read_data(put(tmp_path / "a.msh", msh2(names=names)))) == {"a": 2, "c": 1, "d": 1}
    mesh = read_data(put(tmp_path / "a.su2", SU2.replace("MARKER_TAG= in", "MARKER_TAG= wall")))
    assert counts(mesh) == {"wall": 4}


def test_elements_in_several_groups_of_msh_2(tmp_path):
    twice = msh2(SQUARE_SIDES + "9 1 2 9 3 3 4\n", SQUARE_CELLS + SQUARE_CELLS.replace(" 2 2 5", " 2 2 6"), names=SIDES)
    with pytest.warns(UserWarning, match="elements in several groups") as told:
        mesh = read_data(put(tmp_path / "a.msh", twice))
    assert "4 of '6' belong to '5' too" in str(told[0].message)
    assert "1 of '9' belong to 'c' too" in str(told[0].message)
    assert (size(mesh), counts(mesh)) == (1.0, {"a": 1, "b": 1, "c": 1, "d": 1})
    check(mesh)
    again = msh2(cells=SQUARE_CELLS + SQUARE_CELLS[: SQUARE_CELLS.index("\n") + 1])
    with pytest.raises(MeshError, match="duplicate cell"):
        check(read_data(put(tmp_path / "b.msh", again)))
    turned = msh2(SQUARE_SIDES.replace("3 1 2 3", "3 1 2 -3"), names=SIDES)
    assert counts(read_data(put(tmp_path / "c.msh", turned))) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_entities_in_several_groups_of_msh_4(tmp_path):
    with pytest.warns(UserWarning, match="1 of 'top' belong to '12' too; the group that comes first has them"):
        mesh = read_data(put(tmp_path / "a.msh", msh4(names='1 13 "top"\n')))
    assert counts(mesh) == {"11": 1, "12": 2, "14": 1}
    check(mesh)


def test_a_face_of_two_markers_belongs_to_the_first(tmp_path):
    text = SU2.replace("MARKER_ELEMS= 1\n3 3 0", "MARKER_ELEMS= 2\n3 3 0\n3 1 2")
    with pytest.warns(UserWarning, match=r"a\.su2: faces in several groups: 1 of 'in' belong to 'wall' too"):
        assert counts(read_data(put(tmp_path / "a.su2", text))) == {"wall": 3, "in": 1}


def test_parts_of_entities(tmp_path):
    """Curves and a surface that a partitioner has cut: groups of their own, or those of what they are parts of."""
    own = "1 1 1 1 2 0 0 0 1 0 0 1 11 0\n2 1 2 1 1 1 0 0 1 1 0 1 12 0\n3 1 3 2 1 2 0 1 0 1 1 0 0 0\n"
    own += "4 1 4 1 1 0 0 0 0 1 0 0 0\n"
    part = f"$PartitionedEntities\n2\n1\n9 1\n0 4 1 0\n{own}1 2 1 1 1 0 0 0 1 1 0 1 5 0\n$EndPartitionedEntities\n"
    entities = ENTITIES.replace("2 12 13 0", "1 13 0")
    mesh = read_data(put(tmp_path / "a.msh", msh4(entities, divided=part)))
    assert counts(mesh) == {"11": 1, "12": 1, "13": 1, "14": 1}
    check(mesh)


@pytest.mark.parametrize(("version", "binary"), [(2.2, 0), (2.2, 1), (4.1, 0), (4.1, 1)])
def test_gmsh_itself(tmp_path, version, binary):
    """Parts, parameters and groups that share elements, as Gmsh writes them."""
    gmsh = pytest.importorskip("gmsh", exc_type=ImportError)
    gmsh.initialize(["gmsh", "-nopopup"], interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.occ.addRectangle(0, 0, 0.5, 1, 1)
        gmsh.model.occ.synchronize()
        sides = [tag for _, tag in gmsh.model.getEntities(1)]
        for k, tag in enumerate(sides):
            gmsh.model.addPhysicalGroup(1, [tag], name=f"s{k}")
        gmsh.model.addPhysicalGroup(1, sides, name="all")
        gmsh.model.addPhysicalGroup(2, [1], name="fluid")
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.5)
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.5)
        gmsh.model.mesh.generate(2)
        gmsh.model.mesh.partition(3)
        for name, value in (("MshFileVersion", version), ("Binary", binary), ("SaveParametric", 1)):
            gmsh.option.setNumber(f"Mesh.{name}", value)
        gmsh.write(str(tmp_path / "a.msh"))
    finally:
        gmsh.finalize()
    with pytest.warns(UserWarning, match="'all' belong to 's0' too"):
        mesh = read_data(tmp_path / "a.msh")
    assert size(mesh) == pytest.approx(1.0)
    assert counts(mesh) == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    check(mesh)


# ---------- zones
def test_zones_of_su2(tmp_path):
    zones = f"NZONE= 2\nIZONE= 1\n{SU2}IZONE= 2\n{SU2.replace('TAG= in', 'TAG= out')}"
    path = put(tmp_path / "a.su2", zones)
    with pytest.raises(MeshError, match=r"a\.su2:1: the file has 2 zones; choose one: --zone N, \[mesh\] zone = N"):
        read_data(path)
    assert [list(read_data(path, zone=zone).patches) for zone in (1, "2")] == [["wall", "in"], ["wall", "out"]]
    with pytest.raises(MeshError, match="zones of SU2 files have numbers, from 1; there is no zone 'rotor'"):
        read_data(path, zone="rotor")
    with pytest.raises(MeshError, match="gmsh files have no zones; leave zone out"):
        read_data(put(tmp_path / "a.msh", msh2()), zone=1)


# ---------- plane meshes
@pytest.mark.parametrize("suffix", [".msh", ".vtu", ".vtkhdf", ".vtk", ".xdmf", ".inp"])
@pytest.mark.parametrize(("z", "noise"), [("0.1", 1e-17), ("-3", 0.0), ("0", 5e-13)])
def test_one_rule_for_plane_meshes(tmp_path, suffix, z, noise):
    """Any constant z, noise below 1e-12 of the size, and points elsewhere that no cell has (but in VTK files)."""
    mesh, path = box2d(3, 2, kind="triangle"), tmp_path / f"a{suffix}"
    lift = float(z) + noise * (np.arange(mesh.n_points) % 2)
    points = np.column_stack([mesh.points, lift])
    if suffix == ".msh":
        put(path, msh2(z=z, more="9 7 7 7\n"))
    elif suffix == ".vtu":
        cells = mesh.cells["triangle"].tolist()
        vtu(path, [(points.tolist(), cells, [5] * len(cells), [0.0] * len(cells))])
    elif suffix == ".vtkhdf":
        h5py = pytest.importorskip("h5py")
        write(path, mesh)
        with h5py.File(path, "r+") as file:
            file["VTKHDF/Points"][:] = points
    elif suffix == ".inp":
        rows = "".join(f"{k + 1}, {x!r}, {y!r}, {h!r}\n" for k, (x, y, h) in enumerate(points.tolist()))
        body = "".join(
            f"{k + 1}, {a + 1}, {b + 1}, {c + 1}\n" for k, (a, b, c) in enumerate(mesh.cells["triangle"].tolist())
        )
        put(path, f"*NODE\n{rows}99, 5., 5., 5.\n*ELEMENT, TYPE=CPS3\n{body}")
    else:
        meshio = pytest.importorskip("meshio")
        more = np.vstack([points, [[5.0, 5.0, 5.0]]])
        meshio.Mesh(more, [("triangle", mesh.cells["triangle"])]).write(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*points that no cell has are left out")
        found = read_data(path)
    assert (found.dimension, size(found)) == (2, pytest.approx(1.0))


def test_planes_across_other_axes_and_surfaces(tmp_path):
    upright = msh2().replace("0.5 0.5 0", "0.5 2 0.5").replace("1 0 0 0", "1 0 2 0").replace("2 1 0 0", "2 1 2 0")
    upright = upright.replace("3 1 1 0", "3 1 2 1").replace("4 0 1 0", "4 0 2 1")
    with pytest.warns(UserWarning, match=r"the mesh lies in the plane y = 2: its two coordinates are x and z"):
        assert size(read_data(put(tmp_path / "a.msh", upright))) == 1.0
    bent = msh2().replace("0.5 0.5 0", "0.5 0.5 1e-9")
    with pytest.raises(MeshError, match=r"b\.msh: a surface in space is not a mesh of cells: z goes from 0 to 1e-09"):
        read_data(put(tmp_path / "b.msh", bent))


# ---------- dress
def test_marks_wrapped_rows_parameters_and_halos(tmp_path):
    for text, suffix in ((msh2(), ".msh"), (msh4(), ".msh"), (SU2, ".su2")):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*in several groups")
            assert size(read_data(put(tmp_path / f"a{suffix}", "\ufeff" + text))) == 1.0
            assert size(read_data(put(tmp_path / f"b{suffix}", text.encode("utf-16")))) == 1.0
    wrapped = (
        msh4().replace("1 0 0 1 11 0", "1 0 0\n1 11 0").replace("1 1 0 1 5 4", "1 1 0 1\n5 4 1 2\n3 4\n#").split("#")
    )
    text = wrapped[0] + wrapped[1].split("\n", 1)[1]
    with pytest.warns(UserWarning, match="in several groups"):
        assert size(read_data(put(tmp_path / "c.msh", text))) == 1.0
    for text in (
        msh2().replace("5 0.5 0.5 0", "5 0.5\n0.5 0"),
        msh4(entities=ENTITIES.replace("2 12 13 0", "1 13 0")).replace("\n6 2 3 5\n", "\n6 2\n3 5\n"),
        msh4(entities=ENTITIES.replace("2 12 13 0", "1 13 0")).replace("\n0.5 0.5 0\n", "\n0.5\n0.5 0\n"),
    ):
        assert "5\n0.5" in text or "6 2\n" in text
        assert size(read_data(put(tmp_path / "w.msh", text))) == 1.0
    short = msh4().replace("\n6 2 3 5\n", "\n6 2 3\n")
    with pytest.raises(MeshError, match=r"s\.msh:\d+: a row of the triangle elements .* needs 4 numbers, found 3"):
        read_data(put(tmp_path / "s.msh", short))
    parameters = msh2(nodes="$ParametricNodes").replace("0.5 0.5 0", "0.5 0.5 0 2 1 0.5 0.5")
    assert size(read_data(put(tmp_path / "d.msh", parameters))) == 1.0
    halo = "MARKER_TAG= SEND_RECEIVE\nMARKER_ELEMS= 2\nSEND_TO= 1\n1 0 0\n1 3 0\n"
    halo += halo.replace("SEND_TO= 1", "RECEIVE_FROM= 1")
    assert counts(read_data(put(tmp_path / "a.su2", SU2 + halo))) == {"wall": 3, "in": 1}
    assert size(read_data(put(tmp_path / "b.su2", SU2.replace("1 0\n", "1.0D0 0\n")))) == 1.0


STLS = {
    "long": stl("{:+.40e}"), "capitals": stl().upper(), "two words": stl(end="end solid cube"),
    "name": stl(name="vertex of facet 1 2 3"), "mark": "\ufeff" + stl(), "carriage": stl().replace("\n", "\r\n"),
    "tail": stl() + "\x1a\0\0", "exponent": stl().replace("e+00", "D+00").replace("e-01", "D-01"),
    "indent": stl().replace("\n", "\n\t "),
}  # fmt: skip


@pytest.mark.parametrize("name", STLS)
def test_stl_texts(tmp_path, name):
    """One reader for bodies and lattices: the same cube of volume 1.953125, outward."""
    path = put(tmp_path / "a.stl", STLS[name])
    for found in (read_stl_corners(path), read_triangles(path)):
        np.testing.assert_allclose(found, cube(), rtol=1e-12)
    surface = read_stl(path)
    centres = surface.points[surface.triangles].mean(axis=1)
    assert (surface.vectors() * centres).sum() / 3 == pytest.approx(1.953125)
    surface.check_closed()


def test_stl_bytes(tmp_path):
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *triangle.reshape(-1), 0) for triangle in cube())
    for head, tail in ((b"solid binary", b""), (b" ", b"\0" * 6), (b"x", b"\0" * 428)):
        path = put(tmp_path / "a.stl", head.ljust(80) + struct.pack("<I", 12) + rows + tail)
        np.testing.assert_allclose(read_stl_corners(path), cube(), rtol=1e-6)
        np.testing.assert_array_equal(read_triangles(path), read_stl_corners(path))
    few = put(tmp_path / "b.stl", b" " * 80 + struct.pack("<I", 11) + rows)
    with pytest.raises(MeshError, match=r"b\.stl: the file says 11 triangles, and there is room for 12"):
        read_stl_corners(few)
    with pytest.raises(SolverError, match=r"b\.stl: the file says 11"):
        read_triangles(few)
    with pytest.raises(MeshError, match=r"cut off"):
        read_stl_corners(put(tmp_path / "c.stl", stl()[:-60]))
    with pytest.raises(MeshError, match=r"d\.stl:4: the coordinate '0,25' is no number"):
        read_stl_corners(put(tmp_path / "d.stl", stl("{:g}").replace(".", ",")))


# ---------- other formats, and their errors
ABAQUS = """*NODE
1, 0, 0
2, 1, 0
3, 2, 0
*NODE, NSET=upper
4, 0, 1
5, 1, 1
6, 2.0D0, 1
*ELEMENT, TYPE=cps4
1, 1, 2,
5, 4
2, 2, 3, 6, 5
*ELEMENT, TYPE=T2D2, ELSET=wall
3, 1, 2
*ELEMENT, TYPE=T2D2, ELSET=wall
4, 2, 3
*ELEMENT, TYPE=T2D2
5, 3, 6
6, 6, 5
7, 5, 4
*ELSET, ELSET=rest, GENERATE
5, 6, 1
*ELSET, ELSET=rest
7
*SURFACE, NAME=left
1, S4
"""


def test_abaqus(tmp_path):
    mesh = read_data(put(tmp_path / "a.inp", ABAQUS))
    assert (size(mesh), counts(mesh)) == (2.0, {"wall": 2, "rest": 3, "left": 1})
    check(mesh)
    for more, message in (
        ("*NODE\n1, 5, 5\n", r":28: node 1 is given twice: several parts"),
        ("*INCLUDE, INPUT=b.inp\n", r":27: \*INCLUDE is not followed"),
        ("*ELEMENT, TYPE=CPS8\n9, 1, 2, 3, 4, 5, 6, 1, 2\n", r":27: elements of the type 'CPS8'"),
        ("*SURFACE, NAME=x\n1, S5\n", "the surface 'x': element 1 has no side S5"),
        ("*ELEMENT, TYPE=CPS3\n9, 1, 2, 77\n", "element 9 has the node 77, which is not in"),
        ("*ELSET, ELSET=x\nnone\n", r":28: there is no set 'none'"),
        ("*INSTANCE, NAME=i, PART=p\n1., 0., 0.\n", r":27: moved or several instances"),
    ):
        with pytest.raises(MeshError, match=rf"b\.inp.*{message}"):
            read_data(put(tmp_path / "b.inp", ABAQUS + more))


@pytest.mark.parametrize("kind", ["tetra", "prism", "hexahedron"])
def test_sides_of_solid_elements_in_abaqus(tmp_path, kind):
    """Sides of all cells by their numbers: the ones on the boundary are those of the mesh."""
    pytest.importorskip("meshio")
    mesh = box3d(1, 1, 1, kind=kind)
    with pytest.warns(UserWarning, match=r"the patches \(xmin, .*\) are left out"):
        write(tmp_path / "a.inp", mesh)
    most = {"tetra": 4, "prism": 5, "hexahedron": 6}[kind]
    sides = "".join(f"{cell + 1}, S{k + 1}\n" for cell in range(mesh.n_cells) for k in range(most))
    text = (tmp_path / "a.inp").read_text() + f"*SURFACE, NAME=all\n{sides}"
    listed = read_data(put(tmp_path / "b.inp", text)).patch("all")
    found = {tuple(sorted(row)) for block in listed.blocks.values() for row in block.tolist()}
    wanted = {tuple(sorted(r)) for p in mesh.patches.values() for b in p.blocks.values() for r in b.tolist()}
    assert wanted <= found
    assert len(listed) == mesh.n_cells * most


NASTRAN = """CEND
BEGIN BULK
GRID,1,,0.0,0.0,0.5
GRID,2,,1.0,0.0,0.5
GRID,3,,1.0D+0,1.0,0.5
GRID,4,,0.0,1.0,0.5
CQUAD4,1,7,1,2,3,4
CBAR,3,1,1,2
CBAR,4,1,2,3
CBAR,5,2,3,4
CBAR,6,2,4,1
ENDDATA
"""

LEGACY = """# vtk DataFile Version 3.0
t
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 float
0 0 2 1 0 2 1 1 2 0 1 2
CELLS 1 5
4 0 1 2 3
CELL_TYPES 1
9
"""


def test_nastran_and_legacy_vtk(tmp_path):
    pytest.importorskip("meshio")
    mesh = read_data(put(tmp_path / "a.bdf", "\ufeff" + NASTRAN))
    assert (size(mesh), counts(mesh)) == (1.0, {"1": 2, "2": 2})
    for kind in ("9", "7"):
        path = put(tmp_path / "a.vtk", "\ufeff" + LEGACY.replace("\n9\n", f"\n{kind}\n"))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*values on polygons")
            assert size(read_data(path)) == 1.0


VOXELS = (
    LEGACY.replace("Version 3.0", "Version 5.1")
    .replace("\n9\n", "\n11\n")
    .replace("CELLS 1 5\n4 0 1 2 3", "CELLS 2 8\nOFFSETS vtktypeint64\n0 8\nCONNECTIVITY vtktypeint64\n0 1 3 2 0 1 3 2")
)

BROKEN = [
    ("a.vtk", VOXELS, "cells of a type that meshio leaves out; save it as VTU"),
    ("a.bdf", NASTRAN.replace("BEGIN BULK\n", ""), "meshio cannot read the file: .*BEGIN BULK"),
    ("a.bdf", NASTRAN[: NASTRAN.index("CBAR,5") - 5], "meshio cannot read the file"),
    ("a.bdf", NASTRAN.replace("GRID,3,,", "GRID,3,4,"), r"a\.bdf:5: a point in a coordinate system of its own"),
    ("a.bdf", NASTRAN.replace("CQUAD4", "CQUADX4"), r"a\.bdf:7: cells CQUADX4 are not known"),
    ("a.vtk", LEGACY[:90], "meshio cannot read the file"),
    ("a.vtk", LEGACY.replace("\n9\n", "\n6\n"), "meshio cannot read the file"),
    ("a.vtk", LEGACY.replace("4 0 1 2 3", "4 0 1 2 8"), r"quad element 0: node 8 is outside 0 \.\.\. 3; mend the file"),
    ("a.xdmf", "<Xdmf><Domain><Grid", "meshio cannot read the file: ParseError"),
    ("a.vtu", "<VTKFile type", "not a VTU file, or its XML is damaged or cut off"),
    ("a.vtu", "<VTKFile type='PolyData'><PolyData/></VTKFile>", "there is no <UnstructuredGrid>"),
    ("a.mesh", "MeshVersionFormatted 2\nDimension 3\nVertices 7\n", "meshio cannot read the file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BROKEN)
def test_errors_of_libraries_are_one_line(tmp_path, name, text, message):
    pytest.importorskip("meshio")
    with pytest.raises(MeshError, match=message) as caught:
        read_data(put(tmp_path / name, text))
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


REFUSED = ("wall%1", " lead", "trail ", "SEND_RECEIVE", "", "a\nb")
NAMES = ("inlet 1", "wall=2", 'quo"ted', '"q"', "wände", "a\tb", "$End", "1", *REFUSED)


@pytest.mark.parametrize("suffix", [".su2", ".msh", ".vtu", ".vtkhdf"])
@pytest.mark.parametrize("name", NAMES)
def test_names_of_patches_come_back_or_are_refused(tmp_path, suffix, name):
    if suffix == ".vtkhdf":
        pytest.importorskip("h5py")
    mesh, path = box2d(2, 2), tmp_path / f"a{suffix}"
    named = {name if old == "xmin" else old: faces for old, faces in mesh.patches.items()}
    mesh = MeshData(mesh.points, mesh.cells, named)
    options = {"patches": True} if suffix in (".vtu", ".vtkhdf") else {}
    if name in REFUSED and (suffix == ".su2" or name in ("", "a\nb")):
        with pytest.raises(MeshError, match="cannot be called so"):
            write(path, mesh, **options)
    else:
        write(path, mesh, **options)
        assert counts(read_data(path)) == counts(mesh)
