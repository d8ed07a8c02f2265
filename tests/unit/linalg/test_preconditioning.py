"""Preconditioners of others: what is said where their methods, or their formulas, are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Read, Write
from fluxloom.core.errors import PreconditionerError, SolverError
from fluxloom.linalg import GMRES, BiCGStab, ConjugateGradient, GatheredSolver, Jacobi, SparseMatrix
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.operators import Operator, Step
from fluxloom.linalg.precond.jacobi import Diagonal
from tests.unit.linalg.test_krylov import convection, laplacian

METHODS: dict[str, type[Krylov]] = {"cg": ConjugateGradient, "bicgstab": BiCGStab, "gmres": GMRES}


@fl.kernel
def root(r: Read, z: Write):
    """No number where a residual is negative."""
    z[0] = fl.sqrt(r[0])


class Roots:
    """Applies `root`."""

    diagonal = None

    def apply(self, r: fl.Dat, z: fl.Dat) -> Sequence[Step]:
        return [fl.Loop(root, r.set, r, z)]


@dataclass(frozen=True)
class NoNumber(fl.Preconditioner):
    """A formula that is wrong."""

    def build(self, matrix: Operator, /) -> Roots:
        return Roots()


@dataclass(frozen=True)
class NoDiagonal(fl.Preconditioner):
    """A diagonal that is wrong."""

    def build(self, matrix: Operator, /) -> Diagonal:
        return Diagonal(matrix.rows.context.dat(matrix.rows, np.full(matrix.rows.size, np.nan), "diagonal"))


@dataclass(frozen=True)
class TwoArguments(fl.Preconditioner):
    """Wants more than it gets."""

    def build(self, matrix: Operator, weight: float) -> Any:  # type: ignore[override]
        return None


class Backward:
    """Whose `apply` takes one vector."""

    diagonal = None

    def apply(self, r: fl.Dat) -> Sequence[Step]:
        return []


class Nothing:
    """Whose `apply` returns nothing."""

    diagonal = None

    def apply(self, r: fl.Dat, z: fl.Dat) -> Any:
        fl.Loop(root, r.set, r, z)


@dataclass(frozen=True)
class Making(fl.Preconditioner):
    """Makes one of them."""

    what: Any

    def build(self, matrix: Operator, /) -> Any:
        return self.what()


def solver(method: str, preconditioner: Any, b: Any = None, device: str = "cpu") -> Krylov:
    context = fl.Context(device, tuning=False)
    matrix = SparseMatrix.from_scipy(context, (laplacian if method == "cg" else convection)(4))
    given = context.dat(matrix.rows, np.arange(16.0) - 7.0 if b is None else b, "b")
    return METHODS[method](matrix, given, context.dat(matrix.rows, name="x"), preconditioner=preconditioner, name="p")


WRONG = [
    (TwoArguments(), r"p: TwoArguments.build \(test_preconditioning.py:\d+\) has the parameters \(matrix.*weight: .*"
     r"missing a required argument: 'weight'\): write def build\(self, matrix\)"),
    (Making(Backward), r"p: Backward.apply \(test_preconditioning.py:\d+\) has the parameters .*: write def "
     r"apply\(self, r, z\)"),
    (Making(Nothing), r"p: Nothing.apply \(test_preconditioning.py:\d+\) returned None: a list of loops is wanted"),
]  # fmt: skip


@pytest.mark.parametrize(("preconditioner", "message"), WRONG, ids=["build", "apply", "nothing"])
@pytest.mark.parametrize("method", list(METHODS))
def test_methods_that_do_not_fit(method: str, preconditioner: Any, message: str) -> None:
    """One line, which names class, file and line."""
    with pytest.raises(SolverError, match=message) as caught:
        solver(method, preconditioner)
    assert "\n" not in str(caught.value)


def test_an_error_within_build_is_its_own() -> None:
    """A mistake in the formula is no mistake of the parameters: it has its own traceback."""

    def wrong() -> Any:
        raise TypeError("within")

    with pytest.raises(TypeError, match="within"):
        solver("cg", Making(wrong))


@pytest.mark.parametrize("recipe", [NoNumber(), NoDiagonal()])
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("check_next", [True, False])
def test_no_numbers_of_a_preconditioner(method: str, recipe: Any, check_next: bool) -> None:
    made = solver(method, recipe)
    made.check_every, made.check_next = 0, check_next
    said = rf"p: the preconditioner {type(recipe).__name__} \(test_preconditioning.py:\d+\) makes NaN or infinity"
    with pytest.raises(PreconditionerError, match=said):
        made.solve()


@pytest.mark.parametrize("method", list(METHODS))
def test_others_are_not_blamed(method: str) -> None:
    """For a right-hand side that is no number, or so large that products overflow."""
    for b in (np.full(16, np.nan), np.full(16, 1e300)):
        made = solver(method, Jacobi(), b)
        assert made.solve().reason in ("not finite", "converged")


def test_a_master_tells_its_group() -> None:
    def work(comm: Any) -> str:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        rows = np.array_split(np.arange(16), comm.size)[comm.rank]
        from fluxloom.linalg import distributed_matrix

        matrix = distributed_matrix(context, laplacian(4)[rows])
        b, x = context.dat(matrix.rows, rows - 7.0, "b"), context.dat(matrix.rows, name="x")
        made = GatheredSolver(matrix, b, x, device="cpu:1", preconditioner=NoNumber())
        with pytest.raises(PreconditionerError) as caught:
            made.solve()
        return str(caught.value)

    assert len({said.partition("NoNumber")[2] for said in fl.run_threads(2, work)}) == 1
