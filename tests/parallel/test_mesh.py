"""A mesh on several ranks against the same mesh on one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError, DatError, MeshError
from fluxloom.dsl.declare.maps import RaggedMap
from fluxloom.mesh import MeshData, MeshSource, PatchFaces, box2d, box3d, distribute_mesh, renumber, write
from fluxloom.mesh.generate.airfoil import airfoil_slice
from fluxloom.mesh.ranks.distribute import distribute
from fluxloom.mesh.ranks.part import MAPS, MeshPart
from fluxloom.mesh.ranks.slices import as_slice, cut

SETS = ("nodes", "cells", "faces", "boundary", "edges")
METRICS = {
    "x": "nodes",
    "volumes": "cells",
    "centroids": "cells",
    "face_normals": "faces",
    "face_centres": "faces",
    "boundary_normals": "boundary",
    "boundary_centres": "boundary",
}


def mixed2d() -> MeshData:
    """Return squares on the left, triangles on the right."""
    box = box2d(8, 5, perturb=0.2)
    middle = box.points[box.cells["quad"]][:, :, 0].mean(axis=1)
    left, right = box.cells["quad"][middle < 0.5], box.cells["quad"][middle > 0.5]
    triangles = np.concatenate([right[:, [0, 1, 2]], right[:, [0, 2, 3]]])
    return MeshData(box.points, {"quad": left, "triangle": triangles}, box.patches, MeshSource("mixed2d"))


MESHES: dict[str, Callable[[], MeshData]] = {
    "quad": lambda: box2d(9, 7, kind="quad", perturb=0.2),
    "triangle": lambda: box2d(6, 5, kind="triangle", perturb=0.2),
    "mixed": mixed2d,
    "tetra": lambda: box3d(3, 3, 2, kind="tetra", perturb=0.2),
    "prism": lambda: box3d(3, 3, 2, kind="prism", perturb=0.1),
}


@fl.kernel
def close(n: Read, total: Inc):
    for k in range(2):
        total[0][k] += n[k]
        total[1][k] -= n[k]


@fl.kernel
def outer(n: Read, total: Inc):
    for k in range(2):
        total[k] += n[k]


@fl.kernel
def length(n: Read, total: Inc):
    total[0] += fl.sqrt(n[0] * n[0] + n[1] * n[1])


@fl.kernel
def corners(x: Read, middle: Write):
    for k in range(2):
        middle[k] = (x[0][k] + x[1][k] + x[2][k]) / 3.0


def distributed(ranks: int, action: Callable[[fl.Context], Any]) -> list[Any]:
    """Return what an action gives on every rank."""
    return run_threads(ranks, lambda comm: action(fl.Context("reference", comm=comm)))


def whole_tables(mesh: fl.mesh.Mesh) -> dict[str, np.ndarray]:
    """Return the tables of all maps of a mesh on one rank, -1 behind short rows."""
    links = mesh.links
    return {
        "cell_nodes": links.cell_nodes.padded(),
        "face_cells": links.interior_cells,
        "face_nodes": links.interior_nodes.padded(),
        "boundary_cell": links.boundary_cells[:, None],
        "boundary_nodes": links.boundary_nodes.padded(),
        "edge_nodes": links.edges,
    }


def assert_parts_fit(parts: list[MeshPart], whole: fl.mesh.Mesh) -> None:
    """Check owners and every row of every table that a rank executes."""
    for name in SETS:
        owned = np.concatenate([p.part(name).numbers[: p.part(name).owned] for p in parts])
        np.testing.assert_array_equal(np.sort(owned), np.arange(getattr(whole, name).size))
        assert {p.part(name).total for p in parts} == {getattr(whole, name).size}
    for name, table in whole_tables(whole).items():
        source, target = MAPS[name]
        for part in parts:
            local = part.table(name)
            rows = part.part(source).numbers[: part.part(source).executed]
            found = np.where(local < 0, -1, part.part(target).numbers[local])
            expected = table[rows] if len(table) else np.empty((0, found.shape[1]))
            np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("kind", MESHES)
def test_maps_metrics_and_patches_are_those_of_one_rank(kind: str, ranks: int) -> None:
    data = MESHES[kind]()
    whole = fl.mesh.bind(data, fl.Context("reference"))

    def action(context: fl.Context) -> Any:
        mesh = fl.mesh.bind(data, context)
        assert [getattr(mesh, name).total for name in SETS] == [getattr(whole, name).size for name in SETS]
        metrics = {name: getattr(mesh, name).read() for name in METRICS}
        patches = {name: subset.indices[: subset.size] for name, subset in mesh.patches.items()}
        return mesh.part, metrics, patches

    found = distributed(ranks, action)
    parts = [item[0] for item in found]
    assert_parts_fit(parts, whole)
    for name, over in METRICS.items():
        expected = getattr(whole, name).read()
        for part, metrics, _ in found:
            owned = part.part(over).numbers[: part.part(over).owned]
            np.testing.assert_array_equal(metrics[name], expected[owned], err_msg=name)
    assert list(found[0][2]) == list(whole.patches)
    for name, subset in whole.patches.items():
        numbers = [part.part("boundary").numbers[patches[name]] for part, _, patches in found]
        np.testing.assert_array_equal(np.sort(np.concatenate(numbers)), subset.indices)


def test_loops_over_a_divided_mesh() -> None:
    data = box2d(9, 7, kind="triangle", perturb=0.2)

    def action(context: fl.Context) -> float:
        mesh = fl.mesh.bind(data, context)
        total = context.dat(mesh.cells, np.zeros((mesh.cells.size, 2)))
        fl.Loop(close, mesh.faces, mesh.face_normals, total[mesh.face_cells])()
        inner = float(np.abs(total.read()).max())
        fl.Loop(outer, mesh.boundary, mesh.boundary_normals, total[mesh.boundary_cell[0]])()
        np.testing.assert_allclose(total.read(), 0.0, atol=1e-14)
        middle = context.dat(mesh.cells, shape=(2,))
        fl.Loop(corners, mesh.cells, mesh.x[mesh.cell_nodes], middle)()
        np.testing.assert_allclose(middle.read(), mesh.centroids.read(), atol=1e-14)
        wall = context.scalar(0.0)
        fl.Loop(length, mesh.patches["ymin"], mesh.boundary_normals, wall)()
        assert wall.value == pytest.approx(1.0)
        return inner

    assert min(run_threads(3, lambda comm: action(fl.Context("cpu", comm=comm, threads=1)))) > 1e-3


@pytest.mark.parametrize("method", ["kway", "rcb", "block"])
def test_cells_are_dealt_out_as_asked(method: str) -> None:
    data = box2d(24, 20)
    shares = (0.5, 0.3, 0.2)
    meshes = distributed(3, lambda c: fl.mesh.bind(data, c, partition=method, shares=shares))  # type: ignore[arg-type]
    sizes = np.array([mesh.cells.size for mesh in meshes])
    assert sizes.sum() == 480
    assert np.abs(sizes / 480 - shares).max() < 0.05
    assert meshes[0].part.distributed.decomposition.report().method == method


@pytest.mark.parametrize("given", ["whole", "root", "slices", "part"])
def test_what_a_mesh_may_be_bound_from(given: str) -> None:
    data = MESHES["triangle"]()
    whole = fl.mesh.bind(data, fl.Context("reference"))

    def action(context: fl.Context) -> MeshPart:
        comm = context.comm
        forms = {
            "whole": lambda: data,
            "root": lambda: None if comm.rank else data,
            "slices": lambda: cut(data, comm.rank, comm.size),
            "part": lambda: distribute_mesh(as_slice(comm, data), comm),
        }
        part = fl.mesh.bind(forms[given](), context).part
        assert part is not None
        return part

    assert_parts_fit(distributed(3, action), whole)


def test_ranks_must_hold_the_same() -> None:
    with pytest.raises(MeshError, match="the ranks hold mesh, nothing, mesh: give each rank"):
        distributed(3, lambda c: fl.mesh.bind(None if c.comm.rank == 1 else box2d(3, 3), c))
    with pytest.raises(MeshError, match="different meshes"):
        distributed(2, lambda c: fl.mesh.bind(box2d(3 + c.comm.rank, 3), c))


def test_one_rank_binds_arrays() -> None:
    with pytest.raises(MeshError, match="on one rank is bound from its arrays"):
        fl.mesh.bind(None, fl.Context("reference"))


def test_patches_may_be_empty_on_a_rank() -> None:
    def action(context: fl.Context) -> dict[str, int]:
        mesh = fl.mesh.bind(box2d(12, 1, (12.0, 1.0)), context, partition="rcb")
        with pytest.raises(MeshError, match=r"no patch 'xmn'; did you mean 'xmin'"):
            mesh.patches["xmn"]
        return {name: patch.size for name, patch in mesh.patches.items()}

    sizes = distributed(3, action)
    assert sorted(s["xmin"] for s in sizes) == [0, 0, 1]
    assert sum(s["ymax"] for s in sizes) == 12


def test_faces_in_no_patch_come_last() -> None:
    box = box2d(5, 4, kind="triangle")
    data = MeshData(box.points, box.cells, {name: box.patches[name] for name in ("ymax", "xmin")})
    whole = fl.mesh.bind(data, fl.Context("reference"))
    assert_parts_fit([m.part for m in distributed(3, lambda c: fl.mesh.bind(data, c))], whole)


def test_fewer_maps_have_smaller_halos() -> None:
    data = box2d(16, 16, kind="triangle")
    full = distributed(3, lambda c: fl.mesh.bind(data, c).part)
    few = distributed(3, lambda c: fl.mesh.bind(data, c, maps=("face_cells", "boundary_cell")))
    assert sum(m.part.part("cells").halo for m in few) < sum(p.part("cells").halo for p in full)
    with pytest.raises(MeshError, match="divided without the map cell_nodes: add it to maps="):
        _ = few[0].volumes
    with pytest.raises(MeshError, match="divided without edges"):
        _ = few[0].edges
    with pytest.raises(MeshError, match="unknown map 'face_cell'; did you mean 'face_cells'"):
        distributed(2, lambda c: fl.mesh.bind(data, c, maps=("face_cell",)))


@fl.kernel
def around(p: Read, n: Read, s: Read, w: Read, own: Read, r: Write):
    """Gauss' gradient of a cell, driven from the cell: ``sum_j s_j n_j (p_j + p) / 2``, and its boundary faces."""
    for k in range(2):
        r[k] = 0.0
    for j in range(len(p)):
        for k in range(2):
            r[k] += s[j] * n[j][k] * 0.5 * (p[j] + own[0])
    for j in range(len(w)):
        for k in range(2):
            r[k] += w[j][k] * own[0]


