"""When solvers stop, and what they say about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.linalg.status import Status, Stop, judge


def status_of(*squares: float, norm: float = 1.0, stop: Stop | None = None) -> Status:
    """Return what is said about one system; ``norm`` is that of the right-hand side."""
    return judge(np.array(squares)[:, None], np.array([norm**2]), stop or Stop(rtol=1e-3))


# --------------------------------------------------------------------------------------------- stopping


def test_tolerances() -> None:
    assert Stop(rtol=1e-2).limit(5.0) == pytest.approx(0.05)
    assert Stop(rtol=1e-2, atol=0.2).limit(5.0) == 0.2
    assert Stop(rtol=0.0, atol=0.2).limit(5.0) == 0.2
    assert Stop(rtol=np.float32(0.5), iterations=int(np.int64(3))).limit(2.0) == 1.0


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rtol": -1e-3}, "rtol is a number of at least 0, not -0.001"),
        ({"rtol": np.nan}, "rtol is a number"),
        ({"rtol": np.inf}, "rtol is a number"),
        ({"rtol": "1e-3"}, "rtol is a number of at least 0, not '1e-3'"),
        ({"atol": -1.0}, "atol is a number"),
        ({"atol": None}, "atol is a number"),
        ({"rtol": 0.0}, "both 0, which no residual reaches: give one of them"),
        ({"iterations": -1}, "iterations is a whole number of at least 0, not -1"),
        ({"iterations": 1.5}, "iterations is a whole number"),
    ],
)
def test_wrong_tolerances(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        Stop(**choices)


# ------------------------------------------------------------------------------------------- one system


def test_converged() -> None:
    status = status_of(4.0, 1.0, 1e-6, 1e-9, norm=2.0)
    assert (status.converged, status.reason, status.iterations) == (True, "converged", 2)
    assert status.residual == pytest.approx(1e-3)
    assert status.relative == pytest.approx(5e-4)
    np.testing.assert_allclose(status.history, [2.0, 1.0, 1e-3])
    np.testing.assert_array_equal(status.each, [2])
    assert status.require() is status


def test_converged_before_the_first_iteration() -> None:
    assert status_of(1e-8, 1e-8, 1e-8).iterations == 0
    nothing = status_of(0.0, norm=0.0)
    assert (nothing.converged, nothing.iterations, nothing.relative) == (True, 0, 0.0)


def test_not_yet() -> None:
    status = status_of(4.0, 1.0, 0.25)
    assert (status.converged, status.reason, status.iterations, status.residual) == (False, "iterations", 2, 0.5)
    assert status_of(1.0, norm=0.0).relative == np.inf


def test_residuals_that_stay_the_same_are_no_breakdown() -> None:
    status = status_of(1.0, 1.0, 1.0, 1.0)
    assert (status.reason, status.iterations) == ("iterations", 3)
    assert status_of(1.0, 1.0, 1.0, 1e-7).iterations == 3


def test_breakdown_is_marked_by_a_sign() -> None:
    status = status_of(4.0, 1.0, -1.0, -1.0, -1.0)
    assert (status.converged, status.reason, status.iterations, status.residual) == (False, "breakdown", 1, 1.0)
    np.testing.assert_array_equal(status.history, [2.0, 1.0])
    assert status_of(4.0, -4.0).iterations == 0


def test_what_happens_first_counts() -> None:
    assert status_of(1.0, 1e-8, np.nan).reason == "converged"
    assert status_of(1.0, -1.0, np.nan).reason == "breakdown"
    assert status_of(1.0, np.inf, 1e-8).reason == "not finite"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad: float) -> None:
    status = status_of(4.0, 1.0, bad, bad)
    assert (status.converged, status.reason, status.iterations) == (False, "not finite", 2)
    assert not np.isfinite(status.residual)
    assert status.history.size == 3
    status = status_of(bad, norm=bad)
    assert (status.reason, status.iterations) == ("not finite", 0)


# --------------------------------------------------------------------------------------- several systems


def test_the_worst_of_several_systems() -> None:
    squares = np.array([[1.0, 1.0, 1.0], [1e-8, 1.0, 1e-2], [1e-8, 1e-8, 1e-9]])
    status = judge(squares, np.ones(3), Stop(rtol=1e-3))
    assert (status.converged, status.iterations) == (True, 2)
    np.testing.assert_array_equal(status.each, [1, 2, 2])
    squares[2, 2] = 1e-2
    assert judge(squares, np.ones(3), Stop(rtol=1e-3)).reason == "iterations"
    squares[2, 1] = -1.0
    assert judge(squares, np.ones(3), Stop(rtol=1e-3)).reason == "breakdown"
    squares[1, 0] = np.nan
    status = judge(squares, np.ones(3), Stop(rtol=1e-3))
    assert (status.reason, status.iterations) == ("not finite", 1)


def test_each_system_has_a_tolerance_of_its_own() -> None:
    squares = np.array([[1.0, 1e4], [1e-5, 1e-2]])
    np.testing.assert_array_equal(judge(squares, np.array([1.0, 1e4]), Stop(rtol=1e-2)).each, [1, 1])
    assert not judge(squares, np.array([1.0, 1.0]), Stop(rtol=1e-2)).converged


@pytest.mark.parametrize(
    ("squares", "words"),
    [
        ((1.0, 0.25), "after 1 iterations, .r. = 5.000e-01, .r./.b. = 2.500e-01: allow more with Stop"),
        ((1.0, -1.0), "after 0 iterations.*a division by zero; conjugate gradients need a symmetric matrix.*BiCGStab"),
        ((1.0, np.nan), "NaN or infinity: look at the matrix"),
    ],
)
def test_what_is_said(squares: tuple[float, ...], words: str) -> None:
    status = status_of(*squares, norm=2.0)
    with pytest.raises(SolverError, match=f"pressure: not converged.*{words}"):
        status.require("pressure")
