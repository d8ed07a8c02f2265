"""Plans against discrete solutions: every boundary pair, centring, size, axis of the line, precision, and memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse.linalg

from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.poisson import Dirichlet, Neumann, Plan, solve
from tests.unit.linalg.poisson.problems import CONSTANT, ENDS, check, coordinates, wanted

CENTRINGS = ("cell", "node")
DEVICE = CpuDevice(2)


def allowed(shape, bc, centring) -> bool:
    return not any(n == 1 and centring == "node" and one == "neumann" for n, one in zip(shape, bc, strict=True))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("centring", CENTRINGS)
@pytest.mark.parametrize("ends", ENDS)
def test_one_dimension(ends, centring, dtype):
    for n in (1, 2, 3, 8, 13) if dtype == "float64" else (1, 8, 13):
        if allowed((n,), [ends], centring):
            check(Plan(n, 0.3, [ends], centring=centring, dtype=dtype, device=DEVICE))
            x = coordinates(n, ends, centring, n)
            check(Plan(n, [x], [ends], centring=centring, dtype=dtype, device=DEVICE))


@pytest.mark.parametrize("centring", CENTRINGS)
@pytest.mark.parametrize("bc", list(itertools.product(ENDS, repeat=2)))
def test_two_dimensions(bc, centring):
    for number, shape in enumerate([(7, 4), (2, 3), (1, 5)]):
        if not allowed(shape, bc, centring):
            continue
        dtype = ("float64", "float32")[number % 2]
        check(Plan(shape, (0.3, 0.4), bc, centring=centring, dtype=dtype, device=DEVICE))
        check(Plan(shape, (0.3, 0.4), bc, centring=centring, shift=-1.3, line=1, device=DEVICE))
    check(Plan((6, 5), (0.3, 0.4), bc, centring=centring, line=None, device=DEVICE))
    check(Plan((6, 5), (0.3, 0.4), bc, centring=centring, shift=1.3, device=DEVICE))


@pytest.mark.parametrize("centring", CENTRINGS)
@pytest.mark.parametrize("bc", [
    pytest.param(bc, marks=[pytest.mark.long] if k % 2 else [])
    for k, bc in enumerate(list(itertools.product(ENDS, repeat=3))[::3])
])  # fmt: skip
def test_three_dimensions(bc, centring):
    number = sum(5**k * ENDS.index(one) for k, one in enumerate(bc))
    shape = ((4, 6, 5), (5, 2, 3), (3, 7, 4))[number % 3]
    dtype = ("float64", "float32")[number // 2 % 2]
    check(Plan(shape, (0.3, 0.4, 0.5), bc, centring=centring, dtype=dtype, device=DEVICE))
    line = (0, 1, 2, None)[number % 4]
    check(Plan(shape, (0.3, 0.4, 0.5), bc, centring=centring, line=line, device=DEVICE))


@pytest.mark.parametrize("centring", CENTRINGS)
@pytest.mark.parametrize("number", range(10))
def test_stretched(number, centring):
    """One, two or three stretched directions: one is that of the line, the others have dense eigenvectors."""
    rng = np.random.default_rng(number)
    bc = [ENDS[k] for k in rng.integers(len(ENDS), size=3)]
    shape = (5, 8, 6)
    spacing = [coordinates(n, one, centring, k) if rng.integers(2) or k == number % 3 else 0.3
               for k, (n, one) in enumerate(zip(shape, bc, strict=True))]  # fmt: skip
    check(Plan(shape, spacing, bc, centring=centring, device=DEVICE))
    check(Plan(shape, spacing, bc, centring=centring, device=DEVICE, dtype="float32", line=None))
    check(Plan(shape, spacing, bc, centring=centring, device=DEVICE, transforms="matrix", shift=-0.5))


def test_stretched_axis_is_that_of_the_line():
    x = coordinates(6, "periodic", "cell", 0)
    assert Plan((8, 6), (0.1, x), "periodic", device=DEVICE).way.line == 1
    assert Plan((8, 6), 0.1, ["periodic", "neumann"], device=DEVICE).way.line == 1
    assert Plan((8, 6), 0.1, "neumann", device=DEVICE).way.line == 0
    assert Plan((8, 6), 0.1, "periodic", device=DEVICE).way.line is None
    assert Plan((8, 6), 0.1, "neumann", shift=1.0, device=DEVICE).way.line is None


@pytest.mark.parametrize("centring", CENTRINGS)
def test_centring_for_each_axis(centring):
    check(Plan((5, 6), 0.2, ("neumann", "dirichlet"), centring=(centring, "node"), device=DEVICE))


def test_large_prime_factors_are_done_by_dense_eigenvectors():
    """The sine transform of 256 nodes is a Fourier transform of length 2 x 257."""
    plan = Plan((4, 256), 0.1, "dirichlet", centring="node", device=DEVICE)
    assert plan.way.real == ((1, "matrix"),)
    check(plan)
    assert Plan((4, 255), 0.1, "dirichlet", centring="node", device=DEVICE).way.real == ((1, "dst1"),)


@pytest.mark.parametrize("centring", CENTRINGS)
@pytest.mark.parametrize("ends", ENDS[1:])
@pytest.mark.parametrize("line", [0, 1, None])
def test_boundary_data(ends, centring, line):
    kinds = (ends, ends) if isinstance(ends, str) else ends
    rng = np.random.default_rng(3)
    make = {"dirichlet": Dirichlet, "neumann": Neumann}
    bc = [
        (make[kinds[0]](rng.standard_normal((6, 4))), make[kinds[1]](2.5)),
        "periodic",
        (kinds[0], make[kinds[1]](rng.standard_normal((5, 6)))),
    ]
    plan = Plan((5, 6, 4), (0.2, 0.3, 0.4), bc, centring=centring, line=line, device=DEVICE)
    assert np.abs(plan.boundary()).max() > 0.1
    check(plan)
    u, f = wanted(plan)
    np.testing.assert_allclose(plan(f, out=f), u, atol=1e-12)


def test_one_dimension_with_data():
    plan = Plan(9, 0.1, [(Dirichlet(1.0), Neumann(-2.0))], device=DEVICE)
    x = 0.05 + 0.1 * np.arange(9)
    np.testing.assert_allclose(plan(np.zeros(9)), 1.0 - 2.0 * x, rtol=1e-12)


@pytest.mark.parametrize("bc", ["neumann", ["periodic", "dirichlet", "neumann"], "periodic"])
def test_in_place(bc):
    plan = Plan((6, 5, 8), 0.3, bc, device=DEVICE)
    u, f = wanted(plan)
    apart = plan(f)
    assert plan(f, out=f) is f
    np.testing.assert_array_equal(f, apart)
    np.testing.assert_allclose(f, u, atol=1e-12)


def test_arrays_with_gaps_and_of_other_orders():
    plan = Plan((6, 5), 0.3, ["periodic", "neumann"], device=DEVICE)
    u, f = wanted(plan)
    gaps, result = np.zeros((6, 10)), np.full((12, 5), 7.0)
    gaps[:, ::2] = f
    found = plan(gaps[:, ::2], out=result[::2])
    np.testing.assert_allclose(found, u, atol=1e-12)
    assert (result[1::2] == 7.0).all()
    np.testing.assert_allclose(plan(np.asfortranarray(f)), u, atol=1e-12)
    f.flags.writeable = False
    np.testing.assert_allclose(plan(f), u, atol=1e-12)
    np.testing.assert_allclose(plan(f.ravel()), u.ravel(), atol=1e-12)


@pytest.mark.parametrize("bc", ["neumann", ["periodic", "dirichlet"], "periodic"])
def test_dats_with_ghosts(bc):
    context = Context("cpu", threads=2)
    plan = Plan((6, 5), 0.3, bc, device=context)
    u, f = wanted(plan)
    grid = context.grid((6, 5), ghost=1)
    given, result = context.dat(grid, f), context.dat(grid)
    result.storage()[...] = 7.0
    before = result.version
    assert plan(given, out=result) is result
    assert result.version > before
    np.testing.assert_allclose(result.read(), u, atol=1e-12)
    ghosts = result.storage().copy()
    ghosts[1:-1, 1:-1] = 7.0
    assert (ghosts == 7.0).all()
    np.testing.assert_array_equal(given.read(), f)
    np.testing.assert_allclose(plan(given, out=given).read(), u, atol=1e-12)
    np.testing.assert_allclose(solve(context.dat(grid, f), 0.3, bc).read(), u, atol=1e-12)


@pytest.mark.opencl
@pytest.mark.parametrize(("bc", "dtype"), [
    ("neumann", "float64"), (["periodic", "dirichlet", "neumann"], "float32"), ("periodic", "float64"),
    pytest.param("neumann", "float32", marks=pytest.mark.long),
    pytest.param(["periodic", "dirichlet", "neumann"], "float64", marks=pytest.mark.long),
    pytest.param("periodic", "float32", marks=pytest.mark.long),
])  # fmt: skip
def test_kernels_of_work_items(bc, dtype):
    context = Context("opencl")
    check(Plan((6, 5, 8), (0.3, 0.4, 0.5), bc, dtype=dtype, device=context))
    x = coordinates(6, bc if isinstance(bc, str) else bc[0], "cell", 5)
    check(Plan((6, 5, 8), (x, 0.4, 0.5), bc, dtype=dtype, device=context))


@pytest.mark.opencl
def test_kernels_with_dats_and_data():
    context = Context("opencl")
    plan = Plan((6, 5), 0.3, [(Dirichlet(np.arange(5.0)), "neumann"), "periodic"], device=context)
    u, f = wanted(plan)
    grid = context.grid((6, 5), ghost=1)
    given, result = context.dat(grid, f), context.dat(grid)
    np.testing.assert_allclose(plan(given, out=result).read(), u, atol=1e-12)
    np.testing.assert_allclose(plan(given, out=given).read(), u, atol=1e-12)


def test_calls_are_kept_for_the_same_memory():
    plan = Plan((6, 5), 0.3, "neumann", device=DEVICE)
    arrays = [np.random.default_rng(k).standard_normal((6, 5)) for k in range(6)]
    u = np.empty((6, 5))
    plan(arrays[0], out=u)
    steps = next(iter(plan._steps.values()))
    plan(arrays[0], out=u)
    assert list(plan._steps.values()) == [steps]
    for one in arrays:
        plan(one, out=u)
    assert len(plan._steps) == 4
    assert steps not in plan._steps.values()


def test_steps_run_on_fixed_memory():
    plan = Plan((6, 5), 0.3, "neumann", device=DEVICE)
    u, f = wanted(plan)
    source, target = DeviceArray.of(DEVICE, f), DeviceArray.zeros(DEVICE, (6, 5))
    steps = plan.steps(source, target)
    steps()
    np.testing.assert_allclose(target.host(), u, atol=1e-12)
    f *= 2
    steps()
    np.testing.assert_allclose(target.host(), 2 * u, atol=1e-12)
    assert plan.removed == pytest.approx(2 * CONSTANT)
    plan.check()


def test_check_knows_of_every_solve_since_the_last():
    """Whatever memory was solved in; the same systems are solved by one solver."""
    plan = Plan((6, 5), 0.3, "dirichlet", device=DEVICE)
    good, bad, wide = np.zeros((6, 5)), np.zeros((6, 5)), np.zeros((6, 10))
    bad[2, 2] = np.nan
    plan(bad, out=np.empty((6, 5)))
    plan(good, out=np.empty((6, 5)))
    plan(wide[:, ::2], out=np.empty((6, 5)))
    with pytest.raises(SolverError, match="cannot solve system"):
        plan.check()
    plan.check()


def test_inverse_is_a_linear_operator():
    plan = Plan((6, 7), 0.3, ["dirichlet", "periodic"], device=DEVICE)
    matrix = plan.matrix()
    b = np.random.default_rng(0).standard_normal(42)
    np.testing.assert_allclose(matrix @ (plan.inverse @ b), b, atol=1e-11)
    np.testing.assert_allclose(plan.inverse @ b, scipy.sparse.linalg.spsolve(matrix.tocsc(), b), atol=1e-12)
    with pytest.raises(SolverError, match="boundary data"):
        _ = Plan(5, 0.3, [Dirichlet(1.0)], device=DEVICE).inverse


def test_solve_takes_what_is_there():
    f = np.random.default_rng(0).integers(-5, 6, (8, 6))
    u = solve(f, 0.5, "dirichlet")
    assert u.dtype == np.float64
    matrix = Plan((8, 6), 0.5, "dirichlet", device=DEVICE).matrix()
    np.testing.assert_allclose(matrix @ u.ravel(), f.ravel(), atol=1e-12)
    small = f.astype(np.float32)
    assert solve(small, 0.5, "dirichlet", out=small) is small
    np.testing.assert_allclose(small, u, atol=1e-5)


def test_description_names_the_way():
    plan = Plan((6, 5, 4), 0.3, ["neumann", "periodic", "dirichlet"], device=DEVICE)
    plan(np.zeros((6, 5, 4)))
    text = plan.describe()
    assert "dst2 along axis 2, dft over axis 1, tridiagonal systems along axis 0" in text
    assert "6 x 5 x 4 unknowns of float64" in text


# ---------------------------------------------------------------------------------------------------- errors
BAD = [
    ({"bc": "neuman"}, "'neuman' is none of .*did you mean 'neumann'"),
    ({"bc": ["periodic"]}, "bc has 1 entries for 2 axes"),
    ({"bc": ["periodic", ("periodic", "neumann")]}, "bc of axis 1: one end cannot be periodic alone"),
    ({"bc": ["periodic", ("neumann",)]}, "bc of axis 1 is a condition or a pair"),
    ({"bc": Dirichlet(np.zeros(3))}, r"data of shape \(3,\)"),
    ({"bc": Neumann(np.nan)}, "not finite"),
    ({"bc": Neumann("x")}, "data are numbers"),
    ({"spacing": (0.1, 0.2, 0.3)}, "spacing has 3 entries for 2 axes"),
    ({"spacing": -1.0}, "spacing of axis 0 is a positive length"),
    ({"spacing": "fine"}, "spacing of axis 0 is a number or coordinates"),
    ({"shape": (4, 0)}, "positive whole numbers"),
    ({"shape": (4, 4, 4, 4)}, "one to three positive whole numbers"),
    ({"shift": np.inf}, "shift is a finite number"),
    ({"dtype": "int32"}, "dtype is float64 or float32"),
    ({"line": 2}, "line is 'auto', None or an axis of 0 to 1"),
    ({"transforms": "matrixx"}, "did you mean 'matrix'"),
    ({"threads": -1}, "threads is a number"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), BAD)
def test_parameters_are_checked(given, message):
    usual = {"shape": (5, 4), "spacing": 0.1, "bc": "periodic", "device": DEVICE}
    with pytest.raises(SolverError, match=message):
        Plan(**{**usual, **given})


def test_shift_that_is_an_eigenvalue_is_refused():
    n, m, h = 8, 5, 0.5
    shift = 4 / h**2 * (np.sin(2 * np.pi / n) ** 2 + np.sin(np.pi * 3 / (2 * m)) ** 2)
    with pytest.raises(SolverError, match=r"eigenvalue of -L, that of mode \((2|6), 3\)"):
        Plan((n, m), h, ["periodic", "neumann"], shift=shift, device=DEVICE)
    check(Plan((n, m), h, ["periodic", "neumann"], shift=shift + 0.01, device=DEVICE))


@pytest.mark.parametrize(("f", "out", "message"), [
    (np.zeros((4, 5)), None, r"f has shape \(4, 5\), the plan \(5, 4\)"),
    (np.zeros((5, 4), "float32"), None, "f is of float32, the plan of float64"),
    (np.zeros((5, 4)), np.zeros((5, 4), "float32"), "out is of float32"),
    (np.zeros((5, 4)), [[0.0] * 4] * 5, "out is an array that can be written to"),
])  # fmt: skip
def test_arrays_are_checked(f, out, message):
    with pytest.raises(DatError, match=message):
        Plan((5, 4), 0.1, device=DEVICE)(f, out)


def test_overlap_is_refused():
    memory = np.zeros((6, 4))
    with pytest.raises(DatError, match="overlaps"):
        Plan((5, 4), 0.1, device=DEVICE)(memory[:5], out=memory[1:])


@pytest.mark.parametrize("bc", ["neumann", ["dirichlet", "periodic", "periodic"], ["neumann", "dirichlet", "periodic"]])
def test_several_threads_share_large_problems(bc):
    plan = Plan((30, 40, 32), 0.3, bc, device=DEVICE)
    check(plan)
    f = np.random.default_rng(0).standard_normal(plan.shape)
    np.testing.assert_array_equal(plan(f), Plan((30, 40, 32), 0.3, bc, device=CpuDevice(1))(f))


@pytest.mark.parametrize(("bc", "line"), [("neumann", 0), ("dirichlet", 1), ("neumann", 2), ("dirichlet", 2)])
def test_rows_of_a_power_of_two(bc, line):
    """Transforms across such rows go by way of other memory."""
    check(Plan((5, 6, 128), 0.3, bc, line=line, device=DEVICE))
    check(Plan((5, 6, 256), 0.3, bc, line=line, dtype="float32", device=DEVICE))
