"""Poisson's equation with Lagrange elements: local matrices, products, loads, solutions and their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.fe.cells.dofs import lagrange_dofs
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.fe.cells.quadrature import gauss
from fluxloom.fe.global_matrix import GlobalMatrix
from fluxloom.fe.poisson import CellOperator, Integration, LocalMatrices, MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.linalg import SSOR, ConjugateGradient, Jacobi, SmoothedAggregation, Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind

Array = npt.NDArray[np.float64]

SIDES = ["xmin", "xmax", "ymin", "ymax"]
ROUNDING = 2e-13
LONG = (("quad", 1), ("triangle", 2), ("tetra", 1))
MESHES: dict[str, Callable[[], MeshData]] = {
    "quad": lambda: box2d(3, 2, perturb=0.3),
    "triangle": lambda: box2d(2, 2, kind="triangle", perturb=0.3),
    "hexahedron": lambda: box3d(2, 1, 1, axes=(None, lambda y: y**1.2, None), perturb=0.3),
    "tetra": lambda: box3d(1, 1, 1, kind="tetra", lengths=(1.0, 2.0, 0.5)),
}


def space_of(data: MeshData, order: int, device: str = "reference", **options: Any) -> LagrangeSpace:
    """Return the space of some order on a mesh, in a context of its own."""
    return LagrangeSpace.of(bind(data, fl.Context(device, **options)), lagrange_dofs(data, order))


def metrics(space: LagrangeSpace) -> tuple[Array, Array]:
    """Return ``J^-1`` ``(cells, q, d, d)`` and ``w |det J|`` ``(cells, q)`` from NumPy's inverse and determinant."""
    points = space.mesh.data.points[space.mesh.data.cell_nodes().table]
    corner = Lagrange(space.dofs.element.shape, 1).gradients(space.rule.points)
    jac = np.einsum("eca,qcb->eqab", points, corner)
    return np.linalg.inv(jac), space.rule.weights * np.abs(np.linalg.det(jac))


def matrices_of(space: LagrangeSpace, kappa: Array) -> Array:
    """Return the local matrices ``(cells, n, n)``, written as in a textbook."""
    inverse, volume = metrics(space)
    slope = np.einsum("qib,eqba->eqia", space.dofs.element.gradients(space.rule.points), inverse)
    return np.einsum("e,eq,eqia,eqja->eij", kappa, volume, slope, slope)


@dataclass
class Problem:
    """Random vectors on a space with random cellwise diffusivity, some values prescribed, and the dense matrix."""

    space: LagrangeSpace

    def __post_init__(self) -> None:
        space, rng = self.space, np.random.default_rng(7)
        self.kappa = rng.uniform(0.5, 2.0, space.mesh.cells.size)
        self.fixed = space.dofs.on(["xmin", "ymax"])
        self.local = matrices_of(space, self.kappa)
        self.whole = np.zeros((space.rows.size,) * 2)
        for nodes, matrix in zip(space.dofs.cells, self.local, strict=True):
            self.whole[np.ix_(nodes, nodes)] += matrix
        free = ~self.fixed
        self.matrix = np.where(np.outer(free, free), self.whole, 0.0) + np.diag(self.fixed.astype(float))
        self.x, self.b = rng.standard_normal((2, space.rows.size))

    def dat(self, values: Array | None = None, name: str = "v") -> Dat:
        """Return a vector."""
        return self.space.context.dat(self.space.rows, values, name)

    def given(self) -> dict[str, Any]:
        """Return what operators are made of."""
        return {"kappa": self.space.context.dat(self.space.mesh.cells, self.kappa, "kappa"), "fixed": self.fixed}


def run(steps: list[Any]) -> None:
    """Run some loops."""
    for step in steps:
        step()


