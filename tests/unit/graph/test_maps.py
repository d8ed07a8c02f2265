"""Inverse maps, tiles, orderings and patterns against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom import graph
from fluxloom.core.errors import DatError, DeviceUnavailable

unhurried = settings(deadline=None)  # the first call compiles


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    rows, arity, targets = draw(st.integers(0, 40)), draw(st.integers(1, 5)), draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(0, targets, (rows, arity), dtype=np.int32), targets


def pairs(table: np.ndarray, target: int) -> list[tuple[int, int]]:
    return [(int(e), int(k)) for e, k in np.argwhere(table == target)]


@unhurried
@given(tables())
def test_inverse_map(given_table: tuple[np.ndarray, int]) -> None:
    table, n = given_table
    inverse = graph.inverse_map(table, n)
    assert (inverse.offsets.dtype, inverse.element.dtype, inverse.leg.dtype) == (np.int64, np.int32, np.uint8)
    for t in range(n):
        mine = slice(inverse.offsets[t], inverse.offsets[t + 1])
        assert list(zip(inverse.element[mine].tolist(), inverse.leg[mine].tolist(), strict=True)) == pairs(
            table, t
        )


def test_inverse_map_of_many_legs() -> None:
    wide = np.zeros((2, 256), dtype=np.int32)
    assert graph.inverse_map(wide, 1).leg.tolist() == [*range(256), *range(256)]
    with pytest.raises(DatError, match="inverse_ragged"):
        graph.inverse_map(np.zeros((2, 257), dtype=np.int32), 1)
    with pytest.raises(DatError, match="sliced"):
        graph.sliced(graph.inverse_map(wide, 1), 4)


@unhurried
@given(tables(), st.integers(1, 9))
def test_sliced(given_table: tuple[np.ndarray, int], lanes: int) -> None:
    table, n = given_table
    inverse = graph.inverse_map(table, n)
    found = graph.sliced(inverse, lanes)
    assert (found.lanes, found.leg.dtype, found.element.dtype) == (lanes, np.int8, np.int32)
    n_slices = -(-n // lanes)
    assert found.slice_start.shape == (n_slices + 1,)
    for s in range(n_slices):
        begin, end, width = found.slice_start[s], found.slice_start[s + 1], found.width[s]
        assert end - begin == width * lanes
        element = found.element[begin:end].reshape(width, lanes)
        leg = found.leg[begin:end].reshape(width, lanes)
        rows = [pairs(table, s * lanes + lane) for lane in range(lanes)]
        assert width == max(len(row) for row in rows)
        for lane, row in enumerate(rows):
            assert list(zip(element[: len(row), lane], leg[: len(row), lane], strict=True)) == row
            assert (leg[len(row) :, lane] == -1).all()
            assert (element[len(row) :, lane] == (row[-1][0] if row else 0)).all()


@unhurried
@given(st.lists(st.lists(st.integers(0, 11), max_size=6), max_size=20))
def test_inverse_ragged(rows: list[list[int]]) -> None:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    indices = np.array([t for row in rows for t in row], dtype=np.int32)
    owner = np.repeat(np.arange(len(rows)), np.diff(offsets))
    inverse = graph.inverse_ragged(offsets, indices, 12)
    for t in range(12):
        mine = slice(inverse.offsets[t], inverse.offsets[t + 1])
        expected = np.flatnonzero(indices == t)
        assert np.array_equal(inverse.entry[mine], expected)
        assert np.array_equal(inverse.element[mine], owner[expected])


def test_ragged_rows_are_checked() -> None:
    one = np.zeros(3, dtype=np.int32)
    for offsets in ([0, 2], [1, 3], [0, 2, 1, 3], []):
        with pytest.raises(DatError, match="row_offsets must ascend"):
            graph.inverse_ragged(np.array(offsets, dtype=np.int64), one, 1)
    with pytest.raises(DatError, match="dtype int32"):
        graph.inverse_ragged(np.array([0, 3], dtype=np.int32), one, 1)
    with pytest.raises(DatError, match=r"indices\[0\] is 0"):
        graph.inverse_ragged(np.array([0, 3]), one, 0)


@unhurried
@given(tables(), st.integers(1, 30), st.booleans(), st.integers(0, 24), st.booleans())
def test_target_tiles(given_table: tuple[np.ndarray, int], size: int, two: bool, first: int, shuffled: bool) -> None:
    table, n = given_table
    given_tables = [table, np.ascontiguousarray(table[::-1, :1])] if two else [table]
    every = np.concatenate(given_tables, axis=1)
    order = np.random.default_rng(size).permutation(len(table)) if shuffled else np.arange(len(table))
    wanted = order if shuffled else None
    plan = graph.target_tiles(given_tables, n, size, order=wanted)
    check_tiles(plan, every, 0, order)
    first = min(first, n)
    plan = graph.target_tiles(given_tables, n - first, size, first=first, order=wanted)
    check_tiles(plan, every, first, order)
    assert plan.elements.size == graph.tiled_elements(given_tables, n - first, size, first=first)


def check_tiles(plan: graph.TilePlan, every: np.ndarray, first: int, order: np.ndarray) -> None:
    """Compare elements and segments of tiles with what a look at the whole table tells."""
    assert plan.offset.tolist() == [*range(0, int(plan.offset[-1]), plan.tile_size), int(plan.offset[-1])]
    assert plan.n_tiles == len(plan.offset) - 1
    cut = graph.tile_segments(plan, 3)
    for t in range(plan.n_tiles):
        inside = (every >= first + plan.offset[t]) & (every < first + plan.offset[t + 1])
        mine = plan.elements[plan.elem_ptr[t] : plan.elem_ptr[t + 1]].tolist()
        assert mine == [int(e) for e in order if inside[e].any()]
        segments = slice(cut.pointer[t], cut.pointer[t + 1])
        found = list(zip(cut.place[segments].tolist(), cut.length[segments].tolist(), strict=True))
        assert found == segments_of(mine, inside.all(axis=1), int(plan.elem_ptr[t]))


def segments_of(elements: list[int], whole: np.ndarray, begin: int) -> list[tuple[int, int]]:
    """Return place and length of the segments of a tile: runs of 3 or more consecutive whole elements, and others."""
    runs: list[list[int]] = []
    for e in elements:
        follows = bool(runs) and e == runs[-1][-1] + 1 and whole[e] == whole[e - 1]
        runs = [*runs[:-1], [*runs[-1], e]] if follows else [*runs, [e]]
    out: list[tuple[int, int]] = []
    for run in runs:
        if whole[run[0]] and len(run) >= 3:
            out.append((begin, len(run)))
        elif out and out[-1][1] < 0:
            out[-1] = (out[-1][0], out[-1][1] - len(run))
        else:
            out.append((begin, -len(run)))
        begin += len(run)
    return out


def test_tiles_are_checked() -> None:
    table = np.zeros((2, 1), dtype=np.int32)
    with pytest.raises(DatError, match="at least one table"):
        graph.target_tiles([], 3, 2)
    with pytest.raises(DatError, match="tile_size is 0"):
        graph.target_tiles([table], 3, 0)
    with pytest.raises(DatError, match="same elements"):
        graph.target_tiles([table, table[:1]], 3, 1)
    for order in ([0], [0, 2], [-1, 0]):
        with pytest.raises(DatError, match="an order of 2 rows"):
            graph.target_tiles([table], 3, 1, order=np.array(order))
    with pytest.raises(DatError, match="shortest is 0"):
        graph.tile_segments(graph.target_tiles([table], 3, 1), 0)


# ------------------------------------------------------------------------------------------ checks


@unhurried
@given(tables())
def test_injective_and_covering(given_table: tuple[np.ndarray, int]) -> None:
    table, n = given_table
    counts = np.bincount(table.ravel(), minlength=n)
    assert graph.is_injective(table, n) == (counts <= 1).all()
    rows = sum(np.bincount(np.unique(row), minlength=n) for row in table) + np.zeros(n, dtype=int)
    assert graph.is_injective(table, n, between_rows=True) == (rows <= 1).all()
    assert graph.covers(table, n) == (counts >= 1).all()


@pytest.mark.parametrize("shape", [(0,), (5,), (9000,), (3000, 3), (10, 20, 30)])
def test_check_range(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 100, shape, dtype=np.int32)
    assert graph.check_range(array, 100) == -1
    for place in {0, 1, array.size // 2, array.size - 1} if array.size else ():
        for value in (100, -1, 2**31 - 1, -(2**31)):
            bad = array.copy()
            bad.reshape(-1)[place] = value
            assert graph.check_range(bad, 100) == place
    assert graph.check_range(array, 0) == (0 if array.size else -1)
    with pytest.raises(DatError, match="n is -1"):
        graph.check_range(array, -1)


def test_arrays_are_checked() -> None:
    with pytest.raises(DatError, match="NumPy array, not list"):
        graph.inverse_map([[0]], 1)  # type: ignore[arg-type]
    with pytest.raises(DatError, match="dimension"):
        graph.inverse_map(np.zeros((1, 1, 1), dtype=np.int32), 1)
    with pytest.raises(DatError, match="n_targets is 2147483648"):
        graph.inverse_map(np.zeros((1, 1), dtype=np.int32), 2**31)


# ---------------------------------------------------------------------------------------- patterns


@unhurried
@given(st.lists(st.lists(st.integers(-1, 9), min_size=3, max_size=3), max_size=15))
def test_rows_and_transpose(rows: list[list[int]]) -> None:
    table = np.array(rows, dtype=np.int32).reshape(len(rows), 3)
    pattern = graph.rows_to_csr(table)
    kept = [[c for c in row if c >= 0] for row in rows]
    assert pattern.indices.tolist() == [c for row in kept for c in row]
    assert np.diff(pattern.offsets).tolist() == [len(row) for row in kept]
    back = graph.transpose_pattern(pattern, 10)
    for column in range(10):
        mine = back.indices[back.offsets[column] : back.offsets[column + 1]].tolist()
        assert mine == [r for r, row in enumerate(kept) for c in row if c == column]
    twice = graph.transpose_pattern(graph.transpose_pattern(back, len(rows)), 10)
    assert np.array_equal(twice.indices, back.indices)


@unhurried
@given(tables())
def test_graphs(given_table: tuple[np.ndarray, int]) -> None:
    table, n = given_table
    found = graph.target_graph(table, n)
    for t in range(n):
        linked = {int(u) for row in table if t in row for u in row} - {t}
        assert found.indices[found.offsets[t] : found.offsets[t + 1]].tolist() == sorted(linked)
    found = graph.element_graph(graph.inverse_map(table, n), len(table))
    for e, row in enumerate(table):
        linked = {u for u, other in enumerate(table) if set(row.tolist()) & set(other.tolist())} - {e}
        assert found.indices[found.offsets[e] : found.offsets[e + 1]].tolist() == sorted(linked)


def test_graph_of_a_hub_is_sorted() -> None:
    hub = np.stack([np.zeros(100), np.arange(100, 0, -1)], axis=1).astype(np.int32)
    found = graph.target_graph(hub, 101)
    assert found.indices[: found.offsets[1]].tolist() == list(range(1, 101))
    wide = np.arange(300, dtype=np.int32)[None, ::-1].copy()
    assert graph.target_graph(wide, 300).indices[:299].tolist() == list(range(1, 300))


def test_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluxloom.graph import native

    def none(*_arguments: object, **_options: object) -> None:
        raise DeviceUnavailable("no C compiler found: install one")

    monkeypatch.setattr(native, "load_library", none)
    native._library.cache_clear()
    native._function.cache_clear()
    try:
        with pytest.raises(DeviceUnavailable, match="computed by compiled code: no C compiler found"):
            graph.covers(np.zeros((1, 1), dtype=np.int32), 1)
    finally:
        native._library.cache_clear()
        native._function.cache_clear()


def test_pairs_of_rows_have_entries() -> None:
    """Against sets of pairs; targets 7 and 9 occur in no row."""
    rng = np.random.default_rng(5)
    table = np.stack([rng.permutation(7)[:4] for _ in range(6)]).astype(np.int32)
    table[table == 3] = 8
    found = graph.pair_entries(table, 10)
    wanted = {(i, i) for i in range(10)} | {(int(i), int(j)) for row in table for i in row for j in row}
    offsets, columns = found.graph.offsets, found.graph.indices
    rows = np.repeat(np.arange(10), np.diff(offsets))
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(wanted)
    assert (rows[found.diagonal] == np.arange(10)).all()
    assert (columns[found.diagonal] == np.arange(10)).all()
    assert (rows[found.table] == np.repeat(table, 4, axis=1)).all()
    assert (columns[found.table] == np.tile(table, (1, 4))).all()
    plain = graph.target_graph(table, 10)
    assert (np.diff(offsets) == np.diff(plain.offsets) + 1).all()


def test_pairs_of_wrong_rows() -> None:
    with pytest.raises(DatError, match="4"):
        graph.pair_entries(np.array([[0, 4]], dtype=np.int32), 4)
    assert graph.pair_entries(np.zeros((0, 3), dtype=np.int32), 2).graph.indices.tolist() == [0, 1]
