"""Colourings and two-level plans against their definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom.core.errors import DatError
from fluxloom.graph import BlockPlan, colour_elements, colour_permutation, two_level_plan

unhurried = settings(deadline=None)  # the first call compiles
Tables = tuple[list[np.ndarray], list[int]]


@st.composite
def table_lists(draw: st.DrawFn, most_rows: int = 60) -> Tables:
    rows = draw(st.integers(0, most_rows))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    tables, sizes = [], []
    for _ in range(draw(st.integers(1, 3))):
        arity, targets = draw(st.integers(1, 4)), draw(st.integers(1, 30))
        tables.append(rng.integers(0, targets, (rows, arity), dtype=np.int32))
        sizes.append(targets)
    return tables, sizes


def targets_of(tables: list[np.ndarray], sets: list[object], element: int) -> set[tuple[object, int]]:
    return {(key, int(t)) for table, key in zip(tables, sets, strict=True) for t in table[element]}


def assert_apart(tables: list[np.ndarray], sets: list[object], groups: list[list[int]]) -> None:
    """No two groups of elements share a target."""
    met: set[tuple[object, int]] = set()
    for group in groups:
        mine = set().union(*(targets_of(tables, sets, e) for e in group))
        assert not met & mine
        met |= mine


@unhurried
@given(table_lists())
def test_elements_of_one_colour_share_nothing(given_tables: Tables) -> None:
    tables, sizes = given_tables
    for sets in (None, list(range(len(tables)))):
        found = colour_elements(tables, sizes, sets=sets)
        assert found.colours.dtype == np.int32
        assert found.colours.shape == (len(tables[0]),)
        assert set(found.colours.tolist()) == set(range(found.n_colours))
        for colour in range(found.n_colours):
            elements = np.flatnonzero(found.colours == colour).tolist()
            assert_apart(tables, list(sets or sizes), [[e] for e in elements])


@unhurried
@given(table_lists(), st.data())
def test_a_range_of_elements(given_tables: Tables, data: st.DataObject) -> None:
    tables, sizes = given_tables
    begin = data.draw(st.integers(0, len(tables[0])))
    end = data.draw(st.integers(begin, len(tables[0])))
    part = colour_elements(tables, sizes, begin, end)
    alone = colour_elements([np.ascontiguousarray(t[begin:end]) for t in tables], sizes)
    assert part.n_colours == alone.n_colours
    assert np.array_equal(part.colours, alone.colours)


def test_greedy_takes_the_lowest_colour() -> None:
    chain = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 2]], dtype=np.int32)
    found = colour_elements([chain], [5])
    assert found.colours.tolist() == [0, 1, 0, 1, 2]


@pytest.mark.parametrize("n", [63, 64, 65, 500, 512, 513, 700, 5000])
def test_one_target_of_all(n: int) -> None:
    """More than 64 colours take further passes, more than 512 the counters."""
    hub = np.zeros((n, 2), dtype=np.int32)
    hub[:, 1] = np.arange(n)
    found = colour_elements([hub], [n])
    assert found.n_colours == n
    assert sorted(found.colours.tolist()) == list(range(n))


def test_two_hubs_beside_a_chain() -> None:
    rng = np.random.default_rng(3)
    n = 4000
    table = np.stack([rng.integers(0, 2, n), np.arange(n), np.arange(n) + 1], axis=1).astype(np.int32)
    found = colour_elements([table], [n + 1])
    for colour in range(found.n_colours):
        mine = table[found.colours == colour]
        assert np.unique(mine).size == sum(np.unique(row).size for row in mine)


def test_tables_to_one_set_share_targets_unless_told() -> None:
    left = np.array([[0], [1]], dtype=np.int32)
    right = np.array([[1], [2]], dtype=np.int32)
    assert colour_elements([left, right], [3, 3]).n_colours == 2
    assert colour_elements([left, right], [3, 3], sets=["a", "a"]).n_colours == 2
    assert colour_elements([left, right], [3, 3], sets=["a", "b"]).n_colours == 1
    assert colour_elements([left, right], [3, 4]).n_colours == 1
    assert colour_elements([left, right], [3, 4], sets=[0, 0]).n_colours == 2


def test_wrong_tables_are_refused() -> None:
    good = np.zeros((3, 2), dtype=np.int32)
    with pytest.raises(DatError, match="dtype int64"):
        colour_elements([good.astype(np.int64)], [3])
    with pytest.raises(DatError, match="not C-contiguous"):
        colour_elements([np.zeros((2, 3), dtype=np.int32).T], [3])
    bad = good.copy()
    bad[2, 1] = 7
    with pytest.raises(DatError, match=r"tables\[1\]\[2, 1\] is 7; targets are numbered from 0 to 6"):
        colour_elements([good, bad], [3, 7])
    with pytest.raises(DatError, match=r"tables\[0\]\[0, 1\] is -1"):
        colour_elements([np.array([[0, -1]], dtype=np.int32)], [3])
    with pytest.raises(DatError, match="give one each"):
        colour_elements([good], [3, 3])
    with pytest.raises(DatError, match="rows"):
        colour_elements([good, good[:2]], [3, 3])
    with pytest.raises(DatError, match="do not lie"):
        colour_elements([good], [3], 2, 1)


@unhurried
@given(st.lists(st.integers(0, 6), max_size=50))
def test_permutation_sorts_stably(colours: list[int]) -> None:
    array = np.array(colours, dtype=np.int32)
    permutation, offsets = colour_permutation(array, 7)
    assert np.array_equal(permutation, np.argsort(array, kind="stable"))
    assert np.array_equal(np.diff(offsets), np.bincount(array, minlength=7))
    assert offsets[0] == 0
    assert (permutation.dtype, offsets.dtype) == (np.int32, np.int64)


def test_permutation_refuses_a_colour_too_many() -> None:
    with pytest.raises(DatError, match="colours"):
        colour_permutation(np.array([0, 2], dtype=np.int32), 2)


# ------------------------------------------------------------------------------------------- blocks


def check_plan(plan: BlockPlan, tables: list[np.ndarray], sets: list[object], n: int) -> None:
    blocks = [list(range(a, b)) for a, b in pairwise(plan.offset.tolist())]
    assert plan.n_blocks == len(blocks)
    assert [e for block in blocks for e in block] == list(range(n))
    assert np.array_equal(plan.blocks_by_colour, np.argsort(plan.block_colour, kind="stable"))
    counts = np.bincount(plan.block_colour, minlength=plan.n_block_colours)
    assert np.array_equal(np.diff(plan.colour_offset), counts)
    assert counts.all()
    for colour in range(plan.n_block_colours):
        mine = plan.blocks_by_colour[plan.colour_offset[colour] : plan.colour_offset[colour + 1]]
        assert_apart(tables, sets, [blocks[b] for b in mine])
    for b, block in enumerate(blocks):
        colours = plan.element_colour[block]
        assert set(colours.tolist()) == set(range(plan.n_element_colours[b]))
        order = plan.permutation[block]
        assert np.array_equal(order, block[0] + np.argsort(colours, kind="stable"))
        begin = plan.colour_begin[plan.block_colour_ptr[b] : plan.block_colour_ptr[b + 1]]
        assert len(begin) == plan.n_element_colours[b] + 1
        assert (begin[0], begin[-1]) == (block[0], block[-1] + 1)
        for c, (first, last) in enumerate(pairwise(begin.tolist())):
            elements = plan.permutation[first:last]
            assert (plan.element_colour[elements] == c).all()
            assert_apart(tables, sets, [[e] for e in elements])


@unhurried
@given(table_lists(), st.integers(1, 20), st.data())
def test_two_level_plan(given_tables: Tables, block_size: int, data: st.DataObject) -> None:
    tables, sizes = given_tables
    n = len(tables[0])
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))
    sets = data.draw(st.sampled_from([None, list(range(len(tables)))]))
    plan = two_level_plan(tables, sizes, n, block_size, cuts=cuts, sets=sets)
    check_plan(plan, tables, list(sets or sizes), n)
    assert np.diff(plan.offset).max(initial=0) <= block_size
    assert set(cuts) <= {0, *plan.offset.tolist()}
    assert plan.segment_colour.shape == (len(cuts) + 2,)
    assert plan.segment_colour[-1] == plan.n_block_colours
    for s, (low, high) in enumerate(pairwise([0, *cuts, n])):
        mine = plan.block_colour[(plan.offset[:-1] >= low) & (plan.offset[:-1] < high)]
        assert set(mine.tolist()) == set(range(plan.segment_colour[s], plan.segment_colour[s + 1]))


@pytest.mark.parametrize("block_size", [1, 100, 1000, 5000])
def test_plan_of_a_hub(block_size: int) -> None:
    hub = np.zeros((1500, 1), dtype=np.int32)
    plan = two_level_plan([hub], [1], 1500, block_size)
    check_plan(plan, [hub], [1], 1500)
    assert plan.n_block_colours == plan.n_blocks


def test_plan_without_races_and_without_elements() -> None:
    plan = two_level_plan([], [], 10, 4)
    assert plan.offset.tolist() == [0, 4, 8, 10]
    assert (plan.n_block_colours, plan.n_element_colours.tolist()) == (1, [1, 1, 1])
    assert plan.permutation.tolist() == list(range(10))
    empty = two_level_plan([np.empty((0, 2), dtype=np.int32)], [5], 0, 4)
    assert (empty.n_blocks, empty.n_block_colours) == (0, 0)
    assert empty.colour_offset.tolist() == [0]


def test_plan_of_a_grid_needs_few_colours() -> None:
    nx, ny = 40, 30
    cell = np.arange(nx * ny, dtype=np.int32).reshape(ny, nx)
    right = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], axis=1)
    up = np.stack([cell[:-1].ravel(), cell[1:].ravel()], axis=1)
    table = np.concatenate([right, up])
    plan = two_level_plan([table], [nx * ny], len(table), 64)
    check_plan(plan, [table], [0], len(table))
    assert plan.n_block_colours <= 8
    assert plan.n_element_colours.max() <= 4


def test_wrong_plans_are_refused() -> None:
    table = np.zeros((3, 1), dtype=np.int32)
    with pytest.raises(DatError, match="block_size is 0"):
        two_level_plan([table], [1], 3, 0)
    with pytest.raises(DatError, match="n_elements"):
        two_level_plan([table], [1], 4, 2)
    for cuts in ((2, 1), (4,), (-1,)):
        with pytest.raises(DatError, match="must ascend"):
            two_level_plan([table], [1], 3, 2, cuts=cuts)
