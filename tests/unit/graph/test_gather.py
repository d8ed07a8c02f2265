"""Flat and padded inverses and block targets against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom import graph
from fluxloom.core.errors import DatError
from fluxloom.graph import native

unhurried = settings(deadline=None)  # the first call compiles


@st.composite
def table_lists(draw: st.DrawFn, most: int = 1) -> tuple[list[np.ndarray], int]:
    """Tables of the same elements; few targets repeat in rows, many are empty."""
    rows, targets = draw(st.integers(0, 40)), draw(st.integers(1, 100))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arities = draw(st.lists(st.integers(1, 5), min_size=1, max_size=most))
    return [rng.integers(0, targets, (rows, arity), dtype=np.int32) for arity in arities], targets


@st.composite
def blocked(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    """A table and the offsets of blocks, some of them empty; targets of more than one byte."""
    tables, n = draw(table_lists())
    scale = draw(st.sampled_from([1, 7, 1000, 100_003]))
    cuts = sorted(draw(st.lists(st.integers(0, len(tables[0])), max_size=8)))
    return tables[0] * np.int32(scale), n * scale, np.array([0, *cuts, len(tables[0])], dtype=np.int64)


def positions(table: np.ndarray, target: int) -> list[int]:
    return np.flatnonzero(table.reshape(-1) == target).tolist()


@unhurried
@given(table_lists())
def test_flat_inverse(given_tables: tuple[list[np.ndarray], int]) -> None:
    (table,), n = given_tables
    found = graph.flat_inverse(table, n)
    assert (found.pointer.dtype, found.position.dtype) == (np.int32, np.int32)
    assert (found.pointer.shape, found.position.shape) == ((n + 1,), (table.size,))
    rows = [positions(table, t) for t in range(n)]
    assert [found.position[a:b].tolist() for a, b in zip(found.pointer, found.pointer[1:], strict=False)] == rows
    assert found.degree == max(len(row) for row in rows)


@unhurried
@given(table_lists(), st.one_of(st.none(), st.integers(0, 50)))
def test_ell_inverse(given_tables: tuple[list[np.ndarray], int], extra: int | None) -> None:
    (table,), n = given_tables
    found = graph.ell_inverse(table, n, None if extra is None else n + extra)
    stride = (n + 31) // 32 * 32 if extra is None else n + extra
    rows = [positions(table, t) for t in range(n)]
    expected = np.full((max(len(row) for row in rows), stride), -1)
    for t, row in enumerate(rows):
        expected[: len(row), t] = row
    assert (found.degree, found.stride) == expected.shape
    assert found.position.dtype == np.int32
    assert found.position.flags.c_contiguous
    assert np.array_equal(found.position, expected)
    kept = expected[:, :n]
    assert graph.ell_fill(table, n) == pytest.approx((kept >= 0).mean() if kept.size else 1.0)


@unhurried
@given(table_lists(), table_lists(), st.booleans())
def test_inverses_of_ordered_tables(
    first: tuple[list[np.ndarray], int], second: tuple[list[np.ndarray], int], one: bool
) -> None:
    """Positions are those in the tables as they are; each target lists them in the order of the rows."""
    tables, n = [*first[0], *second[0]], max(first[1], second[1])
    rng = np.random.default_rng(len(tables[0]))
    orders = [rng.permutation(len(table)) for table in tables]
    if one:
        orders[1] = np.arange(len(tables[1]))
    walk, base = [], 0
    for table, order in zip(tables, orders, strict=True):
        walk += [(base + e * table.shape[1] + k, int(table[e, k])) for e in order for k in range(table.shape[1])]
        base += table.size
    rows = [[place for place, target in walk if target == t] for t in range(n)]
    given_orders = [orders[0], None] if one else orders
    flat = graph.flat_inverse(tables, n, given_orders)
    assert [flat.position[a:b].tolist() for a, b in zip(flat.pointer, flat.pointer[1:], strict=False)] == rows
    ell = graph.ell_inverse(tables, n, orders=given_orders).position
    assert [[int(p) for p in column if p >= 0] for column in ell.T[:n]] == rows
    assert flat.degree == len(ell)
    with pytest.raises(DatError, match="an order of"):
        graph.flat_inverse(tables, n, [orders[0], np.append(orders[1], 0)])


@unhurried
@given(blocked())
def test_block_targets(given_blocks: tuple[np.ndarray, int, np.ndarray]) -> None:
    table, n, offset = given_blocks
    found = graph.block_targets(table, n, offset)
    assert (found.target_ptr.dtype, found.targets.dtype, found.local.dtype) == (np.int32, np.int32, np.uint16)
    assert found.local.shape == table.shape
    assert found.target_ptr.shape == offset.shape
    for b in range(offset.size - 1):
        mine = found.targets[found.target_ptr[b] : found.target_ptr[b + 1]]
        rows = slice(offset[b], offset[b + 1])
        assert np.array_equal(mine, np.unique(table[rows]))
        assert np.array_equal(mine[found.local[rows]], table[rows])
    assert found.most == np.diff(found.target_ptr).max()
    assert found.target_ptr[-1] == found.targets.size


def test_most_targets_of_a_block() -> None:
    """65535 are numbered with 16 bits, one more is refused."""
    table = np.random.default_rng(4).permutation(65536).astype(np.int32)
    fits = graph.block_targets(table[:-1], 65536, np.array([0, 65535]))
    assert fits.most == 65535
    assert np.array_equal(fits.targets, np.sort(table[:-1]))
    assert np.array_equal(fits.targets[fits.local], table[:-1, None])
    with pytest.raises(DatError, match="block 1 has more than 65535 targets"):
        graph.block_targets(table, 65536, np.array([0, 0, 65536]))
    assert graph.block_targets(table, 65536, np.array([0, 1, 65536])).most == 65535


@pytest.mark.parametrize("n_targets", [0, 3])
@pytest.mark.parametrize("shape", [(0,), (0, 2)])
def test_without_elements(shape: tuple[int, ...], n_targets: int) -> None:
    table = np.zeros(shape, dtype=np.int32)
    flat = graph.flat_inverse(table, n_targets)
    assert (flat.pointer.tolist(), flat.position.size, flat.degree) == ([0] * (n_targets + 1), 0, 0)
    assert graph.ell_inverse(table, n_targets).position.shape == (0, 32 if n_targets else 0)
    assert graph.ell_fill(table, n_targets) == 1
    for offset in ([0], [0, 0, 0]):
        blocks = graph.block_targets(table, n_targets, np.array(offset))
        assert (blocks.target_ptr.tolist(), blocks.most) == (offset, 0)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[0, 1], [1, 2]], dtype=np.int32)
    for function in (graph.flat_inverse, graph.ell_inverse, graph.ell_fill):
        with pytest.raises(DatError, match=r"table\[1, 1\] is 2"):
            function(table, 2)
    with pytest.raises(DatError, match="stride is 2"):
        graph.ell_inverse(table, 3, 2)
    with pytest.raises(DatError, match="offset must ascend from 0 to 2"):
        graph.block_targets(table, 3, np.array([0, 1]))
    with pytest.raises(DatError, match="columns of 2147483647"):
        graph.ell_inverse(table, 3, 2**31 - 1)
    monkeypatch.setattr(native, "_LARGEST", 3)
    for function in (graph.flat_inverse, graph.ell_inverse, graph.ell_fill):
        with pytest.raises(DatError, match="number of table entries is 4"):
            function(table, 3)
    with pytest.raises(DatError, match="number of table entries is 4"):
        graph.block_targets(table, 3, np.array([0, 2]))
