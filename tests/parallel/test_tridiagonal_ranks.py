"""Tridiagonal systems divided over ranks, and arrays that go from one division to another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CommError, SolverError
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.transforms.ranks import Extent, Redistribution, divided
from fluxloom.linalg.direct.tridiagonal import Form, Lines, Matrices
from fluxloom.linalg.direct.tridiagonal.ranks.solver import DistributedTridiagonal

Array = np.ndarray
SCALE = 0.5


def context_of(comm: Comm, device: str = "cpu") -> fl.Context:
    return fl.Context(device, comm=comm, threads=1)


# ------------------------------------------------------------------------------------- redistribution
def moved(comm: Comm, shape: tuple[int, ...], before: Any, after: Any, dtype: str, device: str = "cpu") -> bool:
    return moved_in(context_of(comm, device), shape, before, after, dtype)


def moved_in(context: fl.Context, shape: tuple[int, ...], before: Any, after: Any, dtype: str) -> bool:
    """Return whether this rank's values are right after a move, and after the way back; moved twice."""
    whole = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    whole = whole * (1 + 2j) if whole.dtype.kind == "c" else whole
    ones, others = divided(shape, before), divided(shape, after)
    there = Redistribution(context, ones, others, whole.dtype)
    back = Redistribution(context, others, ones, whole.dtype)
    a = DeviceArray.of(context.device, np.array(whole[there.before.window]))
    b, c = (DeviceArray.zeros(context.device, box.shape, whole.dtype) for box in (there.after, there.before))
    items = [*there.items(a, b), *back.items(b, c)]
    run = Steps(context.device, items, [a.buffer], [b.buffer, c.buffer])
    run()
    run()
    assert there.bytes_sent >= (there.before.size - there.before.meet(there.after).size) * whole.itemsize
    return np.array_equal(b.host(), whole[there.after.window]) and np.array_equal(c.host(), a.host())


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(
    ("before", "after"),
    [((1, 1, 1), (1, 1, 1)), ((2, 1, 1), (1, 2, 1)), ((3, 1, 1), (1, 1, 3)), ((2, 2, 1), (1, 2, 2)),
     ((6, 1, 1), (1, 6, 1)), ((2, 3, 1), (3, 1, 2))],
)  # fmt: skip
def test_redistribution(before, after, dtype):
    assert all(fl.run_threads(int(np.prod(before)), moved, (5, 7, 3), before, after, dtype))


@pytest.mark.opencl
def test_redistribution_by_kernels():
    assert all(fl.run_threads(4, moved, (5, 7, 3), (2, 2, 1), (1, 2, 2), "c16", "opencl"))
    assert all(fl.run_threads(2, moved, (300, 70), (2, 1), (1, 2), "f4", "opencl"))


def test_redistribution_of_a_part_of_an_array():
    """Values with gaps, as dats with ghosts have them."""

    def work(comm: Comm) -> bool:
        context = context_of(comm)
        grid = context.grid((6, 4), ghost=1, cut=(2, 1))
        whole = np.arange(24.0).reshape(6, 4)
        boxes, others = divided((6, 4), (2, 1)), divided((6, 4), (1, 2))
        dat = context.dat(grid, whole[boxes[comm.rank].window])
        there = Redistribution(context, boxes, others, "f8")
        target = DeviceArray.zeros(context.device, there.after.shape)
        source = DeviceArray.of(context.device, dat)
        assert not source.dense
        Steps(context.device, there.items(source, target), [source.buffer], [target.buffer])()
        return np.array_equal(target.host(), whole[there.after.window])

    assert all(fl.run_threads(2, work))


def test_boxes_that_do_not_fit_are_refused():
    def overlapping(comm: Comm) -> None:
        Redistribution(context_of(comm), divided((4,), (2,)), [Extent((0,), (4,))] * 2, "f8")

    def wrong_shape(comm: Comm) -> None:
        context = context_of(comm)
        there = Redistribution(context, divided((4,), (2,)), divided((4,), (2,)), "f8")
        array = DeviceArray.zeros(context.device, (3,))
        there.items(array, array)

    with pytest.raises(CommError, match="do not hold the same values"):
        fl.run_threads(2, overlapping)
    with pytest.raises(CommError, match=r"shape \(3,\)"):
        fl.run_threads(2, wrong_shape)