def long(*given: Any) -> Any:
    """Return parameters of a test that the long run alone makes."""
    return pytest.param(*given, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("shape", "order", "device", "integration"),
    [*(("quad", 1, "cpu", letter) for letter in "ABC"), *(("quad", 2, "reference", letter) for letter in "ABC"),
     ("triangle", 2, "reference", "B"), ("tetra", 1, "reference", "A"), ("hexahedron", 1, "reference", "A"),
     *(long("quad", p, "cpu", letter) for p in (2, 3) for letter in "ABC"),
     *(long(shape, 2, "cpu", letter) for shape in ("triangle", "tetra") for letter in "ABC"),
     *(long("hexahedron", 1, "cpu", letter) for letter in "ABC"), long("quad", 4, "cpu", "A")],
)  # fmt: skip
def test_orders_of_integration_agree(shape: str, order: int, device: str, integration: Integration) -> None:
    """Each gives the sums of the textbook to rounding, exactly symmetric, without rows of prescribed values."""
    problem = Problem(space_of(MESHES[shape](), order, device))
    space = problem.space
    found = LocalMatrices(space, **problem.given(), integration=integration).matrices.read()
    found = found.reshape(problem.local.shape)
    free = ~problem.fixed[space.dofs.cells]
    wanted = problem.local * (free[:, :, None] & free[:, None, :])
    assert np.abs(found - wanted).max() < ROUNDING * np.abs(wanted).max()
    assert np.array_equal(found, found.transpose(0, 2, 1))


def check_operator(problem: Problem, operator: CellOperator) -> None:
    """Check products and residual of an operator against the dense matrix."""
    x, b, y = problem.dat(problem.x), problem.dat(problem.b), problem.dat(np.full_like(problem.x, 9.0))
    total = problem.space.context.scalar(2.0, "total")
    size = np.abs(problem.matrix).max()
    run(operator.product_dot(x, y, total))
    assert np.abs(y.read() - problem.matrix @ problem.x).max() < ROUNDING * size
    assert np.array_equal(y.read()[problem.fixed], problem.x[problem.fixed])
    assert total.value == pytest.approx(2.0 + problem.x @ problem.matrix @ problem.x, rel=ROUNDING)
    run(operator.residual(x, b, y))
    assert np.abs(y.read() - problem.b + problem.matrix @ problem.x).max() < ROUNDING * size


