"""The generated C of a few loops, text for text: what a change of the generator changes shows in a diff.

``pytest tests/golden --update-golden`` writes the files anew. The fixed prelude and the row helpers
are left out: they have tests of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop, Read, Schedule, Write
from fluxloom.codegen.unit import generate
from fluxloom.mesh.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil import Airfoil

FOLDER = Path(__file__).parent
PRELUDE = generate([]).text.split("/* Rows in, rows out. */")[0]


@fl.kernel
def spmv(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def five_points(u: Read, v: Write, *, h: float):
    v[0] = u[0] + h * (u[1] + u[2] + u[3] + u[4] - 4.0 * u[0])


def airfoil(schedule: Schedule) -> Airfoil:
    return Airfoil(fl.Context("cpu", threads=2, tuning=False), airfoil_mesh(8, 12), schedule=schedule)


def res_calc(**choices) -> str:
    return airfoil(Schedule(lanes=4, **choices)).res_calc.source


def product(layout) -> str:
    ctx = fl.Context("cpu", tuning=False)
    rows = ctx.set(3, "rows")
    m = ctx.ragged(rows, rows, [0, 1, 3, 4], [0, 1, 2, 0], "m", layout)
    a, x, y = ctx.dat(m.entries), ctx.dat(rows), ctx.dat(rows)
    return Loop(spmv, rows, a[m.to_entries], x[m], y, schedule=Schedule(stream=False)).source


def stencil() -> str:
    ctx = fl.Context("cpu", tuning=False)
    grid = ctx.grid((4, 5), periodic=(False, True), ghost=(1, 0))
    s = ctx.stencil(grid, [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)], "s")
    schedule = Schedule(lanes=8, stream=False)
    return Loop(five_points, grid, ctx.dat(grid)[s], ctx.dat(grid), h=0.1, schedule=schedule).source


def fused() -> str:
    """The fused groups alone: what follows the loops one by one."""
    return airfoil(Schedule(strategy="gather", block=1024, lanes=4)).chain.source.rpartition(PRELUDE)[2]


SOURCES: dict[str, Callable[[], str]] = {
    **{
        f"res_calc_{name}": lambda name=name: res_calc(strategy=name)
        for name in ("serial", "block_colour", "element_colour", "block_permute", "atomic", "two_pass")
    },
    "res_calc_gather": lambda: res_calc(strategy="gather", block=1024),
    "res_calc_gather_by_target": lambda: res_calc(strategy="gather", block=1),
    "spmv_csr": lambda: product(fl.CSR()),
    "spmv_sliced": lambda: product(fl.SlicedELL(8)),
    "five_points": stencil,
    "airfoil_fused": fused,
}  # fmt: skip


def loops_only(text: str) -> str:
    """Return a source without the prelude and without the row helpers."""
    text = text.replace(PRELUDE, "")
    start = re.search(r"^/\* [^\n]* \*/\ntypedef struct \{", text, re.MULTILINE)
    assert start is not None
    return text[start.start() :]


@pytest.mark.parametrize("name", list(SOURCES))
def test_source(name: str, request: pytest.FixtureRequest) -> None:
    text = loops_only(SOURCES[name]())
    path = FOLDER / f"{name}.c"
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run pytest tests/golden --update-golden"
    assert text == path.read_text(encoding="utf-8"), (
        f"{name} changed; if that is meant: pytest tests/golden --update-golden"
    )


@pytest.mark.parametrize("name", ["res_calc_gather", "spmv_sliced", "airfoil_fused"])
def test_sources_do_not_depend_on_the_run(name: str) -> None:
    assert SOURCES[name]() == SOURCES[name]()


def test_sources_name_no_machine() -> None:
    """No path, host or address is part of a source: the cache works across checkouts."""
    for name, make in SOURCES.items():
        text = make()
        assert str(Path(__file__).resolve().parents[2]) not in text, name
        assert not re.search(r"/(home|root|tmp|usr|work)/|0x[0-9a-f]{6,}", text), name


def test_every_file_has_a_test() -> None:
    assert {p.stem for p in FOLDER.glob("*.c")} == set(SOURCES)


def test_threads_and_sizes_are_no_part_of_a_source() -> None:
    """One compiled loop serves meshes of any size on any number of threads."""
    texts = set()
    for threads, size in ((1, 3), (4, 300)):
        ctx = fl.Context("cpu", threads=threads, tuning=False)
        rows = ctx.set(size, "rows")
        m = ctx.ragged(rows, rows, np.arange(size + 1), np.arange(size), "m")
        a, x, y = ctx.dat(m.entries), ctx.dat(rows), ctx.dat(rows)
        texts.add(Loop(spmv, rows, a[m.to_entries], x[m], y).source)
    assert len(texts) == 1
