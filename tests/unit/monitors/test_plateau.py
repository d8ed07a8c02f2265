"""The end of a run by a plateau: of numbers that were computed, over a whole window."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.core.status import RunStatus
from fluxloom.monitors.plateau import Plateau
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.history import History
from fluxloom.run.march import March, march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder
from fluxloom_lab.problems.small.state_cases import CASES
from tests.state_runs import leg
from tests.unit.monitors.test_averages import built


class Numbers(Flow):
    """A flow that has numbers, one a step."""

    def __init__(self, values: list[float], dt: float = 0.0) -> None:
        from fluxloom.dsl.context import Context

        self.context, self.values, self.dt, self.done = Context("cpu", threads=1, tuning=False), values, dt, 0

    @property
    def cells(self) -> int:
        return 1

    @property
    def steps(self) -> int:
        return self.done

    @property
    def time(self) -> float | None:
        return self.done * self.dt if self.dt else None

    def advance(self, until: Until) -> float:
        self.done += 1
        return 1.0

    def columns(self) -> dict[str, float]:
        return {"lift": self.values[min(self.done, len(self.values) - 1)]}


def ended(flow: Numbers, plateau: Plateau, steps: int, every: int = 1, *, asked: bool = False) -> March:
    run = FlowRun(flow, "numbers", Until(), [plateau, History(every)])
    run.begin(ResultFolder(None))
    return march(run, steps, ResidualLog(None), asked=asked)


def falling(count: int, least: float = 0.0) -> list[float]:
    return [2.0 + max(0.5**k, least) for k in range(count)]


def test_ends_where_a_column_stays() -> None:
    """When the values of a whole window are within the tolerance, not before."""
    end = ended(Numbers(falling(100)), Plateau("lift", tolerance=1e-3, window=4), 100)
    values = np.array(falling(100))
    first = next(k for k in range(4, 100) if np.ptp(values[k - 4 : k + 1]) <= 1e-3 * values[k - 4 : k + 1].mean())
    assert (end.steps, end.status) == (first, RunStatus.CONVERGED)
    assert end.outcome.goal is not None
    assert (end.outcome.goal.key, end.outcome.goal.name) == ("stop.column", "change of lift")
    assert str(end.outcome) == "converged: change of lift 9.2e-04 of 1.0e-03 wanted after 13 steps"


def test_looks_at_the_lines_of_the_history() -> None:
    """Every fifth step; a window over time."""
    flow = Numbers(falling(100), dt=0.1)
    assert ended(flow, Plateau("lift", 1e-2, window=1.0, over="time"), 100, every=5).steps == 20


@pytest.mark.parametrize("values", [[3.0], [0.0], [nan, 0.0], [1.0, nan], [nan]])
def test_what_is_no_plateau(values: list[float]) -> None:
    """NaN, and what has had one value since the beginning."""
    end = ended(Numbers(values), Plateau("lift", 1.0, window=4), 30)
    assert (end.steps, end.status) == (30, RunStatus.NOT_CONVERGED)
    why = "been no finite number in the window" if np.isnan(values[-1]) else "had one value since the beginning"
    assert end.outcome.reason == f"change of lift, which has {why}, is not known, 1.0e+00 wanted after 30 steps"


def test_a_constant_that_was_computed() -> None:
    """A number that has changed before, to 0 too, and then stays."""
    for last in (3.0, 0.0):
        assert ended(Numbers([1.0, 2.0, last]), Plateau("lift", 1e-9, window=4), 30).steps == 6


def test_around_zero() -> None:
    """No tolerance of a mean of 0 is met by what swings."""
    flow = Numbers([(-1.0) ** k for k in range(100)])
    plateau = Plateau("lift", 0.5, window=5)
    assert ended(flow, plateau, 40, asked=True).status is RunStatus.END_REACHED
    assert plateau.change() == inf


def test_what_does_not_fit() -> None:
    flow = Numbers([1.0])
    for plateau, every, text in (
        (Plateau("lft"), 1, "no column 'lft'; did you mean 'lift'"),
        (Plateau("lift"), 0, "the run has no history"),
        (Plateau("lift", window=9), 5, "fewer than 3 lines of the history"),
        (Plateau("lift", window=1.0, over="time"), 1, "has no time"),
    ):
        with pytest.raises(SolverError, match=text):
            ended(flow, plateau, 10, every)
    with pytest.raises(SolverError, match="tolerance: a number above 0"):
        Plateau("lift", tolerance=0.0)


def test_of_lines_that_come_late() -> None:
    """A lattice writes a line when the next one is due: the values are those of their own steps, in checkpoints too."""
    run = built("lattice pull", {"history.every": 2, "stop.column": "kinetic_energy", "stop.window": 6})
    plateau = next(one for one in run.monitors if isinstance(one, Plateau))
    run.begin(ResultFolder(None))
    for _ in range(8):
        run.advance()
    values = run.history.column("kinetic_energy")
    assert plateau.memory["samples"] == [(2.0 + 2 * k, values[1 + k]) for k in range(4)]


def test_of_a_case_across_a_restart(tmp_path: Path) -> None:
    """``[stop]`` ends a case at the same step, whether it was killed on the way or not."""
    text, changes, _ = CASES["airfoil"]
    more = changes | {"history.every": 2, "stop.column": "residual", "stop.tolerance": 0.5, "stop.window": 8}
    whole = leg(text, tmp_path / "whole", 60, more, save=False)
    assert 10 < whole.iterations < 60
    leg(text, tmp_path / "parts", 5, more | {"checkpoint.every": 1}, killed=True)
    parts = leg(text, tmp_path / "parts", 60, more)
    assert parts.resumed is not None
    assert parts.iterations == whole.iterations
    with pytest.raises(CaseError, match="stop: no column 'lift'"):
        built("airfoil", {"history.every": 2, "stop.column": "lift", "stop.window": 8})


def test_another_case_has_a_plateau_of_its_own(tmp_path: Path) -> None:
    """A run that is at its plateau makes no step; one that goes on with another case has not come to any."""
    text, changes, _ = CASES["edge_transport"]
    stop = {"stop.column": "amount", "stop.tolerance": 1e9, "stop.window": 4, "history.every": 1}
    done = leg(text, tmp_path, 60, changes | stop).iterations
    assert 4 <= done < 60
    assert leg(text, tmp_path, 60, changes | stop).iterations == done
    other = leg(text, tmp_path, 60, changes | stop | {"time.dt": 1e-3}, allow_changes=True)
    assert other.iterations == done + 4


def test_the_record_has_it() -> None:
    end = ended(Numbers([3.0]), Plateau("lift", 1.0, window=4), 5)
    assert json.dumps(end.outcome.record()["ended_by"]) == '"run.iterations"'
