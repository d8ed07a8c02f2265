"""Tuning of an extruded solver: frequencies go where they are solved fast, better preconditioners where they pay."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.linalg import ApproximateInverse, Jacobi, Stop
from fluxloom.linalg.direct.extruded.batch import Batch, PlaneGradients
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
from fluxloom.linalg.direct.extruded.tuning import (
    Division,
    ExtrudedTuning,
    Tuner,
    balanced,
    describe_trials,
    imbalance,
)
from tests.unit.linalg.test_extruded import solver, values
from tests.unit.linalg.test_krylov import laplacian

COSTS = 10.0 / (1.0 + np.arange(33)) + 1.0


@dataclass(frozen=True)
class Machine:
    """What frequencies cost with teams of different speed; the better preconditioner pays below a frequency."""

    weights: tuple[float, ...]
    pays: int = 6

    def costs(self, division: Division) -> np.ndarray:
        k = np.arange(COSTS.size)
        gain = np.where(k < division.better, 0.5 if division.better <= self.pays else 1.5, 1.0)
        return COSTS * gain * np.repeat(self.weights, np.diff(division.bounds))

    def teams(self, division: Division) -> list[float]:
        costs, b = self.costs(division), division.bounds
        return [float(costs[first:last].sum()) for first, last in pairwise(b)]


def start(teams: int) -> Division:
    return Division(tuple(COSTS.size * q // teams for q in range(teams + 1)))


def test_imbalance() -> None:
    assert imbalance([1.0, 3.0, 2.0]) == 1.0
    assert imbalance([2.0]) == imbalance([0.0, 0.0]) == 0.0


@pytest.mark.parametrize("weights", [(1.0, 1.0), (3.0, 1.0), (1.0, 1.0, 4.0, 1.0), (1.0, 2.0, 3.0, 4.0)])
def test_work_moves_from_slow_teams_to_fast_ones(weights: tuple[float, ...]) -> None:
    machine, division = Machine(weights), start(len(weights))
    slow = int(np.argmax(weights))
    before = machine.teams(division)
    counts = np.diff(division.bounds)
    best = max(before)
    for _ in range(4):
        division = Division(balanced(machine.costs(division), division.bounds, machine.teams(division)))
        best = min(best, max(machine.teams(division)))
        assert division.bounds[0] == 0
        assert division.bounds[-1] == COSTS.size
        assert min(np.diff(division.bounds)) >= 1
    ideal = COSTS.sum() / sum(1.0 / w for w in weights)
    assert best < 1.25 * ideal < max(before)
    if len(set(weights)) > 1 and slow:
        assert np.diff(division.bounds)[slow] < counts[slow]


def test_equal_teams_are_left_alone() -> None:
    costs = np.ones(12)
    assert balanced(costs, (0, 4, 8, 12), (4.0, 4.0, 4.0)) == (0, 4, 8, 12)


def test_each_team_keeps_a_frequency() -> None:
    costs = np.array([1e-6, 1e-6, 1e-6, 50.0])
    assert balanced(costs, (0, 1, 2, 4), (1e-6, 1e-6, 50.0)) == (0, 1, 2, 4) or all(
        np.diff(balanced(costs, (0, 1, 2, 4), (1e-6, 1e-6, 50.0))) >= 1
    )
    assert balanced(np.array([90.0, 1.0, 1.0]), (0, 1, 2, 3), (90.0, 1.0, 1.0)) == (0, 1, 2, 3)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 1.0), (1.0, 1.0, 4.0, 1.0)])
@pytest.mark.parametrize("pays", [0, 6, 40])
def test_greedy_choice_keeps_the_best(weights: tuple[float, ...], pays: int) -> None:
    machine = Machine(weights, pays)
    tuner = Tuner(ExtrudedTuning(tolerance=0.1), start(len(weights)), 8)
    for _ in range(100):
        if tuner.done:
            break
        division = tuner.division
        assert tuner.observe(machine.teams(division), machine.costs(division)) == tuner.division
    assert tuner.done
    trials = tuner.trials
    best = min(trials, key=lambda trial: trial.seconds)
    assert tuner.division == best.division
    assert best.division.better <= pays
    assert (best.division.better > 0) == (pays > 0)
    if pays >= COSTS.size:
        assert best.division.better > 0.9 * COSTS.size  # it may end when the slowest team gains nothing
    assert trials[0].division == start(len(weights))
    assert [trial.then for trial in trials][-1] == "end"
    table = describe_trials(trials)
    assert len(table.splitlines()) == 1 + len(trials)
    assert "-> end" in table.splitlines()[-1]


def test_patience_with_times_that_scatter() -> None:
    """A batch that gains nothing does not end it, two of them do; the best setting is kept."""
    seconds = {0: 1.0, 1: 1.01, 2: 0.9, 4: 0.92, 8: 0.91, 12: 0.1}
    found = {}
    for patience in (1, 2, 3):
        tuner = Tuner(ExtrudedTuning(patience=patience), start(1), 8)
        while not tuner.done:
            tuner.observe([seconds.get(tuner.division.better, 2.0)], COSTS)
        found[patience] = tuner.division.better
    assert found == {1: 0, 2: 2, 3: 12}


def test_same_answers_make_the_same_choices() -> None:
    machine = Machine((1.0, 3.0))
    tuners = [Tuner(ExtrudedTuning(), start(2), 8) for _ in range(2)]
    while not tuners[0].done:
        found = [tuner.observe(machine.teams(tuner.division), machine.costs(tuner.division)) for tuner in tuners]
        assert found[0] == found[1]


class Priced(ExtrudedPoisson):
    """A solver whose batches take times that were made up: half with the better preconditioner, for the first."""

    def _timed(self, batch: Batch, share: float, checked: bool) -> Any:
        status = super()._timed(batch, share, checked)
        better = isinstance(batch.how, ApproximateInverse)
        batch.seconds = len(batch.members) * ((0.5 if batch.members.start < 5 else 2.0) if better else 1.0)
        return status


def test_solves_are_tuned() -> None:
    plain = solver(laplacian(6), 20)
    context, b = plain.context, values(20)
    matrix = ExtrudedMatrix(laplacian(6), np.ones(36), planes=20, spacing=0.3)
    method = PlaneGradients(tuning=ExtrudedTuning(solves=1))
    found = Priced(context, matrix, stop=Stop(rtol=1e-9), method=method)
    found.b.write(b)
    assert not found.tuned
    answers = []
    for _ in range(20):
        found.x.write(np.zeros_like(b))
        assert found.solve().converged
        answers.append(found.x.read())
        if found.tuned:
            break
    assert found.tuned
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-5, atol=1e-7)
    kinds = [type(batch.how) for batch in found.batches]
    assert [batch.members.start for batch in found.batches] == [0, 1, 2, 4, 8]
    assert kinds == [*[ApproximateInverse] * 4, Jacobi]
    assert [trial.division.better for trial in found.trace] == [0, 1, 2, 4, 8, 11]
    assert "ApproximateInverse" in found.describe()
    assert found.describe().endswith("-> end")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"better": 3}, "better is a recipe"),
        ({"tolerance": 0.0}, "tolerance is a positive number"),
        ({"solves": 0}, "solves is a whole number"),
        ({"patience": 0}, "patience is a whole number"),
        ({"rounds": 1.5}, "rounds is a whole number"),
    ],
)
def test_wrong_choices(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SolverError, match=said):
        ExtrudedTuning(**change)