@fl.kernel
def average(p: Read, v: Write):
    v[0] = 0.0
    for j in range(len(p)):
        v[0] += p[j] / len(p)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("kind", MESHES)
def test_ragged_maps_are_those_of_one_rank(kind: str, ranks: int) -> None:
    """Every row leads to the same elements in the same order, and loops over them give the same bits."""
    data = MESHES[kind]()
    names = ("cell_cells", "cell_faces", "cell_boundary", "node_cells", "cell_nodes")
    choice = fl.Schedule(deterministic="global")

    def run(context: fl.Context) -> tuple[dict[str, list[tuple[int, list[int]]]], dict[str, Any]]:
        mesh = fl.mesh.bind(data, context, partition="rcb" if context.distributed else "auto")
        rows: dict[str, list[tuple[int, list[int]]]] = {}
        for name in names:
            through = getattr(mesh, name)
            if not isinstance(through, RaggedMap):
                continue
            here, there = global_numbers(through.source), global_numbers(through.target)
            rows[name] = [(int(here[r]), there[through.indices[a:b]].tolist())
                          for r, (a, b) in enumerate(pairwise(through.offsets)) if r < through.source.size]  # fmt: skip
        numbers = global_numbers(mesh.cells)[: mesh.cells.size]
        p = context.dat(mesh.cells, np.sin(numbers), "p")
        r, v = context.dat(mesh.cells, shape=(2,)), context.dat(mesh.nodes)
        if data.dimension == 2:
            fl.Loop(around, mesh.cells, p[mesh.cell_cells], mesh.face_normals[mesh.cell_faces],
                    mesh.cell_face_signs[mesh.cell_faces.to_entries], mesh.boundary_normals[mesh.cell_boundary], p, r,
                    schedule=choice)()  # fmt: skip
        fl.Loop(average, mesh.nodes, p[mesh.node_cells], v, schedule=choice)()
        owned = {"r": (numbers, r.read()), "v": (global_numbers(mesh.nodes)[: mesh.nodes.size], v.read())}
        return rows, owned

    want, alone = run(fl.Context("cpu", threads=1))
    pieces = run_threads(ranks, lambda comm: run(fl.Context("cpu", threads=1, comm=comm)))
    assert ("cell_nodes" in want) == (kind == "mixed")
    for name, rows in want.items():
        assert sorted(row for piece, _ in pieces for row in piece[name]) == rows, name
    for name, (_, values) in alone.items():
        whole = np.empty_like(values)
        for _, owned in pieces:
            whole[owned[name][0]] = owned[name][1]
        assert whole.tobytes() == values.tobytes(), name


