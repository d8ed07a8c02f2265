from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fe.cells.dofs import Dofs, lagrange_dofs
from fluxloom.fe.cells.elements import CELLS, MAX_ORDER, Lagrange
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.elements import ELEMENTS
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity

LENGTHS = (2.0, 1.0, 3.0)
SHAPES = ("quad", "triangle", "hexahedron", "tetrahedron")
CASES = [(shape, order) for shape in SHAPES for order in range(1, MAX_ORDER[shape] + 1)]


def box(shape: str, perturb: float = 0.3, sizes: tuple[int, ...] = (3, 4, 2)) -> MeshData:
    """A box of one shape of cell; its patches are the sides of LENGTHS."""
    kind = CELLS[shape]
    if ELEMENTS[kind].dimension == 2:
        return box2d(sizes[0], sizes[1], LENGTHS[:2], kind, perturb=perturb)
    return box3d(sizes[0], sizes[1], sizes[2], LENGTHS, kind, perturb=perturb)


@cache
def rotations(shape: str) -> np.ndarray:
    """The numberings of the corners made by the affine maps of a cell to itself that keep its orientation."""
    corners, found = Lagrange(shape, 1).points, []
    for chosen in permutations(corners, corners.shape[1] + 1):  # where the origin and the ends of the axes go
        axes = np.array(chosen[1:]) - chosen[0]
        distance = np.abs((chosen[0] + corners @ axes)[:, None] - corners).sum(axis=2)
        if (distance.min(axis=1) < 1e-12).all() and np.linalg.det(axes) > 0.5:
            found.append(distance.argmin(axis=1))
    return np.array(found)


def renumbered(mesh: MeshData, shape: str, seed: int = 1) -> MeshData:
    """The same mesh with points and cells in another order, and cells that begin at other corners."""
    random = np.random.default_rng(seed)
    number = random.permutation(mesh.n_points).astype(np.int32)
    points = np.empty_like(mesh.points)
    points[number] = mesh.points
    block, turns = mesh.cells[CELLS[shape]], rotations(shape)
    block = number[block[random.permutation(len(block))]]
    block = np.take_along_axis(block, turns[random.integers(len(turns), size=len(block))], axis=1)
    patches = {
        name: PatchFaces({kind: number[random.permutation(faces)] for kind, faces in patch.blocks.items()})
        for name, patch in mesh.patches.items()
    }
    return replace(mesh, points=points, cells={CELLS[shape]: block}, patches=patches)


def places(mesh: MeshData, dofs: Dofs) -> np.ndarray:
    """The place of each dof as each of its cells sees it."""
    nodes = mesh.cells[CELLS[dofs.element.shape]]
    return Lagrange(dofs.element.shape, 1).values(dofs.element.points) @ mesh.points[nodes]


def check_places(mesh: MeshData, dofs: Dofs) -> None:
    """Each cell sees its dofs where they are, each dof has a cell, and no two are at one place."""
    np.testing.assert_allclose(dofs.points[dofs.cells], places(mesh, dofs), rtol=0, atol=1e-13)
    assert np.array_equal(np.unique(dofs.cells), np.arange(dofs.size))
    assert len(np.unique(dofs.points.round(9), axis=0)) == dofs.size


@pytest.mark.parametrize(("shape", "count"), [("quad", 4), ("triangle", 3), ("hexahedron", 24), ("tetrahedron", 12)])
def test_rotations_are_all(shape: str, count: int) -> None:
    found = rotations(shape)
    assert len(found) == len(np.unique(found, axis=0)) == count


