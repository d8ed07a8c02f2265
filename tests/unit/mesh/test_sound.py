"""Meshes that do not fill space once are refused, with number and place; those that look odd and are sound are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import FluxloomError, MeshError
from fluxloom.fe.edges.operators import EdgeOperators
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.shallow.geometry import ShallowGeometry
from fluxloom.mesh import bind, box2d, box3d, check, orient, quality
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.mesh.geometry.dual import dual

CONTEXT = fl.Context("reference")

TAKERS: Mapping[str, Callable[[MeshData], object]] = {
    "check": check,
    "volumes": control_volumes,
    "elements": lambda mesh: LagrangeSpace.on(bind(mesh, CONTEXT), 1),
    "faces": lambda mesh: bind(mesh, CONTEXT).face_normals,
    "points": lambda mesh: point_mesh(CONTEXT, mesh),
    "edges": lambda mesh: EdgeOperators.of(CONTEXT, mesh),
    "water": lambda mesh: ShallowGeometry(bind(mesh, CONTEXT)),
}
"""What takes a mesh: of control volumes, elements, loops of the user, the edge solvers and shallow water."""


def takers(mesh: MeshData) -> list[str]:
    """Return those that take cells of this kind."""
    kinds, found = set(mesh.cells), ["check", "volumes", "faces"]
    if mesh.polyhedra is None and len(kinds) == 1 and kinds <= {"triangle", "quad", "tetra", "hexahedron"}:
        found.append("elements")
    if kinds in ({"triangle"}, {"tetra"}):
        found.append("points")
    return [*found, "water"] if mesh.dimension == 2 else found


def faces(kind: str, rows: list[list[int]]) -> PatchFaces:
    return PatchFaces({kind: np.array(rows, dtype=np.int32)})


def moved(mesh: MeshData, node: int, place: list[float]) -> MeshData:
    points = mesh.points.copy()
    points[node] = place
    return mesh.with_points(points)


def crossed(mesh: MeshData, cell: int, order: list[int]) -> MeshData:
    """Return a mesh with the nodes of a cell in another order."""
    ((kind, block),) = mesh.cells.items()
    block = block.copy()
    block[cell] = block[cell][order]
    return replace(mesh, cells={kind: block})


def middle(mesh: MeshData) -> int:
    """Return the node nearest to the middle."""
    return int(np.argmin(np.linalg.norm(mesh.points - mesh.points.mean(axis=0), axis=1)))


FOLDED = {
    "quad": moved(box2d(4, 4), 12, [0.9, 0.9]),
    "quad, stretched": moved(box2d(5, 3, (5.0, 0.003)), 8, [3.5, 0.00115]),
    "triangle": moved(box2d(4, 4, kind="triangle"), 12, [0.9, 0.85]),
    "polygon": moved(dual(box2d(6, 6, kind="triangle")), 20, [0.93, 0.07]),
    "tetra": moved(box3d(3, 3, 3, kind="tetra"), 21, [0.9, 0.85, 0.95]),
    "hexahedron": moved(box3d(2, 2, 2), 13, [1.3, 1.4, 1.2]),
    "prism": moved(box3d(2, 2, 2, kind="prism"), 13, [1.2, 1.1, 1.3]),
}
"""A node beyond the cells round it: some of them lie over others."""

CROSSED = {
    "quad": crossed(moved(box2d(4, 4), 6, [0.2, 0.15]), 5, [0, 2, 1, 3]),
    "quad, other": crossed(box2d(3, 3, (1.0, 2.0), perturb=0.2), 4, [0, 1, 3, 2]),
    "hexahedron": crossed(box3d(3, 3, 3, perturb=0.1), 13, [0, 1, 3, 2, 4, 5, 6, 7]),
    "hexahedron, two": crossed(box3d(3, 3, 3), 13, [4, 1, 2, 3, 0, 5, 6, 7]),
}
"""Cells whose nodes are in a wrong order; patches and neighbours do not fit them either."""


@pytest.mark.parametrize("name", FOLDED)
def test_a_node_beyond_the_cells_round_it(name: str) -> None:
    mesh = FOLDED[name]
    for taker in takers(mesh):
        with pytest.raises(MeshError, match=r"element \d+( at \(|: inverted|: degenerate)"):
            TAKERS[taker](mesh)
    if quality(mesh).negative_volumes:
        with pytest.raises(MeshError, match=r"element \d+ at \(.*inverted: it lies over its neighbour"):
            orient(mesh)


def test_turning_a_cell_round_does_not_hide_that_it_lies_over_others() -> None:
    """What a reader did that turns cells: the volumes are positive then, and their sum is too large."""
    mesh = FOLDED["quad"]
    block = mesh.cells["quad"].copy()
    block[10] = block[10][::-1]
    mended = replace(mesh, cells={"quad": block})
    assert quality(mended).negative_volumes == 0
    for taker in takers(mended):
        with pytest.raises(MeshError, match=r"quad element \d+ at \("):
            TAKERS[taker](mended)
    with pytest.raises(MeshError, match=r"quad element 10 at \(0\.725, 0\.725\): inverted: it lies over its neighbour"):
        control_volumes(mended)


@pytest.mark.parametrize("name", CROSSED)
def test_corners_in_a_wrong_order(name: str) -> None:
    for taker in takers(CROSSED[name]):
        with pytest.raises(MeshError):
            TAKERS[taker](CROSSED[name])


def test_a_quad_that_crosses_itself_by_a_move_is_named() -> None:
    points = np.array([[0, 0], [2, 0], [-0.5, 1], [1, 1]], dtype=float)
    sides = [[0, 1], [1, 2], [2, 3], [3, 0]]
    mesh = MeshData(points, {"quad": np.array([[0, 1, 2, 3]])}, {"all": faces("line", sides)})
    for taker in ("check", "volumes", "faces", "water", "elements"):
        with pytest.raises(MeshError, match=r"quad element 0 at \(0\.625, 0\.5\): tangled: its sides cross"):
            TAKERS[taker](mesh)


CONCAVE = {
    "quad": moved(box2d(4, 4), 12, [0.3, 0.3]),
    "quad, other": moved(box2d(4, 4, (2.0, 1.0), perturb=0.1), 12, [1.32, 0.67]),
    "hexahedron": moved(box3d(2, 2, 2), 13, [0.9, 0.9, 0.9]),
    "hexahedron, other": moved(box3d(2, 2, 2, (1.0, 1.0, 0.01)), 13, [0.08, 0.12, 0.0009]),
}


@pytest.mark.parametrize("name", CONCAVE)
def test_concave_cells(name: str) -> None:
    """Elements refuse them; control volumes take them and count them, and are exact for linear functions."""
    mesh = CONCAVE[name]
    report = check(mesh)
    assert report.concave >= 1
    assert f"concave cells      {report.concave}, the first is cell {report.concave_first}" in str(report)
    with pytest.raises(MeshError, match=r"element \d+ at \(.*\): concave or tangled: det J changes its sign"):
        TAKERS["elements"](mesh)
    cv = control_volumes(mesh)
    slope = np.array([2.0, -1.0, 0.5])[: mesh.dimension]
    flux = np.zeros((cv.cells, mesh.dimension))  # Gauss: the integral of the normal times a linear function
    places = cv.centres[cv.faces[:, 0]] + cv.arms
    terms = cv.areas * (places @ slope)[:, None]
    np.add.at(flux, cv.faces[:, 0], terms)
    np.subtract.at(flux, cv.faces[: cv.interior, 1], terms[: cv.interior])
    if mesh.dimension == 2:  # warped faces of space are planar here
        np.testing.assert_allclose(flux / cv.volumes[:, None], np.tile(slope, (cv.cells, 1)), atol=1e-12)
    assert cv.volumes.sum() == pytest.approx(np.prod(np.ptp(mesh.points, axis=0)))


def hanging(kind: str) -> MeshData:
    """Return a square with a cell beside two smaller ones, or a box of tetrahedra with a node within a face."""
    if kind == "tetra":
        points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1], [0.3, 0.3, 0]], dtype=float)
        below = [[a, b, 5, 4] for a, b in ((1, 0), (2, 1), (0, 2))]
        sides = [[0, 1, 3], [1, 2, 3], [0, 3, 2], [1, 0, 4], [2, 1, 4], [0, 2, 4]]
        return orient(MeshData(points, {"tetra": np.array([[0, 1, 2, 3], *below])}, {"all": faces("triangle", sides)}))[
            0
        ]
    points = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [1, 0.5], [2, 0.5]], dtype=float)
    lines = [[0, 1], [1, 2], [2, 7], [7, 5], [5, 4], [4, 3], [3, 0]]
    cells = [[0, 1, 4, 3], [1, 2, 7, 6], [6, 7, 5, 4]]
    if kind == "triangle":
        cells = [part for a, b, c, d in cells for part in ([a, b, c], [a, c, d])]
    return MeshData(points, {kind: np.array(cells)}, {"all": faces("line", lines)})


@pytest.mark.parametrize("kind", ["quad", "triangle", "tetra"])
@pytest.mark.parametrize("listed", ["none", "outer", "all"])
def test_hanging_nodes(kind: str, listed: str) -> None:
    mesh = hanging(kind)
    if listed == "none":
        mesh = replace(mesh, patches={})
    if listed == "all":  # even where someone made the inner faces a patch
        inner = faces("line", [[1, 4], [6, 1], [4, 6]])
        if kind == "tetra":
            inner = faces("triangle", [[0, 2, 1], [0, 1, 5], [1, 2, 5], [2, 0, 5]])
        mesh = replace(mesh, patches={**mesh.patches, "inner": inner})
    node = 5 if kind == "tetra" else 6
    for taker in takers(mesh):
        with pytest.raises(MeshError, match=rf"{kind} element 0: hanging node: node {node} at \("):
            TAKERS[taker](mesh)


def test_hanging_nodes_of_hexahedra() -> None:
    """One cell below four."""
    low, high = box3d(1, 1, 1), box3d(2, 2, 1, origin=(0.0, 0.0, 1.0))
    points = np.concatenate([low.points, high.points])
    points, number = np.unique(points, axis=0, return_inverse=True)
    both = np.concatenate([low.cells["hexahedron"], high.cells["hexahedron"] + low.n_points])
    mesh = MeshData(points, {"hexahedron": number.reshape(-1)[both].astype(np.int32)})
    with pytest.raises(MeshError, match=r"hexahedron element 0: hanging node: node \d+ at \(.*\(5 such nodes\)"):
        TAKERS["elements"](mesh)
    with pytest.raises(MeshError, match="hanging node"):
        TAKERS["volumes"](mesh)


def test_a_slit_is_no_hanging_node() -> None:
    """Two sides of a thin wall with nodes at different places are what someone asked for."""
    low, high = box2d(4, 1, (4.0, 1.0)), box2d(3, 1, (4.0, 1.0), origin=(0.0, 1.0))
    points = np.concatenate([low.points, high.points])
    cells = {"quad": np.concatenate([low.cells["quad"], high.cells["quad"] + low.n_points])}
    sides = {
        f"{name} {k}": PatchFaces({"line": side.blocks["line"] + start})
        for k, start, part in ((0, 0, low), (1, low.n_points, high))
        for name, side in part.patches.items()
    }
    mesh = MeshData(points, cells, sides)
    assert check(mesh).concave == 0
    assert control_volumes(mesh).cells == 7


SOUND = {
    **{f"{kind} {perturb}": box2d(6, 6, (1.0, size), kind, perturb=perturb)
       for kind in ("quad", "triangle") for perturb, size in ((0.0, 1.0), (0.2, 1e-3), (0.3, 1.0))},
    **{f"{kind} {perturb}": box3d(4, 4, 4, (1.0, 1.0, size), kind, perturb=perturb)
       for kind in ("hexahedron", "tetra", "prism", "pyramid") for perturb, size in ((0.0, 1.0), (0.2, 1e-3))},
    "aerofoil": naca_mesh("0012", 48, 24, 15.0, 1e-4),
    "aerofoil 1:1000": extrude(naca_mesh("0012", 48, 24, 15.0, 1e-4), np.linspace(0.0, 1e-3, 3)),
    "polygons": dual(box2d(6, 6, kind="triangle", perturb=0.2)),
    "polyhedra": dual(box3d(3, 3, 3, kind="tetra", perturb=0.15)),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_no_false_alarm(name: str) -> None:
    mesh = SOUND[name]
    assert check(mesh).n_cells == mesh.n_cells
    for taker in takers(mesh):
        TAKERS[taker](mesh)


def test_a_twisted_hexahedron_is_sound_until_it_folds() -> None:
    def twisted(degrees: float) -> MeshData:
        mesh = box3d(1, 1, 1, (2.0, 2.0, 1.0), origin=(-1.0, -1.0, 0.0))
        points, angle = mesh.points.copy(), np.radians(degrees)
        top = points[:, 2] > 0.5
        points[top, :2] = points[top, :2] @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        return mesh.with_points(points)

    for degrees in (0.0, 30.0, 80.0):
        for taker in ("check", "volumes", "elements"):
            TAKERS[taker](twisted(degrees))
    bent = moved(twisted(0.0), 7, [-0.95, -0.9, 0.1])  # a corner through the middle of the cell
    with pytest.raises(FluxloomError):
        TAKERS["elements"](bent)


def test_cells_numbered_the_other_way_are_still_turned() -> None:
    """All, or any of them: that faces go round consistently is what tells a mirrored cell from a folded one."""
    for kind, order in (("quad", [0, 3, 2, 1]), ("triangle", [0, 2, 1])):
        mesh = box2d(4, 4, kind=kind, perturb=0.2)
        for some in (slice(None), slice(0, None, 3)):
            block = mesh.cells[kind].copy()
            block[some] = block[some][:, order]
            turned, count = orient(replace(mesh, cells={kind: block}))
            assert count == len(block[some])
            np.testing.assert_array_equal(np.sort(turned.cells[kind]), np.sort(mesh.cells[kind]))
            assert check(turned).volume_total == pytest.approx(1.0)
            assert LagrangeSpace.on(bind(replace(mesh, cells={kind: block}), CONTEXT), 1).rows.size == mesh.n_points


def test_cells_without_a_positive_volume_are_no_control_volumes() -> None:
    mesh = box2d(3, 3)
    clockwise = replace(mesh, cells={"quad": mesh.cells["quad"][:, ::-1]})
    for taker in ("volumes", "water"):
        with pytest.raises(MeshError, match=r"quad element 0 at \(.*inverted: its area is -0\.111111 \(9 of 9 cells\)"):
            TAKERS[taker](clockwise)
