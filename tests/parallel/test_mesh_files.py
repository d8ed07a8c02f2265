"""VTKHDF files that several ranks read and write in slices."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.threads import run_threads
from fluxloom.mesh import MeshData, MeshSource, PatchFaces, box2d, box3d, read_data, read_fields, write
from fluxloom.mesh.ranks import vtkhdf_slices
from fluxloom.mesh.ranks.slices import MeshSlice, cut
from fluxloom.mesh.ranks.vtkhdf_slices import read_vtkhdf_slice, write_vtkhdf_slices
from fluxloom_lab.attack.files.texts import vtkhdf
from tests.parallel.launch import mpiexec
from tests.parallel.test_mesh import MESHES, assert_parts_fit, distributed, mixed2d, raises_on_all


def assert_same(first: MeshData, second: MeshData) -> None:
    """Check points, cells and patches, and the order of the blocks."""
    pairs = [({"points": first.points}, {"points": second.points}), (first.cells, second.cells)]
    assert list(first.patches) == list(second.patches)
    pairs += [(faces.blocks, second.patches[name].blocks) for name, faces in first.patches.items()]
    for one, two in pairs:
        assert list(one) == list(two)
        for name, block in one.items():
            np.testing.assert_array_equal(block, two[name])


def contents(path: Path) -> dict[str, Any]:
    """Return every data set and attribute of an HDF5 file."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()] if isinstance(item, h5py.Dataset) else None}))
        found |= {f"@{name}": value for name, value in file["VTKHDF"].attrs.items()}
    return found


def assert_same_file(first: Path, second: Path) -> None:
    one, two = contents(first), contents(second)
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert getattr(value, "dtype", None) == getattr(two[name], "dtype", None), name
        np.testing.assert_array_equal(value, two[name], err_msg=name)


def write_shuffled(path: Path, data: MeshData) -> None:
    """Write a file whose cells of different types are mixed, with patches between them."""
    codes = {"quad": 9, "triangle": 5}
    cells = [(codes[name], row, -1) for name, block in data.cells.items() for row in block]
    elements = [cells[k] for k in np.random.default_rng(3).permutation(len(cells))]
    for number, faces in enumerate(data.patches.values()):
        elements[number * 3 : number * 3] = [(3, row, number) for row in faces.blocks["line"]]
    write(path, data, patches=True)
    with h5py.File(path, "a") as file:
        root = file["VTKHDF"]
        root["Connectivity"][:] = np.concatenate([row for _, row, _ in elements])
        root["Offsets"][:] = np.concatenate([[0], np.cumsum([len(row) for _, row, _ in elements])])
        root["Types"][:] = np.array([code for code, _, _ in elements])
        root["CellData/patch"][:] = [patch for _, _, patch in elements]
        root["CellData/u"] = np.arange(len(elements), dtype=float)


def assemble(parts: list[MeshSlice]) -> MeshData:
    """Return the mesh that slices are of."""
    first = parts[0]
    nodes = np.concatenate([p.listed.nodes for p in parts])
    patches: dict[str, PatchFaces] = {}
    for number, name in enumerate(first.listed.names):
        rows = nodes[first.listed.offsets[number] : first.listed.offsets[number + 1]]
        widths = (rows >= 0).sum(axis=1)
        kinds = {2: "line", 3: "triangle", 4: "quad"}
        patches[name] = PatchFaces({kinds[w]: rows[widths == w, :w] for w in dict.fromkeys(widths.tolist())})
    cells = {name: np.concatenate([p.cells[name] for p in parts]) for name in first.blocks}
    return MeshData(np.concatenate([p.points for p in parts]), cells, patches, MeshSource(first.path))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", [*MESHES, "shuffled"])
def test_slices_of_a_file_make_the_mesh(tmp_path: Path, kind: str, ranks: int) -> None:
    path = tmp_path / "mesh.vtkhdf"
    if kind == "shuffled":
        write_shuffled(path, mixed2d())
    else:
        data = MESHES[kind]()
        write(path, data, cell_data={"u": np.arange(data.n_cells)}, point_data={"v": data.points}, patches=True)
    fields = read_fields(path)
    parts = run_threads(ranks, lambda comm: read_vtkhdf_slice(path, comm))
    assert_same(assemble(parts), fields.mesh)
    for name, values in fields.cell_data.items():
        np.testing.assert_array_equal(np.concatenate([p.cell_data[name] for p in parts]), values)
    for name, values in fields.point_data.items():
        np.testing.assert_array_equal(np.concatenate([p.point_data[name] for p in parts]), values)
    assert set(parts[0].cell_data) == {"u"}


