"""Global matrices of Poisson's equation: their entries, formats, schedules, preconditioners and orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import PlanError, SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.ragged import CSR, ELL, SlicedELL
from fluxloom.fe.cells.cell_entries import own_entries, shared_entries
from fluxloom.fe.cells.dofs import lagrange_dofs
from fluxloom.fe.cells.quadrature import gauss
from fluxloom.fe.global_matrix import FORMATS, GlobalFormat, GlobalMatrix
from fluxloom.fe.poisson import Integration, LocalMatrices, MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.linalg import SSOR, ConjugateGradient, Jacobi, SmoothedAggregation, Stop
from fluxloom.linalg.matrix.local_rows import LocalRows
from fluxloom.linalg.operators import Preconditioner
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.mesh.ranks.bind import bind
from tests.unit.fe.test_poisson import MESHES, ROUNDING, SIDES, Problem, long, run, space_of

Array = npt.NDArray[np.float64]

LONG = [("quad", 2), ("quad", 3), ("quad", 4), ("triangle", 1), ("triangle", 2), ("tetra", 1), ("tetra", 2),
        ("hexahedron", 1), ("hexahedron", 2)]  # fmt: skip
STRATEGIES = ("serial", "block_colour", "element_colour", "block_permute", "atomic", "gather", "two_pass")


def product_of(problem: Problem, steps: Callable[[Dat, Dat], Any]) -> Array:
    """Return ``A x`` of the random vector of a problem."""
    x, y = problem.dat(problem.x), problem.dat(np.full_like(problem.x, 9.0))
    found = steps(x, y)
    run(found if isinstance(found, list) else [found])
    return y.read()


@pytest.mark.parametrize(("shape", "order"), [("quad", 1), ("quad", 3), ("triangle", 2), ("hexahedron", 2)])
def test_each_pair_of_a_cell_has_its_entry(shape: str, order: int) -> None:
    """Rows and columns are those of the cell; shared rows ascend with no column twice, own entries have one cell."""
    dofs = lagrange_dofs(MESHES[shape](), order)
    cells, n = dofs.cells, dofs.element.size
    for entries in (shared_entries(cells, dofs.size), own_entries(cells, dofs.size)):
        row = np.repeat(np.arange(dofs.size), np.diff(entries.offsets))
        assert np.array_equal(row[entries.table], np.repeat(cells, n, axis=1))
        assert np.array_equal(entries.indices[entries.table], np.tile(cells, (1, n)))
        assert np.array_equal(row[entries.diagonal], np.arange(dofs.size))
        assert np.array_equal(entries.indices[entries.diagonal], np.arange(dofs.size))
    own = own_entries(cells, dofs.size)
    assert np.array_equal(np.sort(own.table, axis=None), np.arange(own.indices.size))
    shared = shared_entries(cells, dofs.size)
    row = np.repeat(np.arange(dofs.size, dtype=np.int64), np.diff(shared.offsets))
    assert (np.diff(row * dofs.size + shared.indices) > 0).all()
    assert np.array_equal(np.unique(shared.table), np.arange(shared.indices.size))


@pytest.mark.parametrize(
    ("shape", "order", "device"),
    [("quad", 1, "reference"), ("quad", 2, "reference"), ("triangle", 2, "reference"), ("tetra", 1, "reference"),
     ("hexahedron", 1, "reference"), ("quad", 1, "cpu"), *(long(shape, p, "cpu") for shape, p in LONG),
     pytest.param("quad", 1, "opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
     pytest.param("quad", 2, "cuda", marks=pytest.mark.cuda)],
)  # fmt: skip
def test_formats_have_the_same_product(shape: str, order: int, device: str) -> None:
    """Products, diagonals and rows of the identity are those of local matrices, in every format."""
    problem = Problem(space_of(MESHES[shape](), order, device))
    wanted = product_of(problem, LocalMatrices(problem.space, **problem.given()).product)
    size = np.abs(problem.matrix).max()
    assert np.abs(wanted - problem.matrix @ problem.x).max() < ROUNDING * size
    for form in FORMATS:
        found = GlobalMatrix(problem.space, **problem.given(), format=form)
        y = product_of(problem, found.matrix.product)
        assert np.abs(y - wanted).max() < ROUNDING * size, form
        assert np.array_equal(y[problem.fixed], problem.x[problem.fixed]), form
        assert np.abs(found.matrix.to_scipy().toarray() - problem.matrix).max() < ROUNDING * size, form
        jacobi, diagonal = found.jacobi(), Jacobi().build(found.matrix)
        assert np.allclose(1.0 / jacobi.diagonal.read(), np.diag(problem.matrix), rtol=1e-13), form
        assert np.allclose(jacobi.diagonal.read(), diagonal.diagonal.read(), rtol=1e-12), form


def test_layouts_are_those_of_the_formats() -> None:
    """Rows of own entries are as long as cells meet there times the degrees of freedom of a cell."""
    space = space_of(MESHES["quad"](), 1)
    found = {form: GlobalMatrix(space, format=form).matrix for form in FORMATS}
    assert [found[form].layout for form in FORMATS] == [CSR(), ELL(), SlicedELL(8), ELL()]
    assert [found[form].entries for form in FORMATS] == [70, 70, 70, 6 * 16]
    cells = np.bincount(space.dofs.cells.ravel())
    assert np.array_equal(np.diff(found["lazy"].pattern.offsets), 4 * cells)
    assert repr(GlobalMatrix(space, format="ell")) == "GlobalMatrix(poisson, ell, (12, 12), 70 entries)"


@pytest.mark.parametrize(
    ("order", "device", "integration"),
    [*((1, "reference", letter) for letter in "BC"),
     *(long(p, "cpu", letter) for p in (1, 2, 3) for letter in "BC"), long(4, "cpu", "B")],
)  # fmt: skip
def test_orders_of_integration_agree(order: int, device: str, integration: Integration) -> None:
    """Sums of cells do not depend on the order of the loops of assembly."""
    problem = Problem(space_of(MESHES["quad"](), order, device))
    for form in ("csr", "lazy"):
        found = GlobalMatrix(problem.space, **problem.given(), integration=integration, format=form)
        difference = found.matrix.to_scipy().toarray() - problem.matrix
        assert np.abs(difference).max() < ROUNDING * np.abs(problem.matrix).max()


def schedules() -> list[Any]:
    """Return formats with the strategies that they allow; a few in the quick run."""
    quick = {("csr", "two_pass"), ("csr", "atomic")}
    found = [(form, s) for form in FORMATS[:3] for s in STRATEGIES if form == "csr" or s not in STRATEGIES[-2:]]
    return [(1, *each) if each in quick else long(1, *each) for each in found] + [
        long(2, "csr", each) for each in STRATEGIES
    ]


@pytest.mark.parametrize(("order", "form", "strategy"), schedules())
def test_races_are_a_schedule(order: int, form: GlobalFormat, strategy: str) -> None:
    """Additions of neighbours to an entry all count, whatever keeps them apart."""
    problem = Problem(space_of(MESHES["quad"](), order, "cpu", threads=2))
    schedule = fl.Schedule(strategy=strategy, block=2)
    found = GlobalMatrix(problem.space, **problem.given(), format=form, schedule=schedule)
    assert found.assembly.loops[1].strategy == strategy
    difference = found.matrix.to_scipy().toarray() - problem.matrix
    assert np.abs(difference).max() < ROUNDING * np.abs(problem.matrix).max()


@pytest.mark.opencl
@pytest.mark.parametrize("form", ["csr", *(long(form) for form in FORMATS[1:])])
def test_assembly_on_work_items(form: GlobalFormat) -> None:
    """A device of work items adds and writes entries like the others."""
    problem = Problem(space_of(MESHES["triangle"](), 1, "opencl"))
    found = GlobalMatrix(problem.space, **problem.given(), format=form)
    difference = found.matrix.to_scipy().toarray() - problem.matrix
    assert np.abs(difference).max() < ROUNDING * np.abs(problem.matrix).max()


@pytest.mark.parametrize("form", ["csr", "lazy"])
def test_assembly_is_run_again(form: GlobalFormat) -> None:
    """New diffusivity and coordinates give what a new matrix has, one by one and fused; the identity stays."""
    data = MESHES["quad"]()
    space = space_of(data, 1, "cpu")
    kappa = space.context.dat(space.mesh.cells, np.ones(space.mesh.cells.size), "kappa")
    fixed = space.dofs.on(["ymin"])
    found = GlobalMatrix(space, kappa, fixed, format=form)
    first = found.matrix.to_scipy().toarray()
    for factor in (2.0, 3.0, 4.0):
        kappa.write(np.full(space.mesh.cells.size, factor))
        found.assemble()
        scaled = np.where(fixed, 1.0, factor)[:, None] * first
        assert np.allclose(found.matrix.to_scipy().toarray(), scaled, rtol=1e-14, atol=1e-14)
    stretched = data.points * [2.0, 1.0]
    space.mesh.x.write(stretched)
    found.assemble()
    other = LagrangeSpace.of(bind(box2d(3, 2, perturb=0.3, lengths=(2.0, 1.0)), fl.Context("reference")), space.dofs)
    assert np.allclose(other.mesh.data.points, stretched, rtol=1e-14)
    wanted = GlobalMatrix(other, 4.0, fixed, format=form).matrix.to_scipy().toarray()
    assert np.allclose(found.matrix.to_scipy().toarray(), wanted, rtol=1e-13, atol=1e-13)


def test_single_precision() -> None:
    """On coordinates in single precision all is; a matrix stored so is multiplied in double precision."""
    data = MESHES["quad"]()
    exact = Problem(space_of(data, 1))
    single = LagrangeSpace.of(bind(data, fl.Context("reference"), dtype="float32"), exact.space.dofs)
    kappa = single.context.dat(single.mesh.cells, exact.kappa.astype(np.float32), "kappa")
    size = np.abs(exact.matrix).max()
    for kind in (LocalMatrices, MatrixFree, GlobalMatrix):
        operator = kind(single, kappa, exact.fixed)
        x, y = (single.context.dat(single.rows, v.astype(np.float32), "v") for v in (exact.x, exact.b))
        found = (operator.matrix if isinstance(operator, GlobalMatrix) else operator).product(x, y)
        run(found if isinstance(found, list) else [found])
        assert 1e-9 * size < np.abs(y.read() - exact.matrix @ exact.x).max() < 1e-6 * size
        assert {
            a.data.scalar.name for s in operator.load(x, y) if isinstance(s, fl.Loop) for a in s.bound.arguments
        } == {"float32"}
        assert operator.jacobi().diagonal.scalar.name == "float32"
    stored = GlobalMatrix(exact.space, **exact.given(), dtype="float32").matrix
    rounded = stored.to_scipy().toarray()
    assert rounded.dtype == np.float32
    assert np.abs(rounded - exact.matrix).max() < 1e-7 * size
    y = product_of(exact, stored.product)
    assert np.abs(y - rounded.astype(np.float64) @ exact.x).max() < ROUNDING * size
    assert LocalMatrices(exact.space, dtype="float32").matrices.scalar.name == "float32"


def hill(x: Array) -> Array:
    """Return ``sin(pi x) sin(pi y)``."""
    return np.sin(np.pi * x[:, 0]) * np.sin(np.pi * x[:, 1])


def solved(matrix: GlobalMatrix, recipe: Preconditioner | None, rtol: float = 1e-11) -> tuple[Dat, int]:
    """Return the solution with `hill` for a source, and the iterations of conjugate gradients."""
    space = matrix.space
    f, b, u = (space.context.dat(space.rows, name=name) for name in "fbu")
    f.write(hill(space.dofs.points))
    run(matrix.load(f, b))
    preconditioner = recipe if recipe is not None else matrix.jacobi()
    solver = ConjugateGradient(matrix.matrix, b, u, preconditioner=preconditioner, stop=Stop(rtol=rtol), interval=2)
    return u, solver.solve().require("u").iterations


def square_space(n: int, order: int, device: str) -> LagrangeSpace:
    """Return a space on the unit square."""
    return space_of(box2d(n, n), order, device)


@pytest.mark.parametrize(
    ("order", "n", "form", "device"),
    [*((1, 4, form, "reference") for form in FORMATS), (2, 2, "lazy", "reference"),
     *(long(p, 2, form, "cpu") for p in (2, 3, 4) for form in FORMATS)],
)  # fmt: skip
def test_order_of_accuracy(order: int, n: int, form: GlobalFormat, device: str) -> None:
    """Half the spacing divides the error in L2 by ``2^(p + 1)`` in every format."""

    def error(n: int) -> float:
        space = square_space(n, order, device)
        u, _ = solved(GlobalMatrix(space, fixed=space.dofs.on(SIDES), format=form), None)
        return space.with_rule(gauss("quad", order + 2)).error(u, lambda x: hill(x) / (2.0 * np.pi**2))

    assert order + 0.9 < np.log2(error(n) / error(2 * n)) < order + 1.4


@pytest.mark.parametrize(
    ("order", "sizes", "coarse", "device"),
    [(1, (6, 12), 10, "reference"), long(1, (16, 32, 64), 20, "cpu"), long(2, (16, 32), 50, "cpu")],
)
def test_preconditioners(order: int, sizes: tuple[int, ...], coarse: int, device: str) -> None:
    """All find the same solution; SSOR takes fewer iterations than Jacobi, multigrid equally few on finer meshes."""
    pytest.importorskip("pyamg", reason="pyamg: pip install 'fluxloom[amg]'")
    counts = []
    for n in sizes:
        space = space_of(box2d(n // order, n // order, perturb=0.2), order, device)
        matrix = GlobalMatrix(space, fixed=space.dofs.on(SIDES))
        exact, iterations = solved(matrix, Jacobi())
        row = [iterations]
        for recipe in (SSOR(), SmoothedAggregation(coarse=coarse)):
            u, iterations = solved(matrix, recipe)
            assert np.abs(u.read() - exact.read()).max() < 1e-9 * np.abs(exact.read()).max()
            row.append(iterations)
        counts.append(row)
    jacobi, ssor, multigrid = np.array(counts).T
    assert (ssor < 0.6 * jacobi).all(), counts  # half
    assert (jacobi[1:] > 1.7 * jacobi[:-1]).all(), counts  # twice as many on twice as fine a mesh
    assert multigrid[0] <= 11 + 9 * (order - 1), counts  # 9 of order 1, 17 of order 2
    assert multigrid[-1] < 1.5 * multigrid[0], counts


def test_lazy_rows_need_no_consolidation() -> None:
    """Preconditioners of repeated columns are those of the sums: same iterations, same levels."""
    pytest.importorskip("pyamg", reason="pyamg: pip install 'fluxloom[amg]'")
    space = square_space(6, 1, "reference")
    lazy, plain = (GlobalMatrix(space, fixed=space.dofs.on(SIDES), format=form) for form in ("lazy", "csr"))
    for recipe in (Jacobi(), SSOR()):
        (u, count), (exact, wanted) = solved(lazy, recipe), solved(plain, recipe)
        assert count == wanted
        assert np.abs(u.read() - exact.read()).max() < 1e-10 * np.abs(exact.read()).max()
    added = LocalRows.of(lazy.matrix)
    assert added.entries == plain.matrix.entries < lazy.matrix.entries
    recipe = SmoothedAggregation(coarse=5, theta=0.1)
    assert recipe.build(lazy.matrix).describe() == recipe.build(plain.matrix).describe()


def test_wrong_parts_are_refused() -> None:
    """Messages say what is wanted, and name the loop."""
    space = space_of(MESHES["quad"](), 1)
    with pytest.raises(SolverError, match="poisson: unknown format 'cst'; did you mean 'csr'"):
        GlobalMatrix(space, format="cst")  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="heat: integration is 'A', 'B' or 'C'"):
        GlobalMatrix(space, integration="D", name="heat")  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="mask of 12 booleans"):
        GlobalMatrix(space, fixed=np.arange(3))
    with pytest.raises(SolverError, match="positive number"):
        GlobalMatrix(space, kappa=0.0)
    for strategy in ("gather", "two_pass"):
        with pytest.raises(PlanError, match=r"poisson\.assembly: strategy .* not stored in order; possible are serial"):
            GlobalMatrix(space, format="ell", schedule=fl.Schedule(strategy=strategy))
    with pytest.raises(PlanError, match=r"poisson\.assembly: strategy 'atomic' is not possible: each contribution"):
        GlobalMatrix(space, format="lazy", schedule=fl.Schedule(strategy="atomic"))
    quartic = space_of(box2d(1, 1), 4, "cpu")
    for schedule in (fl.Schedule(strategy="two_pass"), fl.Schedule(strategy="gather", block=1)):
        with pytest.raises(PlanError, match=r"poisson\.assembly: an element adds through 625 legs, and up to 256"):
            GlobalMatrix(quartic, schedule=schedule)
    operator = GlobalMatrix(space)
    x = space.context.dat(space.rows, name="x")
    with pytest.raises(SolverError, match="give another dat"):
        operator.load(x, x)
