"""Plans at the edge of what can be solved, and what they say beyond it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.dsl.context import Context
from fluxloom.linalg.direct.poisson import Cut, Dirichlet, Neumann, Plan, solve
from fluxloom.linalg.direct.poisson.decomposition import decompose
from tests.unit.linalg.poisson.problems import check

DEVICE = CpuDevice(2)


@pytest.mark.parametrize(("shape", "bc"), [((1,), "neumann"), ((3, 1, 4), ["periodic", "neumann", "neumann"])])
def test_a_line_of_one_cell(shape, bc):
    plan = Plan(shape, 0.1, bc, line=0 if len(shape) == 1 else 1, device=DEVICE)
    check(plan)
    np.testing.assert_array_equal(plan(np.full(shape, 3.0)), 0.0)
    assert plan.removed == 3.0


# -------------------------------------------------------------------------------------------------- small shifts
@pytest.mark.parametrize("shift", [-0.01, -0.1])
def test_a_small_negative_shift_keeps_the_mean(shift):
    n = 128
    plan = Plan((n, n), 1 / n, "neumann", shift=shift, dtype="float32", device=DEVICE)
    assert plan.way.line is None
    x = (np.arange(n) + 0.5) / n
    u = np.add.outer(np.cos(np.pi * x), np.cos(2 * np.pi * x)) + 3.0
    f = (plan.matrix() @ u.ravel()).reshape(n, n)
    np.testing.assert_allclose(plan(f.astype(np.float32)).mean() / (f.mean() / shift), 1.0, rtol=1e-3)
    eigenvalue = 4 * n**2 * np.sin(np.pi / (2 * n)) ** 2
    wave = np.multiply.outer(np.cos(np.pi * x), np.ones(n)) + 3.0
    image = 3.0 * shift + (shift - eigenvalue) * (wave - 3.0)
    found = plan(image.astype(np.float32))
    assert np.abs(found - wave).max() <= 1e-5 + 10 * np.finfo(np.float32).eps * np.abs(image).max() / abs(shift)
    with pytest.raises(SolverError, match=r"line=0: systems along axis 0 .* in float32 only.* give line=None"):
        Plan((n, n), 1 / n, "neumann", shift=shift, dtype="float32", line=0, device=DEVICE)


def test_lines_are_kept_where_nothing_is_lost():
    assert Plan((16, 16), 0.1, "neumann", shift=-1.0, device=DEVICE).way.line == 0
    assert Plan((16, 16), 1e-4, "neumann", shift=-1.0, device=DEVICE).way.line is None
    assert Plan((16, 16), 1e-4, ["neumann", "dirichlet"], shift=-1.0, device=DEVICE).way.line == 0


def test_ranks_take_transforms_as_well():
    problem = Plan((16, 16), 1e-4, "neumann", shift=-1.0, device=DEVICE).problem
    found = decompose(problem, 2, Cut(), "auto", "auto")
    assert (found.kind, found.way.line) == ("pencils", None)
    with pytest.raises(SolverError, match=r"slabs are not possible: .*give line=None"):
        decompose(problem, 2, Cut(decomposition="slabs"), "auto", "auto")
    for shift in (-1.0, 1.3):
        alone = Plan(16, 1e-4, "neumann", shift=shift, device=DEVICE).problem
        with pytest.raises(SolverError, match="give the problem to one rank"):
            decompose(alone, 2, Cut(), "auto", "auto")


@pytest.mark.parametrize("shift", [-1e-20, -1e-16, 1e-16, 1e-13])
def test_the_rounding_of_zero_is_no_shift(shift):
    with pytest.raises(SolverError, match=r"rounding of zero.*leave the shift 0: the mean is then removed"):
        Plan((8, 8), 0.1, "neumann", shift=shift, device=DEVICE)


# ------------------------------------------------------------------------------------------------------- spacing
@pytest.mark.parametrize(("spacing", "dtype"), [
    (1e160, "float64"), (1e-160, "float64"), (1e25, "float32"), (1e-25, "float32"),
    (np.array([-1.7e308, 0.0, 1e308, 1.2e308, 1.7e308]), "float64"),
])  # fmt: skip
def test_spacing_beyond_the_type(spacing, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SolverError, match=rf"spacing of axis 0: .* beyond {dtype}"):
            Plan(4, spacing, "neumann", dtype=dtype, device=DEVICE)


@pytest.mark.parametrize(("spacing", "dtype"), [(1e100, "float64"), (1e-100, "float64"), (1e-12, "float32")])
def test_spacing_near_the_ends_of_the_type(spacing, dtype):
    plan = Plan((4, 5), spacing, ["neumann", "dirichlet"], dtype=dtype, device=DEVICE)
    u = np.random.default_rng(0).standard_normal((4, 5))
    f = (plan.matrix() @ u.ravel()).reshape(4, 5).astype(dtype)
    np.testing.assert_allclose(plan(f), u, rtol=0, atol=1e-12 if dtype == "float64" else 1e-4)


# ---------------------------------------------------------------------------------------------------- parameters
BAD = [
    ({"cut": (2, 1)}, r"cut=\(2, 1\) on one rank"),
    ({"cut": 3}, "cut=3 on one rank"),
    ({"cut": Cut(decomposition="slab")}, "did you mean 'slabs'"),
    ({"spacing": True}, "spacing of axis 0 is a number or coordinates"),
    ({"spacing": None}, "spacing of axis 0 is a number or coordinates, not None"),
    ({"spacing": (0.1, "0.1")}, "spacing of axis 1 is a number or coordinates"),
    ({"spacing": (0.1, 1j)}, "spacing of axis 1 is a number or coordinates"),
    ({"spacing": (np.ma.array(np.arange(6.0), mask=[0, 0, 1, 0, 0, 0]), 0.1)}, "axis 0 is a masked array"),
    ({"bc": Dirichlet(np.ma.array(1.0))}, "masked array"),
    ({"shape": None}, "shape is one to three"),
    ({"dtype": ">f8"}, "in the byte order of this machine"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), BAD)
def test_parameters_are_checked(given, message):
    usual = {"shape": (5, 4), "spacing": 0.1, "bc": "periodic", "device": DEVICE}
    with pytest.raises(SolverError, match=message):
        Plan(**{**usual, **given})


def test_what_is_right_on_one_rank_is_taken():
    plan = Plan((5, 4), np.array(0.1), "dirichlet", cut=Cut((1, 1), "pencils"), device=DEVICE)
    check(plan)
    assert repr(plan) == str(plan) == plan.describe()


def test_a_pair_is_the_two_ends_in_one_dimension():
    plan = Plan(9, 0.1, (Dirichlet(1.0), Neumann(-2.0)), device=DEVICE)
    np.testing.assert_allclose(plan(np.zeros(9)), 1.0 - 2.0 * (0.05 + 0.1 * np.arange(9)), rtol=1e-12)


def test_a_plan_larger_than_the_memory_takes_none():
    plan = Plan((10**6, 10**6), 0.1, device=DEVICE)
    with pytest.raises(DatError, match=r"f has shape \(2, 2\)"):
        plan(np.zeros((2, 2)))


# -------------------------------------------------------------------------------------------------------- arrays
@pytest.mark.parametrize(("f", "message"), [
    ("abc", "f is an array or a dat"), (None, "f is an array or a dat"), ([[1.0], [1.0, 2.0]], "rows of one length"),
    (np.ma.array(np.zeros((5, 4))), "masked array"),
])  # fmt: skip
def test_solve_checks_what_it_is_given(f, message):
    with pytest.raises(DatError, match=message):
        solve(f, 0.1)


def test_plans_refuse_masked_and_swapped_arrays():
    plan = Plan((5, 4), 0.1, device=DEVICE)
    with pytest.raises(DatError, match="f is a masked array"):
        plan(np.ma.array(np.zeros((5, 4))))
    with pytest.raises(DatError, match="another byte order"):
        plan(np.zeros((5, 4), ">f8"))


def test_solve_refuses_dats_that_are_on_no_grid():
    context = Context("cpu", threads=1)
    with pytest.raises(DatError, match="give a dat of a grid"):
        solve(context.dat(context.set(4, "points")), 0.1)


def test_solve_looks_at_the_result():
    f = np.full((4, 4), 1e307)
    f[::2] *= -1
    with pytest.raises(SolverError, match="not finite, though f is"):
        solve(f, 1e10)
    with pytest.raises(SolverError, match=r"cannot solve system|not finite"):
        solve(f, 1e10, "dirichlet")
    with np.errstate(all="ignore"):
        assert not np.isfinite(solve(f, 1e10, check=False)).all()
    assert np.isnan(solve(np.full((4, 4), np.nan), 0.1, "dirichlet")).all()


@pytest.mark.parametrize("bc", ["neumann", "dirichlet"])
def test_transpose_of_the_inverse(bc):
    faces = np.array([0.0, 0.1, 0.3, 0.4, 0.8, 0.9])
    inverse = Plan((5, 4), (faces, 0.2), bc, device=DEVICE).inverse
    whole = np.stack([inverse @ one for one in np.eye(20)], axis=1)
    assert np.abs(whole - whole.T).max() > 1e-3
    np.testing.assert_allclose(np.stack([inverse.rmatvec(one) for one in np.eye(20)], axis=1), whole.T, atol=1e-13)
