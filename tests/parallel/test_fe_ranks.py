"""Finite elements on several ranks: degrees of freedom, products and solutions are those of one rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.declare.maps import RaggedMap
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.fe.cells.dofs import lagrange_dofs, shared_dofs
from fluxloom.fe.cells.quadrature import gauss
from fluxloom.fe.edges.operators import EdgeOperators, shared_edge_operators
from fluxloom.fe.edges.point_mesh import PointMesh, point_mesh
from fluxloom.fe.global_matrix import GlobalFormat, GlobalMatrix
from fluxloom.fe.poisson import CellOperator, LocalMatrices, MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.linalg import ConjugateGradient, Jacobi, SparseMatrix, Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import Mesh, bind
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.part import MeshPart
from fluxloom.mesh.ranks.slices import as_slice
from tests.parallel.launch import mpiexec
from tests.unit.fe.test_dofs import renumbered

Array = npt.NDArray[Any]
Pieces = list[tuple[Array, Array]]

MESHES: dict[str, Callable[[], MeshData]] = {
    "quad": lambda: box2d(6, 4, perturb=0.3),
    "triangle": lambda: box2d(3, 3, kind="triangle", perturb=0.3),
    "hexahedron": lambda: box3d(3, 4, 3, axes=(None, lambda y: y**1.2, None), perturb=0.3),
    "tetrahedron": lambda: box3d(3, 2, 3, kind="tetra", lengths=(1.0, 2.0, 0.5)),
}
FIXED = ["xmin", "ymax"]
STOP = Stop(rtol=1e-10)
GLOBAL = Schedule(deterministic="global")


@cache
def mesh_of(shape: str) -> MeshData:
    """Return a small mesh whose points and cells are in no order, its cells turned in many ways."""
    return renumbered(MESHES[shape](), shape)


def part_of(comm: Comm, shape: str, method: Any = "rcb", **options: Any) -> MeshPart:
    """Return this rank's part of a mesh that rank 0 makes."""
    return distribute_mesh(as_slice(comm, mesh_of(shape) if comm.rank == 0 else None), comm, method=method, **options)


def joined(pieces: Pieces, total: int) -> Array:
    """Return values of all ranks in the order of the whole; each element has one owner."""
    numbers = np.concatenate([piece[0] for piece in pieces])
    assert np.array_equal(np.sort(numbers), np.arange(total))
    values = np.concatenate([piece[1] for piece in pieces])
    out = np.empty_like(values)
    out[numbers] = values
    return out


# -------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    ("shape", "order"),
    [*(("quad", p) for p in (1, 2, 4)), ("triangle", 2), ("tetrahedron", 1), ("tetrahedron", 2),
     *(("hexahedron", p) for p in (1, 2, 4))],
)  # fmt: skip
def test_dofs_are_those_of_the_whole_mesh(shape: str, order: int, ranks: int) -> None:
    """Numbers, places, patches and the dofs of all cells that a rank executes; what it owns has all its cells here."""
    whole = lagrange_dofs(mesh_of(shape), order)

    def rank(comm: Comm) -> tuple[Array, Array, dict[str, Array]]:
        part = part_of(comm, shape, "block" if ranks == 3 else "rcb")
        dofs, cells = shared_dofs(part, order), part.part("cells")
        assert dofs.part is not None
        numbers, owned = dofs.part.numbers, dofs.part.owned
        assert np.array_equal(numbers[dofs.cells], whole.cells[cells.numbers[: cells.executed]])
        assert (dofs.cells[: cells.inside] < owned).all()
        assert dofs.cells[cells.inside :].max() >= owned
        assert np.unique(dofs.cells).size == dofs.part.stored
        inside = np.unique(dofs.cells[cells.inside :])
        assert np.array_equal(inside[inside < owned], np.arange(dofs.part.inside, owned))
        around = np.bincount(dofs.cells.reshape(-1), minlength=dofs.part.stored)[:owned]
        assert np.array_equal(around, np.bincount(whole.cells.reshape(-1))[numbers[:owned]])
        on = {name: numbers[:owned][dofs.on([name])] for name in whole.patches}
        return numbers[:owned], dofs.points, on

    found = run_threads(ranks, rank)
    points = joined([(numbers, values) for numbers, values, _ in found], whole.size)
    assert np.abs(points - whole.points).max() < 1e-15
    for name, dofs in whole.patches.items():
        assert np.array_equal(np.sort(np.concatenate([on[name] for *_, on in found])), dofs)


