"""Constant operators of edges: against dense assembly, sums of rows, symmetries, strategies, devices, errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import factorial

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm.threads import run_threads
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import DatError, MeshError, SolverError
from fluxloom.dsl.declare.ragged import SlicedELL
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.fe.edges.operators import EdgeOperators
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind

Array = npt.NDArray[np.float64]

ROUNDING = 2e-14
KINDS = ["triangle", "tetra"]
SIZES: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "triangle": ((5, 4), (1.5, 0.5)),
    "tetra": ((3, 3, 2), (1.0, 2.0, 0.5)),
}


@cache
def mesh_of(kind: str) -> MeshData:
    """Return a small box whose inner points are moved, its cells turned in many ways."""
    sizes, lengths = SIZES[kind]
    make: Callable[..., MeshData] = box2d if kind == "triangle" else box3d
    data = make(*sizes, lengths=lengths, kind=kind, perturb=0.3)
    turns = np.random.default_rng(3).integers(0, 3, data.n_cells)
    cells = data.cells[kind].copy()
    for turn in (1, 2):  # of the first three corners: even permutations, so that no cell is turned inside out
        cells[turns == turn, :3] = np.roll(cells[turns == turn, :3], turn, axis=1)
    return replace(data, cells={kind: cells})


@cache
def dense(kind: str) -> tuple[Array, Array]:
    """Return the packed integrals of all pairs of points ``(n, n, k)``, diagonal included, and the volume."""
    data = mesh_of(kind)
    d, n = data.dimension, data.n_points
    packed, volume = np.zeros((n, n, 1 + d * d + 2 * d)), np.zeros(())
    for nodes in data.cells[kind]:
        plane = np.linalg.inv(np.column_stack([np.ones(d + 1), data.points[nodes]]))  # N_i = plane[0, i] + ...
        size, slope = 1.0 / abs(np.linalg.det(plane)) / factorial(d), plane[1:].T
        volume += size
        for i, row in enumerate(nodes):
            for j, column in enumerate(nodes):
                mass = size * (1 + (i == j)) / ((d + 1) * (d + 2))
                stiffness = size * np.outer(slope[i], slope[j]).ravel()
                ends = np.concatenate([slope[j], slope[i]]) * size / (d + 1)
                packed[row, column] += np.concatenate([[mass], stiffness, ends])
    return packed, volume


@cache
def operators_of(kind: str, device: str = "cpu", strategy: str | None = None) -> EdgeOperators:
    """Return the operators of a mesh in a context of its own."""
    chosen = None if strategy is None else Schedule(strategy=strategy)
    return EdgeOperators.of(fl.Context(device), mesh_of(kind), schedule=chosen)


def spread(operators: EdgeOperators) -> Array:
    """Return the entries as ``(n, n, k)``, 0 where there are none."""
    pattern = operators.neighbours
    rows = np.repeat(np.arange(operators.points.size), np.diff(pattern.offsets))
    values = operators.entries.read()
    packed = np.zeros((operators.points.size, operators.points.size, values.shape[1]))
    packed[rows, pattern.indices] = values
    return packed


def off_diagonal(packed: Array) -> Array:
    """Return a copy without the diagonal."""
    copy = packed.copy()
    copy[np.arange(len(copy)), np.arange(len(copy))] = 0.0
    return copy


@pytest.mark.parametrize(
    ("kind", "device"),
    [("triangle", "cpu"), ("tetra", "cpu"), ("triangle", "reference"), ("tetra", "reference"),
     pytest.param("tetra", "opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
     pytest.param("tetra", "cuda", marks=pytest.mark.cuda)],
)  # fmt: skip
def test_numbers_are_those_of_dense_assembly(kind: str, device: str) -> None:
    """Every integral of every edge, and the lumped mass, is that of assembly cell by cell."""
    operators, (wanted, volume) = operators_of(kind, device), dense(kind)
    pattern, size = operators.neighbours, np.abs(wanted).max(axis=(0, 1))
    assert operators.entries.shape == ({"triangle": 9, "tetra": 16}[kind],)
    assert (np.abs(spread(operators) - wanted) <= ROUNDING * size).all()
    linked = wanted[..., 0] > 0.0
    assert np.array_equal(np.diff(pattern.offsets), linked.sum(axis=1))
    assert np.array_equal(pattern.indices, np.nonzero(linked)[1])  # ascending, the point itself among them
    mass = operators.mass.read()
    assert mass == pytest.approx(wanted[..., 0].sum(axis=1), rel=ROUNDING)
    assert mass.sum() == pytest.approx(float(volume), rel=ROUNDING)
    assert mass.sum() == pytest.approx(np.prod(SIZES[kind][1]), rel=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_symmetries(kind: str) -> None:
    """``Mc_IJ = Mc_JI``, ``Ld_IJ = Ld_JI^T``, ``G_IJ = grad_JI``; inside the boundary ``G_IJ = -grad_IJ``."""
    operators = operators_of(kind)
    d, packed = operators.dimension, spread(operators)
    mass, stiffness, gradient, other = np.split(packed, [1, 1 + d * d, 1 + d * d + d], axis=2)
    matrix = stiffness.reshape(*stiffness.shape[:2], d, d)
    assert np.abs(mass - mass.swapaxes(0, 1)).max() <= ROUNDING * mass.max()
    assert np.abs(matrix - matrix.transpose(1, 0, 3, 2)).max() <= ROUNDING * np.abs(matrix).max()
    assert np.abs(other - gradient.swapaxes(0, 1)).max() <= ROUNDING * np.abs(gradient).max()
    p, own = np.random.default_rng(9).standard_normal(len(packed)), dense(kind)[0][..., 1 + d * d + d :]
    weak = np.einsum("ija,j->ia", other, p) - p[:, None] * gradient.sum(axis=1)
    assert weak == pytest.approx(np.einsum("ija,j->ia", own, p), abs=ROUNDING)
    outer = np.unique(np.concatenate([patch.nodes() for patch in mesh_of(kind).patches.values()]))
    inner = np.setdiff1d(np.arange(operators.points.size), outer)
    assert inner.size
    assert np.abs(other[inner] + gradient[inner]).max() <= ROUNDING * np.abs(gradient).max()


@pytest.mark.parametrize(("kind", "device"), [("triangle", "cpu"), ("tetra", "cpu"), ("tetra", "reference")])
def test_gathers(kind: str, device: str) -> None:
    """Loops over points give the products with the full matrices; linear fields have their gradient, constants none."""
    operators, (packed, _) = operators_of(kind, device), dense(kind)
    d, points, context = operators.dimension, mesh_of(kind).points, operators.points.context
    u = context.dat(operators.points, name="u")
    slope, bend = context.dat(operators.points, name="slope", shape=(d,)), context.dat(operators.points, name="bend")
    loops = [operators.strong_gradient(u, slope), operators.laplacian(u, bend)]

    def gathered(values: Array) -> tuple[Array, Array]:
        u.write(values)
        for loop in loops:
            loop()
        return slope.read().copy(), bend.read().copy()

    values = np.random.default_rng(5).standard_normal(len(points))
    stiffness = packed[..., 1 : 1 + d * d : d + 1].sum(axis=-1)
    gradient, laplacian = gathered(values)
    size = np.abs(stiffness).max()
    assert gradient == pytest.approx(np.einsum("ija,j->ia", packed[..., 1 + d * d : -d], values), abs=ROUNDING)
    assert np.abs(laplacian - stiffness @ values).max() <= 10 * ROUNDING * size
    gradient, laplacian = gathered(np.full(len(points), 3.5))
    assert not gradient.any()
    assert not laplacian.any()
    wanted = np.array([1.0, -2.0, 0.5])[:d]
    gradient, laplacian = gathered(points @ wanted + 4.0)
    assert np.abs(gradient / operators.mass.read()[:, None] - wanted).max() <= 1e-12
    inner = np.ones(len(points), dtype=bool)
    for patch in mesh_of(kind).patches.values():
        inner[patch.nodes()] = False
    assert np.abs(laplacian[inner]).max() <= 10 * ROUNDING * size
    assert np.abs(laplacian[~inner]).max() > 0.01  # the flux through the boundary


@pytest.mark.parametrize("strategy", ["gather", "atomic", "two_pass"])
def test_strategies_agree(strategy: str) -> None:
    """However increments meet, numbers are the same to rounding."""
    wanted, found = operators_of("triangle", "reference"), operators_of("triangle", "cpu", strategy)
    size = np.abs(wanted.entries.read()).max(axis=0)
    assert (np.abs(found.entries.read() - wanted.entries.read()) <= ROUNDING * size).all()
    assert found.mass.read() == pytest.approx(wanted.mass.read(), rel=ROUNDING)


def test_layouts_and_sets_of_the_caller() -> None:
    """Rows in slices and components apart hold the same numbers; the points may be those of a bound mesh."""
    context = fl.Context("reference")
    nodes = bind(mesh_of("triangle"), context).nodes
    found = EdgeOperators.of(context, mesh_of("triangle"), points=nodes, layout=SlicedELL(4), storage=SoA())
    assert found.points is nodes
    assert found.neighbours.layout == SlicedELL(4)
    assert np.array_equal(spread(found), spread(operators_of("triangle", "reference")))


def test_errors_of_meshes() -> None:
    """Cells that have no edge operators are named."""
    context, data = fl.Context("reference"), mesh_of("triangle")
    block = data.cells["triangle"]
    with pytest.raises(MeshError, match="need cells of the kind triangle alone, and the mesh has quad"):
        EdgeOperators.of(context, box2d(2, 2))
    mixed = replace(data, cells={"triangle": block, "quad": np.array([[0, 1, 7, 6]], dtype=np.int32)})
    with pytest.raises(MeshError, match="the mesh has triangle and quad"):
        EdgeOperators.of(context, mixed)
    with pytest.raises(MeshError, match="the mesh has no cells"):
        EdgeOperators.of(context, replace(data, cells={}))
    with pytest.raises(MeshError, match="kind tetra alone, and the mesh has hexahedron"):
        EdgeOperators.of(context, box3d(1, 1, 1))
    with pytest.raises(MeshError, match="are made on one rank, not on 2: take"):
        run_threads(2, lambda comm: EdgeOperators.of(fl.Context("reference", comm=comm), data))
    points = data.points.copy()
    first, second, third = block[7]
    points[third] = 0.5 * (points[first] + points[second])
    with pytest.raises(MeshError, match=r"triangle element 7 at \(.*\): degenerate: its area is"):
        EdgeOperators.of(context, data.with_points(points))
    with pytest.raises(MeshError, match="no cell uses point 30"):
        EdgeOperators.of(context, data.with_points(np.vstack([data.points, [9.0, 9.0]])))
    broken = block.copy()
    broken[3, 1] = 99
    with pytest.raises(DatError, match="99"):
        EdgeOperators.of(context, replace(data, cells={"triangle": broken}))


def test_errors_of_sets_and_dats() -> None:
    """Points and dats of something else are refused."""
    operators = operators_of("triangle", "reference")
    context, points = operators.points.context, operators.points
    with pytest.raises(SolverError, match="is not the set of the 30 points"):
        EdgeOperators.of(context, mesh_of("triangle"), points=context.set(7, "others"))
    u, vector = context.dat(points, name="u"), context.dat(points, name="v", shape=(2,))
    with pytest.raises(SolverError, match=r"strong_gradient: 'u' has shape \(\) on .*; give shape \(2,\)"):
        operators.strong_gradient(u, u)
    with pytest.raises(SolverError, match="laplacian: 'v' has shape"):
        operators.laplacian(vector, u)
    with pytest.raises(SolverError, match="'u' is read and written"):
        operators.laplacian(u, u)