def global_numbers(over: fl.Set) -> np.ndarray:
    return np.arange(over.size) if over.part is None else over.part.numbers


def test_what_only_one_rank_has_is_refused() -> None:
    mesh = distributed(2, lambda c: fl.mesh.bind(MESHES["quad"](), c))[0]
    with pytest.raises(MeshError, match="no rank has the whole connectivity"):
        _ = mesh.links
    with pytest.raises(MeshError, match=r"use mesh\.part"):
        _ = mesh.data


@pytest.mark.parametrize("renumbering", [None, "rcm"])
def test_files_that_rank_0_reads(tmp_path: Path, renumbering: Any) -> None:
    path = tmp_path / "box.su2"
    write(path, box2d(7, 5, kind="triangle", perturb=0.2))
    data = fl.mesh.read_data(path)
    data = data if renumbering is None else renumber(data, renumbering).mesh
    whole = fl.mesh.bind(data, fl.Context("reference"))
    meshes = distributed(3, lambda c: fl.mesh.read(path, c, renumber=renumbering, required_patches=["xmin"]))
    assert_parts_fit([mesh.part for mesh in meshes], whole)
    assert meshes[0].path == data.source.path


def raises_on_all(ranks: int, action: Callable[[fl.Context], Any], words: str) -> None:
    """Check that every rank gets the same `MeshError`."""

    def attempt(context: fl.Context) -> str:
        with pytest.raises(MeshError, match=words) as caught:
            action(context)
        return str(caught.value)

    assert len(set(distributed(ranks, attempt))) == 1


