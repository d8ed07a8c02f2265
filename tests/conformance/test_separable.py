"""Block cyclic reduction on every device: both forms, all mappings, every pair of sides, sizes and precisions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.separable import SeparableSolver
from fluxloom.linalg.direct.separable.program import FORMS
from fluxloom.linalg.direct.separable.text import MAPPINGS, choose_shape, functions, helpers
from tests.unit.linalg.separable.problems import PAIRS, SIZES, backward_error, fits, problem, solution

from .harness import MARKS, context

ARCHITECTURE = "sm_90"
ROWS = 16
"""A power of two, so that every mapping solves rings."""

RUNS = [pytest.param("cpu", "partition", marks=MARKS["cpu"], id="cpu")]
RUNS += [
    pytest.param(device, mapping, marks=MARKS[device], id=f"{device}-{mapping}")
    for device in ("opencl", "cuda")
    for mapping in MAPPINGS
]
RUNS_SINGLE = [
    pytest.param(*one.values, marks=[*one.marks, *([] if "partition" in one.values else [pytest.mark.long])], id=one.id)
    for one in RUNS
]


def check(device: str, mapping: str, form: str, given, *, chunk: int = 0, forward: float = 2e-12) -> None:
    """Solve for a known solution twice; compare, and look at the residual."""
    u = solution(given)
    f = given.times(u)
    solver = SeparableSolver(given, context(device).device, form=form, mapping=mapping, chunk=chunk)
    found = solver(f)
    assert np.abs(found - u).max() < forward
    assert backward_error(given, found, f) < largest_backward_error(mapping, given.x.length)
    np.testing.assert_array_equal(solver(f), found)


def largest_backward_error(mapping: str, rows: int) -> float:
    """Return what the residual may be, in units of rounding.

    Parallel cyclic reduction divides every row anew by what is left of its diagonal. Its solution is as near as that of
    a sparse direct solver, but its residual grows as the condition of a system, the square of its rows, where few
    columns leave some that are nearly singular: on 65, 100, 129, 257, 515 and 1025 rows 18, 102, 36, 193, 400 and 1830
    were the largest for 1 to 8 columns, and 0.9 to 30 with the mapping "partition".
    """
    return max(200.0, rows**2 / 200) if mapping == "block" else 100.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("device", "mapping"), RUNS)
def test_pairs_of_sides(device, mapping, form):
    """Those that differ in kind; all pairs are among the long tests."""
    for y, x in (("periodic", "dn"), ("nn", "periodic")):
        check(device, mapping, form, problem(13, ROWS, y, x))


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("device", "mapping"), RUNS)
def test_every_pair_of_sides(device, mapping, form):
    for y, x in PAIRS:
        check(device, mapping, form, problem(21, 2 * ROWS, y, x))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("device", "mapping"), RUNS)
def test_numbers_of_columns(device, mapping, form):
    for n in (1, 3, 8, 31):
        check(device, mapping, form, problem(n, ROWS, "dn", "dd"))


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("device", "mapping"), RUNS)
@pytest.mark.parametrize("m", [1, 2, 3, 7, 9, 17, 100, 129, 515])
def test_every_number_of_columns_and_rows(device, mapping, form, m):
    for n in SIZES:
        for y in ("nd", "periodic"):
            if fits(y, n):
                check(device, mapping, form, problem(n, m, y, "dn"), forward=2e-10)


@pytest.mark.parametrize("chunk", [3, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2, 40))])
@pytest.mark.parametrize("device", [pytest.param(name, marks=MARKS[name]) for name in ("opencl", "cuda")])
def test_rows_of_an_item(device, chunk):
    check(device, "partition", "product", problem(6, 37, "dd", "periodic"), chunk=chunk)


@pytest.mark.parametrize(("device", "mapping"), RUNS)
def test_sparse_direct_solver_agrees(device, mapping):
    given = problem(31, ROWS, "nd", "dn")
    f = np.random.default_rng(3).standard_normal(given.shape)
    wanted = spsolve(given.matrix().tocsc(), f.ravel()).reshape(given.shape)
    found = SeparableSolver(given, context(device).device, mapping=mapping)(f)
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("form", [FORMS[1], pytest.param(FORMS[0], marks=pytest.mark.long)])
@pytest.mark.parametrize(("device", "mapping"), RUNS_SINGLE)
def test_single_precision(device, mapping, form):
    given = problem(31, ROWS)
    u = solution(given)
    f = given.times(u)
    found = SeparableSolver(given, context(device).device, form=form, mapping=mapping, dtype=np.float32)(f)
    assert backward_error(given, found, f) < 100
    assert np.abs(found - u).max() < 5e-3


@pytest.mark.parametrize("device", [pytest.param(name, marks=MARKS[name]) for name in ("opencl", "cuda")])
def test_rings_that_do_not_close_are_refused(device):
    with pytest.raises(SolverError, match="power of two"):
        SeparableSolver(problem(5, 9, "dd", "periodic"), context(device).device, mapping="block")


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("device", "mapping"), RUNS)
def test_511_by_511(device, mapping, form):
    """Variable coefficients in both directions, a random solution of size 1."""
    given = problem(511, 511)
    u = solution(given)
    f = given.times(u)
    found = SeparableSolver(given, context(device).device, form=form, mapping=mapping)(f)
    assert np.abs(found - u).max() < (1e-11 if form == "product" else 5e-11)
    assert backward_error(given, found, f) < 100  # with so many columns no system is nearly singular


@pytest.mark.nvcc
def test_nvcc_compiles(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    sources = []
    for mapping, real, rows, ring in (("partition", "double", 1000, True), ("block", "float", 1024, True),
                                      ("thread", "double", 9, True), ("partition", "float", 5, False)):  # fmt: skip
        shape = choose_shape(rows, ring, real, mapping)
        sources.append(tmp_path / f"{mapping}_{real}.cu")
        sources[-1].write_text(primitive_unit(functions(shape, True), "cuda", helpers(shape, True)).text)
    command = [nvcc, f"-arch={ARCHITECTURE}", "-std=c++17", "-cubin", "--threads", "2", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert all(source.with_suffix(".cubin").stat().st_size > 1000 for source in sources)
