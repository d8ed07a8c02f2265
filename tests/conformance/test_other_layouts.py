"""A layout of entries from outside the package, that of docs/extend/matrix_format.md: on every device, and refused."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Read, Write
from fluxloom.codegen.language.spec import RowCode
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.ragged import Offsets, Placement
from tests.pages import blocks

from .harness import ROW_DEVICES, compare, context, expected, variants

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extend" / "matrix_format.md"
ROWS = 130


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The program of the page, which has run."""
    code = "\n\n".join(block.text for block in blocks(PAGE) if block.language == "python")
    module, file = ModuleType("matrix_format_page"), tmp_path_factory.mktemp("page") / "matrix_format_page.py"
    file.write_text(code, encoding="utf-8")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    exec(compile(code, str(file), "exec"), module.__dict__)
    return module


@fl.kernel
def mixed(a: Read, x: Read, y: Write, r: Inc, total: Inc):
    low = 0.0
    for j in range(len(x)):
        low += a[j] * x[j] * (j + 1)
    for j in range(len(x)):
        r[j] += a[j] * low
    y[0] = low
    total[0] += low


@fl.kernel
def product(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


def sums(ctx: fl.Context, layout: Any = None, schedule: fl.Schedule | None = None) -> Any:
    rng = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 40, ROWS))])
    rows = ctx.set(ROWS, "rows")
    m = ctx.ragged(rows, rows, offsets, rng.integers(0, ROWS, offsets[-1]), "m", layout)
    a, x = ctx.dat(m.entries, rng.random(m.entries.size)), ctx.dat(rows, rng.random(ROWS))
    y, z, r, total = ctx.dat(rows), ctx.dat(rows), ctx.dat(rows), ctx.scalar(0.0)
    loops = [Loop(mixed, rows, a[m.to_entries], x[m], y, r[m], total),
             Loop(product, rows, a[m.to_entries], x[m], z, schedule=schedule)]  # fmt: skip
    return loops, {"y": y, "z": z, "r": r, "total": total}


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_devices(device: str, page: ModuleType) -> None:
    wishes = {n: {"layout": page.Backwards(g), "schedule": fl.Schedule(lanes=n)} for n, g in ((1, 0), (4, 3), (8, 1))}
    for name, got in variants(sums, device, wishes).items():
        compare(got, expected(sums), what=str(name))


def test_entries_keep_their_numbers(page: ModuleType) -> None:
    ctx = context("cpu")
    rows = ctx.set(2, "rows")
    m = ctx.ragged(rows, rows, [0, 2, 3], [0, 1, 1], "m", page.Backwards(2))
    a = ctx.dat(m.entries, [1.0, 2.0, 3.0])
    assert a.read().tolist() == [1.0, 2.0, 3.0]
    assert (m.store.places, m.store.position.tolist()) == (7, [1, 0, 4])  # type: ignore[union-attr]


@dataclass(frozen=True)
class Wrong(fl.RaggedLayout):
    """Entries in places that are given."""

    positions: tuple[int, ...]

    def place(self, offsets: Offsets) -> Placement:
        return Placement(offsets[:-1], 4, np.array(self.positions))

    def code(self) -> RowCode:
        return RowCode(place="{row}_start")


@pytest.mark.parametrize("positions", [(0, 1, 1), (0, 1, 4), (-1, 0, 1), (0, 1)])
def test_wrong_places_are_refused(positions: tuple[int, ...]) -> None:
    ctx = context("cpu")
    rows = ctx.set(2, "rows")
    with pytest.raises(DatError, match=r"place\(\) has to give each of 3 entries a place of its own, < 4"):
        ctx.ragged(rows, rows, [0, 2, 3], [0, 1, 1], "m", Wrong(positions))