@pytest.mark.parametrize(
    ("shape", "order", "device"),
    [("quad", 2, "reference"), ("hexahedron", 1, "reference"), ("quad", 1, "cpu"),
     pytest.param("quad", 1, "opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
     pytest.param("quad", 1, "cuda", marks=pytest.mark.cuda),
     long("quad", 2, "cpu"), long("hexahedron", 1, "cpu")],
)  # fmt: skip
def test_products(shape: str, order: int, device: str) -> None:
    """With matrices and without, products are those of the dense matrix with rows of the identity."""
    problem = Problem(space_of(MESHES[shape](), order, device))
    check_operator(problem, LocalMatrices(problem.space, **problem.given()))
    check_operator(problem, MatrixFree(problem.space, **problem.given()))


@pytest.mark.parametrize("strategy", ["block_colour", "atomic"])
def test_races_are_a_schedule(strategy: str) -> None:
    """The same operator runs with every strategy, and with entries of all cells side by side."""
    problem = Problem(space_of(MESHES["quad"](), 1, "cpu", schedule=fl.Schedule(strategy=strategy, block=2)))
    operator = LocalMatrices(problem.space, **problem.given(), layout=SoA() if strategy == "atomic" else None)
    y = problem.dat()
    run(operator.product(problem.dat(problem.x), y))
    assert np.abs(y.read() - problem.matrix @ problem.x).max() < ROUNDING * np.abs(problem.matrix).max()


@pytest.mark.parametrize(("shape", "order"), [("quad", 2), ("triangle", 2), ("hexahedron", 1)])
def test_loads(shape: str, order: int) -> None:
    """A field and its values at the points load alike, as the mass matrix does; prescribed values keep theirs."""
    problem = Problem(space_of(MESHES[shape](), order))
    space = problem.space
    operator = LocalMatrices(space, **problem.given())
    phi = space.dofs.element.values(space.rule.points)
    at = np.einsum("qi,ei->eq", phi, problem.x[space.dofs.cells])
    wanted = np.zeros(space.rows.size)
    np.add.at(wanted, space.dofs.cells, np.einsum("eq,eq,qi->ei", metrics(space)[1], at, phi))
    points, f, b = space.context.dat(space.mesh.cells, at, "points"), problem.dat(problem.x), problem.dat()
    for source in (f, points):
        run(operator.load(source, b))
        assert np.allclose(b.read(), np.where(problem.fixed, 0.0, wanted), rtol=0.0, atol=1e-14)
    values = problem.dat(problem.b)
    run(operator.load(f, b, values))
    lifted = np.where(problem.fixed, problem.b, wanted - problem.whole[:, problem.fixed] @ problem.b[problem.fixed])
    assert np.allclose(b.read(), lifted, rtol=0.0, atol=1e-12)


def test_places_are_those_of_the_points() -> None:
    """The integral of a linear function over a perturbed mesh is that over the box."""
    space = space_of(MESHES["hexahedron"](), 1)
    places, volume = space.places(), metrics(space)[1]
    assert np.einsum("eqd,eq->d", places, volume) == pytest.approx([0.5, 0.5, 0.5], rel=1e-13)


@pytest.mark.parametrize(
    ("shape", "order", "device"),
    [("quad", 1, "reference"), ("triangle", 2, "reference"), *(long(shape, p, "cpu") for shape, p in LONG)],
)  # fmt: skip
def test_linear_functions_are_exact(shape: str, order: int, device: str) -> None:
    """Prescribed on all sides and without a source, a linear function is found on any mesh."""
    data = {"quad": box2d(3, 2, perturb=0.3), "triangle": box2d(2, 2, kind="triangle", perturb=0.3),
            "tetra": box3d(2, 2, 2, kind="tetra", perturb=0.2)}[shape]  # fmt: skip
    space = space_of(data, order, device)
    exact = 0.5 + space.dofs.points @ np.arange(1.0, 1.0 + data.dimension)
    fixed = space.dofs.on(list(data.patches))
    assert not fixed.all()
    operator = LocalMatrices(space, 3.0, fixed)
    f, b, u = (space.context.dat(space.rows, name=name) for name in "fbu")
    run(operator.load(f, b, space.context.dat(space.rows, np.where(fixed, exact, 1e3), "g")))
    ConjugateGradient(operator, b, u, preconditioner=operator.jacobi(), stop=Stop(rtol=1e-13)).solve().require("u")
    assert np.abs(u.read() - exact).max() < 1e-11
    assert space.error(u, lambda x: 0.5 + x @ np.arange(1.0, 1.0 + data.dimension)) < 1e-11
    assert space.error(u, lambda x: 1.5 + x @ np.arange(1.0, 1.0 + data.dimension)) == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize(
    ("kind", "order", "device", "diagonal"),
    [(LocalMatrices, 2, "reference", True), (MatrixFree, 2, "reference", False), (LocalMatrices, 1, "cpu", False),
     *(long(kind, p, "cpu", True) for p in (1, 2) for kind in (LocalMatrices, MatrixFree))],
)  # fmt: skip
def test_gradients_converge(kind: type[CellOperator], order: int, device: str, diagonal: bool) -> None:
    """Conjugate gradients find what a direct method finds, and start and stop as those of sparse matrices do."""
    problem = Problem(space_of(MESHES["quad"](), order, device))
    operator = kind(problem.space, **problem.given())
    b, u = problem.dat(problem.b), problem.dat(problem.x)
    jacobi = operator.jacobi() if diagonal else None
    if jacobi is not None:
        assert np.allclose(1.0 / jacobi.diagonal.read(), np.diag(problem.matrix), rtol=1e-13)
    solver = ConjugateGradient(operator, b, u, preconditioner=jacobi, stop=Stop(rtol=1e-12), interval=2)
    assert solver.solve().require("u").iterations > 3
    assert np.allclose(u.read(), np.linalg.solve(problem.matrix, problem.b), rtol=0.0, atol=1e-9)
    assert solver.solve().iterations == 0


def solution_error(order: int, n: int) -> float:
    """Return the error in L2 of ``-div grad u = sin(pi x) sin(pi y)``, ``u = 0`` round the unit square."""

    def source(x: Array) -> Array:
        return np.sin(np.pi * x[:, 0]) * np.sin(np.pi * x[:, 1])

    space = space_of(box2d(n, n), order)
    operator = LocalMatrices(space, fixed=space.dofs.on(SIDES))
    f, b, u = (space.context.dat(space.rows, name=name) for name in "fbu")
    f.write(source(space.dofs.points))
    run(operator.load(f, b))
    ConjugateGradient(operator, b, u, stop=Stop(rtol=1e-12), interval=2).solve().require("u")
    fine = space.with_rule(gauss("quad", order + 2))
    return fine.error(u, lambda x: source(x) / (2.0 * np.pi**2))


@pytest.mark.parametrize(
    ("order", "n", "wanted"),
    [(1, 4, 1.9), (2, 2, 2.9), *(long(p, 2, p + 0.9) for p in (3, 4))],
)
def test_order_of_accuracy(order: int, n: int, wanted: float) -> None:
    """Half the spacing divides the error in L2 by ``2^(p + 1)``."""
    coarse, fine = solution_error(order, n), solution_error(order, 2 * n)
    assert wanted < np.log2(coarse / fine) < order + 1.4


def test_wrong_parts_are_refused() -> None:
    """Messages say what is wanted."""
    data = MESHES["quad"]()
    space = space_of(data, 1)
    context, rows = space.context, space.rows
    with pytest.raises(MeshError, match=r"make them of mesh\.part"):
        LagrangeSpace.of(space.mesh, lagrange_dofs(box2d(2, 2), 1))
    with pytest.raises(SolverError, match="mask of 12 booleans"):
        LocalMatrices(space, fixed=np.arange(3))
    with pytest.raises(SolverError, match="positive number"):
        LocalMatrices(space, kappa=-1.0)
    with pytest.raises(SolverError, match="scalars on"):
        LocalMatrices(space, kappa=context.dat(rows, name="k"))
    with pytest.raises(SolverError, match=r"load: .* not a NumPy array of \(12,\): make it a dat"):
        MatrixFree(space).load(context.dat(rows), context.dat(rows), np.zeros(12))  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="'A', 'B' or 'C'"):
        LocalMatrices(space, integration="D")  # type: ignore[arg-type]
    operator = MatrixFree(space)
    x, cells = context.dat(rows, name="x"), context.dat(space.mesh.cells, name="c")
    with pytest.raises(SolverError, match="give another dat"):
        operator.product(x, x)
    with pytest.raises(SolverError, match="scalars on"):
        operator.residual(x, cells, context.dat(rows))
    with pytest.raises(SolverError, match="scalars on"):
        operator.load(cells, x)


