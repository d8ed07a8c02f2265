from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable, MeshError
from fluxloom.mesh import box2d, box3d, check, read_data, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.metrics import closure, geometry
from fluxloom.mesh.io.su2 import read_su2, write_su2
from fluxloom.mesh.io.tables import scan as scan_module

GOOD = """% two triangles
NDIME= 2
NELEM= 2
5 0 1 2 0
5 0 2 3 1
NPOIN= 4
0.0 0.0 0
1.0 0.0 1
1.0 1.0 2
0.0 1.0 3
NMARK= 2
MARKER_TAG= lower
MARKER_ELEMS= 2
3 0 1
3 1 2
MARKER_TAG= upper
MARKER_ELEMS= 2
3 2 3
3 3 0
"""

LINEAR = [
    ("backward_step/mesh_backward_step_481x65.su2", {"quad": 30720}, 5),
    ("cavity/mesh_cavity_65x65.su2", {"quad": 4096}, 4),
    ("cavity/mesh_cavity_stretch.su2", {"quad": 4096}, 4),
    ("cylinder/mesh_cylinder_lam.su2", {"triangle": 26192}, 2),
    ("cylinder/mesh_cylinder_unsteady.su2", {"quad": 2565, "triangle": 1218}, 2),
    ("elements3d/mesh_brick_hex_ffd.su2", {"hexahedron": 14079}, 6),
    ("elements3d/mesh_brick_prism_ffd.su2", {"prism": 29640}, 6),
    ("elements3d/mesh_brick_pyra_ffd.su2", {"tetra": 71884, "pyramid": 741}, 6),
    ("elements3d/mesh_brick_tets_ffd.su2", {"tetra": 59156}, 6),
    ("elements3d/pipe1cell3D.su2", {"hexahedron": 4205}, 3),
    ("flat_plate/mesh_flatplate_65x65_laminar.su2", {"quad": 4096}, 5),
    ("flat_plate/mesh_flatplate_turb_035x025.su2", {"quad": 816}, 5),
    ("flat_plate/mesh_flatplate_turb_069x049.su2", {"quad": 3264}, 5),
    ("flat_plate/mesh_flatplate_turb_137x097.su2", {"quad": 13056}, 5),
    ("inviscid_misc/blunt_91.su2", {"quad": 3060}, 2),
    ("inviscid_misc/mesh_NACA0012_rot.su2", {"triangle": 10216}, 2),
    ("inviscid_misc/mesh_channel_256x128.su2", {"quad": 32385}, 4),
    ("inviscid_misc/mesh_wedge_inv.su2", {"quad": 3626}, 4),
    ("inviscid_misc/ramp_unst.su2", {"triangle": 12646}, 4),
    ("naca0012/mesh_NACA0012_5deg_6814.su2", {"triangle": 6814}, 5),
    ("naca0012/mesh_NACA0012_inv.su2", {"triangle": 10216}, 2),
    ("naca0012/mesh_NACA0012_lam_hybrid_v1.su2", {"triangle": 9080, "quad": 4076}, 2),
    ("naca0012/n0012_113-33.su2", {"quad": 3584}, 2),
    ("naca0012/n0012_225-65.su2", {"quad": 14336}, 2),
    ("onera_m6/om6_inviscid_coarse.su2", {"hexahedron": 36608}, 3),
    ("onera_m6/om6_inviscid_medium.su2.gz", {"hexahedron": 150528}, 3),
    ("sphere/slice_2syms.su2", {"tetra": 342, "prism": 7758, "pyramid": 354}, 4),
    ("swe_meshes/bump.su2", {"triangle": 4106}, 1),
    ("swe_meshes/circular.su2", {"triangle": 16370}, 1),
    ("tsunami_monai/monai.su2", {"triangle": 27252}, 2),
    ("turbomachinery/mesh_stator_turb.su2", {"triangle": 11144, "quad": 11622}, 5),
    ("turbomachinery/mesh_vki_turbine.su2", {"quad": 15568}, 5),
]


def put(folder: Path, text: str) -> Path:
    path = folder / "small.su2"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("name", "elements", "n_patches"), LINEAR)
def test_shared_meshes(data, name, elements, n_patches):
    mesh = read_data(data / name)
    report = check(mesh)
    assert report.elements == elements
    assert len(report.patches) == n_patches
    assert report.closure_max < 1e-10
    links = connectivity(mesh)
    terms = geometry(mesh, links)
    assert (terms.cell_volumes > 0).all()
    flux = np.einsum("ij,ij->", terms.boundary_normals, terms.boundary_centres) / mesh.dimension
    assert flux == pytest.approx(report.volume_total, rel=1e-3)  # curved patches of warped quads: not exact
    scale = np.abs(terms.face_normals).max()
    assert np.abs(closure(mesh, links, terms)).max() < 1e-13 * max(scale, 1.0)


@pytest.mark.parametrize("kind", ["hex", "prism", "pyra", "tets"])
def test_volume_of_the_brick(data, kind):
    report = check(read_data(data / "elements3d" / f"mesh_brick_{kind}_ffd.su2"))
    assert report.volume_total == pytest.approx(2.0, rel=1e-12)