@pytest.mark.parametrize("kind", [*MESHES, "shuffled"])
def test_a_file_that_all_ranks_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mesh.vtkhdf"
    if kind == "shuffled":
        write_shuffled(path, mixed2d())
    else:
        write(path, MESHES[kind]())
    whole = fl.mesh.read(path, fl.Context("reference"))
    assert_parts_fit([mesh.part for mesh in distributed(3, lambda c: fl.mesh.read(path, c))], whole)


def test_cells_that_are_turned_round(tmp_path: Path) -> None:
    box = box2d(6, 5)
    quads = box.cells["quad"].copy()
    quads[7:20:3] = quads[7:20:3, ::-1]
    path = tmp_path / "mesh.vtkhdf"
    write(path, MeshData(box.points, {"quad": quads}, box.patches))
    whole = fl.mesh.read(path, fl.Context("reference"))
    meshes = distributed(3, lambda c: fl.mesh.read(path, c))
    assert_parts_fit([mesh.part for mesh in meshes], whole)
    assert min(mesh.volumes.read().min() for mesh in meshes) > 0


def test_no_rank_reads_more_than_its_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mesh.vtkhdf"
    data = box2d(40, 30)
    write(path, data, cell_data={"u": np.zeros(data.n_cells)}, patches=True)
    rows: Counter[tuple[int, str]] = Counter()
    plain = h5py.Dataset.__getitem__
    where = threading.local()

    def counting(self: h5py.Dataset, key: Any, **options: Any) -> Any:
        found = plain(self, key, **options)
        rows[where.rank, str(self.name)] += len(np.atleast_1d(found))
        return found

    def whole_arrays(self: h5py.Dataset, *_: Any, **__: Any) -> Any:
        if str(self.name) == "/VTKHDF/FieldData/patch_names":
            return plain(self, ())
        raise AssertionError(f"{self.name} is read as a whole")

    monkeypatch.setattr(h5py.Dataset, "__getitem__", counting)
    monkeypatch.setattr(h5py.Dataset, "__array__", whole_arrays)

    def action(context: fl.Context) -> fl.mesh.Mesh:
        where.rank = context.comm.rank
        return fl.mesh.read(path, context)

    meshes = distributed(4, action)
    elements = data.n_cells + 140
    assert {rows[rank, "/VTKHDF/Points"] for rank in range(4)} <= {data.n_points // 4, data.n_points // 4 + 1}
    assert {rows[rank, "/VTKHDF/Types"] for rank in range(4)} == {elements // 4}
    assert {rows[rank, "/VTKHDF/Offsets"] for rank in range(4)} == {elements // 4 + 1}
    assert {rows[rank, "/VTKHDF/CellData/patch"] for rank in range(4)} == {elements // 4}
    assert max(rows[rank, "/VTKHDF/Connectivity"] for rank in range(4)) <= elements
    assert sum(rows[rank, "/VTKHDF/Connectivity"] for rank in range(4)) == 4 * data.n_cells + 2 * 140
    assert not any(name.endswith("/u") for _, name in rows)
    assert max(mesh.part.points.shape[0] for mesh in meshes) < data.n_points / 4 + 100


def test_parts_and_steps_are_read_whole(tmp_path: Path) -> None:
    """A file of two parts, or with a time, on two ranks: the same cells as on one."""
    path = vtkhdf(tmp_path / "parts.vtkhdf", steps=False)
    whole = read_data(path)
    meshes = distributed(2, lambda context: fl.mesh.read(path, context, check=False))
    assert sum(mesh.cells.size for mesh in meshes) == whole.n_cells == 3
    write(tmp_path / "time.vtkhdf", box2d(4, 4), patches=True, time=0.5)
    meshes = distributed(2, lambda context: fl.mesh.read(tmp_path / "time.vtkhdf", context))
    assert sum(mesh.cells.size for mesh in meshes) == 16


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("types", "VTK cell type 42 is not supported"),
        ("widths", "VTK type 9 has the wrong number of nodes"),
        ("offsets", "Offsets do not fit"),
        ("short", "Offsets lead beyond the end of Connectivity"),
        ("group", "there is no group VTKHDF"),
    ],
)
def test_damaged_files(tmp_path: Path, change: str, words: str) -> None:
    path = tmp_path / "mesh.vtkhdf"
    write(path, box2d(5, 5), patches=False)
    with h5py.File(path, "a") as file:
        root = file["VTKHDF"]
        if change == "types":
            root["Types"][-1] = 42
        elif change == "widths":
            root["Offsets"][-2] -= 1
        elif change == "offsets":
            root["Offsets"][-2] = 0
        elif change == "short":
            root["Offsets"][-1] += 4
        else:
            file.move("VTKHDF", "other")
    raises_on_all(3, lambda c: fl.mesh.read(path, c), words)


@pytest.mark.parametrize("patches", [None, True, False])
@pytest.mark.parametrize("kind", MESHES)
def test_the_file_is_that_of_one_rank(tmp_path: Path, kind: str, patches: bool | None) -> None:
    data = MESHES[kind]()

    def save(context: fl.Context, path: Path, values: bool) -> None:
        mesh = fl.mesh.bind(data, context)
        given = {}
        if values:
            cells, nodes = {"c": mesh.centroids, "volume": mesh.volumes.read()}, {"x": mesh.x}
            cells["right"] = mesh.centroids.read()[:, 0] > 0.5
            given = {"cell_data": cells, "point_data": nodes}
        mesh.write(path, **given, patches=patches)

    for values in (False, True):
        save(fl.Context("reference"), tmp_path / "one.vtkhdf", values)
        run_threads(3, lambda comm, v: save(fl.Context("reference", comm=comm), tmp_path / "three.vtkhdf", v), values)
        assert_same_file(tmp_path / "one.vtkhdf", tmp_path / "three.vtkhdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.vtkhdf", "three.vtkhdf"]


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_slices_come_back(tmp_path: Path, ranks: int) -> None:
    data, path = box3d(3, 2, 2, kind="tetra"), tmp_path / "box.vtkhdf"
    run_threads(ranks, lambda comm: write_vtkhdf_slices(path, comm, cut(data, comm.rank, comm.size)))
    assert_same(read_fields(path).mesh, data)
    write(tmp_path / "whole.vtkhdf", data)
    assert_same_file(path, tmp_path / "whole.vtkhdf")


def test_written_by_three_read_by_two(tmp_path: Path) -> None:
    path = tmp_path / "mesh.vtkhdf"
    distributed(3, lambda c: fl.mesh.bind(MESHES["tetra"](), c).write(path))
    whole = fl.mesh.bind(MESHES["tetra"](), fl.Context("reference"))
    assert_parts_fit([mesh.part for mesh in distributed(2, lambda c: fl.mesh.read(path, c))], whole)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    data, path = box2d(4, 4), tmp_path / "mesh.vtkhdf"

    def save(context: fl.Context, target: Path = path, **values: Any) -> None:
        mesh, rank = fl.mesh.bind(data, context), context.comm.rank
        mesh.write(target, **{name: value(mesh, rank) for name, value in values.items()})

    raises_on_all(2, lambda c: save(c, tmp_path / "a.vtu"), r"several ranks write \.vtkhdf files only, not \.vtu")
    raises_on_all(2, lambda c: save(c, tmp_path / "no" / "b.vtkhdf"), "cannot be written")
    raises_on_all(2, lambda c: save(c, cell_data=lambda m, _: {"x": m.x}), "'x' lives on Set")
    raises_on_all(2, lambda c: save(c, cell_data=lambda _, r: {"u": np.zeros(3 + r)}), "must have shape")
    raises_on_all(2, lambda c: save(c, cell_data=lambda m, r: {f"u{r}": m.volumes}), "give all the same")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mesh.vtkhdf"
    distributed(2, lambda c: fl.mesh.bind(box2d(4, 4), c).write(path))
    before, calls = path.read_bytes(), []

    def full(*_: Any) -> None:
        calls.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vtkhdf_slices, "_store", full)
    raises_on_all(3, lambda c: fl.mesh.bind(box2d(5, 5), c).write(path), "cannot be written.*No space left")
    assert path.read_bytes() == before
    assert calls == [1]
    assert [item.name for item in tmp_path.iterdir()] == ["mesh.vtkhdf"]


@pytest.mark.mpi
def test_processes_read_and_write(tmp_path: Path) -> None:
    source, target = tmp_path / "in.vtkhdf", tmp_path / "out.vtkhdf"
    write(source, box2d(12, 9, kind="triangle", perturb=0.2))
    mpiexec(
        3,
        """
        import sys
        import fluxloom as fl

        mesh = fl.mesh.read(sys.argv[1], fl.Context("reference", comm=comm), required_patches=["xmin"])
        assert 0 < mesh.cells.size < mesh.cells.total == 216
        assert comm.reduce(mesh.volumes.read().sum(), "sum").round(12) == 1.0
        assert sum(comm.allgather(mesh.patches["ymax"].size)) == 12
        mesh.write(sys.argv[2], cell_data={"c": mesh.centroids}, patches=True)
        try:
            fl.mesh.read(sys.argv[1] + ".su2", mesh.context)
        except fl.core.errors.MeshError as error:
            assert "no such mesh file" in str(error)
        else:
            raise AssertionError("a file that is not there was read")
        """,
        source,
        target,
    )
    whole = fl.mesh.read(source, fl.Context("reference"))
    expected = tmp_path / "expected.vtkhdf"
    whole.write(expected, cell_data={"c": whole.centroids}, patches=True)
    assert_same_file(expected, target)
