"""Plain functions for tridiagonal systems, beside dense matrices: rows, forms, layouts, chunks, pivots that vanish."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.device.cpu import CpuDevice
from fluxloom.linalg.direct.tridiagonal import plain_thomas
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.lost_row import lost_row
from fluxloom.linalg.direct.tridiagonal.methods import METHODS_PLAIN
from fluxloom.linalg.direct.tridiagonal.plain_thomas import PlainThomas

from .systems import kind, layout, random_systems, solve

EACH = Form()
INTERLEAVED, CONTIGUOUS, PAIRS, PLANES = "noi", "oin", "noir", "roni"


@functools.cache
def processors() -> CpuDevice:
    return CpuDevice(2)


def agree(name: str, form: Form, rows: int, order: str, *, inner: int = 19, pinned: int = 4) -> None:
    lines = layout(rows, inner, 3, form.rhs, order if "r" in order else order + "r")
    systems = random_systems(form, lines, rows, pinned)
    found, status = solve(
        processors(), METHODS_PLAIN[name](5 if name == "cr_pcr" else 0, 2), systems, -1.5, inplace=True
    )
    assert status == 0
    np.testing.assert_allclose(found, systems.solution(-1.5), rtol=0, atol=60 * np.finfo(kind(form)).eps)


def every(*lists: Iterable[Any]) -> list[Any]:
    """Return the product of methods and other lists as parameters; of all but Thomas's half are long tests.

    Each case is a function to compile.
    """
    found = []
    for name in METHODS_PLAIN:
        for places in itertools.product(*(enumerate(values) for values in lists)):
            chosen = name == "thomas" or (sum(place for place, _ in places) + len(name)) % 2 == 0
            found.append(
                pytest.param(name, *(value for _, value in places), marks=[] if chosen else [pytest.mark.long])
            )
    return found


@pytest.mark.parametrize(("name", "periodic", "rows"), every([False, True], [1, 2, 3, 17]))
def test_few_rows(name: str, periodic: bool, rows: int) -> None:
    """One row and two have a meaning, and coefficients beyond the ends are not read."""
    agree(name, replace(EACH, periodic=periodic), rows, CONTIGUOUS if rows % 2 else INTERLEAVED)


FORMS = [
    (Form("double", "shifted", False, 2), PAIRS), (Form("double", "shifted", True, 2), PLANES),
    (Form("float", "shared", True, 1), CONTIGUOUS), (Form("float", "each", True, 3), INTERLEAVED),
    (Form("double", "shared", False, 8), PLANES),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given"), every(FORMS), ids=str)
def test_forms(name: str, given: tuple[Form, str]) -> None:
    agree(name, given[0], 35, given[1])


@pytest.mark.long
@pytest.mark.parametrize("rows", [8, 16, 31, 64, 100, 257, 1000])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("order", [INTERLEAVED, CONTIGUOUS])
@pytest.mark.parametrize("name", list(METHODS_PLAIN))
def test_many_rows(name: str, order: str, periodic: bool, rows: int) -> None:
    agree(name, replace(EACH, periodic=periodic), rows, order)


@pytest.mark.parametrize("order", ["noir", "oinr"])
@pytest.mark.parametrize("name", list(METHODS_PLAIN))
def test_vanishing_pivots_are_told(name: str, order: str) -> None:
    """The largest number of a system without a first row, plus one; the others are solved."""
    systems = random_systems(EACH, layout(24, 9, 2, 1, order), 1)
    for diagonal in ("a", "b", "c"):
        values = systems.given[diagonal]
        (values.reshape(24, 18) if order == "noir" else values.reshape(18, 24).T)[0, [3, 7]] = 0
    found, status = solve(processors(), METHODS_PLAIN[name](0, 2), systems)
    assert status == 8
    good = [q for q in range(18) if q not in (3, 7)]
    np.testing.assert_allclose(found[:, good], systems.solution(1.0)[:, good], rtol=0, atol=1e-13)


@pytest.mark.parametrize("given", ["b", "c", "y"])
def test_values_that_are_not_numbers_are_told(given: str) -> None:
    systems = random_systems(EACH, layout(24, 9, 2, 1, "noir"), 1)
    systems.given[given].reshape(24, 18)[11, 6] = np.nan
    assert solve(processors(), PlainThomas(2), systems)[1] == 7


def test_rows_of_a_chunk_stay_in_the_cache() -> None:
    """Two planes of doubles for 512 rows of 64 systems are half a megabyte; narrow chunks remain for long lines."""
    assert PlainThomas(2).width(EACH, Lines(512, 65536, 1, 1, 65536, 1)) == 64
    assert PlainThomas(2).width(EACH, Lines(100000, 65536, 1, 1, 65536, 1)) == 8
    assert PlainThomas(4).width(EACH, Lines(16, 64, 1, 1, 64, 1)) == 16


@pytest.mark.usefixtures("optimised")
def test_all_loops_over_systems_are_vectors() -> None:
    """Elimination in each of its forms, and substitution; the compiler names the first line of a loop's body."""
    device, lines = processors(), Lines(64, 256, 1, 1, 256, 1)
    if "gcc" not in device.compiler.name:
        pytest.skip("says not which loops became vectors")
    code = PlainThomas(1).code(EACH, lines)
    unit = primitive_unit(code.functions, "c", code.helpers)
    program = device.compile(unit.text, unit.symbols, "thomas")
    wanted = [k + 2 for k, line in enumerate(unit.text.splitlines(), 1) if "#pragma omp simd" in line]
    assert len(wanted) == 7
    assert set(wanted) <= set(program.vectorised)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 40])
def test_no_row_is_lost_where_there_is_a_solution(rows: int, periodic: bool) -> None:
    systems = random_systems(replace(EACH, periodic=periodic), layout(rows, 1, 1, 3, "noir"), rows)
    a, b, c = (np.array(v[:, 0]) for v in (systems.a, systems.b, systems.c))
    assert lost_row(a, b, c, periodic=periodic) == -1


def test_lost_rows() -> None:
    """A Laplacian with two Neumann ends has no pivot in its last row; with Dirichlet ends all have one."""
    one = np.ones(6)
    ends = np.array([1.0, 2, 2, 2, 2, 1])
    assert lost_row(-one, ends, -one) == 5
    assert lost_row(-np.ones(4), 2 * np.ones(4), -np.ones(4)) == -1
    assert lost_row(one, np.array([1.0, 1, 3, 3, 3, 3]), one) == 1


STREAMED = [
    (EACH, 0), (Form("float"), 0), (Form("double", "shared"), 3), (Form("double", "shared", True, 2), 6),
    (Form("float", "shifted", False, 2), 10),
]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("form", "first"), STREAMED, ids=str)
def test_solutions_past_the_caches(form: Form, first: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole lines of memory are stored past the caches; rows that begin and end inside one keep their neighbours."""
    monkeypatch.setattr(plain_thomas, "_STREAMED", 0)
    lines = replace(layout(7, 301, 2, form.rhs, "onir"), first=first)
    systems = random_systems(form, lines, first)
    method = PlainThomas(threads, cache=1 << 14)
    assert "fl_store(x" in method.code(form, lines).functions[0].body
    found, status = solve(processors(), method, systems, -1.5)
    assert status == 0
    np.testing.assert_allclose(found, systems.solution(-1.5), rtol=0, atol=60 * np.finfo(kind(form)).eps)