@pytest.mark.parametrize(("shape", "order"), CASES)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_cells_agree_on_places(shape: str, order: int, seed: int | None) -> None:
    mesh = box(shape) if seed is None else renumbered(box(shape), shape, seed)
    dofs = lagrange_dofs(mesh, order)
    assert dofs.element == Lagrange(shape, order)
    assert dofs.cells.dtype == np.int32
    assert dofs.points.dtype == np.float64
    check_places(mesh, dofs)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_every_turn_of_a_shared_face(order: int) -> None:
    mesh = box("hexahedron", sizes=(2, 1, 1))
    block = mesh.cells["hexahedron"]
    shared = np.intersect1d(*block)
    for turned in permutations(shared):
        number = np.arange(mesh.n_points, dtype=np.int32)
        number[shared] = turned
        points = np.empty_like(mesh.points)
        points[number] = mesh.points
        other = MeshData(points, {"hexahedron": number[block]})
        dofs = lagrange_dofs(other, order)
        check_places(other, dofs)
        assert len(np.intersect1d(*dofs.cells)) == (order + 1) ** 2


@pytest.mark.parametrize(("shape", "order"), CASES)
def test_size_by_euler(shape: str, order: int) -> None:
    mesh = renumbered(box(shape), shape)
    dofs, inner, kind = lagrange_dofs(mesh, order), order - 1, ELEMENTS[CELLS[shape]]
    boundary = sum(len(patch) for patch in mesh.patches.values())
    points, cells = mesh.n_points, mesh.n_cells
    if kind.dimension == 2:  # V - E + F = 1 on a disk
        expected = points + inner * (points + cells - 1) + (inner**2 * cells if shape == "quad" else 0)
    else:  # V - E + F - C = 1 in a ball, and each inner face has two cells
        faces = (len(kind.faces) * cells + boundary) // 2
        expected = points + inner * (points + faces - cells - 1)
        expected += inner**2 * faces + inner**3 * cells if shape == "hexahedron" else 0
    assert dofs.size == expected
    assert dofs.size == np.prod([order * n + 1 for n in (3, 4, 2)[: kind.dimension]])


@pytest.mark.parametrize(("shape", "order"), CASES)
def test_dofs_on_patches(shape: str, order: int) -> None:
    mesh = renumbered(box(shape), shape)
    dofs = lagrange_dofs(mesh, order)
    on_side = {
        "xyz"[axis] + name: np.isclose(dofs.points[:, axis], value, rtol=0, atol=1e-12)
        for axis in range(mesh.dimension)
        for name, value in (("min", 0.0), ("max", LENGTHS[axis]))
    }
    assert set(on_side) == set(dofs.patches)
    for name, expected in on_side.items():
        assert np.array_equal(dofs.on([name]), expected), name
        assert np.array_equal(dofs.patches[name], np.flatnonzero(expected)), name
    # The diagonal of a corner has its ends on two sides, and no other point.
    assert np.array_equal(dofs.on(["xmin", "ymax"]), on_side["xmin"] | on_side["ymax"])
    assert np.array_equal(dofs.on(list(on_side)), np.any(list(on_side.values()), axis=0))
    assert not dofs.on([]).any()
    assert np.array_equal(dofs.on("xmin"), on_side["xmin"])


@pytest.mark.parametrize(("shape", "order"), CASES)
def test_polynomials_are_exact_on_affine_cells(shape: str, order: int) -> None:
    mesh = renumbered(box(shape, perturb=0.0), shape)
    d, random = mesh.dimension, np.random.default_rng(3)
    mesh = mesh.with_points(mesh.points @ (np.eye(d) + 0.3 * random.uniform(-1, 1, (d, d))))
    inside = random.dirichlet(np.ones(d + 1), 5)[:, :d]
    dofs = lagrange_dofs(mesh, order)
    where = Lagrange(shape, 1).values(inside) @ mesh.points[mesh.cells[CELLS[shape]]]

    def error(degree: int) -> float:
        exponents = [e for e in product(range(degree + 1), repeat=d) if sum(e) <= degree]
        weights = dict(zip(exponents, random.uniform(0.5, 1, len(exponents)), strict=True))

        def field(x: np.ndarray) -> np.ndarray:
            return np.sum([w * np.prod(x ** np.array(e), axis=-1) for e, w in weights.items()], axis=0)

        exact, nodal = field(where), field(dofs.points)
        return np.abs(nodal[dofs.cells] @ dofs.element.values(inside).T - exact).max() / np.abs(exact).max()

    assert error(order) < 1e-13
    assert error(order + 1) > 1e-7  # one degree more is not in the space


