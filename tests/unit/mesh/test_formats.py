from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable, MeshError
from fluxloom.mesh import box2d, box3d, check, read_data, read_fields, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.io import formats
from fluxloom.mesh.io.vtk.vtu import read_vtu
from fluxloom.mesh.io.vtk.vtu_writer import write_vtu


@pytest.fixture(params=[".vtu", ".vtkhdf"])
def suffix(request: pytest.FixtureRequest) -> str:
    if request.param == ".vtkhdf":
        pytest.importorskip("h5py")
    return request.param


def meshes(mixed: MeshData) -> list[MeshData]:
    return [box2d(4, 3, perturb=0.2), box2d(3, 2, kind="triangle"), box3d(3, 2, 2, kind="tetra", perturb=0.2), mixed]


def test_round_trip_with_patches(tmp_path, suffix, mixed_mesh, assert_same):
    for mesh in meshes(mixed_mesh):
        write(tmp_path / f"mesh{suffix}", mesh)
        again = read_data(tmp_path / f"mesh{suffix}")
        assert_same(again, mesh)
        check(again)


def test_round_trip_with_data(tmp_path, suffix, mixed_mesh, assert_same):
    path = tmp_path / f"mesh{suffix}"
    for mesh in meshes(mixed_mesh):
        rng = np.random.default_rng(0)
        cell_data = {
            "pressure": rng.random(mesh.n_cells),
            "velocity & more": rng.random((mesh.n_cells, 3)).astype(np.float32),
            "rank": np.arange(mesh.n_cells, dtype=np.int64),
        }
        point_data = {"temperature": rng.random(mesh.n_points)}
        for patches in (False, True):
            options = {"patches": patches}
            write(path, mesh, cell_data=cell_data, point_data=point_data, **options)
            fields = read_fields(path)
            assert fields.cell_data.keys() == cell_data.keys()
            for name, values in cell_data.items():
                np.testing.assert_array_equal(fields.cell_data[name], values)
                assert fields.cell_data[name].dtype == values.dtype
            np.testing.assert_array_equal(fields.point_data["temperature"], point_data["temperature"])
            if patches:
                assert_same(fields.mesh, mesh)
            else:
                assert fields.mesh.patches == {}


def test_wrong_data(tmp_path, suffix):
    mesh = box2d(2, 2)
    with pytest.raises(MeshError, match=r"data 'u' on 4 cells must have shape \(4,\) or \(4, components\), got \(3,\)"):
        write(tmp_path / f"mesh{suffix}", mesh, cell_data={"u": np.zeros(3)})


