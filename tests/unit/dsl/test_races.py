"""Which elements meet: what races are found from."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Read, Write
from fluxloom.core.errors import LoopError


@fl.kernel
def spread(x: Inc, y: Read):
    for j in range(len(x)):
        x[j] += y[0]


def test_short_rows_are_filled_with_targets_of_their_own() -> None:
    ctx = fl.Context("reference")
    rows, cells = ctx.set(4, "rows"), ctx.set(6, "cells")
    m = ctx.ragged(rows, cells, [0, 3, 4, 4, 6], [0, 1, 2, 3, 4, 5], "m")
    loop = Loop(spread, rows, ctx.dat(cells)[m], ctx.dat(rows, np.ones(4)))
    (table,) = loop.races.tables
    assert table.shape == (4, 3)
    assert [set(row) for k, row in enumerate(table.tolist()) if k != 2] == [{0, 1, 2}, {3}, {4, 5}]


@fl.kernel
def both(x: Write, y: Write):
    x[0] = 1.0
    y[0] = 2.0


def test_a_dat_is_written_by_one_argument() -> None:
    ctx = fl.Context("reference")
    s = ctx.set(4, "s")
    u = ctx.dat(s, name="u")
    with pytest.raises(LoopError, match="'x' and 'y' are the same 'u' and it is written"):
        Loop(both, s, u, u)
