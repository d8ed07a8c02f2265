"""Fast Poisson solvers on many ranks: slabs and pencils give what one rank gives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.core.errors import DatError, SolverError
from fluxloom.linalg.direct.poisson import Cut, Dirichlet, Neumann, Plan
from tests.parallel.launch import mpiexec

P, D, N = "periodic", "dirichlet", "neumann"
STRETCHED = np.cumsum(np.append(0.0, np.random.default_rng(0).uniform(0.5, 1.5, 12)))


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, and what a plan is told besides."""

    bc: Any
    shape: tuple[int, ...] = (12, 7, 6)
    spacing: Any = 0.3
    problem: dict[str, Any] = field(default_factory=dict)
    ranks: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float64"

    def values(self) -> np.ndarray:
        return (np.random.default_rng(2).standard_normal(self.shape) + 0.3).astype(self.dtype)

    def plan(self, **options: Any) -> Plan:
        return Plan(self.shape, self.spacing, self.bc, dtype=self.dtype, **self.problem, **options)


def sides() -> Any:
    """Return conditions with data."""
    random = np.random.default_rng(4)
    first = (Dirichlet(random.standard_normal((7, 6))), Neumann(0.7))
    return first, (Neumann(random.standard_normal((12, 6))), Dirichlet(1.5)), P


PENCILS = {"cut": Cut(decomposition="pencils")}
CASES = {
    "walls": Case(((D, N), (N, D), D), problem={"centring": ("cell", "node", "cell")}),
    "channel": Case((N, P, P)),
    "channel in pencils": Case((N, P, P), ranks=PENCILS),
    "periodic": Case(P),
    "periodic in pencils": Case(P, ranks=PENCILS),
    "periodic without lines": Case(P, ranks={**PENCILS, "line": None}),
    "neumann in pencils": Case(N, ranks=PENCILS),
    "data": Case(sides()),
    "data in pencils": Case(sides(), ranks=PENCILS),
    "stretched": Case((N, P, P), spacing=(STRETCHED, 0.3, 0.2)),
    "plane": Case((N, P), (12, 6)),
    "plane in pencils": Case((D, P), (12, 6), ranks=PENCILS),
    "line": Case(((D, N),), (13,)),
    "ring": Case(P, (13,)),
    "shift": Case((N, P, P), problem={"shift": -0.7}),
    "indefinite": Case((N, P, P), problem={"shift": 0.37}),
    "single": Case((N, P, P), dtype="float32"),
    "single in pencils": Case(N, dtype="float32", ranks=PENCILS),
}
"""Of every kind of condition, decomposition and dimension."""

CUTS = {2: (1, 2, 1), 3: (1, 1, 3), 4: (2, 2, 1), 6: (2, 1, 3), 8: (2, 2, 2)}


def solved(context: fl.Context, case: Case) -> dict[str, Any]:
    """Return this rank's part: where it is, solution, what was removed; solved twice, the second time in place."""
    plan = case.plan(device=context, **case.ranks)
    f = np.ascontiguousarray(case.values()[plan.box.window])
    array = context.device.as_array(f) if context.device.shared else f
    first = np.array(plan(array))
    again = plan(array, out=array)
    plan.check()
    assert np.array_equal(first, np.array(again))
    assert context.comm.size == 1 or "a solve" in plan.describe()
    return {"window": plan.box.window, "u": first, "removed": plan.removed}


def in_threads(comm: Comm, case: Case, device: str = "cpu") -> dict[str, Any]:
    return solved(fl.Context(device, comm=comm, threads=1), case)


def alone(case: Case) -> tuple[np.ndarray, float]:
    """Return what one rank finds."""
    plan = case.plan(device="cpu", threads=1)
    return plan(case.values()), plan.removed


def check(found: list[dict[str, Any]], case: Case) -> None:
    want, removed = alone(case)
    got = np.full_like(want, np.nan)
    for piece in found:
        got[piece["window"]] = piece["u"]
    epsilon = float(np.finfo(case.dtype).eps)
    assert np.abs(got - want).max() <= 400 * epsilon * np.abs(want).max()
    assert all(abs(piece["removed"] - removed) <= 20 * epsilon for piece in found)
    assert len({piece["removed"] for piece in found}) == 1


LONG = ("data in pencils", "single in pencils", "plane in pencils", "ring")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in CASES
])  # fmt: skip
def test_three_ranks(name):
    check(fl.run_threads(3, in_threads, CASES[name]), CASES[name])


@pytest.mark.parametrize("ranks", [1, 4, *(pytest.param(k, marks=pytest.mark.long) for k in (2, 6))])
def test_ranks(ranks):
    for name in ("channel", "periodic in pencils", "data"):
        check(fl.run_threads(ranks, in_threads, CASES[name]), CASES[name])


