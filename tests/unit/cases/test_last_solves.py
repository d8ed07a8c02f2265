"""However a run ends, what its last solve has left is the residual of the solution itself, or the run says so."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.flows.edges.flow import EdgeFlow
from fluxloom.flows.incompressible.flow import Incompressible
from fluxloom.linalg import ConjugateGradient, Status
from fluxloom.run.march import March, march
from fluxloom.run.results.files import ResidualLog
from tests.unit.cases.flow_cases import CHANNEL, built

CASE = f"""
[case]
name = "last"
solver = "{{solver}}"
[mesh]
nx = 6
ny = 5
{{mesh}}
{CHANNEL}
[pressure]
rtol = 1e-8
{{pressure}}
[time]
dt = {{dt}}
{{time}}
[run]
iterations = 9
threads = 1
"""
KINDS: dict[str, tuple[Any, dict[str, str]]] = {
    "incompressible": (Incompressible, {"pressure": 'preconditioner = "jacobi"', "dt": "0.01", "mesh": ""}),
    "edge_flow": (EdgeFlow, {"mesh": 'kind = "triangle"', "dt": "0.01", "pressure": ""}),
}
WEAK = 1e4
"""Times the tolerance, at which the recurrence of a solve that is not checked ends."""


class Hopeful(ConjugateGradient):
    """Its recurrence runs ahead of the residual of the solution, as rounding makes it."""

    def solve(self) -> Status:
        self._hope = WEAK
        return super().solve()

    def _iterated(self, start: Any, most: int) -> list[Status]:
        hope, self._hope = self._hope, 1.0
        return super()._iterated(replace(start, limit=hope * start.limit), most)


@pytest.fixture(autouse=True)
def _hopeful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom.solvers.incompressible.pressure.ConjugateGradient", Hopeful)
    monkeypatch.setattr("fluxloom.cases.edges.flow._KRYLOV", {"cg": Hopeful})


def runner_of(path: Path, solver: str, time: str, comm: Comm | None = None, **parts: str) -> Any:
    kind, usual = KINDS[solver]
    if comm is None or comm.rank == 0:
        path.write_text(CASE.format(solver=solver, time=time, **{**usual, **parts}), encoding="utf-8")
    if comm is not None:
        comm.barrier()
    return built(kind, path, comm=comm)


def left(runner: Any) -> float:
    """Return ``|b - A x| / |b|`` of the last solve, from its numbers."""
    flow = runner.flow.solver
    if isinstance(runner.flow, EdgeFlow):
        matrix, b, x = flow.loops.matrix, flow.loops.b, flow.loops.rise
    else:
        matrix, b, x = flow.poisson, flow.b, flow.phi
    right = b.read()
    return float(np.linalg.norm(right - matrix.to_scipy() @ x.read()) / np.linalg.norm(right))


class Stops:
    """A progress that sends a signal after a step."""

    def __init__(self, step: int) -> None:
        self._step = step

    def advanced(self, iteration: int, residual: float, seconds: float) -> None:
        if iteration == self._step:
            signal.raise_signal(signal.SIGINT)


ENDINGS: dict[str, tuple[str, str, int, str]] = {
    "steps": ("0.01", "", 4, "run.iterations"),
    "time": ("0.01", "end = 0.03", 9, "time.end"),
    "steady": ("0.01", "steady = 0.7", 9, "time.steady"),
    "steady at once": ("0.03", "steady = 0.55", 9, "time.steady"),  # the residual falls to less than a half in a step
}


@pytest.mark.parametrize("name", list(ENDINGS))
@pytest.mark.parametrize("solver", list(KINDS))
def test_the_last_solve_is_true(solver: str, name: str, tmp_path: Path) -> None:
    dt, time, most, ended_by = ENDINGS[name]
    runner = runner_of(tmp_path / "case.toml", solver, time, dt=dt)
    runner.advance()
    assert left(runner) > 1e-7  # any other one is not
    end = march(runner, most, ResidualLog(), first=1)
    assert end.outcome.goal is not None
    assert (end.outcome.goal.key, end.iterations < 8) == (ended_by, True)
    assert left(runner) <= 1e-8
    assert runner.flow.unsolved() == ""
    assert runner.finished == (name != "steps")


@pytest.mark.parametrize("name", list(ENDINGS))
def test_the_last_of_several_stages(name: str, tmp_path: Path) -> None:
    dt, time, most, _ = ENDINGS[name]
    runner = runner_of(tmp_path / "case.toml", "incompressible", f'scheme = "runge-kutta"\n{time}', dt=dt)
    march(runner, most, ResidualLog())
    assert left(runner) <= 1e-8


@pytest.mark.parametrize("solver", list(KINDS))
def test_the_last_solve_on_ranks(solver: str, tmp_path: Path) -> None:
    dt, time, most, _ = ENDINGS["steady at once"]

    def rank(comm: Comm) -> tuple[int, str, str]:
        runner = runner_of(tmp_path / "case.toml", solver, time, comm, dt=dt)
        runner.advance()
        first = runner.flow.unsolved()
        return march(runner, most, ResidualLog(), comm=comm, first=1).steps, first[:12], runner.flow.unsolved()

    found = run_threads(2, rank)
    assert found == [(found[0][0], "the pressure", "")] * 2
    assert 2 < found[0][0] < 9


def test_a_steady_state_that_is_solved_takes_no_further_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the solve that is at hand is not true one more is made."""
    counts = []
    for method in (ConjugateGradient, Hopeful):
        monkeypatch.setattr("fluxloom.solvers.incompressible.pressure.ConjugateGradient", method)
        runner, log = runner_of(tmp_path / "case.toml", "incompressible", "steady = 0.7"), ResidualLog()
        march(runner, 9, log)
        counts.append(sum(value <= 0.7 * max(log.values) for value in log.values))
    assert counts == [1, 2]


@pytest.mark.parametrize("solver", list(KINDS))
def test_a_signal_tells_what_is_not_solved(solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> March:
        return march(runner_of(tmp_path / "case.toml", solver, ""), 9, ResidualLog(), Stops(3))

    reason = interrupted().outcome.reason
    assert reason.startswith("SIGINT after 3 steps: the pressure of the last step has not converged, |r|/|b| = ")
    assert 1e-7 < float(reason.split()[-1]) < 1.1e-4
    monkeypatch.setattr(Hopeful, "_iterated", ConjugateGradient._iterated)
    assert interrupted().outcome.reason == "SIGINT after 3 steps"