# -------------------------------------------------------------------------------------- Poisson's equation
def solved(mesh: Mesh, order: int, make: Callable[..., CellOperator]) -> dict[str, Any]:
    """Return a product, a load and the solution with some values prescribed, of the dofs that the rank owns."""
    space = LagrangeSpace.on(mesh, order)
    context, dofs = space.context, space.dofs
    middle = (np.prod(space.places(), axis=2) + 1.0).mean(axis=1)
    operator = make(space, context.dat(mesh.cells, middle, "kappa"), dofs.on(FIXED))
    x, y, b, u, g = (context.dat(space.rows, name=name) for name in "xybug")
    x.write(np.cos(9.0 * dofs.points).sum(axis=1))
    g.write(np.sin(dofs.points).prod(axis=1))
    dot = context.scalar(0.0, "dot")
    at = context.dat(mesh.cells, np.exp(space.places()).sum(axis=2), "f")
    for step in (*operator.product_dot(x, y, dot), *operator.load(at, b, g)):
        step()
    status = ConjugateGradient(operator, b, u, preconditioner=operator.jacobi(), stop=STOP).solve()
    norm = space.with_rule(gauss(dofs.element.shape, order + 2)).error(u, lambda p: p[:, 0])
    numbers = np.arange(dofs.size) if dofs.part is None else dofs.part.numbers[: dofs.size]
    return {"numbers": numbers, "y": y.read(), "b": b.read(), "u": u.read(), "dot": float(dot.value),
            "norm": norm, "history": status.history, "converged": status.converged}  # fmt: skip


@cache
def alone(shape: str, order: int, make: Callable[..., CellOperator]) -> dict[str, Any]:
    """Return what one rank finds, in plain Python."""
    return solved(bind(mesh_of(shape), fl.Context("reference")), order, make)


def shared(comm: Comm, shape: str, order: int, make: Callable[..., CellOperator]) -> dict[str, Any]:
    """Return what a rank of several finds."""
    maps = ("cell_nodes", "boundary_nodes") if shape != "hexahedron" else None
    context = fl.Context("cpu", threads=1, tuning=False, comm=comm)
    return solved(bind(part_of(comm, shape, maps=maps), context), order, make)


def check_iterations(found: list[dict[str, Any]], want: dict[str, Any]) -> None:
    """Check the residuals of conjugate gradients.

    Rounding differs by the order of sums and grows: after 60 iterations the third digit of the residual does, on one
    rank with another order of sums too, and the last iteration may come one earlier or later.
    """
    for piece in found:
        assert np.array_equal(piece["history"], found[0]["history"])
        first = want["history"][:20]
        np.testing.assert_allclose(piece["history"][:20], first, rtol=1e-9, atol=1e-12 * first[0])
        assert abs(len(piece["history"]) - len(want["history"])) <= (len(want["history"]) > 60)


def check(found: list[dict[str, Any]], want: dict[str, Any]) -> None:
    """Check what several ranks found against one."""
    assert want["converged"]
    for name in ("y", "b", "u"):
        got = joined([(piece["numbers"], piece[name]) for piece in found], want["y"].size)
        assert np.abs(got - want[name]).max() < (1e-8 if name == "u" else 1e-13) * np.abs(want[name]).max(), name
    check_iterations(found, want)
    for piece in found:
        assert piece["dot"] == pytest.approx(want["dot"], rel=1e-12)
        assert piece["norm"] == pytest.approx(want["norm"], rel=1e-8)


