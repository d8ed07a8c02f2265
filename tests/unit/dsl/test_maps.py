"""Maps, ragged maps and stencils: what they accept, what they refuse and how they say it."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DatError, LoopError


@pytest.fixture
def ctx() -> fl.Context:
    return fl.Context("reference")


@pytest.fixture
def edges(ctx: fl.Context) -> fl.Set:
    return ctx.set(3, "edges")


@pytest.fixture
def nodes(ctx: fl.Context) -> fl.Set:
    return ctx.set(4, "nodes")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 1], [1, 4], [2, 3]], r"map 'm': entry \[1, 1\] is 4; allowed are 0 ... 3"),
        ([[0, 1], [1, 2], [-1, 3]], r"entry \[2, 0\] is -1; allowed are 0 ... 3"),
        ([[0, 1], [1, 2]], r"a table of shape \(2, 2\) does not fit Set\(edges, 3\)"),
        (np.zeros((3, 2, 2), int), "does not fit"),
        ([[0.0, 1.0]] * 3, "indices must be integers, got float64"),
    ],
)
def test_tables(ctx, edges, nodes, table, message: str) -> None:
    with pytest.raises(DatError, match=message):
        ctx.map(edges, nodes, table, "m")


def test_a_flat_table_has_one_leg(ctx, edges, nodes) -> None:
    m = ctx.map(edges, nodes, [0, 1, 3], "m")
    assert m.legs == 1
    assert m.table.dtype == np.int32


def test_contexts_do_not_mix(ctx, edges) -> None:
    other = fl.Context("reference").set(4, "others")
    with pytest.raises(DatError, match="belong to different contexts"):
        ctx.map(edges, other, [0, 1, 2], "m")


def test_legs(ctx, edges, nodes) -> None:
    m = ctx.map(edges, nodes, [[0, 1]] * 3, "m")
    for leg in (2, -1):
        with pytest.raises(LoopError, match=rf"map 'm' has legs 0 ... 1, not {leg}"):
            m[leg]
    ragged = ctx.ragged(edges, nodes, [0, 1, 2, 3], [0, 1, 2], "r")
    with pytest.raises(LoopError, match="'r' is ragged: it has no fixed legs"):
        ragged[0]


def test_dats_must_be_on_the_target(ctx, edges, nodes) -> None:
    m = ctx.map(edges, nodes, [[0, 1]] * 3, "m")
    w = ctx.dat(edges, name="w")
    for through in (m, m[0]):
        with pytest.raises(LoopError, match=r"dat 'w' is on Set\(edges, 3\), but map 'm' leads to Set\(nodes, 4\)"):
            w[through]


@pytest.mark.parametrize(
    ("offsets", "indices", "message"),
    [
        ([0, 1, 2], [0, 1], "offsets must start at 0, never decrease and have 4 entries"),
        ([1, 1, 2, 2], [0, 1], "must start at 0"),
        ([0, 2, 1, 3], [0, 1, 2], "never decrease"),
        ([0, 1, 2, 3], [0, 1], r"\(2,\) indices, but offsets end at 3"),
        ([0, 1, 2, 3], [0, 1, 7], r"entry \[2\] is 7; allowed are 0 ... 3"),
    ],
)
def test_ragged(ctx, edges, nodes, offsets, indices, message: str) -> None:
    with pytest.raises(DatError, match=message):
        ctx.ragged(edges, nodes, offsets, indices, "r")


@pytest.mark.parametrize("layout", [fl.CSR(), fl.ELL(), fl.ELL(False), fl.SlicedELL(2), fl.SlicedELL(2, False)])
def test_places_of_entries(ctx, layout) -> None:
    """Every entry has a place of its own, which holds its target."""
    rows, columns = ctx.set(7, "rows"), ctx.set(9, "columns")
    lengths = np.array([2, 0, 3, 1, 0, 4, 1])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.arange(11) % 9
    m = ctx.ragged(rows, columns, offsets, indices, "m", layout)
    place = m.entries.position if m.entries.position is not None else np.arange(11)
    assert len(set(place.tolist())) == 11
    assert place.max() < m.entries.storage_size
    np.testing.assert_array_equal(m.store.index[place], indices)
    np.testing.assert_array_equal(m.entry_row.table[:, 0], np.repeat(np.arange(7), lengths))
    np.testing.assert_array_equal(m.entry_target.table[:, 0], indices)
    assert m.entry_row is m.entry_row


def test_stencils(ctx) -> None:
    grid = ctx.grid((4, 5), periodic=(False, True), ghost=(1, 0))
    assert ctx.stencil(grid, [(1, 5), (-1, -5)], "s").legs == 2
    with pytest.raises(DatError, match=r"reach 2 along axis 0 leaves the box; make the axis periodic .* ghost=2"):
        ctx.stencil(grid, [(0, 0), (-2, 0)], "s")
    with pytest.raises(DatError, match=r"reach 6 is longer than the periodic axis 1 \(5 elements\)"):
        ctx.stencil(grid, [(0, 6)], "s")
    with pytest.raises(DatError, match=r"offsets of shape \(1, 1\) do not fit a 2D grid"):
        ctx.stencil(grid, [(1,)], "s")
    with pytest.raises(DatError, match="do not fit"):
        ctx.stencil(grid, [], "s")
    with pytest.raises(DatError, match="'s': it has no legs; give at least one offset"):
        ctx.stencil(grid, np.zeros((0, 2), int), "s")


def test_subsets(ctx, nodes) -> None:
    some = ctx.subset(nodes, [3, 1, 1])
    assert some.indices.tolist() == [1, 3]
    assert some.parent is nodes
    assert ctx.subset(nodes, np.array([True, False, False, True])).indices.tolist() == [0, 3]
    assert ctx.subset(nodes, []).size == 0