def test_native_and_python_agree(data):
    for name in ("sphere/slice_2syms.su2", "turbomachinery/mesh_stator_turb.su2", "naca0012/n0012_113-33.su2"):
        fast, slow = read_su2(data / name), read_su2(data / name, native=False)
        np.testing.assert_array_equal(fast.points, slow.points)
        for kind, block in fast.cells.items():
            np.testing.assert_array_equal(block, slow.cells[kind])


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cylinder/CylinderViscous_nPoly3.su2", 209),
        ("inviscid_misc/ringleb_QuadDominant25X25_nPoly3.su2", 205),
        ("naca0012/Naca0012_nPoly4.su2", 305),
    ],
)
def test_curved_meshes_are_refused(data, native, name, code):
    with pytest.raises(MeshError, match=rf"su2:9: curved \(high-order\) element type {code} is not supported"):
        read_su2(data / name, native=native)


def test_zones(data, native):
    path = data / "turbomachinery" / "single_stage_mesh.su2"
    with pytest.raises(MeshError, match=r"single_stage_mesh\.su2:1: the file has 2 zones; choose one: --zone N"):
        read_su2(path, native=native)
    first, second = (read_su2(path, zone=zone, native=native) for zone in (1, 2))
    assert (first.n_cells, first.n_points, next(iter(first.patches))) == (8250, 1983, "upper_inlet")
    assert (second.n_cells, second.n_points, next(iter(second.patches))) == (8288, 1984, "rotor_interface")
    assert second.source.first_line == 12817
    with pytest.raises(MeshError, match="there is no zone 3"):
        read_su2(path, zone=3)


@pytest.mark.parametrize("suffix", [".su2", ".su2.gz"])
def test_round_trip(tmp_path, assert_same, mixed_mesh, native, suffix):
    meshes = [
        box2d(5, 4, (np.pi, 1e-9), perturb=0.2),
        box2d(3, 3, kind="triangle"),
        box3d(3, 2, 2, perturb=0.3),
        mixed_mesh,
    ]
    for mesh in meshes:
        path = tmp_path / f"mesh{suffix}"
        write_su2(path, mesh, native=native)
        assert_same(read_su2(path, native=native), mesh)
        assert_same(read_su2(path, native=not native), mesh)
    with path.open("rb") as file:
        assert (file.read(2) == b"\x1f\x8b") == suffix.endswith("gz")


def test_extreme_numbers_read_back_equal(tmp_path, native):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    values = np.concatenate(
        [bits[np.isfinite(bits)], [0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1e22, 1e23, 123456]]
    )
    points = values[: len(values) // 2 * 2].reshape(-1, 2)
    mesh = MeshData(points, {"triangle": np.array([[0, 1, 2]])})
    write_su2(tmp_path / "mesh.su2", mesh, native=native)
    for reader in (True, False):
        again = read_su2(tmp_path / "mesh.su2", native=reader)
        np.testing.assert_array_equal(again.points.view(np.uint64), points.view(np.uint64))


def test_number_forms(tmp_path, native):
    text = GOOD.replace("1.0 1.0 2", "  +1.D0\t10e-1   2").replace("0.0 1.0 3", ".0 1. 3").replace("\n", "\r\n")
    mesh = read_su2(put(tmp_path, text), native=native)
    assert mesh.points.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]


def test_comments_blank_lines_and_other_sections(tmp_path, native):
    text = GOOD.replace("5 0 2 3 1", "% a comment\n\n5 0 2 3 1 % the second")
    text += "MARKER_TAG= SEND_RECEIVE\nMARKER_ELEMS= 1\nSEND_TO= -1\n1 0 0\nNPERIODIC= 1\nPERIODIC_INDEX= 0\n0 0 0\n"
    text += "FFD_NBOX= 1\nFFD_TAG= MAIN\nFFD_CORNER_POINTS= 1\n0 0 0\n"
    mesh = read_su2(put(tmp_path, text.replace("SEND_TO= -1\n", "")), native=native)
    assert list(mesh.patches) == ["lower", "upper"]
    assert mesh.source.first_line == 0
    assert check(mesh).n_cells == 2
    bad = text.replace("SEND_TO= -1\n", "").replace("5 0 2 3 1 %", "7 0 2 3 1 %")
    with pytest.raises(MeshError, match=r"small\.su2:7: unknown element type 7 .*known: 5 triangle, 9 quad"):
        read_su2(put(tmp_path, bad), native=native)