LONG = [("quad", 2, LocalMatrices), ("tetrahedron", 2, LocalMatrices), ("hexahedron", 1, LocalMatrices),
        ("quad", 3, MatrixFree), ("triangle", 2, MatrixFree), ("hexahedron", 2, MatrixFree)]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "order", "make", "ranks"),
    [("quad", 1, LocalMatrices, 3), *(pytest.param(*given, 3, marks=pytest.mark.long) for given in LONG)],
)  # fmt: skip
def test_solutions_are_those_of_one_rank(shape: str, order: int, make: Callable[..., CellOperator], ranks: int) -> None:
    """Products, loads and sums differ by rounding; as many iterations lead to the same solution."""
    check(run_threads(ranks, lambda comm: shared(comm, shape, order, make)), alone(shape, order, make))


def assembled(mesh: Mesh, order: int, format: GlobalFormat, recipe: Any) -> dict[str, Any]:
    """Return a product and a solution with a matrix that was assembled twice, and the entries of its rows."""
    space = LagrangeSpace.on(mesh, order)
    context, dofs = space.context, space.dofs
    kappa = context.dat(mesh.cells, np.full(mesh.cells.size, 7.0), "kappa")
    operator = GlobalMatrix(space, kappa, dofs.on(FIXED), format=format)
    kappa.write(space.places().mean(axis=(1, 2)) + 1.0)
    operator.assemble()
    x, y, b, u, f = (context.dat(space.rows, name=name) for name in "xybuf")
    x.write(np.cos(9.0 * dofs.points).sum(axis=1))
    f.write(np.exp(dofs.points).sum(axis=1))
    for step in (operator.matrix.product(x, y), *operator.load(f, b)):
        step()
    status = ConjugateGradient(operator.matrix, b, u, preconditioner=recipe, stop=STOP).solve()
    pattern, values = operator.matrix.pattern, operator.matrix.values.read()
    numbers = np.arange(dofs.size) if dofs.part is None else dofs.part.numbers
    rows = np.repeat(np.arange(dofs.size), np.diff(pattern.offsets))
    dense = np.zeros((dofs.size, pattern.target.total))
    np.add.at(dense, (rows, numbers[pattern.indices]), values)
    return {"numbers": numbers[: dofs.size], "matrix": dense, "y": y.read(), "u": u.read(),
            "history": status.history, "entries": operator.matrix.entries}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "order", "format"),
    [("quad", 1, "csr"), *(pytest.param(*given, marks=pytest.mark.long) for given in (
        ("quad", 1, "lazy"), ("quad", 1, "sliced"), ("quad", 3, "ell"), ("tetrahedron", 2, "csr"),
        ("hexahedron", 2, "csr")))],
)  # fmt: skip
def test_global_matrices_are_those_of_one_rank(shape: str, order: int, format: GlobalFormat) -> None:
    """Rows are complete: no rank adds twice, none leaves something out; as many iterations lead to the same."""
    want = assembled(bind(mesh_of(shape), fl.Context("reference")), order, format, Jacobi())

    def rank(comm: Comm) -> dict[str, Any]:
        context = fl.Context("cpu", threads=1, tuning=False, comm=comm)
        return assembled(bind(part_of(comm, shape), context), order, format, Jacobi())

    found = run_threads(3, rank)
    assert sum(piece["entries"] for piece in found) == want["entries"]
    check_iterations(found, want)
    for name in ("matrix", "y", "u"):
        got = joined([(piece["numbers"], piece[name]) for piece in found], len(want["u"]))
        assert np.abs(got - want[name]).max() < (1e-8 if name == "u" else 1e-13) * np.abs(want[name]).max(), name


