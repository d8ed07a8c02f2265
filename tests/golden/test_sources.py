"""The generated source of a few loops, text for text: what a change of the generator changes shows in a diff.

``pytest tests/golden --update-golden`` writes the files anew. The fixed preludes and the row helpers of C
are left out: they have tests of their own.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fluxloom import Loop

from .sources import DIALECTS, NAMES, context, file_name, source, spmv

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(("dialect", "name"), NAMES)
def test_source(dialect: str, name: str, request: pytest.FixtureRequest) -> None:
    text = source(dialect, name)
    path = FOLDER / file_name(dialect, name)
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run pytest tests/golden --update-golden"
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} changed; if that is meant: pytest tests/golden --update-golden"
    )


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize("name", ["res_calc_gather", "res_calc_two_pass", "spmv_sliced", "airfoil_fused", "exchange"])
def test_sources_do_not_depend_on_the_run(dialect: str, name: str) -> None:
    assert source(dialect, name) == source(dialect, name)


def test_sources_name_no_machine() -> None:
    """No path, host or address is part of a source: the cache works across checkouts."""
    for dialect, name in NAMES:
        text = source(dialect, name)
        assert str(Path(__file__).resolve().parents[2]) not in text, name
        assert not re.search(r"/(home|root|tmp|usr|work)/|0x[0-9a-f]{6,}", text), name


def test_every_file_has_a_test() -> None:
    files = {p.name for ending in DIALECTS.values() for p in FOLDER.glob(f"*.{ending}")}
    assert files == {file_name(*key) for key in NAMES}


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_threads_and_sizes_are_no_part_of_a_source(dialect: str) -> None:
    """One compiled loop serves meshes of any size on any number of threads."""
    texts = set()
    for threads, size in ((1, 3), (4, 300)):
        ctx = context(dialect, threads)
        rows = ctx.set(size, "rows")
        m = ctx.ragged(rows, rows, np.arange(size + 1), np.arange(size), "m")
        a, x, y = ctx.dat(m.entries), ctx.dat(rows), ctx.dat(rows)
        texts.add(Loop(spmv, rows, a[m.to_entries], x[m], y).source)
    assert len(texts) == 1