# -------------------------------------------------------------------------------------------- systems
@dataclass(frozen=True)
class Case:
    """Systems ``(outer, rows, inner, rhs)``, random but diagonally dominant, and their dense solution."""

    form: Form
    outer: int = 2
    rows: int = 13
    inner: int = 5
    pinned: int = -1
    way: Any = "auto"
    pieces: int = 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64 if self.form.real == "double" else np.float32)

    def given(self) -> dict[str, Array]:
        rng = np.random.default_rng(5)
        shape = (self.outer, self.rows, self.inner) if self.form.coefficients == "each" else (self.rows,)
        a, c = rng.uniform(0.5, 1, shape), rng.uniform(0.5, 1, shape)
        found = {
            "a": a, "b": -(a + c) - rng.uniform(0.01, 0.2, shape), "c": c, "mass": rng.uniform(0.5, 1, self.rows),
            "inner_shift": -rng.uniform(0, 2, self.inner), "outer_shift": -rng.uniform(0, 2, self.outer),
            "y": rng.standard_normal((self.outer, self.rows, self.inner, self.form.rhs)),
        }  # fmt: skip
        return {name: values.astype(self.dtype) for name, values in found.items()}

    def solution(self) -> Array:
        given = {name: values.astype(np.float64) for name, values in self.given().items()}
        found = np.empty_like(given["y"])
        for o, s in np.ndindex(self.outer, self.inner):
            each = self.form.coefficients == "each"
            a, b, c = (given[name][o, :, s] if each else given[name] for name in "abc")
            if self.form.coefficients == "shifted":
                b = b + given["mass"] * (given["inner_shift"][s] + given["outer_shift"][o])
            matrix = np.diag(b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1)
            if self.pinned == o * self.inner + s:
                matrix[0, 0] *= 2
            if self.form.periodic:
                matrix[0, -1] += a[0]
                matrix[-1, 0] += c[-1]
            found[o, :, s] = np.linalg.solve(matrix, SCALE * given["y"][o, :, s])
        return found


def solved(comm: Comm, case: Case, device: str = "cpu", group: tuple[int, ...] | None = None) -> Array:
    return solved_in(context_of(comm, device), case, group)