def test_other_rules_and_meshes_are_refused() -> None:
    """A rule of another cell, a number in its place, and a mesh that is in no context."""
    data = MESHES["quad"]()
    space = space_of(data, 1)
    with pytest.raises(SolverError, match=r"on the quad, as gauss\('quad', 3\) .* not Quadrature\(triangle, 9"):
        space.with_rule(gauss("triangle", 3))
    for wrong in ("gauss", 3):
        with pytest.raises(SolverError, match=rf"on the quad, .* not {type(wrong).__name__} {wrong!r}"):
            LagrangeSpace.on(space.mesh, 2, wrong)  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="on the quad"):
        LagrangeSpace.of(space.mesh, space.dofs, gauss("hexahedron", 2))
    for make in (lambda: LagrangeSpace.on(data, 1), lambda: LagrangeSpace.of(data, space.dofs)):  # type: ignore[arg-type]
        with pytest.raises(MeshError, match="not MeshData: bind it"):
            make()


def test_diffusivities() -> None:
    """A dat, an array and a function of the centroids are alike; what is not positive everywhere is refused."""
    space = space_of(MESHES["quad"](), 1)
    cells, context = space.mesh.cells, space.context
    given = 1.0 + space.mesh.centroids.read()[:, 0]
    dat = LocalMatrices(space, context.dat(cells, given, "k")).matrices.read()
    for kappa in (given, lambda x: 1.0 + x[:, 0]):
        assert np.array_equal(LocalMatrices(space, kappa).matrices.read(), dat)
    assert np.array_equal(LocalMatrices(space, np.array(2)).matrices.read(), LocalMatrices(space, 2.0).matrices.read())
    for bad in (-1.0, np.nan, np.inf, 0.0):
        values = given.copy()
        values[2] = bad
        for kappa in (values, context.dat(cells, values, "k"), lambda x, values=values: values):
            with pytest.raises(SolverError, match=f"in cell 2|it gives {bad}"):
                MatrixFree(space, kappa)
        with pytest.raises(SolverError, match=r"a number for each of 6 cells|a positive number"):
            MatrixFree(space, bad)
    for wrong in ("1.0", True, None, [1.0] * 6):
        with pytest.raises(SolverError, match="kappa is a positive number, a dat on the cells, an array"):
            MatrixFree(space, wrong)  # type: ignore[arg-type]
    with pytest.raises(SolverError, match=r"shape \(6,\); it has float64 of \(5,\)"):
        MatrixFree(space, given[:5])
    with pytest.raises(SolverError, match=r"for each of 6 points \(6, 2\)"):
        MatrixFree(space, lambda x: x)


