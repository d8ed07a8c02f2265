"""The solver on the processor: arrays of all kinds, errors, traces."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.opencl.device import OpenClDevice
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.separable import SeparableSolver
from fluxloom.linalg.direct.separable.text import choose_shape
from fluxloom_lab.exact.separable_oracle import run

from .problems import backward_error, problem, solution


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice(2)


def test_many_right_sides(device):
    given = problem(13, 9, "nd", "dd")
    solver = SeparableSolver(given, device)
    for seed in range(3):
        f = np.random.default_rng(seed).standard_normal(given.shape)
        np.testing.assert_allclose(solver(f), run(solver.program, f), rtol=1e-10, atol=1e-14)


def test_in_place_and_into_another_array(device):
    given = problem(8, 9)
    u = solution(given)
    f = given.times(u)
    solver, out = SeparableSolver(given, device), np.zeros(given.shape)
    assert solver(f, out=out) is out
    np.testing.assert_allclose(out, u, atol=1e-13)
    assert solver(f, out=f) is f
    np.testing.assert_array_equal(f, out)


def test_arrays_with_gaps(device):
    given = problem(8, 9)
    u = solution(given)
    f = np.zeros((8, 18))[:, ::2]
    f[...] = given.times(u)
    out = np.zeros((9, 8)).T
    SeparableSolver(given, device)(f, out=out)
    np.testing.assert_allclose(out, u, atol=1e-13)
    SeparableSolver(given, device)(f, out=f)
    np.testing.assert_array_equal(f, out)


def test_dats_with_ghosts():
    context = fl.Context("cpu", threads=1)
    given = problem(6, 7)
    u = solution(given)
    dat = context.dat(context.grid(given.shape, ghost=1), given.times(u))
    SeparableSolver(given, context)(dat, out=dat)
    np.testing.assert_allclose(np.asarray(dat.data_ro).reshape(given.shape), u, atol=1e-13)


def test_other_values_in_the_same_memory(device):
    given = problem(8, 9)
    solver = SeparableSolver(given, device)
    f, out = np.ones(given.shape), np.zeros(given.shape)
    first = solver(f, out=out).copy()
    f *= 2
    np.testing.assert_allclose(solver(f, out=out), 2 * first, rtol=1e-14)


@pytest.mark.parametrize("form", ["product", "partial_fractions"])
def test_single_precision(device, form):
    given = problem(31, 32)
    u = solution(given)
    f = given.times(u)
    found = SeparableSolver(given, device, form=form, dtype=np.float32)(f)
    assert found.dtype == np.float32
    assert backward_error(given, found, f) < 30
    assert np.abs(found - u).max() < 2e-3


def test_threads_give_the_same_bits():
    given = problem(31, 32)
    f = given.times(solution(given))
    found = [SeparableSolver(given, CpuDevice(threads))(f) for threads in (1, 2)]
    np.testing.assert_array_equal(*found)


def test_singular_problem_reports_what_it_removed(device):
    given = problem(9, 12, "nn", "nn")
    u = solution(given)
    solver = SeparableSolver(given, device)
    found = solver(given.times(u) + 0.75)
    assert solver.removed == pytest.approx(0.75, abs=1e-11)
    np.testing.assert_allclose(found, u, atol=1e-12)
    assert SeparableSolver(problem(3, 3), device).removed == 0.0


def test_steps_run_on_given_memory(device):
    given = problem(8, 9)
    u = solution(given)
    memory = DeviceArray.of(device, given.times(u))
    steps = SeparableSolver(given, device).steps(memory, memory)
    steps()
    np.testing.assert_allclose(memory.host(), u, atol=1e-13)


def test_trace_has_every_stage(device):
    given = problem(31, 8)
    solver = SeparableSolver(given, device, form="product")
    assert sum(one.seconds for one in solver.trace) == 0
    solver(np.ones(given.shape))
    trace = solver.trace
    assert {one.kernel for one in trace} == {"q", "alpha", "gamma", "p"}
    assert [one.level for one in trace if one.kernel == "q"] == [0, 1, 2, 3, 4, 3, 2, 1, 0]
    assert sum(one.systems for one in trace) == solver.program.solves
    assert all(one.seconds > 0 and one.device == "cpu" for one in trace)


def test_description(device):
    text = SeparableSolver(problem(31, 8), device).describe()
    assert text.startswith("block cyclic reduction of 31 columns of 8 unknowns, partial_fractions, 5 levels")
    assert "8 lanes" in text


def test_wrong_shapes_are_refused(device):
    solver = SeparableSolver(problem(4, 5), device)
    with pytest.raises(SolverError, match=r"f has shape \(5, 4\)"):
        solver(np.ones((5, 4)))
    with pytest.raises(DatError, match="out has shape"):
        solver(np.ones((4, 5)), out=np.ones((5, 4)))


def test_mappings_that_cannot_be_are_refused():
    with pytest.raises(SolverError, match="did you mean 'partition'"):
        choose_shape(8, False, "double", "partitions")
    with pytest.raises(SolverError, match="power of two"):
        choose_shape(9, True, "double", "block")
    with pytest.raises(SolverError, match="shared memory"):
        choose_shape(5000, False, "double", "block")


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 64, 65, 1000, 20000])
def test_items_share_rows(rows):
    shape = choose_shape(rows, False, "double", "partition")
    assert shape.items & (shape.items - 1) == 0
    assert shape.items <= min(rows, 1024)
    assert shape.block % shape.items == 0
    assert (shape.chunk - 1) * shape.items < rows <= shape.chunk * shape.items


@pytest.mark.opencl
@pytest.mark.parametrize("mapping", ["thread", "block", "partition"])
def test_arrays_go_to_a_device_and_back(mapping):
    given = problem(13, 16)
    u = solution(given)
    f, out = given.times(u), np.zeros(given.shape)
    solver = SeparableSolver(given, OpenClDevice(), mapping=mapping)
    assert solver(f, out=out) is out
    np.testing.assert_allclose(out, u, atol=1e-12)
    np.testing.assert_allclose(solver(2 * f), 2 * u, atol=1e-12)
    assert solver(f, out=f) is f
    np.testing.assert_array_equal(f, out)
    with pytest.raises(SolverError, match="the problem has"):
        solver(f.T)