def fluxed(mesh: Mesh, order: int) -> dict[str, Any]:
    """Return what flows in through sides: a number, a function, and one value for each face."""
    space = LagrangeSpace.on(mesh, order)
    context, numbers = space.context, np.arange(space.dofs.size)
    operator = MatrixFree(space, lambda x: 1.0 + x[:, 0], space.dofs.on(FIXED))
    b = context.dat(space.rows, space.dofs.points[:, 1], "b")
    middle = space.sides.places().mean(axis=(1, 2))
    each = context.dat(mesh.boundary, np.where(middle > 0.4, middle, 2.0), "each")
    steps = operator.flux("xmax", 2.0, b) + operator.flux(["ymin", "xmin"], lambda x: np.exp(x).sum(axis=1), b)
    for step in steps + operator.flux(list(mesh.patches), each, b):
        step()
    numbers = numbers if space.dofs.part is None else space.dofs.part.numbers[: space.dofs.size]
    cells = np.arange(mesh.cells.size) if mesh.part is None else mesh.part.part("cells").numbers[: mesh.cells.size]
    assert isinstance(operator.kappa, fl.Dat)
    return {"numbers": numbers, "b": b.read(), "cells": cells, "kappa": operator.kappa.read()}


@pytest.mark.parametrize(
    ("shape", "order", "ranks"),
    [("quad", 2, 2), *(pytest.param(*given, marks=pytest.mark.long) for given in (
        ("quad", 4, 3), ("triangle", 2, 2), ("tetrahedron", 2, 3), ("hexahedron", 2, 2), ("hexahedron", 3, 3)))],
)  # fmt: skip
def test_fluxes_are_those_of_one_rank(shape: str, order: int, ranks: int) -> None:
    """Each face adds to all its degrees of freedom once, whoever owns it and them."""
    want = fluxed(bind(mesh_of(shape), fl.Context("reference")), order)

    def rank(comm: Comm) -> dict[str, Any]:
        return fluxed(bind(part_of(comm, shape), fl.Context("cpu", threads=1, tuning=False, comm=comm)), order)

    found = run_threads(ranks, rank)
    for over, name in (("numbers", "b"), ("cells", "kappa")):
        got = joined([(piece[over], piece[name]) for piece in found], want[name].size)
        assert np.abs(got - want[name]).max() < 1e-13 * np.abs(want[name]).max()


def test_sides_on_ranks_say_what_is_missing() -> None:
    """A map that the mesh was divided without, and a diffusivity that is wrong on one rank, are errors of all."""

    def few(comm: Comm) -> None:
        maps = ("cell_nodes", "boundary_nodes")
        mesh = bind(part_of(comm, "quad", maps=maps), fl.Context("reference", comm=comm))
        assert LagrangeSpace.on(mesh, 1).sides

    with pytest.raises(MeshError, match="without the map boundary_cell"):
        run_threads(2, few)

    def wrong(comm: Comm) -> str:
        mesh = bind(part_of(comm, "quad"), fl.Context("reference", comm=comm))
        kappa = np.full(mesh.cells.size, -1.0 if comm.rank else 1.0)
        with pytest.raises(SolverError, match=r"it is -1\.0 in cell 0") as caught:
            MatrixFree(LagrangeSpace.on(mesh, 1), kappa)
        return str(caught.value)

    assert len(set(run_threads(2, wrong))) == 1


# -------------------------------------------------------------------------------------- edge operators
def points_of(comm: Comm, shape: str, device: str = "cpu", method: Any = "rcb") -> PointMesh:
    """Return a mesh that rank 0 makes, divided by its points."""
    context = fl.Context(device, threads=1, tuning=False, comm=comm, schedule=GLOBAL)
    return point_mesh(context, mesh_of(shape) if comm.rank == 0 else None, method=method)


@cache
def whole_edges(shape: str, device: str = "cpu") -> tuple[PointMesh, EdgeOperators]:
    """Return a mesh and its operators on one rank."""
    mesh = point_mesh(fl.Context(device, threads=1, tuning=False, schedule=GLOBAL), mesh_of(shape))
    return mesh, shared_edge_operators(mesh)