def solved_in(context: fl.Context, case: Case, group: tuple[int, ...] | None = None) -> Array:
    """Return this rank's rows of the solution; solved twice, so that messages are used again."""
    comm = context.comm
    ranks = tuple(range(comm.size)) if group is None else group
    place, count, each = ranks.index(comm.rank), len(ranks), case.form.coefficients == "each"
    rows = slice(place * case.rows // count, (place + 1) * case.rows // count)
    given, n = case.given(), rows.stop - rows.start
    part = {k: np.array(v[:, rows] if v.ndim > 1 else v if "shift" in k else v[rows]) for k, v in given.items()}
    arrays: dict[str, Any] = {name: DeviceArray.of(context.device, values) for name, values in part.items()}
    rhs = case.form.rhs
    lines = Lines(n, case.inner, case.outer, rhs, case.inner * rhs, rhs, n * case.inner * rhs, 1)
    solver = DistributedTridiagonal(context, lines, case.form, group=group, way=case.way, pieces=case.pieces)
    y: DeviceArray = arrays.pop("y")
    x = DeviceArray.zeros(context.device, part["y"].shape, case.dtype)
    matrices = Matrices(**arrays, steps=(case.inner, 1, n * case.inner) if each else None)
    items = solver.items(y=y, x=x, matrices=matrices, scale=SCALE, pinned=case.pinned)
    run = Steps(context.device, items, [y.buffer, *(v.buffer for v in arrays.values())], [x.buffer, y.buffer])
    for _ in range(2):
        y.assign(given["y"][:, rows])
        run()
    solver.check()
    assert solver.messages > 0 or comm.size == 1
    assert f"{len(ranks)} ranks" in solver.describe()
    return np.array(x.host())


def check(ranks: int, case: Case, device: str = "cpu") -> None:
    found = np.concatenate(fl.run_threads(ranks, solved, case, device), axis=1)
    want = case.solution()
    bound = (500 if case.pinned < 0 else 5000) * float(np.finfo(case.dtype).eps)
    assert np.abs(found - want).max() < bound * np.abs(want).max()


FORMS = ("shared", "shifted", "each")
WAYS = (("all", 1), ("all", 3), ("shares", 1))


def three() -> Iterator[Any]:
    """Yield forms, open and periodic, and ways; half of them are long tests, as each is code of its own."""
    for (i, form), periodic, (k, way) in itertools.product(enumerate(FORMS), (False, True), enumerate(WAYS)):
        yield pytest.param(form, periodic, way, marks=[pytest.mark.long] if (i + periodic + k) % 2 else [])


@pytest.mark.parametrize(("coefficients", "periodic", "way"), list(three()), ids=str)
def test_systems_on_three_ranks(coefficients, periodic, way):
    check(3, Case(Form("double", coefficients, periodic, 2), way=way[0], pieces=way[1]))


@pytest.mark.parametrize("ranks", [1, 6, *(pytest.param(k, marks=pytest.mark.long) for k in (2, 4))])
def test_systems_on_ranks(ranks):
    check(ranks, Case(Form("double", "shifted", False, 2), pinned=6, way="shares"))
    check(ranks, Case(Form("double", "shifted", True, 2), way="all"))


def test_single_precision():
    check(3, Case(Form("float", "shifted", False, 2), outer=1, inner=70))


@pytest.mark.opencl
@pytest.mark.parametrize("way", [pytest.param(WAYS[1], marks=pytest.mark.long), WAYS[2]], ids=str)
def test_systems_by_kernels(way):
    check(2, Case(Form("double", "shifted", False, 2), pinned=1, way=way[0], pieces=way[1]), "opencl")


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("coefficients", FORMS)
def test_all_systems(coefficients, ranks):
    for periodic in (False, True):
        for way, pieces in WAYS:
            for real, rhs, outer, inner, pinned in (("double", 1, 3, 70, 71), ("float", 2, 1, 9, -1)):
                form = Form(real, coefficients, periodic, rhs)
                check(ranks, Case(form, outer, 20, inner, pinned, way, pieces))


def test_two_groups_of_ranks():
    """Ranks 0 and 2 have one half of the systems each, 1 and 3 the same."""
    case = Case(Form("double", "shifted", False, 2), way="shares")

    def work(comm: Comm) -> Array:
        return solved(comm, case, group=((0, 2), (1, 3))[comm.rank % 2])

    found = fl.run_threads(4, work)
    for one, other in ((0, 2), (1, 3)):
        assert np.abs(np.concatenate((found[one], found[other]), axis=1) - case.solution()).max() < 1e-12


def test_what_cannot_be_is_refused():
    form = Form("double", "shifted", False, 2)
    with pytest.raises(SolverError, match="two at least"):
        fl.run_threads(4, solved, Case(form, rows=7))
    with pytest.raises(SolverError, match="one of auto, all, shares"):
        fl.run_threads(2, solved, Case(form, way="share"))

    def unlike(comm: Comm) -> Array:
        return solved(comm, Case(form, inner=5 + comm.rank))

    with pytest.raises(SolverError, match="rank 1 has other systems"):
        fl.run_threads(2, unlike)


@pytest.mark.parametrize("where", [0, 4])
def test_vanished_pivots_are_reported_by_every_rank(where):
    def work(comm: Comm) -> str:
        context = context_of(comm)
        a, b, c = np.ones(4), np.full(4, -2.0), np.ones(4)
        y = DeviceArray.zeros(context.device, (4, 3))
        if where // 4 == comm.rank:
            b[where % 4] = 0.0
        solver = DistributedTridiagonal(context, Lines(4, 3, row_step=3), Form("double", "shared"))
        Steps(context.device, solver.items(y=y, x=y, matrices=Matrices(a, b, 0 * c)), [y.buffer], [y.buffer])()
        try:
            solver.check()
        except SolverError as error:
            return str(error)
        return ""

    found = fl.run_threads(2, work)
    assert found[0] == found[1]
    assert "pivot" in found[0]
