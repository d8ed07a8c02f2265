"""Fast solvers as preconditioners of problems whose coefficients vary."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import cg as scipy_cg

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.linalg import ConjugateGradient, SparseMatrix, Stop
from fluxloom.linalg.direct.poisson import Dirichlet, FastPoisson, Plan
from fluxloom.linalg.direct.poisson.directions import Direction
from fluxloom.linalg.krylov.bicgstab import BiCGStab


def difference(direction: Direction) -> sparse.csr_array:
    """Return what takes values to differences over the distances, one row a face where there is a flux."""
    n, d = direction.n, direction.distances
    rows = sparse.lil_array((n + 1, n))
    for face in range(n + 1):
        if np.isfinite(d[face]):
            if face < n:
                rows[face, face] = 1 / d[face]
            if face > 0:
                rows[face, face - 1] = -1 / d[face]
    return sparse.csr_array(rows)


def diffusion(plan: Plan) -> sparse.csr_array:
    """Return ``-div k grad`` integrated over the cells of a plan in two dimensions, ``k = 1 + 0.3 sin x sin y``."""
    total = sparse.csr_array((plan.problem.size,) * 2)
    for axis, direction in enumerate(plan.problem.directions):
        other = plan.problem.directions[1 - axis]
        faces = np.concatenate(([0.0], np.cumsum(direction.intervals)))
        centres = np.cumsum(other.intervals) - other.intervals / 2
        k = 1 + 0.3 * np.outer(np.sin(2 * np.pi * faces), np.sin(2 * np.pi * centres))
        span = np.where(np.isfinite(direction.distances), direction.distances, 0.0)
        weights = k * np.outer(span, other.weights)
        gradient = difference(direction)
        eye = sparse.eye_array(other.n)
        if axis:
            weights = weights.T
        full = sparse.kron(eye, gradient) if axis else sparse.kron(gradient, eye)
        total = total + full.T @ sparse.diags_array(weights.ravel()) @ full
    return sparse.csr_array(total)


def plan_of(n: int, device=None, stretched: bool = False, bc="dirichlet") -> Plan:
    uniform = np.linspace(0.0, 1.0, n + 1)
    x = uniform - 0.1 * np.sin(2 * np.pi * uniform) / np.pi if stretched else uniform
    return Plan((n, n), (x, uniform), bc, device=device)


def iterations(n: int, context: Context, stretched: bool, bc="dirichlet") -> int:
    plan = plan_of(n, context, stretched, bc)
    a = diffusion(plan)
    matrix = SparseMatrix.from_scipy(context, a)
    wanted = np.random.default_rng(0).standard_normal(n * n)
    nullspace = "constant" if plan.problem.singular else "none"
    wanted -= wanted.mean() * plan.problem.singular
    b, x = context.dat(matrix.rows, a @ wanted), context.dat(matrix.rows)
    solver = ConjugateGradient(
        matrix, b, x, preconditioner=FastPoisson(plan), stop=Stop(rtol=1e-10), nullspace=nullspace
    )
    status = solver.solve()
    assert status.converged
    np.testing.assert_allclose(x.read(), wanted, atol=1e-7)
    assert len(solver.chains) > 2
    return status.iterations


@pytest.mark.parametrize(("stretched", "bc"), [(False, "dirichlet"), (True, "dirichlet"), (False, "neumann")])
def test_iterations_do_not_depend_on_the_size(stretched, bc):
    """The condition is at most 1.3 / 0.7: an error of 1e-10 takes about 15 iterations."""
    context = Context("cpu", threads=2)
    counts = [iterations(n, context, stretched, bc) for n in (12, 48)]
    assert max(counts) <= 16
    assert max(counts) - min(counts) <= 3


@pytest.mark.opencl
def test_iterations_on_a_device():
    assert iterations(12, Context("opencl"), False) <= 16


def test_exact_for_the_operator_itself():
    context = Context("cpu", threads=1)
    plan = plan_of(9, context, stretched=True, bc=["periodic", "dirichlet"])
    a = -sparse.diags_array(plan.volumes().ravel()) @ plan.matrix()
    matrix = SparseMatrix.from_scipy(context, sparse.csr_array(a))
    b, x = context.dat(matrix.rows, np.arange(81.0)), context.dat(matrix.rows)
    status = BiCGStab(matrix, b, x, preconditioner=FastPoisson(plan), stop=Stop(rtol=1e-11)).solve()
    assert status.converged
    assert status.iterations <= 2


def test_scipy_with_the_linear_operator():
    counts = []
    for n in (12, 48):
        plan = plan_of(n)
        a = diffusion(plan) * n * n  # a uniform spacing: difference quotients
        inverse = LinearOperator(a.shape, matvec=lambda r, plan=plan: -(plan.inverse @ r))
        steps: list[int] = []
        b = np.random.default_rng(0).standard_normal(n * n)
        found, info = scipy_cg(a, b, M=inverse, rtol=1e-10, callback=lambda _x, steps=steps: steps.append(1))
        assert info == 0
        assert np.linalg.norm(a @ found - b) <= 2e-10 * np.linalg.norm(b)
        counts.append(len(steps))
    assert max(counts) <= 16
    assert abs(counts[1] - counts[0]) <= 3


def test_misfits_are_refused():
    context = Context("cpu", threads=1)
    matrix = SparseMatrix.from_scipy(context, sparse.eye_array(16, format="csr"))
    with pytest.raises(SolverError, match="9 unknowns, the matrix 16 rows"):
        FastPoisson(plan_of(3, context)).build(matrix)
    with pytest.raises(SolverError, match="another device"):
        FastPoisson(plan_of(4)).build(matrix)
    with pytest.raises(SolverError, match="boundary data"):
        FastPoisson(plan_of(4, context, bc=Dirichlet(1.0))).build(matrix)