def test_points_have_all_their_cells_and_faces() -> None:
    """Cells, faces and areas at owned points are those of the whole mesh; each face and point belongs to one rank."""
    whole = whole_edges("tetrahedron")[0]

    def rank(comm: Comm) -> tuple[Array, Array, dict[str, Any]]:
        mesh = points_of(comm, "tetrahedron")
        owned, numbers = mesh.points.size, mesh.numbers
        near = np.isin(whole.simplices, numbers[:owned]).any(axis=1)
        assert np.array_equal(mesh.cell_numbers, np.flatnonzero(near))
        assert np.array_equal(numbers[mesh.simplices], whole.simplices[near])
        assert np.array_equal(mesh.coordinates, whole.coordinates[numbers])
        areas = {}
        for name, patch in mesh.patches.items():
            want = whole.patch(name)
            touched = np.isin(want.faces, numbers[:owned]).any(axis=1)
            assert np.array_equal(numbers[patch.faces], want.faces[touched])
            same = np.isin(want.points, numbers[patch.points])
            order = np.argsort(numbers[patch.points])
            assert np.array_equal(numbers[patch.points[order]], want.points[same])
            assert np.abs(patch.areas[order] - want.areas[same]).max(initial=0.0) < 1e-15
            areas[name] = (patch.mine.sum(), patch.areas.sum(axis=0))
        back = mesh.gather(mesh.coordinates[:owned])
        assert (back is None) == (comm.rank > 0)
        assert back is None or np.array_equal(back, whole.coordinates)
        return numbers[:owned], mesh.coordinates[:owned], areas

    found = run_threads(3, rank)
    joined([(numbers, values) for numbers, values, _ in found], len(whole.numbers))
    sizes = [len(numbers) for numbers, *_ in found]
    assert max(sizes) - min(sizes) <= 2
    for name, patch in whole.patches.items():
        assert sum(areas[name][0] for *_, areas in found) == len(patch.faces)
        assert np.abs(sum(areas[name][1] for *_, areas in found) - patch.areas.sum(axis=0)).max() < 1e-14


def edge_results(mesh: PointMesh, operators: EdgeOperators) -> dict[str, Any]:
    """Return rows, products of nodes and a solution with a matrix of their pattern, of the points of the rank."""
    context, points, pattern = mesh.context, mesh.points, operators.neighbours
    x = mesh.coordinates[: points.size]
    u = context.dat(points, np.sin(5.0 * x).sum(axis=1), "u")
    v, b, z = (context.dat(points, name=name) for name in "vbz")
    gradient = context.dat(points, name="gradient", shape=(operators.dimension,))
    operators.laplacian(u, v)()
    operators.strong_gradient(u, gradient)()
    values = operators.entries.read()[:, 0]
    rows = np.repeat(np.arange(points.size), np.diff(pattern.offsets))
    matrix = with_diagonal(context, pattern, values, operators.mass.read())
    b.write(np.cos(x).prod(axis=1) * operators.mass.read())
    status = ConjugateGradient(matrix, b, z, preconditioner=Jacobi(), stop=STOP).solve()
    widest = np.bincount(rows, minlength=points.size)
    columns = np.full((points.size, 40), -1)
    packed = np.zeros((points.size, 40, operators.entries.shape[0]))
    place = np.arange(rows.size) - pattern.offsets[rows]
    columns[rows, place], packed[rows, place] = mesh.numbers[pattern.indices], operators.entries.read()
    return {"numbers": mesh.numbers[: points.size], "mass": operators.mass.read(), "width": widest, "columns": columns,
            "packed": packed, "laplacian": v.read(), "gradient": gradient.read(), "z": z.read(),
            "history": status.history}  # fmt: skip


def shared_edges(comm: Comm, shape: str) -> dict[str, Any]:
    """Return what a rank of several finds."""
    mesh = points_of(comm, shape)
    return edge_results(mesh, shared_edge_operators(mesh))


