"""Tridiagonal systems by kernels: every method in every form against dense elimination, and what methods refuse."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.linalg.direct.tridiagonal.chunks import Chunks
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines, Method
from fluxloom.linalg.direct.tridiagonal.kernels_cyclic import CyclicReduction
from fluxloom.linalg.direct.tridiagonal.kernels_thomas import Thomas
from fluxloom.linalg.direct.tridiagonal.methods import METHODS_ITEMS
from fluxloom.linalg.direct.tridiagonal.partition import Partition

from .systems import kind, layout, random_systems, solve

EACH = Form()
INTERLEAVED, CONTIGUOUS, PAIRS, PLANES, PAIRS_IN_LINES = "noi", "oin", "noir", "roni", "oinr"
"""Orders of the axes in memory, from the slowest: rows, outer, inner, right-hand sides."""


@functools.cache
def kernels_device() -> Device:
    return Context("opencl").device


def agree(method: Method, form: Form, rows: int, order: str, *, inner: int = 5, pinned: int = 4, **more: bool) -> None:
    """Solve random systems in both ways."""
    device = kernels_device()
    lines = layout(rows, inner, 3, form.rhs, order if "r" in order else order + "r")
    systems = random_systems(form, lines, rows, pinned)
    found, status = solve(device, method, systems, -1.5, **more)
    assert status == 0
    np.testing.assert_allclose(found, systems.solution(-1.5), rtol=0, atol=60 * float(np.finfo(kind(form)).eps))


def every(number: int, *lists: Iterable[Any]) -> list[Any]:
    """Return the product of lists as parameters; only one in a number, of every value of each list, is no long test.

    Each case is a kernel to compile.
    """
    found = []
    for places in itertools.product(*(enumerate(values) for values in lists)):
        chosen = sum(place for place, _ in places) % number == 0
        found.append(pytest.param(*(value for _, value in places), marks=[] if chosen else [pytest.mark.long]))
    return found


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("name", "periodic", "rows"), every(4, ["thomas", "partition", "cr", "pcr"], [False, True], [1, 2, 3, 21])
)
def test_few_rows(name: str, periodic: bool, rows: int) -> None:
    """One row and two have a meaning, and coefficients beyond the ends are not read."""
    order = CONTIGUOUS if rows % 2 else INTERLEAVED
    agree(METHODS_ITEMS[name](0), replace(EACH, periodic=periodic), rows, order)


FORMS = [
    (Form("double", "shifted", False, 2), PAIRS), (Form("double", "shifted", True, 2), PLANES),
    (Form("float", "shared", True, 1), CONTIGUOUS), (Form("float", "each", False, 3), INTERLEAVED),
    (Form("double", "shared", False, 8), PLANES), (Form("double", "each", False, 2), PAIRS_IN_LINES),
]  # fmt: skip


@pytest.mark.opencl
@pytest.mark.parametrize(("name", "given"), every(3, METHODS_ITEMS, FORMS), ids=str)
def test_forms(name: str, given: tuple[Form, str]) -> None:
    agree(METHODS_ITEMS[name](0), given[0], 35, given[1])


LONG_LINES = [
    (Thomas(8, 64), 131),
    (Partition(), 150),
    (Partition(5, 2), 61),
    (CyclicReduction("cr_pcr", 7), 91),
    (Chunks(), 131),
]
LONGER_LINES = [(Partition(), 700), (CyclicReduction("cr_pcr"), 700), (Chunks(4), 1100)]


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("given", "order", "periodic"),
    [
        *every(3, LONG_LINES, [INTERLEAVED, CONTIGUOUS], [False, True]),
        *(pytest.param(*case, marks=pytest.mark.long)
          for case in itertools.product(LONGER_LINES, [INTERLEAVED, CONTIGUOUS], [False, True])),
    ],
    ids=str,
)  # fmt: skip
def test_long_lines(given: tuple[Method, int], order: str, periodic: bool) -> None:
    """Rows that are no multiple of anything, and a solution that replaces the right-hand side."""
    method, rows = given
    agree(method, replace(EACH, periodic=periodic), rows, order, inner=1, pinned=-1, inplace=True)


@pytest.mark.opencl
@pytest.mark.parametrize("name", list(METHODS_ITEMS))
def test_pinned_systems_that_share_a_singular_matrix(name: str) -> None:
    """The system whose constant is settled does not change the others; here it is the first of a group."""
    form = Form(coefficients="shared")
    agree(METHODS_ITEMS[name](0), form, 33, INTERLEAVED, pinned=0)


@pytest.mark.opencl
@pytest.mark.parametrize("name", list(METHODS_ITEMS))
def test_vanishing_pivots_are_told(name: str) -> None:
    """The largest number of a system whose first row is empty, plus one."""
    device = kernels_device()
    systems = random_systems(EACH, layout(24, 5, 3, 1, "noir"), 1)
    for diagonal in ("a", "b", "c"):
        systems.given[diagonal].reshape(24, 15)[0, [3, 7]] = 0
    found, status = solve(device, METHODS_ITEMS[name](0), systems)
    assert status == 8
    good = [q for q in range(15) if q not in (3, 7)]
    np.testing.assert_allclose(found[:, good], systems.solution(1.0)[:, good], rtol=0, atol=1e-13)


@pytest.mark.opencl
@pytest.mark.parametrize("wrong", ["b", "y"])
@pytest.mark.parametrize("name", list(METHODS_ITEMS))
def test_values_that_are_no_numbers_are_told(name: str, wrong: str) -> None:
    systems = random_systems(EACH, layout(24, 5, 3, 1, "noir"), 1)
    systems.given[wrong].reshape(24, 15)[11, 6] = np.nan
    assert solve(kernels_device(), METHODS_ITEMS[name](0), systems)[1] == 7


@pytest.mark.parametrize(
    ("method", "rows", "message"),
    [
        (METHODS_ITEMS["pcr"](0), 2000, 'method "pcr", which holds about 1440: choose "chunks"'),
        (METHODS_ITEMS["partition"](0), 100000, 'registers of one group of work items with method "partition"'),
        (METHODS_ITEMS["chunks"](0), 3, 'needs 4 rows at least; choose "partition"'),
        (Chunks(2), 100, "chunk=2: parts of fewer than 4 rows"),
        (CyclicReduction("cr_pcr", -1), 100, "switch=-1: only method"),
        (CyclicReduction("cr", 8), 100, 'only method "cr_pcr" takes a switch'),
    ],
    ids=str,
)
def test_refusals(method: Method, rows: int, message: str) -> None:
    assert message in method.refuses(EACH, Lines(rows, 64, 1, 1, 64, 1))


@pytest.mark.parametrize("name", list(METHODS_ITEMS))
def test_names(name: str) -> None:
    assert METHODS_ITEMS[name](0).name == name


@pytest.mark.parametrize("rows", [1, 7, 64, 100, 511, 512, 1024])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("form", [EACH, Form("float"), Form("double", "shifted", False, 2)], ids=str)
def test_chunks_hold_all_rows(form: Form, interleaved: bool, rows: int) -> None:
    """A power of two of chunks, of equal length or one row less, in a group of at most 512."""
    order = "nior" if interleaved else "oirn"
    shape = Partition().shape(form, layout(rows, 4096, 1, form.rhs, order))
    assert shape is not None
    assert shape.chunks & (shape.chunks - 1) == 0
    assert shape.chunks * (shape.chunk - 1) < rows <= shape.chunks * shape.chunk
    assert shape.block <= 512


def test_working_memory_of_lines_divided_twice() -> None:
    """Four values for each of the two rows of every part: of 16000 rows 8000 are left, then 4000, then 2000."""
    assert Chunks(4).code(EACH, Lines(16000, 3, 1, 1, 3, 1)).words == 4 * 3 * (8000 + 4000 + 2000)
