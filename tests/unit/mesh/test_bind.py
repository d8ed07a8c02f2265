"""A mesh in a context: sets, maps, metric terms and patches, through loops and against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Read, Write
from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.mesh import MeshData, box2d, box3d, read_fields, write


@fl.kernel
def close2(n: Read, total: Inc):
    for k in range(2):
        total[0][k] += n[k]
        total[1][k] -= n[k]


@fl.kernel
def close3(n: Read, total: Inc):
    for k in range(3):
        total[0][k] += n[k]
        total[1][k] -= n[k]


@fl.kernel
def outer2(n: Read, total: Inc):
    for k in range(2):
        total[k] += n[k]


@fl.kernel
def outer3(n: Read, total: Inc):
    for k in range(3):
        total[k] += n[k]


@fl.kernel
def neighbour_sum(u: Read, total: Write):
    s = 0.0
    for j in range(len(u)):
        s += u[j]
    total[0] = s


@fl.kernel
def signed_sum(n: Read, sign: Read, total: Write):
    sx = 0.0
    sy = 0.0
    for j in range(len(n)):
        sx += sign[j] * n[j][0]
        sy += sign[j] * n[j][1]
    total[0] = sx
    total[1] = sy


@fl.kernel
def count(n: Read, total: Inc):
    total[0] += n[0] * n[0] + n[1] * n[1]


@fl.kernel
def polygon_area(x: Read, area: Write):
    a = 0.0
    for k in range(len(x)):
        nxt = k + 1 if k + 1 < len(x) else 0
        a += 0.5 * (x[k][0] * x[nxt][1] - x[nxt][0] * x[k][1])
    area[0] = a


@pytest.fixture(params=["reference", "cpu"])
def ctx(request: pytest.FixtureRequest) -> fl.Context:
    return fl.Context(request.param, tuning=False)


BOXES = {
    "quad": lambda: box2d(7, 5, kind="quad", perturb=0.2),
    "triangle": lambda: box2d(6, 5, kind="triangle", perturb=0.2),
    "hexahedron": lambda: box3d(4, 3, 3, kind="hexahedron", perturb=0.2),
    "tetra": lambda: box3d(3, 2, 2, kind="tetra", perturb=0.2),
    "prism": lambda: box3d(3, 3, 2, kind="prism"),
}


@pytest.mark.parametrize("kind", BOXES)
def test_area_vectors_of_a_cell_add_up_to_zero(ctx: fl.Context, kind: str) -> None:
    data = BOXES[kind]()
    mesh = fl.mesh.bind(data, ctx)
    inner, outer = (close2, outer2) if mesh.dimension == 2 else (close3, outer3)
    total = ctx.dat(mesh.cells, np.zeros((mesh.cells.size, mesh.dimension)))
    fl.Loop(inner, mesh.faces, mesh.face_normals, total[mesh.face_cells])()
    assert np.abs(total.read()).max() > 1e-3
    fl.Loop(outer, mesh.boundary, mesh.boundary_normals, total[mesh.boundary_cell[0]])()
    np.testing.assert_allclose(total.read(), 0.0, atol=1e-14)
    assert mesh.volumes.read().sum() == pytest.approx(1.0)
    assert mesh.volumes.read().min() > 0


def test_loop_over_neighbours(ctx: fl.Context) -> None:
    mesh = fl.mesh.bind(box2d(6, 5, kind="triangle"), ctx)
    u = np.random.default_rng(1).random(mesh.cells.size)
    total = ctx.dat(mesh.cells, shape=(), dtype="float64")
    fl.Loop(neighbour_sum, mesh.cells, ctx.dat(mesh.cells, u)[mesh.cell_cells], total)()
    expected = np.zeros(mesh.cells.size)
    a, b = mesh.links.interior_cells.T
    np.add.at(expected, a, u[b])
    np.add.at(expected, b, u[a])
    np.testing.assert_allclose(total.read(), expected, rtol=1e-13)


def test_faces_of_a_cell_have_signs(ctx: fl.Context) -> None:
    mesh = fl.mesh.bind(box2d(4, 3), ctx)
    total = ctx.dat(mesh.cells, shape=(2,), dtype="float64")
    faces = mesh.cell_faces
    fl.Loop(signed_sum, mesh.cells, mesh.face_normals[faces], mesh.cell_face_signs[faces.to_entries], total)()
    expected = np.zeros((mesh.cells.size, 2))
    np.add.at(expected, mesh.links.boundary_cells, -mesh.boundary_normals.read())
    np.testing.assert_allclose(total.read(), expected, atol=1e-14)


def test_entries_of_cell_cells_and_cell_faces_correspond() -> None:
    mesh = fl.mesh.bind(box3d(3, 2, 2, kind="tetra"), fl.Context("reference"))
    np.testing.assert_array_equal(mesh.cell_cells.offsets, mesh.cell_faces.offsets)
    rows = mesh.cell_faces.entry_row.table[:, 0]
    pairs = mesh.links.interior_cells[mesh.cell_faces.indices]
    np.testing.assert_array_equal(pairs.sum(axis=1) - rows, mesh.cell_cells.indices)
    np.testing.assert_array_equal(np.where(mesh.cell_face_signs.read() > 0, pairs[:, 0], pairs[:, 1]), rows)


def test_sets_and_maps_of_a_box() -> None:
    mesh = fl.mesh.bind(box2d(3, 2), fl.Context("reference"))
    assert [len(s) for s in (mesh.nodes, mesh.cells, mesh.faces, mesh.boundary, mesh.edges)] == [12, 6, 7, 10, 17]
    maps = [mesh.cell_nodes, mesh.face_nodes, mesh.face_cells, mesh.boundary_nodes, mesh.boundary_cell, mesh.edge_nodes]
    assert [m.legs for m in maps] == [4, 2, 2, 2, 1, 2]
    assert all(isinstance(m, TableMap) for m in maps)
    ragged = [mesh.cell_cells, mesh.cell_faces, mesh.node_cells, mesh.cell_boundary]
    assert all(isinstance(m, RaggedMap) for m in ragged)
    assert [m.entries.size for m in ragged] == [14, 14, 24, 10]
    np.testing.assert_array_equal(mesh.cell_boundary.entry_row.table[:, 0], np.sort(mesh.links.boundary_cells))
    np.testing.assert_array_equal(mesh.x.read(), mesh.data.points)
    dats = [mesh.centroids, mesh.face_centres, mesh.boundary_centres]
    assert [d.read().shape for d in dats] == [(6, 2), (7, 2), (10, 2)]


def test_maps_share_memory_with_the_arrays() -> None:
    mesh = fl.mesh.bind(box2d(3, 2), fl.Context("reference"))
    assert isinstance(mesh.cell_nodes, TableMap)
    assert np.shares_memory(mesh.cell_nodes.table, mesh.data.cells["quad"])
    assert np.shares_memory(mesh.face_cells.table, mesh.links.interior_cells)
    assert np.shares_memory(mesh.node_cells.indices, mesh.links.node_cells.indices)


def test_nothing_is_derived_before_it_is_used() -> None:
    mesh = fl.mesh.bind(box2d(3, 2), fl.Context("reference"))
    assert mesh.x.set is mesh.nodes
    assert "_checked" not in vars(mesh.part)
    assert mesh.cell_nodes.source is mesh.cells
    assert "_checked" in vars(mesh.part)  # loops over cells want a sound mesh
    assert "edges" not in vars(mesh.links)


def test_cells_of_two_types_are_ragged(ctx: fl.Context) -> None:
    points = np.array([[0, 0], [1, 0], [2, 0.5], [1, 1], [0, 1]], dtype=float)
    data = MeshData(points, {"quad": np.array([[0, 1, 3, 4]]), "triangle": np.array([[1, 2, 3]])})
    mesh = fl.mesh.bind(data, ctx)
    area = ctx.dat(mesh.cells, shape=(), dtype="float64")
    fl.Loop(polygon_area, mesh.cells, mesh.x[mesh.cell_nodes], area)()
    np.testing.assert_allclose(area.read(), mesh.volumes.read())


def test_one_cell_has_no_faces(ctx: fl.Context) -> None:
    mesh = fl.mesh.bind(box2d(1, 1), ctx)
    assert len(mesh.faces) == 0
    assert mesh.face_nodes.legs == 2
    total = ctx.dat(mesh.cells, np.zeros((1, 2)))
    fl.Loop(close2, mesh.faces, mesh.face_normals, total[mesh.face_cells])()
    assert not total.read().any()


def test_patches(ctx: fl.Context) -> None:
    mesh = fl.mesh.bind(box2d(7, 5, (2.0, 1.0)), ctx)
    assert {name: len(part) for name, part in mesh.patches.items()} == {"xmin": 5, "xmax": 5, "ymin": 7, "ymax": 7}
    total = ctx.scalar(0.0)
    fl.Loop(count, mesh.patches["ymax"], mesh.boundary_normals, total)()
    assert total.value == pytest.approx(7 * (2.0 / 7) ** 2)


def test_a_wrong_patch_is_named() -> None:
    mesh = fl.mesh.bind(box2d(2, 2), fl.Context("reference"))
    with pytest.raises(MeshError, match=r"no patch 'xmn'; did you mean 'xmin'\? \(patches: xmin, xmax, ymin, ymax\)"):
        mesh.patches["xmn"]
    assert "xmn" not in mesh.patches


def test_type_of_the_metric_terms() -> None:
    mesh = fl.mesh.bind(box2d(2, 2), fl.Context("reference"), dtype="float32")
    assert {d.scalar.name for d in (mesh.x, mesh.volumes, mesh.face_normals)} == {"float32"}


@pytest.mark.parametrize("renumber", [None, "rcm", "gps"])
def test_write_and_read(tmp_path: Path, renumber: str | None) -> None:
    ctx = fl.Context("reference")
    path = tmp_path / "box.vtu"
    write(path, box2d(5, 4, kind="triangle", perturb=0.2))
    mesh = fl.mesh.read(path, ctx, renumber=renumber, required_patches=("xmin",))  # type: ignore[arg-type]
    assert mesh.cells.size == 40
    assert set(mesh.patches) == {"xmin", "xmax", "ymin", "ymax"}
    u = ctx.dat(mesh.cells, mesh.centroids.read()[:, 0], name="u")
    t = ctx.dat(mesh.nodes, mesh.x.read())
    out = tmp_path / "out.vtu"
    mesh.write(out, cell_data={"u": u, "volume": mesh.volumes.read()}, point_data={"t": t}, patches=True)
    fields = read_fields(out)
    np.testing.assert_array_equal(fields.cell_data["u"], u.read())
    np.testing.assert_array_equal(fields.point_data["t"], mesh.data.points)
    again = fl.mesh.read(out, ctx)
    np.testing.assert_array_equal(again.volumes.read(), fields.cell_data["volume"])
    if renumber is not None:
        assert mesh.renumbering is not None
        back = mesh.renumbering.cells.restore(mesh.centroids.read())
        np.testing.assert_allclose(back, fl.mesh.read(path, ctx).centroids.read())


def test_data_of_another_set_are_refused(tmp_path: Path) -> None:
    mesh = fl.mesh.bind(box2d(2, 2), fl.Context("reference"))
    with pytest.raises(MeshError, match="cell_data 'x' lives on Set\\(nodes, 9\\), not on the cells"):
        mesh.write(tmp_path / "a.vtu", cell_data={"x": mesh.x})


def test_required_patches(tmp_path: Path) -> None:
    path = tmp_path / "box.su2"
    write(path, box2d(2, 2))
    for check in (True, False):
        with pytest.raises(MeshError, match="did you mean 'xmin'"):
            fl.mesh.read(path, fl.Context("reference"), check=check, required_patches=["xmon"])


def test_read_reference_mesh(shared_data: Path) -> None:
    path = shared_data / "cavity" / "mesh_cavity_65x65.su2"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    ctx = fl.Context("cpu", tuning=False)
    mesh = fl.mesh.read(path, ctx, renumber="rcm")
    assert (mesh.nodes.size, mesh.cells.size) == (65 * 65, 64 * 64)
    assert mesh.faces.size + mesh.boundary.size == 2 * 64 * 65
    assert sum(len(part) for part in mesh.patches.values()) == mesh.boundary.size
    total = ctx.dat(mesh.cells, np.zeros((mesh.cells.size, 2)))
    fl.Loop(close2, mesh.faces, mesh.face_normals, total[mesh.face_cells])()
    fl.Loop(outer2, mesh.boundary, mesh.boundary_normals, total[mesh.boundary_cell[0]])()
    np.testing.assert_allclose(total.read(), 0.0, atol=1e-15)
