from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d, check, read_data, write
from fluxloom.mesh.io.gmsh.msh import read_gmsh, write_gmsh

SMALL_2 = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Comments
anything
$EndComments
$PhysicalNames
3
1 1 "left side"
1 2 "rest"
2 3 "fluid"
$EndPhysicalNames
$Nodes
5
10 0 0 0
20 1 0 0
30 1 1 0
40 0 1 0
99 5 5 0
$EndNodes
$Elements
7
1 15 2 0 1 10
2 1 2 1 4 40 10
3 1 2 2 1 10 20
4 1 2 2 2 20 30
5 1 3 2 3 0 30 40
6 2 2 3 1 10 20 30
7 2 2 3 1 10 30 40
$EndElements
"""

SMALL_4 = """$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
2
1 1 "left side"
1 2 "rest"
$EndPhysicalNames
$Entities
1 2 1 0
1 0 0 0 0
1 0 0 0 0 1 0 1 1 2 1 -1
2 0 0 0 1 1 0 1 2 2 1 -1
1 0 0 0 1 1 0 0 2 1 2
$EndEntities
$Nodes
2 4 1 4
1 1 1 2
1
4
0 0 0 0.5
0 1 0 0.7
2 1 0 2
2
3
1 0 0
1 1 0
$EndNodes
$Elements
3 6 1 6
1 1 1 1
1 4 1
1 2 1 3
2 1 2
3 2 3
4 3 4
2 1 2 2
5 1 2 3
6 1 3 4
$EndElements
"""


def put(folder: Path, text: str) -> Path:
    path = folder / "small.msh"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [SMALL_2, SMALL_4], ids=["2.2", "4.1"])
def test_small_files(tmp_path, native, text):
    mesh = read_gmsh(put(tmp_path, text), native=native)
    assert mesh.points[mesh.cells["triangle"]].tolist() == [[[0, 0], [1, 0], [1, 1]], [[0, 0], [1, 1], [0, 1]]]
    assert {name: len(faces) for name, faces in mesh.patches.items()} == {"left side": 1, "rest": 3}
    assert check(mesh).volume_total == 1.0
    assert mesh.n_points == 4


BROKEN = [
    (SMALL_2.replace("2.2 0 8", "4.0 0 8"), r":2: MSH version 4\.0 is not supported; save .* 4\.1 or 2\.2"),
    (
        SMALL_2.replace("6 2 2 3 1 10 20 30", "6 9 2 3 1 10 20 30 1 2 3"),
        r":28: Gmsh element type 9 \(curved or unknown\)",
    ),
    (SMALL_2.replace("6 2 2 3 1 10 20 30", "6 2 2 3 1 10 20"), r":28: a triangle needs 3 nodes after its tags"),
    (SMALL_2.replace("6 2 2 3 1 10 20 30", "6 2 2 3 1 10 20 31"), "has the node 31, which is not in"),
    (SMALL_2.replace("30 1 1 0", "30 1 1"), r":17: a row of the nodes \(\$Nodes\) needs 4 numbers, found 3"),
    (SMALL_2[: SMALL_2.index("5 1 3")], r":27: expected 7 rows of elements .*, found 4|bytes follow"),
    (SMALL_2[: SMALL_2.index("$Elements")], "ends without"),
    (SMALL_2[SMALL_2.index("$Nodes") :], r":1: the file does not begin with \$MeshFormat"),
    (SMALL_4.replace("2 1 2 2\n5 1 2 3", "2 1 9 2\n5 1 2 3"), r":37: Gmsh element type 9"),
    (SMALL_4[: SMALL_4.index("6 1 3 4")], r"expected 2 rows of triangle elements .* found 1|bytes follow"),
    (SMALL_4.replace("2 0 0 0 1 1 0 1 2 2 1 -1", "2 0 0"), r":13: a row of \$Entities is damaged"),
    (SMALL_2.replace("30 1 1 0", "30 1 1 3"), "a surface in space is not a mesh of cells: z goes from 0 to 3"),
    (SMALL_2.replace("99 5 5 0", "30 5 5 0"), r"node 30 is given twice, at \(1\.0, 1\.0, 0\.0\) and at \(5\.0, 5"),
    (SMALL_2.replace("$EndNodes", "100 6 6 0\n$EndNodes"), r":20: \$Nodes has more rows than it says"),
    (SMALL_2.replace("$EndElements", "8 2 2 3 1 10 20 30\n$EndElements"), r":30: \$Elements has more rows than it"),
    (SMALL_2.replace("30 1 1 0", "30 1,0 1,0 0,0"), r":17: decimal commas in the nodes \(\$Nodes\): '30 1,0 1,0 0,0'"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_files(tmp_path, native, text, message):
    with pytest.raises(MeshError, match=message) as caught:
        read_gmsh(put(tmp_path, text), native=native)
    assert "small.msh" in str(caught.value)


@pytest.mark.parametrize("suffix", [".msh", ".msh.gz"])
def test_round_trip(tmp_path, native, suffix, mixed_mesh, assert_same):
    for mesh in (box2d(4, 3, perturb=0.2), box3d(3, 2, 2, kind="pyramid", perturb=0.1), mixed_mesh):
        write_gmsh(tmp_path / f"mesh{suffix}", mesh, native=native)
        assert_same(read_gmsh(tmp_path / f"mesh{suffix}", native=native), mesh)


def test_meshio_reads_ours(tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = box3d(2, 2, 1)
    write(tmp_path / "mesh.msh", mesh)
    found = meshio.read(tmp_path / "mesh.msh")
    np.testing.assert_array_equal(found.cells_dict["hexahedron"], mesh.cells["hexahedron"])
    assert found.field_data["zmax"].tolist() == [6, 2]


def gmsh_box(path: Path, kind: str, version: float, binary: bool) -> None:
    """Mesh a unit square or cube with the Gmsh package."""
    gmsh = pytest.importorskip("gmsh")
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("Mesh.MshFileVersion", version)
        gmsh.option.setNumber("Mesh.Binary", int(binary))
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.25)
        square = gmsh.model.occ.addRectangle(0, 0, 0, 1, 1)
        dimension = 2
        if kind in ("tetra", "prism", "hexahedron"):
            dimension = 3
            layers = [] if kind == "tetra" else [3]
            gmsh.model.occ.extrude([(2, square)], 0, 0, 1, layers, recombine=kind != "tetra")
        gmsh.model.occ.synchronize()
        if kind in ("quad", "hexahedron"):
            for _, tag in gmsh.model.getEntities(1):
                gmsh.model.mesh.setTransfiniteCurve(tag, 5)
            for _, tag in gmsh.model.getEntities(2):
                gmsh.model.mesh.setTransfiniteSurface(tag)
                gmsh.model.mesh.setRecombine(2, tag)
        if kind == "hexahedron":
            for _, tag in gmsh.model.getEntities(1):
                gmsh.model.mesh.setTransfiniteCurve(tag, 4)
            for _, tag in gmsh.model.getEntities(3):
                gmsh.model.mesh.setTransfiniteVolume(tag)
        sides = [tag for _, tag in gmsh.model.getEntities(dimension - 1)]
        gmsh.model.addPhysicalGroup(dimension - 1, sides[:1], name="first")
        gmsh.model.addPhysicalGroup(dimension - 1, sides[1:], name="others")
        gmsh.model.addPhysicalGroup(dimension, [tag for _, tag in gmsh.model.getEntities(dimension)], name="domain")
        gmsh.model.mesh.generate(dimension)
        gmsh.write(str(path))
    finally:
        gmsh.finalize()


@pytest.mark.parametrize("binary", [False, True], ids=["ascii", "binary"])
@pytest.mark.parametrize("version", [2.2, 4.1])
@pytest.mark.parametrize("kind", ["triangle", "quad", "tetra", "prism", "hexahedron"])
def test_files_of_gmsh(tmp_path, kind, version, binary):
    path = tmp_path / "box.msh"
    gmsh_box(path, kind, version, binary)
    mesh = read_data(path)
    assert list(mesh.cells) == [kind]
    report = check(mesh, ("first", "others"))
    assert report.volume_total == pytest.approx(1.0, rel=1e-10)
    plain = read_data(path, native=False)
    np.testing.assert_array_equal(plain.points, mesh.points)
    np.testing.assert_array_equal(plain.cells[kind], mesh.cells[kind])


def test_truncated_binary(tmp_path):
    path = tmp_path / "box.msh"
    gmsh_box(path, "triangle", 4.1, True)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"$Elements") + 70])
    with pytest.raises(MeshError, match=r"box\.msh: byte \d+: \w+ elements \(\$Elements\) need \d+ bytes"):
        read_data(path)