BROKEN = [
    (
        GOOD.replace("NELEM= 2", "NELEM= 3"),
        r":6: expected 3 rows of elements \(NELEM\), found 2: another section begins",
    ),
    (
        GOOD[: GOOD.index("1.0 1.0 2")],
        r":9: expected 4 rows of points \(NPOIN\), found 2: the file ends|only \d+ bytes follow",
    ),
    (GOOD[: GOOD.index("NPOIN")], r":6: the file ends without NPOIN="),
    (GOOD[: GOOD.index("NELEM")], r"the file ends without NELEM="),
    (
        GOOD.replace("3 3 0\n", ""),
        r":19: expected 2 rows of faces of marker 'upper', found 1: the file ends|bytes follow",
    ),
    (GOOD.replace("5 0 2 3 1", "5 0 2"), r":5: a triangle needs 3 nodes, found 2"),
    (GOOD.replace("5 0 2 3 1", "5 0 x 3 1"), r":5: not a number in the elements \(NELEM\): '5 0 x 3 1'"),
    (GOOD.replace("5 0 2 3 1", "5 0 2 3.5 1"), r":5: not a number"),
    (GOOD.replace("5 0 2 3 1", "5 0 2 99999999999 1"), r"too large"),
    (GOOD.replace("5 0 2 3 1", "5 0 2 4 1"), r":5: triangle element 1: node 4 is outside 0 \.\.\. 3"),
    (GOOD.replace("5 0 2 3 1", "10 0 2 3 1"), r":5: tetra \(type 10\) among the elements"),
    (GOOD.replace("1.0 1.0 2", "1.0"), r":9: a row of the points \(NPOIN\) needs 2 numbers, found 1"),
    (GOOD.replace("1.0 1.0 2", "1.0 1.x 2"), r":9: not a number in the points \(NPOIN\): '1.0 1.x 2'"),
    (GOOD.replace("3 3 0", "3 3 9"), r"patch 'upper', line 1: node 9 is outside 0 \.\.\. 3; mend the file"),
    (GOOD.replace("3 3 0", "5 3 0 1"), r":19: triangle \(type 5\) among the faces of marker 'upper'"),
    (GOOD.replace("NDIME= 2", "NDIME= 4"), r":2: NDIME must be 2 or 3, got 4"),
    (GOOD.replace("NDIME= 2\n", ""), r"before NDIME"),
    (GOOD.replace("NPOIN= 4", "NPOIN= many"), r":6: NPOIN= needs a whole number, got 'many'"),
    (GOOD.replace("NELEM= 2", "NELEM= -2"), r":3: NELEM= must not be negative"),
    (GOOD.replace("NELEM= 2", "NELEM= 1"), r":5: NELEM has more rows than it says"),
    (GOOD.replace("NPOIN= 4", "NPOIN= 3"), r":10: NPOIN has more rows than it says"),
    (GOOD.replace("3 3 0\n", "3 3 0\n3 0 1\n"), r":20: MARKER_ELEMS has more rows than it says"),
    (GOOD + "NELEM= 1\n5 0 2 3\n", r":20: NELEM= is given twice"),
    (GOOD.replace("1.0 1.0 2", "1,0 1,0 2"), r":9: decimal commas in the points \(NPOIN\): '1,0 1,0 2'"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_files(tmp_path, native, text, message):
    with pytest.raises(MeshError, match=message) as caught:
        read_su2(put(tmp_path, text), native=native)
    assert "small.su2" in str(caught.value)


def test_nan_is_read_and_then_found(tmp_path, native):
    mesh = read_su2(put(tmp_path, GOOD.replace("1.0 1.0 2", "NaN 1.0 2")), native=native)
    with pytest.raises(MeshError, match=r"node 2: its coordinates .* are not finite"):
        check(mesh)


def test_absent_and_damaged_files(tmp_path):
    with pytest.raises(MeshError, match="no such mesh file"):
        read_data(tmp_path / "nothing.su2")
    whole = gzip.compress(GOOD.encode() * 50)
    path = tmp_path / "cut.su2.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MeshError, match=r"cut\.su2\.gz: the compressed file is damaged or truncated"):
        read_data(path)
    with pytest.raises(MeshError, match="cannot be written"):
        write(tmp_path / "no" / "folder.su2", box2d(1, 1))


def test_without_a_compiler(tmp_path, monkeypatch, assert_same):
    def refuse(source: str, name: str = "") -> None:
        raise DeviceUnavailable("no compiler")

    monkeypatch.setattr("fluxloom.toolchain.load_library", refuse, raising=False)
    assert scan_module.native_library() is None
    mesh = box2d(3, 2, perturb=0.1)
    write(tmp_path / "mesh.su2", mesh)
    assert_same(read_data(tmp_path / "mesh.su2"), mesh)


def test_clockwise_cells_are_turned(tmp_path, native):
    path = put(tmp_path, GOOD.replace("5 0 1 2 0", "5 0 2 1 0"))
    assert read_data(path, orient=False).cells["triangle"].tolist() == [[0, 2, 1], [0, 2, 3]]
    assert read_data(path, native=native).cells["triangle"].tolist() == [[0, 1, 2], [0, 2, 3]]


def test_prisms_are_ordered_as_in_vtk(data, tmp_path, native):
    """The prisms of SU2's own files have their base turned outwards, and so have ours."""
    path = data / "elements3d" / "mesh_brick_prism_ffd.su2"
    mesh = read_su2(path, native=native)
    assert (geometry(mesh, connectivity(mesh)).cell_volumes > 0).all()
    write_su2(tmp_path / "again.su2", mesh, native=native)
    ours = (tmp_path / "again.su2").read_text().splitlines()[2].split()
    theirs = path.read_text().splitlines()[2].split()
    assert ours[:7] == theirs[:7]
