"""Two devices for one problem, divided by level, and three directions in batches of planes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.linalg.direct.separable import PeriodicSolver, Separable, SplitSolver
from fluxloom.linalg.direct.separable.batches import moved_columns
from fluxloom.linalg.direct.separable.coefficients import null_weights
from fluxloom.linalg.direct.separable.program import FORMS, make_program

from .problems import problem, solution

DEVICES = ["cpu:1", pytest.param("opencl", marks=pytest.mark.opencl)]


def runs(cpu: list[tuple], opencl: list[tuple]) -> list:
    """Return parameters that begin with the device: all on the processor, few where compiling takes long."""
    marks = pytest.mark.opencl
    return [("cpu:1", *one) for one in cpu] + [pytest.param("opencl", *one, marks=marks) for one in opencl]


@pytest.mark.parametrize(
    ("device", "form", "sides"), runs(list(product(FORMS, ["dd", "periodic"])), [("product", "periodic")])
)
def test_every_split(device, form, sides):
    given = problem(13, 9, sides, "nn")
    u = solution(given)
    f = given.times(u) + (0.5 if given.singular else 0.0)
    for split in range(make_program(given, form).levels + 1):
        solver = SplitSolver(given, device, CpuDevice(1), split=split, form=form)
        for _ in range(2):
            np.testing.assert_allclose(solver(f), u, atol=1e-12)
        assert solver.removed == pytest.approx(0.5 if given.singular else 0.0, abs=1e-11)


@pytest.mark.parametrize("device", DEVICES)
def test_trace_says_what_ran_where(device):
    given = problem(31, 8)
    solver = SplitSolver(given, device, CpuDevice(1), split=2, form="product")
    assert solver.trace == []
    assert solver.transfer_share == 0
    solver.measure(np.ones(given.shape))
    order = [(one.phase, one.level) for one in solver.trace if one.kernel in ("q", "down", "up")]
    levels = [("reduction", 0), ("reduction", 1), ("transfer", 2), ("reduction", 2), ("reduction", 3)]
    levels += [("substitution", k) for k in (4, 3, 2)] + [("transfer", 2), ("substitution", 1), ("substitution", 0)]
    assert order == levels
    assert all(one.seconds > 0 for one in solver.trace if one.phase != "transfer")
    assert 0 < solver.transfer_share < 1
    names = {one.device for one in solver.trace if one.level < 2}
    assert names == {solver.device.name}


@pytest.mark.opencl
def test_split_is_tuned():
    given = problem(31, 8)
    solver = SplitSolver(given, "opencl", CpuDevice(1), form="product")
    assert len(solver.predicted) == solver.program.levels + 1
    assert solver.predicted[solver.split] == min(solver.predicted)
    u = solution(given)
    np.testing.assert_allclose(solver(given.times(u)), u, atol=1e-12)


def test_moved_columns_are_the_centres_above():
    program = make_program(problem(13, 4))
    assert moved_columns(program, 0).tolist() == list(range(13))
    assert moved_columns(program, 2).tolist() == [2, 6, 9]
    assert moved_columns(program, 4).size == 0


def test_wrong_splits_are_refused():
    with pytest.raises(SolverError, match="from 0 to 4"):
        SplitSolver(problem(13, 4), "cpu:1", split=5)
    with pytest.raises(SolverError, match=r"f has shape \(3, 3\)"):
        SplitSolver(problem(13, 4), "cpu:1", split=1)(np.ones((3, 3)))


# ------------------------------------------------------------------------------------ three directions


def periodic(given: Separable, nodes: int, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a solution and its right-hand side."""
    u = np.random.default_rng(nodes).standard_normal((nodes, *given.shape))
    if given.singular:
        u -= np.einsum("xyz,y,z->", u, null_weights(given.y), null_weights(given.x)) / nodes
    f = np.array([given.times(plane) for plane in u])
    return u, f + (np.roll(u, 1, 0) - 2 * u + np.roll(u, -1, 0)) / spacing**2


@pytest.mark.parametrize(
    ("device", "nodes", "sides"), runs(list(product([3, 8, 9], ["dd", "nn", "periodic"])), [(9, "nn")])
)
def test_periodic_direction(device, nodes, sides):
    given, spacing = problem(7, 5, sides, "nn"), 2 * np.pi / nodes
    u, f = periodic(given, nodes, spacing)
    solver = PeriodicSolver(given, nodes, spacing, device)
    np.testing.assert_allclose(solver(f + (0.25 if given.singular else 0.0)), u, atol=1e-12)
    assert solver.removed == pytest.approx(0.25 if given.singular else 0.0, abs=1e-11)
    assert solver.count == 1


@pytest.mark.parametrize(
    ("device", "form", "batches"), runs(list(product(FORMS, [1, 3, "auto"])), [("partial_fractions", "auto")])
)
def test_batches_on_two_devices(device, form, batches):
    given, spacing = problem(7, 5, "nn", "nn"), 0.3
    u, f = periodic(given, 8, spacing)
    solver = PeriodicSolver(given, 8, spacing, device, host=CpuDevice(1), split=1, batches=batches, form=form)
    out = np.zeros_like(u)
    assert solver(f, out=out) is out
    np.testing.assert_allclose(out, u, atol=1e-12)
    np.testing.assert_allclose(solver(f), u, atol=1e-12)
    if batches == "auto":
        assert solver.tried[solver.count] == min(solver.tried.values())
        assert set(solver.tried) == {1, 2, 3, 4}
    else:
        assert solver.count == batches
    trace = solver.measure(f)
    planes = 5 + 4  # real parts of five modes, imaginary ones of all but the first
    assert sum(one.systems for one in trace) == solver.program.solves * planes
    assert {one.phase for one in trace} == {"reduction", "substitution", "transfer"}
    assert solver.seconds(1) > 0


def test_wrong_numbers_are_refused():
    given = problem(7, 5)
    with pytest.raises(SolverError, match="at least 3"):
        PeriodicSolver(given, 2, 0.1, "cpu:1")
    with pytest.raises(SolverError, match="from 0 to 3"):
        PeriodicSolver(given, 8, 0.1, "cpu:1", split=4)
    with pytest.raises(SolverError, match="9 batches of 5 modes"):
        PeriodicSolver(given, 8, 0.1, "cpu:1", batches=9)
    with pytest.raises(SolverError, match=r"the problem has \(8, 7, 5\)"):
        PeriodicSolver(given, 8, 0.1, "cpu:1", batches=1)(np.ones((7, 7, 5)))