@pytest.mark.parametrize("ranks", [3, 6, 8, *(pytest.param(k, marks=pytest.mark.long) for k in (2, 4))])
def test_cuts(ranks):
    for bc in ((N, P, P), (P, D, N)):
        check(fl.run_threads(ranks, in_threads, case := Case(bc, ranks={"cut": CUTS[ranks]})), case)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("name", CASES)
def test_all_ranks(ranks, name):
    case = CASES[name]
    check(fl.run_threads(ranks, in_threads, case), case)
    if ranks in CUTS and len(case.shape) == 3:
        wanted = replace(case.ranks.get("cut", Cut()), factors=CUTS[ranks])
        cut = Case(case.bc, case.shape, case.spacing, case.problem, {**case.ranks, "cut": wanted}, case.dtype)
        check(fl.run_threads(ranks, in_threads, cut), cut)


@pytest.mark.opencl
@pytest.mark.parametrize("name", ["channel", "channel in pencils"])
def test_ranks_by_kernels(name):
    check(fl.run_threads(2, in_threads, CASES[name], "opencl"), CASES[name])


@pytest.mark.parametrize(("cut", "kind"), [(None, "slabs"), ((2, 2, 1), "pencils")])
def test_dats_of_a_grid(cut, kind):
    """With ghosts, which are left alone."""
    case = Case((N, P, P))

    def work(comm: Comm) -> dict[str, Any]:
        context = fl.Context("cpu", threads=1, comm=comm)
        grid = context.grid(case.shape, ghost=1, cut=cut or (4, 1, 1))
        f, u = (context.dat(grid, name=name) for name in "fu")
        plan = case.plan(device=context, cut=grid.factors)
        f.data[...] = case.values()[plan.box.window]
        u.storage()[...] = 7.0
        version = u.version
        plan(f, out=u)
        assert u.version > version
        assert f": {kind}, cut" in plan.describe()
        assert (u.storage()[0] == 7.0).all()
        return {"window": plan.box.window, "u": np.array(u.data_ro), "removed": plan.removed}

    check(fl.run_threads(4, work), case)


def test_messages_of_slabs_and_pencils():
    """Slabs send two values a mode each way of the cut; pencils all values."""

    def work(comm: Comm) -> tuple[int, int]:
        cases = [CASES[name] for name in ("channel", "channel in pencils")]
        plans = [case.plan(device=fl.Context("cpu", comm=comm), threads=1, **case.ranks) for case in cases]
        slabs, pencils = (plan.bytes_sent for plan in plans)
        for plan in plans:
            plan.close()
        return slabs, pencils

    slabs, pencils = fl.run_threads(2, work)[0]
    assert slabs == 8 * 2 * 2 * 7 * 4 + 2 * 2 * 8
    assert pencils == 2 * 16 * 6 * 7 * 2


def test_what_cannot_be_is_refused():
    def work(comm: Comm, **options: Any) -> None:
        case = Case((N, P, P))
        plan = case.plan(device=fl.Context("cpu", comm=comm), threads=1, **options)
        plan(case.values())

    def refused(error: type[Exception], match: str, **options: Any) -> None:
        with pytest.raises(error, match=match):
            fl.run_threads(2, lambda comm: work(comm, **options))

    refused(DatError, "begins at")
    refused(SolverError, "slabs are not possible: line=None", cut=Cut(decomposition="slabs"), line=None)
    refused(SolverError, "does not cut the axis of the lines", cut=Cut((1, 2, 1), "slabs"), line=0)
    refused(SolverError, "2 in all", cut=(2, 2, 1))
    refused(SolverError, "did you mean 'slabs'", cut=Cut(decomposition="slab"))
    with pytest.raises(SolverError, match="2 for each of 8 ranks"):
        fl.run_threads(8, lambda comm: work(comm, cut=Cut(decomposition="slabs")))


@pytest.mark.mpi
def test_real_ranks():
    done = mpiexec(
        3,
        """
        import numpy as np
        from fluxloom.linalg.direct.tridiagonal import Form
        from tests.parallel.test_poisson_ranks import CASES, check, in_threads
        from tests.parallel.test_tridiagonal_ranks import Case, moved, solved

        assert moved(comm, (5, 7, 3), (3, 1, 1), (1, 3, 1), "c16")
        for way, pieces in (("all", 2), ("shares", 1)):
            case = Case(Form("double", "shifted", True, 2), way=way, pieces=pieces)
            found = np.concatenate(comm.allgather(solved(comm, case)), axis=1)
            assert np.abs(found - case.solution()).max() < 1e-12
        for name in ("channel", "periodic in pencils"):
            found = comm.allgather(in_threads(comm, CASES[name]))
            if comm.rank == 0:
                check(found, CASES[name])
        if comm.rank == 0:
            print("real ranks agree")
        """,
    )
    assert "real ranks agree" in done.stdout
