"""Spans of a part, and the global order of elements, against definitions written out."""

from __future__ import annotations

from math import lcm

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.plan.plan import ALIGN, Limits, Span, global_order, limits_of, tiles_of, whole_span


class Two(Comm):
    """One of two ranks that never speaks."""

    name, rank, size = "two", 0, 2

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"nobody should call {name}")

    allgather = exchange = channel = barrier = abort = None  # type: ignore[assignment]


def distributed() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False, comm=Two())


def part(inside: int, owned: int, executed: int, stored: int, numbers: np.ndarray | None = None) -> Part:
    found = np.arange(stored, dtype=np.int64) if numbers is None else numbers
    return Part(0, inside, owned, executed, stored, found, stored)


def test_limits_without_a_part() -> None:
    cells = fl.Context("cpu", threads=1).set(77, "cells")
    assert limits_of(cells, True) == limits_of(cells, False) == Limits(0, 77, 77, 77)
    assert limits_of(cells, False).rest == []
    assert whole_span(cells) == Span(0, 77)


@pytest.mark.parametrize("tile", [0, 1, 16, 48, 96, 128, 256])
def test_the_interior_is_cut_at_whole_tiles(tile: int) -> None:
    """A span that begins inside a tile would need tables of its own."""
    step = lcm(max(1, tile), ALIGN)
    cells = distributed().set(part(500, 600, 650, 700), "cells")
    found = limits_of(cells, False, tile)
    assert found == Limits(0, 500 // step * step, 600, 600)
    assert found.interior == Span(0, found.inside)
    assert found.rest == [Span(found.inside, 600)]
    assert limits_of(cells, True, tile) == Limits(0, found.inside, 600, 650)


@pytest.mark.parametrize("inside", [0, 1, ALIGN - 1])
def test_small_interiors_are_not_cut(inside: int) -> None:
    cells = distributed().set(part(inside, 80, 90, 95), "cells")
    found = limits_of(cells, True)
    assert not len(found.interior)
    assert found.rest == [Span(0, 90)]


def test_limits_of_a_subset_are_places_in_its_list() -> None:
    def rank(comm: Comm) -> None:
        n, other = 6 * ALIGN, 1 - comm.rank
        numbers = np.concatenate([np.arange(n) + n * comm.rank, np.arange(3) + n * other])
        shared = np.arange(3, dtype=np.int32)
        cells = fl.Context("cpu", threads=1, tuning=False, comm=comm).set(
            Part(0, n - 50, n, n + 3, n + 3, numbers, 2 * n, (other,), (shared,), (n + shared,)), "cells"
        )
        some = cells.context.subset(cells, np.arange(0, n, 2))
        half = n // 2
        assert some.size == half
        assert some.indices[half:].tolist() == [n, n + 2]  # the neighbour's elements 0 and 2
        assert limits_of(some, True) == Limits(0, 2 * ALIGN, half, half + 2)
        assert limits_of(some, False) == Limits(0, 2 * ALIGN, half, half)
        assert some.indices[2 * ALIGN - 1] < n - 50
        none = cells.context.subset(cells, np.arange(n) < 1 - comm.rank)
        assert limits_of(none, True).owned == 1 - comm.rank
        assert limits_of(none, True).end == 1

    run_threads(2, rank)


def test_the_global_order() -> None:
    numbers = np.array([5, 9, 2, 8, 0, 7, 1])
    cells = distributed().set(part(2, 4, 6, 7, numbers), "cells")
    order = global_order(cells)
    assert order is not None
    assert order.tolist() == [4, 2, 0, 5, 3, 1]
    assert global_order(distributed().set(part(2, 4, 6, 7), "cells")) is None
    assert global_order(fl.Context("cpu").set(6, "cells")) is None
    assert global_order(distributed().set(part(0, 0, 0, 0), "cells")) is None


def naive(table: np.ndarray, numbers: np.ndarray, span: Span, tile: int) -> list[list[int]]:
    """Return the elements that have a target in each tile of a span, in the order of their numbers."""
    out = []
    for begin in range(span.begin, span.end, tile):
        end = min(begin + tile, span.end)
        hit = [e for e, row in enumerate(table) if ((row >= begin) & (row < end)).any()]
        out.append(sorted(hit, key=lambda e: numbers[e]))
    return out


@pytest.mark.parametrize("seed", range(12))
def test_tiles_of_a_span(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, targets, tile = int(rng.integers(0, 60)), int(rng.integers(1, 50)), int(rng.choice([4, 16, 64]))
    numbers = rng.permutation(200)[:rows]
    edges = Set(distributed(), rows, "edges", part=part(0, rows, rows, rows, numbers))
    tables = [rng.integers(0, targets, (rows, arity)).astype(np.int32) for arity in (2, 1)][: 1 + seed % 2]
    begin = tile * int(rng.integers(0, -(-targets // tile)))
    span = Span(begin, int(rng.integers(begin, targets + 1)))
    found = tiles_of(edges, tables, span, tile)
    want = naive(np.concatenate(tables, axis=1), numbers, span, tile)
    assert found.n_tiles == len(want)
    for k, elements in enumerate(want):
        piece = slice(found.elem_ptr[k], found.elem_ptr[k + 1])
        assert found.elements[piece].tolist() == elements