def test_meshio_reads_our_vtu(tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = box3d(3, 2, 2, kind="prism")
    values = np.arange(mesh.n_cells, dtype=float)
    write_vtu(tmp_path / "mesh.vtu", mesh, cell_data={"u": values}, point_data={"x": mesh.points[:, 0]})
    found = meshio.read(tmp_path / "mesh.vtu")
    np.testing.assert_array_equal(found.points, mesh.points)
    np.testing.assert_array_equal(found.cells_dict["wedge"], mesh.cells["prism"])
    np.testing.assert_array_equal(found.cell_data["u"][0], values)
    np.testing.assert_array_equal(found.point_data["x"], mesh.points[:, 0])


def test_meshio_vtu_of_other_encodings(tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = box2d(3, 2)
    points = np.column_stack([mesh.points, np.zeros(mesh.n_points)])
    meshio.Mesh(points, [("quad", mesh.cells["quad"])], cell_data={"u": [np.arange(6.0)]}).write(tmp_path / "other.vtu")
    fields = read_fields(tmp_path / "other.vtu")
    np.testing.assert_array_equal(fields.mesh.cells["quad"], mesh.cells["quad"])
    assert fields.mesh.dimension == 2
    np.testing.assert_array_equal(fields.cell_data["u"], np.arange(6.0))


def test_vtk_library_reads_our_files(tmp_path, suffix):
    pyvista = pytest.importorskip("pyvista")
    mesh = box3d(3, 2, 2)
    write(tmp_path / f"mesh{suffix}", mesh, cell_data={"u": np.arange(12.0)})
    grid = pyvista.read(tmp_path / f"mesh{suffix}")
    assert grid.n_cells == mesh.n_cells
    assert grid.volume == pytest.approx(1.0)
    assert (grid.cell_data["u"] == np.arange(12.0)).all()


def test_vtkhdf_layout(tmp_path):
    h5py = pytest.importorskip("h5py")
    mesh = box2d(3, 2)
    write(tmp_path / "mesh.vtkhdf", mesh, cell_data={"u": np.arange(6.0)})
    with h5py.File(tmp_path / "mesh.vtkhdf") as file:
        root = file["VTKHDF"]
        assert root.attrs["Type"] == b"UnstructuredGrid"
        assert root.attrs["Version"].tolist() == [2, 0]
        assert root["NumberOfCells"][0] == 6
        assert root["NumberOfPoints"][0] == 12
        assert root["NumberOfConnectivityIds"][0] == 24
        assert root["Offsets"].shape == (7,)
        assert root["Types"].dtype == np.uint8
        assert root["Points"].shape == (12, 3)
        assert root["CellData/u"][:].tolist() == list(range(6))


@pytest.mark.parametrize("suffix_", [".vtk", ".mesh", ".inp", ".bdf"])
def test_other_formats_through_meshio(tmp_path, suffix_):
    pytest.importorskip("meshio")
    mesh = box3d(2, 2, 2, kind="tetra", perturb=0.1)
    write(tmp_path / f"mesh{suffix_}", mesh)
    again = read_data(tmp_path / f"mesh{suffix_}")
    np.testing.assert_allclose(again.points, mesh.points, atol=1e-12)
    np.testing.assert_array_equal(again.cells["tetra"], mesh.cells["tetra"])


def test_meshio_patches_by_reference_number(tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = box2d(2, 1)
    lines = np.array([[0, 1], [1, 2], [2, 5], [5, 4], [4, 3], [3, 0]])
    marks = [np.array([1, 1, 2, 3, 3, 4]), np.array([9, 9])]
    cells = [("line", lines), ("quad", mesh.cells["quad"])]
    meshio.Mesh(mesh.points, cells, cell_data={"medit:ref": marks}).write(tmp_path / "box.mesh")
    again = read_data(tmp_path / "box.mesh")
    assert {name: len(faces) for name, faces in again.patches.items()} == {"1": 2, "2": 1, "3": 2, "4": 1}
    check(again)


def test_shared_medit_file(data, capfd):
    pytest.importorskip("meshio")
    report = check(read_data(data / "onera_m6" / "onera_curvAdapt.meshb"), ("1", "12"))
    assert report.elements == {"tetra": 6495}
    assert sum(report.patches.values()) == report.n_boundary_faces == 1670


def test_choosing_a_format(tmp_path):
    mesh = box2d(1, 1)
    with pytest.raises(MeshError, match=r"no mesh format has the suffix '\.su3'; did you mean '\.su2'"):
        write(tmp_path / "mesh.su3", mesh)
    with pytest.raises(MeshError, match=r"unknown mesh format 'su'; did you mean 'su2'\?"):
        read_data(tmp_path / "mesh.x", format="su")
    with pytest.raises(MeshError, match="su2 files hold no data"):
        write(tmp_path / "mesh.su2", mesh, cell_data={"u": [1.0]})
    write(tmp_path / "mesh.txt", mesh, format="su2")
    assert read_data(tmp_path / "mesh.txt", format="su2").n_cells == 1
    assert formats().names() == ["abaqus", "cgns", "gmsh", "su2", "vtkhdf", "vtu"]


def test_absent_packages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setitem(sys.modules, "meshio", None)
    mesh = box2d(1, 1)
    with pytest.raises(DeviceUnavailable, match=r"needs h5py, which is not installed: pip install 'fluxloom\[mesh\]'"):
        write(tmp_path / "mesh.vtkhdf", mesh)
    with pytest.raises(MeshError, match=r"others through meshio: pip install 'fluxloom\[mesh\]'"):
        write(tmp_path / "mesh.vtk", mesh)
    with pytest.raises(DeviceUnavailable, match="needs meshio"):
        write(tmp_path / "mesh.vtk", mesh, format="meshio")


def test_broken_vtu(tmp_path):
    path = tmp_path / "mesh.vtu"
    write_vtu(path, box2d(3, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    with pytest.raises(MeshError, match=r"mesh\.vtu: array '\w+' is damaged or cut off: the file is truncated"):
        read_vtu(path)
    path.write_bytes(b"hello")
    with pytest.raises(MeshError, match="not a VTU file, or its XML is damaged or cut off"):
        read_vtu(path)


def test_broken_vtkhdf(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "mesh.vtkhdf"
    path.write_bytes(b"hello")
    with pytest.raises(MeshError, match="not an HDF5 file"):
        read_data(path)
    with h5py.File(path, "w") as file:
        file.create_group("other")
    with pytest.raises(MeshError, match="no group VTKHDF"):
        read_data(path)
    with pytest.raises(MeshError, match="no such mesh file"):
        read_data(tmp_path / "absent.vtkhdf")
    (tmp_path / "folder.vtkhdf").mkdir()
    with pytest.raises(MeshError, match=r"folder\.vtkhdf: is a directory; name a mesh file"):
        read_data(tmp_path / "folder.vtkhdf")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("Connectivity", lambda a: a + 100, "an element has the node 1.., but there are 16 points"),
        ("Offsets", lambda a: a[::-1], "the offsets of the 21 elements do not fit"),
        ("Offsets", lambda a: np.append(0, a[:-1] + 1), "the offsets of the 22 elements do not fit|another number"),
        ("Types", lambda a: a[:-1], "Types has 20 rows, 21 are wanted; the file is damaged"),
        ("Points", lambda a: a[:, :2], r"the points have shape \(16, 2\)"),
        ("CellData/patch", lambda a: a[:3], "CellData/patch has 3 rows, 21 are wanted"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, name, change, message):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "mesh.vtkhdf"
    write(path, box2d(3, 3), patches=True)
    with h5py.File(path, "r+") as file:
        root = file["VTKHDF"]
        old = root[name][()]
        del root[name]
        root[name] = change(old)
    with pytest.raises(MeshError, match=message) as caught:
        read_data(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_full_disk_does_not_crash_hdf5(tmp_path, ranks):
    """In a process of its own, as HDF5 takes a failed write of its own for the end of the world."""
    pytest.importorskip("h5py")
    program = """
        import resource, sys
        from fluxloom.comm.threads import run_threads
        from fluxloom.core.errors import MeshError
        from fluxloom.mesh import box2d, write
        from fluxloom.mesh.ranks.vtkhdf_slices import write_vtkhdf_slices
        from fluxloom.mesh.ranks.slices import cut

        path, ranks, mesh = sys.argv[1], int(sys.argv[2]), box2d(40, 40)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        try:
            if ranks == 1:
                write(path, mesh)
            else:
                run_threads(ranks, lambda c: write_vtkhdf_slices(path, c, cut(mesh, c.rank, c.size)))
        except MeshError as error:
            print(error)
    """
    path = tmp_path / "mesh.vtkhdf"
    words = [sys.executable, "-B", "-c", dedent(program), str(path), str(ranks)]  # -B: no bytecode that ends there
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: cannot be written: File too large\n"
    assert ranks == 1 or not list(tmp_path.iterdir())