def with_diagonal(context: fl.Context, pattern: RaggedMap, values: Array, mass: Array) -> SparseMatrix:
    """Return the consistent mass matrix: its rows add up to the lumped one."""
    rows = np.repeat(np.arange(pattern.source.size), np.diff(pattern.offsets))
    own = pattern.indices == rows
    if own.any():  # the pattern has its diagonal
        total = np.bincount(rows[~own], values[~own], minlength=mass.size)
        values = values.copy()
        values[own] = mass - total
        return SparseMatrix(pattern, context.dat(pattern.entries, values, "mass"))
    ends = pattern.offsets[1:]
    total = np.bincount(rows, values, minlength=mass.size)
    return SparseMatrix.from_csr(
        context, pattern.offsets + np.arange(mass.size + 1), np.insert(pattern.indices, ends, np.arange(mass.size)),
        np.insert(values, ends, mass - total), rows=pattern.source, columns=pattern.source, name="mass",
    )  # fmt: skip


def check_edges(found: list[dict[str, Any]], want: dict[str, Any]) -> None:
    """Check what several ranks found against one: to the bit, but for sums over the ranks."""
    for name, values in want.items():
        if name in ("numbers", "history"):
            continue
        got = joined([(piece["numbers"], piece[name]) for piece in found], want["mass"].size)
        if name == "z":
            assert np.abs(got - values).max() < 1e-9 * np.abs(values).max()
        else:
            assert np.array_equal(got, values), name
    check_iterations(found, want)


@pytest.mark.parametrize(
    ("shape", "ranks"), [("tetrahedron", 3), pytest.param("triangle", 4, marks=pytest.mark.long)]
)  # fmt: skip
def test_edge_operators_are_those_of_one_rank(shape: str, ranks: int) -> None:
    """Rows are complete, in the order of one rank and the same to the bit; so is what is gathered with them."""

    check_edges(run_threads(ranks, lambda comm: shared_edges(comm, shape)), edge_results(*whole_edges(shape)))


def test_what_ranks_cannot_do_is_said() -> None:
    """Wrong cells, points without cells, and dofs of a whole mesh are refused on every rank."""

    def quads(comm: Comm) -> None:
        points_of(comm, "quad")

    with pytest.raises(MeshError, match="triangle cells alone are taken"):
        run_threads(2, quads)

    def lonely(comm: Comm) -> None:
        data = mesh_of("triangle")
        more = replace(data, points=np.concatenate([data.points, [[9.0, 9.0]]]))
        context = fl.Context("cpu", threads=1, comm=comm)
        shared_edge_operators(point_mesh(context, more))

    with pytest.raises(MeshError, match=f"no cell uses point {mesh_of('triangle').n_points}"):
        run_threads(2, lonely)

    def whole(comm: Comm) -> None:
        mesh = bind(mesh_of("quad"), fl.Context("cpu", threads=1, comm=comm))
        LagrangeSpace.of(mesh, lagrange_dofs(mesh_of("quad"), 1))

    with pytest.raises(MeshError, match="shared_dofs"):
        run_threads(2, whole)

    def few(comm: Comm) -> None:
        shared_dofs(part_of(comm, "hexahedron", maps=("cell_nodes", "boundary_nodes")), 2)

    with pytest.raises(MeshError, match="face_nodes"):
        run_threads(2, few)


# -------------------------------------------------------------------------------------- processes
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, *(pytest.param(count, marks=pytest.mark.long) for count in (3, 4))])
def test_processes(launcher: object, ranks: int) -> None:
    """Real ranks find what one does, with cells divided and with points divided."""
    done = mpiexec(
        ranks,
        """
        from fluxloom.fe.poisson import LocalMatrices
        from tests.parallel.test_fe_ranks import (
            alone, check, check_edges, edge_results, shared, shared_edges, whole_edges)

        # on each rank: one that waits for another would spin
        one, one_by_edges = alone("quad", 1, LocalMatrices), edge_results(*whole_edges("tetrahedron"))
        found = comm.allgather(shared(comm, "quad", 1, LocalMatrices))
        edges = comm.allgather(shared_edges(comm, "tetrahedron"))
        if comm.rank == 0:
            check(found, one)
            check_edges(edges, one_by_edges)
            print(len(found), "ranks agree with one")
        """,
        timeout=240,
    )
    assert done.stdout.split() == [str(ranks), "ranks", "agree", "with", "one"]
