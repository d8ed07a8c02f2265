"""Blocks and their partial fractions, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.linalg.direct.separable.roots import NONE, Roots, Tree, product

from .problems import SIZES, rows


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("columns", SIZES[2:])
def test_every_column_is_a_centre_once(columns, periodic):
    tree = Tree(columns, periodic)
    assert sorted(block.centre for block in tree.blocks()) == list(range(columns))
    level = {block.centre: block.level for block in tree.blocks()}
    for block in tree.blocks():
        assert block.first <= block.centre <= block.last
        for side in (block.left, block.right):
            assert side == NONE or level[side] > block.level


@pytest.mark.parametrize("columns", SIZES[2:])
def test_halves_of_blocks_are_blocks(columns):
    tree = Tree(columns, False)
    ends = {(block.first, block.last) for block in tree.blocks()}
    for block in tree.blocks():
        for first, last in ((block.first, block.centre - 1), (block.centre + 1, block.last)):
            assert last < first or (first, last) in ends


@pytest.mark.parametrize("sides", ["dd", "nd", "periodic"])
@pytest.mark.parametrize("columns", [3, 8, 13])
def test_fractions_are_entries_of_inverses(columns, sides):
    given = rows(columns, sides)
    roots = Roots(given)
    shift = -7.0
    for block in roots.tree.blocks():
        part = slice(block.first, block.last + 1)
        dense = given.matrix().toarray()
        inverse = np.linalg.inv(dense[part, part] + shift * np.eye(block.size))
        centre, end = block.centre - block.first, block.size - 1
        found = roots.fractions(block)
        weight = 1.0 / (found.roots + shift)
        assert found.centre @ weight == pytest.approx(inverse[centre, centre], rel=1e-12)
        pairs = [
            (block.left, found.to_left, -given.c[block.left] * inverse[0, centre]),
            (block.right, found.to_right, -given.a[block.right] * inverse[end, centre]),
            (block.left, found.from_left, -given.a[block.first] * inverse[centre, 0]),
            (block.right, found.from_right, -given.c[block.last] * inverse[centre, end]),
        ]
        for side, weights, expected in pairs:
            wanted = expected if side != NONE else 0.0
            assert weights @ weight == pytest.approx(wanted, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("sides", ["dn", "periodic"])
def test_eigenvalues_are_those_of_the_rows(sides):
    given = rows(12, sides)
    wanted = np.sort(np.linalg.eigvals(given.matrix().toarray()).real)
    np.testing.assert_allclose(Roots(given).eigenvalues(0, 11), wanted, atol=1e-12 * np.abs(wanted).max())
    assert Roots(given).eigenvalues(4, 3).size == 0


def test_equal_blocks_are_found_once():
    roots = Roots(rows(31, "dd", constant=True))
    inner = [block for block in roots.tree.levels[1] if block.first > 0 and block.last < 30]
    tables = [roots.fractions(block).roots for block in inner]
    assert all(table is tables[0] for table in tables)


def test_products_of_many_do_not_overflow():
    log, sign = product(np.full(400, -1e6))
    assert log == pytest.approx(400 * np.log(1e6))
    assert sign == 1.0
    assert product(np.array([2.0, 0.0]))[1] == 0.0
