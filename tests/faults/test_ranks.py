"""A step that fails on one of several ranks ends them all as one: status, place, and the fields that it left."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cli.runs.job import Job
from fluxloom.cli.runs.request import Request
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.run.chain import Chain
from fluxloom.run import failure
from tests.faults.cases import CASES
from tests.faults.test_kept import record, write

QUICK = ("airfoil", "edge_flow", "lattice")
SOLVERS = [name for name in CASES if name != "staggered"]  # that one knows one rank


class Broken:
    """Steps of a run of which the third one fails on some ranks; the others may be slow in it."""

    slow = 0.0

    def __init__(self, runner: Any, error: Exception | None, where: str) -> None:
        self.advance, self.error, self.where, self.calls = runner.advance, error, where, 0
        runner.advance = self

    def __call__(self) -> None:
        self.calls, error = self.calls + 1, self.error
        if self.calls < 3 or error is None:
            time.sleep(self.slow if self.calls == 3 else 0.0)
            self.advance()
            return
        if self.where == "within":
            with pytest.MonkeyPatch.context() as patch:
                whole, me, calls = Chain.__call__, threading.get_ident(), itertools.count()

                def call(chain: Chain) -> None:
                    if threading.get_ident() == me and next(calls) == 1:
                        raise error
                    whole(chain)

                patch.setattr(Chain, "__call__", call)
                self.advance()
        elif self.where == "behind":
            self.advance()
        raise error


def ended(case: Path, ranks: int, broken: dict[int, Exception], where: str, patch: pytest.MonkeyPatch) -> list[Any]:
    """Run a case on threads as ranks; return the exit status of each, or what it raised."""
    model, application = load_case(str(case))
    model = model.with_run(iterations=8)

    def rank(comm: Comm) -> Any:
        request = Request(
            model, application, str(case), "run", Path("out"), pictures=False, overwrite=True, asked=True
        )  # fmt: skip
        job = Job(comm, request)
        march = job._march

        def marched(session: Any, *arguments: Any) -> Any:
            Broken(session.run, broken.get(comm.rank), where)
            return march(session, *arguments)

        patch.setattr(job, "_march", marched)
        try:
            return job.run()
        except Exception as error:
            return error

    return run_threads(ranks, rank)


@pytest.mark.parametrize(
    ("solver", "where"),
    [pytest.param(solver, where, marks=() if solver in QUICK and where == "within" else pytest.mark.long)
     for solver in SOLVERS for where in ("before", "within", "behind")],
)  # fmt: skip
def test_a_step_that_fails_on_one_rank(solver: str, where: str, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    case, error = write(solver, 8), SolverError("the iteration broke down")
    assert ended(case, 1, {0: error}, where, monkeypatch) == [1]  # also reads all kernels, alone
    alone = record()["details"]
    capfd.readouterr()
    assert ended(case, 2, {1: error}, where, monkeypatch) == [1, 1]
    found, said = record(), capfd.readouterr()
    assert found["status"] == "diverged"
    assert found["reason"].startswith("at step 3")
    assert "the iteration broke down" in found["reason"]
    assert found["details"]["step"] == 3
    assert found["details"]["number"] >= 0
    assert len(found["details"]["place"]) >= 2
    assert (said.out + said.err).count("error: diverged") == 1
    assert not list(Path("out").glob("final.*"))
    (kept,) = Path("out").glob("diverged.*")
    assert kept.name in found["files"]
    if where == "before":  # all ranks are then where a rank alone is
        keys = ("field", "step", "time", "guard", "quantity")
        assert {key: alone[key] for key in keys} == {key: found["details"][key] for key in keys}


@pytest.mark.parametrize("everywhere", [False, True])
def test_an_error_that_all_ranks_know(everywhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One element is named by its global number, whoever raises it."""
    lost = Divergence("the state of cell 37 is lost", field="pressure", number=37, step=3)
    ranks = (0, 1) if everywhere else (1,)
    assert ended(write("airfoil", 8), 2, dict.fromkeys(ranks, lost), "behind", monkeypatch) == [1, 1]
    details = record()["details"]
    assert (details["field"], details["number"], details["step"]) == ("pressure", 37, 3)
    assert ended(write("airfoil", 8), 1, {0: lost}, "behind", monkeypatch) == [1]
    assert record()["details"]["place"] == details["place"]


def test_a_mistake_of_ours_on_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a rank alone: interrupted, with the reason, and the mistake itself on all ranks."""
    errors = ended(write("edge_transport", 8), 2, {1: RuntimeError("a mistake")}, "within", monkeypatch)
    assert [str(error) for error in errors] == ["a mistake"] * 2
    assert all("on rank 1:" in note for error in errors for note in error.__notes__)
    assert (record()["status"], record()["reason"]) == ("interrupted", "RuntimeError: a mistake")


def test_a_rank_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that failed leaves a true record, also in the place of the first."""
    monkeypatch.setattr(failure, "_PATIENCE", 0.3)
    monkeypatch.setattr("tests.faults.test_ranks.Broken.slow", 2.0)
    errors = ended(write("airfoil", 8), 2, {1: SolverError("lost")}, "before", monkeypatch)
    assert str(errors[1]) == "lost"
    assert isinstance(errors[0], Exception)
    assert (record()["status"], record()["reason"]) == ("diverged", "lost")
