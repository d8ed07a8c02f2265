"""The benchmark of iterative solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom_lab.bench.linear.krylov import KrylovBench, KrylovOptions
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.cli.bench import _print_table
from fluxloom_lab.problems.matrices import lattice_laplacian


class Broken:
    """A recipe that cannot be followed."""

    def build(self, matrix: Any) -> Any:
        raise SolverError("broken: cannot be built")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom_lab.bench.linear.krylov.RECIPES", {"jacobi": Jacobi(), "broken": Broken()})


def test_record() -> None:
    told: list[str] = []
    record = benches()["krylov"].run(KrylovOptions(cells="5,4,3", rounds=1, threads=1), told.append).as_json()
    jacobi, broken = record["metrics"]["methods"]
    assert record["sizes"] == {"cells": 60}
    assert record["metrics"]["best"] == "jacobi"
    assert record["metrics"]["seconds_per_solve"] == record["seconds"] == jacobi["seconds"] > 0
    assert jacobi["converged"]
    assert jacobi["relative_residual"] <= 1e-8
    assert jacobi["error"] < 1e-6
    assert jacobi["useful_gbs"] > 0
    assert broken == {"preconditioner": "broken", "converged": False, "error": "broken: cannot be built"}
    assert told[-1] == "broken: broken: cannot be built"


def test_ranks_need_the_iterations_of_one() -> None:
    def run(comm: Comm) -> dict[str, Any]:
        return KrylovBench().run(KrylovOptions(cells="6", rounds=1, comm=comm, threads=1), lambda _: None).as_json()

    counts = [run_threads(n, run)[0]["metrics"]["methods"][0]["iterations"] for n in (1, 2)]
    assert counts[0] == counts[1] > 5


def test_wrong_box() -> None:
    with pytest.raises(CaseError, match="--cells '5,4' "):
        KrylovBench().run(KrylovOptions(cells="5,4"), print)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4)])
def test_rows_of_the_lattice(shape: tuple[int, ...]) -> None:
    whole = lattice_laplacian(shape).toarray()
    total = int(np.prod(shape))
    wanted = 2.0 * len(shape) * np.eye(total)
    cells = list(np.ndindex(shape))
    for i, a in enumerate(cells):
        for j, b in enumerate(cells):
            if sum(abs(p - q) for p, q in zip(a, b, strict=True)) == 1:
                wanted[i, j] = -1.0
    assert np.array_equal(whole, wanted)
    parts = [lattice_laplacian(shape, range(0, 3)), lattice_laplacian(shape, range(3, total))]
    assert np.array_equal(np.vstack([part.toarray() for part in parts]), whole)


def test_table_of_methods_of_which_one_failed(capsys: pytest.CaptureFixture[str]) -> None:
    """A row that failed has fewer numbers, and long headings take several lines instead of hiding a column."""
    good = {"preconditioner": "jacobi", "error": 1e-9} | {f"long_name_of_column_{n}": 0.125 for n in range(8)}
    broken = {"preconditioner": "broken", "error": "broken:\nwith a long explanation of what happened"}
    _print_table("methods", [good, broken])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[-2:]] == [
        ["jacobi", "1e-09", *8 * ["0.125"]],
        ["broken", "failed", *8 * "-"],
    ]
    assert not any("long name" in line for line in lines)
    _print_table("methods", [{"preconditioner": "jacobi", "two_words": 1}])
    assert "two words" in capsys.readouterr().out
