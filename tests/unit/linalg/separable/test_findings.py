"""What solvers and equations are given by mistake, and what they say; what they accept besides their own types."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DatError, DeviceUnavailable, SolverError
from fluxloom.linalg.direct.separable import Axis, PeriodicSolver, SeparableEquation, SeparableSolver, SplitSolver
from fluxloom.linalg.direct.separable.program import make_program


@pytest.fixture(scope="module")
def equation() -> SeparableEquation:
    return SeparableEquation((Axis(7, diffusion=lambda t: 1 + t), Axis(9)))


@pytest.fixture(scope="module")
def solver(equation: SeparableEquation) -> SeparableSolver:
    return SeparableSolver(equation, "cpu")


def test_out_that_cannot_hold_the_solution_is_refused(solver: SeparableSolver) -> None:
    f = np.ones((7, 9))
    read_only = np.zeros((7, 9))
    read_only.flags.writeable = False
    for out, message in (
        (np.zeros((7, 9), np.float32), "out is of float32, the solver of float64"),
        (np.zeros((7, 9), int), "out is of int64"),
        (np.zeros((9, 7)), r"out has shape \(9, 7\), the problem \(7, 9\)"),
        (read_only, "out is read-only"),
        ([0.0], "not a list"),
    ):
        with pytest.raises(DatError, match=message):
            solver(f, out=out)
    context = fl.Context("cpu", threads=1)
    with pytest.raises(DatError, match="out is of float32"):
        solver(f, out=context.dat(context.grid((7, 9)), dtype="float32"))


def test_whole_numbers_on_the_right_are_solved(solver: SeparableSolver, equation: SeparableEquation) -> None:
    out = np.zeros((7, 9))
    assert solver(np.ones((7, 9), int), out=out) is out
    np.testing.assert_allclose(equation.problem.times(out), 1.0, atol=1e-10)
    with pytest.raises(SolverError, match="f is of complex128: give real numbers"):
        solver(np.ones((7, 9), complex))


def test_values_of_another_type_are_read_at_each_solve(solver: SeparableSolver, equation: SeparableEquation) -> None:
    f, out = np.ones((7, 9), np.float32), np.zeros((7, 9))
    solver(f, out=out)
    f *= 3
    np.testing.assert_allclose(equation.problem.times(solver(f, out=out)), 3.0, atol=1e-10)


def test_arguments_of_solvers(equation: SeparableEquation) -> None:
    for given, message in (
        ({"dtype": int}, "dtype is float64 or float32, not <class 'int'>"),
        ({"dtype": "f2"}, "dtype is float64 or float32, not 'f2'"),
        ({"threads": -1}, "threads is a whole number, at least 0 .*, not -1"),
        ({"threads": 1.5}, "threads is a whole number, .*, not 1.5"),
    ):
        for make in (
            lambda given: SeparableSolver(equation, "cpu", **given),
            lambda given: SplitSolver(equation, "cpu", **given),
            lambda given: PeriodicSolver(equation, 4, 0.1, "cpu", **given),
        ):
            with pytest.raises(SolverError, match=message):
                make(given)
    with pytest.raises(SolverError, match=r"chunk is a whole number, at least 0 .*, not -1"):
        SeparableSolver(equation, "cpu", chunk=-1)
    with pytest.raises(SolverError, match=r"nodes is a whole number, at least 3, not 4\.5"):
        PeriodicSolver(equation, 4.5, 0.1, "cpu")  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="a problem is a Separable or a SeparableEquation, not 3"):
        SeparableSolver(3)  # type: ignore[arg-type]
    with pytest.raises(DeviceUnavailable, match="a device is a name"):
        SeparableSolver(equation, 3)  # type: ignore[arg-type]


def test_solvers_are_printed(solver: SeparableSolver, equation: SeparableEquation) -> None:
    assert str(solver) == solver.describe()
    split = SplitSolver(equation, "cpu", split=1)
    assert "from level 1 on with cpu, below with cpu" in str(split)
    with pytest.raises(DatError, match="out is of float32"):
        split(np.ones((7, 9)), np.zeros((7, 9), np.float32))
    periodic = PeriodicSolver(equation, 4, 0.1, "cpu")
    assert "3 modes in 1 batches, 7 columns of 9 unknowns" in str(periodic)
    with pytest.raises(DatError, match=r"out has shape \(7, 9\), the problem \(4, 7, 9\)"):
        periodic(np.ones((4, 7, 9)), np.zeros((7, 9)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"unknowns": 2.5}, r"whole number, at least 1, not 2\.5"),
        ({"unknowns": 8, "interval": 0.0}, r"interval of an axis: where it begins and ends, .* not 0\.0"),
        ({"unknowns": 8, "interval": (0.0,)}, r"interval of an axis: .* not \(0\.0,\)"),
        ({"unknowns": 8, "interval": (1.0, 0.0)}, "begins at 1 and ends at 0"),
        ({"unknowns": 8, "interval": (0.0, np.inf)}, "ends at inf"),
        ({"unknowns": 8, "diffusion": "a"}, "diffusion of an axis: a real number, .* not 'a'"),
        ({"unknowns": 8, "reaction": 1j}, "reaction of an axis: a real number, .* not 1j"),
    ],
    ids=str,
)
def test_wrong_axes(given: dict, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        Axis(**given)


def test_wrong_equations() -> None:
    axis = Axis(8)
    for axes in (axis, (axis,), (axis, 8)):
        with pytest.raises(SolverError, match="axes are two of Axis"):
            SeparableEquation(axes)  # type: ignore[arg-type]
    with pytest.raises(SolverError, match=r"^separable: bc of axis 0: 'dirichlt' is none of.*dirichlet"):
        SeparableEquation((axis, axis), "dirichlt")
    with pytest.raises(SolverError, match=r"diffusion has shape \(1,\) at 9 points: give a number, or one a point"):
        SeparableEquation((Axis(8, diffusion=lambda _: [1.0]), axis))
    with pytest.raises(SolverError, match=r"reaction is not finite at 0\.0625 \(1 of 8 points\)"):
        SeparableEquation((Axis(8, reaction=lambda t: np.where(t < 0.1, np.nan, 0.0)), axis))
    with pytest.raises(SolverError, match="diffusion of x and that of y have different signs"):
        make_program(SeparableEquation((Axis(8, diffusion=-1.0), axis)).problem)


def test_right_sides(equation: SeparableEquation) -> None:
    y, x = equation.points
    np.testing.assert_array_equal(equation.right_side(lambda y, x: y * np.sin(x)), y[:, None] * np.sin(x))
    np.testing.assert_array_equal(equation.right_side(lambda y, _: y), np.broadcast_to(y[:, None], (7, 9)))
    with pytest.raises(SolverError, match=r"right side has shape \(3, 3\); the equation has \(7, 9\) unknowns"):
        equation.right_side(np.ones((3, 3)))
    with pytest.raises(SolverError, match="right side: a real number"):
        equation.right_side("one")