@pytest.mark.parametrize("suffix", [".su2", ".vtkhdf"])
def test_errors_of_a_file_are_raised_on_all_ranks(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"box{suffix}"
    write(path, box2d(4, 4))
    words = "did you mean 'xmin'"
    raises_on_all(3, lambda c: fl.mesh.read(path, c, required_patches=["xmim"]), words)
    raises_on_all(3, lambda c: fl.mesh.read(path, c, required_patches=["xmim"], check=False), words)
    raises_on_all(2, lambda c: fl.mesh.read(tmp_path / f"none{suffix}", c), "no such mesh file")
    path.write_bytes(path.read_bytes()[:200])
    raises_on_all(3, lambda c: fl.mesh.read(path, c), str(path.name))


def change(data: MeshData, **parts: Any) -> MeshData:
    """Return a mesh with other parts."""
    old = {"points": data.points, "cells": data.cells, "patches": data.patches, "source": data.source}
    return MeshData(**(old | parts))


def broken(what: str) -> MeshData:
    """Return a mesh with a defect in its last cells, which are not those of rank 0."""
    box = box2d(6, 6)
    quads, points = box.cells["quad"].copy(), box.points.copy()
    if what == "repeated":
        quads[-1, 1] = quads[-1, 0]
    elif what == "flat":
        points[quads[-1, 2]] = points[quads[-1]][[1, 3]].mean(axis=0)
        points[quads[-1, 2]] = points[quads[-1, 0]]
        points[quads[-1, 3]] = points[quads[-1, 1]]
    elif what == "infinite":
        points[-1, 0] = np.inf
    elif what == "orphan":
        points = np.concatenate([points, [[3.0, 3.0]]])
    elif what == "third":
        quads = np.concatenate([quads, [[*quads[0, :2], len(points), len(points) + 1]]])
        points = np.concatenate([points, [[0.2, -0.5], [0.0, -0.5]]])
        quads = np.concatenate([quads, [[quads[6, 1], quads[6, 0], len(points), len(points) + 1]]])
        points = np.concatenate([points, [[0.0, -0.7], [0.2, -0.7]]])
    elif what == "patch":
        patches = {**box.patches, "xmax": PatchFaces({"line": box.patches["xmax"].blocks["line"][:-1]})}
        return change(box, patches=patches)
    elif what == "stray":
        faces = np.concatenate([box.patches["xmax"].blocks["line"], quads[20:21, :2]])
        return change(box, patches={**box.patches, "xmax": PatchFaces({"line": faces})})
    elif what == "twice":
        faces = np.concatenate([box.patches["xmax"].blocks["line"], box.patches["xmin"].blocks["line"][:1]])
        return change(box, patches={**box.patches, "xmax": PatchFaces({"line": faces})})
    return change(box, cells={"quad": quads}, points=points)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("repeated", r"quad element 35 at \(.*\): degenerate: node 40 is repeated"),
        ("flat", "degenerate: its area is"),
        ("infinite", r"node 48: its coordinates \(inf, 1\) are not finite"),
        ("orphan", r"node 49 at \(3, 3\) belongs to no cell"),
        ("third", "a face is shared by the cells"),
        ("patch", "missing patch: 1 boundary faces belong to no patch, one of them has the nodes 41, 48"),
        ("stray", "face 6 of patch 'xmax' is not a boundary face, or is listed twice"),
        ("twice", "face 6 of patch 'xmax' is not a boundary face, or is listed twice"),
    ],
)
def test_broken_slices_are_found(tmp_path: Path, what: str, words: str) -> None:
    path = tmp_path / "broken.vtkhdf"
    write(path, broken(what), patches=True)
    raises_on_all(3, lambda c: fl.mesh.read(path, c), words)