def test_numbers_follow_points_edges_faces_cells() -> None:
    mesh = renumbered(box("hexahedron"), "hexahedron")
    dofs, graph, block = lagrange_dofs(mesh, 3), connectivity(mesh), mesh.cells["hexahedron"]
    assert np.array_equal(dofs.cells[:, :8], block)
    assert np.array_equal(dofs.points[: mesh.n_points], mesh.points)
    low, high = mesh.points[graph.edges[:, 0]], mesh.points[graph.edges[:, 1]]
    thirds = np.stack([(2 * low + high) / 3, (low + 2 * high) / 3], axis=1).reshape(-1, 3)
    ends = mesh.n_points + np.cumsum([len(thirds), 4 * graph.n_faces])
    np.testing.assert_allclose(dofs.points[mesh.n_points : ends[0]], thirds, rtol=0, atol=1e-14)
    nodes = np.concatenate([graph.interior_nodes.indices, graph.boundary_nodes.indices]).reshape(-1, 4)
    middles = dofs.points[ends[0] : ends[1]].reshape(-1, 4, 3).mean(axis=1)
    np.testing.assert_allclose(middles, mesh.points[nodes].mean(axis=1), rtol=0, atol=1e-14)
    assert np.array_equal(dofs.cells[:, -8:].ravel(), np.arange(ends[1], dofs.size))


def test_mesh_without_patches() -> None:
    mesh = box("triangle")
    dofs = lagrange_dofs(MeshData(mesh.points, mesh.cells), 1)
    assert np.array_equal(dofs.cells, mesh.cells["triangle"])
    with pytest.raises(MeshError, match=r"no patch 'xmin' \(patches: none\)"):
        dofs.on(["xmin"])


def test_refuses_other_cells() -> None:
    quads = box("quad")
    first, rest = quads.cells["quad"][:1], quads.cells["quad"][1:]
    mixed = MeshData(quads.points, {"quad": rest, "triangle": first[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)})
    with pytest.raises(MeshError, match=r"cells of one kind .* the mesh has quad and triangle; divide"):
        lagrange_dofs(mixed, 1)
    with pytest.raises(MeshError, match="the mesh has prism"):
        lagrange_dofs(box3d(1, 1, 1, kind="prism"), 1)
    with pytest.raises(MeshError, match="the mesh has no cells"):
        lagrange_dofs(MeshData(quads.points, {}), 1)
    empty = MeshData(quads.points, {**quads.cells, "triangle": np.empty((0, 3), dtype=np.int32)})
    assert lagrange_dofs(empty, 1).element.shape == "quad"


def test_refuses_points_without_cells() -> None:
    mesh = box("triangle")
    points = np.concatenate([mesh.points, [[5.0, 5.0], [6.0, 5.0]]])
    with pytest.raises(MeshError, match=rf"no cell uses point {mesh.n_points} \(2 such points\); remove"):
        lagrange_dofs(replace(mesh, points=points), 2)


def test_refuses_orders_patches_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = box("tetrahedron")
    with pytest.raises(SolverError, match="orders 1 to 2, not 3"):
        lagrange_dofs(mesh, 3)
    with pytest.raises(MeshError, match=r"no patch 'xmni'.*'xmin'\?.* \(patches: xmin, xmax"):
        lagrange_dofs(mesh, 1).on(["xmax", "xmni"])
    diagonal = PatchFaces({"triangle": mesh.cells["tetra"][:1, [0, 1, 3]]})  # through the middle of a box
    with pytest.raises(MeshError, match=r"'wall', triangle 0 with the nodes .* is not a boundary face"):
        lagrange_dofs(replace(mesh, patches={"wall": diagonal}), 2)
    size = lagrange_dofs(mesh, 2).size
    monkeypatch.setattr("fluxloom.fe.cells.dofs._MOST", size - 1)
    with pytest.raises(MeshError, match=rf"order 2 has {size} degrees of freedom.* 32 bits"):
        lagrange_dofs(mesh, 2)