def test_errors_of_wrong_functions_are_refused() -> None:
    """An error in L2 wants a vector of the space, and a number for each point."""
    space = space_of(MESHES["quad"](), 1)
    u = space.context.dat(space.rows, name="u")
    with pytest.raises(SolverError, match=r"of 24 points \(24, 2\), .* of \(\); np.full\(len\(x\), value\)"):
        space.error(u, lambda _: 1.0)
    with pytest.raises(SolverError, match=r"shape \(24,\), not float64 of \(24, 2\)"):
        space.error(u, lambda x: x)
    with pytest.raises(SolverError, match=r"u has to be scalars on Set\(dofs, 12\), not a NumPy array of \(12,\)"):
        space.error(np.zeros(12), lambda x: x[:, 0])  # type: ignore[arg-type]


def test_solvers_say_which_operator_they_take() -> None:
    """Preconditioners of rows and solvers name what to give instead."""
    space = space_of(MESHES["quad"](), 1)
    b, u = (space.context.dat(space.rows, name=name) for name in "bu")
    for operator in (LocalMatrices(space), MatrixFree(space)):
        for recipe in (SSOR(), SmoothedAggregation(), Jacobi()):
            name = type(operator).__name__
            with pytest.raises(SolverError, match=rf"not (of )?{name}, .* or the preconditioner \.jacobi\(\)"):
                ConjugateGradient(operator, b, u, preconditioner=recipe)
    with pytest.raises(SolverError, match=r"not GlobalMatrix: take its \.matrix"):
        ConjugateGradient(GlobalMatrix(space), b, u)  # type: ignore[arg-type]
    with pytest.raises(SolverError, match=r"not of GlobalMatrix: take its \.matrix"):
        Jacobi().build(GlobalMatrix(space))  # type: ignore[arg-type]