def test_three_cells_at_a_face_are_found_without_a_check_too() -> None:
    box = box2d(6, 6)
    quads = np.concatenate([box.cells["quad"], box.cells["quad"][14:15], box.cells["quad"][14:15]])
    raises_on_all(2, lambda c: fl.mesh.bind(change(box, cells={"quad": quads}), c), "a face is shared by the cells")


def test_node_numbers_out_of_range_are_found() -> None:
    box = box2d(4, 4)
    quads = box.cells["quad"].copy()
    quads[-1, 2] = 99
    words = r"quad element 15: node 99 is outside 0 \.\.\. 24"
    raises_on_all(3, lambda c: fl.mesh.bind(change(box, cells={"quad": quads}), c), words)


def test_slices_of_root_are_not_the_whole() -> None:
    data = box2d(30, 20)
    sizes = run_threads(4, lambda comm: _held(comm, data))
    assert [points for points, _ in sizes] == [162, 163, 163, 163]
    assert [cells for _, cells in sizes] == [150] * 4


def _held(comm: Comm, data: MeshData) -> tuple[int, int]:
    part = as_slice(comm, None if comm.rank else data)
    assert not np.shares_memory(part.points, data.points)
    return len(part.points), len(part.cells["quad"])


def test_cells_without_a_common_face() -> None:
    box = box2d(5, 1)
    data = change(box, cells={"quad": box.cells["quad"][::2]}, patches={})
    whole = fl.mesh.bind(data, fl.Context("reference"))
    assert whole.faces.size == 0
    parts = [mesh.part for mesh in distributed(3, lambda c: fl.mesh.bind(data, c))]
    assert_parts_fit(parts, whole)
    assert [part.part("cells").owned for part in parts] == [1, 1, 1]


def test_more_ranks_than_cells() -> None:
    with pytest.raises(DatError, match="'cells' has 4 elements, too few for 5 ranks: use at most 4"):
        distributed(5, lambda c: fl.mesh.bind(box2d(2, 2), c))


def test_slices_that_are_none() -> None:
    """Nothing, a whole mesh, and slices of different meshes: every rank ends."""
    def attempt(given: Callable[[Comm], Any]) -> None:
        run_threads(2, lambda comm: distribute_mesh(given(comm), comm))

    with pytest.raises(MeshError, match=r"each rank of several gives a slice of a mesh, .* not NoneType"):
        attempt(lambda comm: None)
    with pytest.raises(MeshError, match=r"each rank of several gives a slice of a mesh, .* not MeshData"):
        attempt(lambda comm: box2d(4, 4))
    with pytest.raises(CommError, match="the slices of the ranks are not those of one table"):
        run_threads(2, lambda comm: distribute(airfoil_slice(6, 8 + comm.rank, comm.rank, 2), comm))
