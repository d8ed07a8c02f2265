"""Decomposition for a rank alone, and its building blocks; many ranks are in tests/parallel."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.rows import fetch_pieces, stable_order, take
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.directory import by_rank, even_owner, lay_out, mixed_rows, places_by_rank
from fluxloom.dsl.ranks import decompose_owner
from fluxloom.dsl.ranks.decompose import Link, decompose
from fluxloom.dsl.ranks.decompose_halo import _encode, find_sorted
from fluxloom.graph.lookup import index_numbers

LINE = np.array([[0, 1], [1, 2], [2, 3]], dtype=np.int64)
SIZES = {"edges": 3, "nodes": 4}


def test_a_rank_alone_has_everything() -> None:
    one = decompose(SelfComm(), SIZES, {"ends": Link("edges", "nodes", LINE)}, on="nodes")
    for name, n in SIZES.items():
        part = one.parts[name]
        assert (part.begin, part.inside, part.owned, part.executed, part.stored, part.total) == (0, n, n, n, n, n)
        assert part.numbers.tolist() == list(range(n))
        assert one.slice_of(name) == (0, n)
        values = np.random.default_rng(0).random((n, 2))
        assert np.array_equal(one.scatter(name, values), values)
        assert np.array_equal(one.gather(name, values), values)
    assert one.table("ends").dtype == np.int32
    assert np.array_equal(one.table("ends"), LINE)
    report = one.report()
    assert (report.ranks, report.method, report.edge_cut, report.neighbours) == (1, "whole", 0, ((),))
    assert "1 parts of nodes by whole" in str(report)
    with pytest.raises(FrozenInstanceError):
        one.summary = report  # type: ignore[misc]


def test_its_parts_make_sets_that_loops_run_over() -> None:
    @fl.kernel
    def spread(u: fl.Read, r: fl.Inc) -> None:
        r[0] += u[1]
        r[1] += u[0]

    one = decompose(SelfComm(), SIZES, {"ends": Link("edges", "nodes", LINE)}, on="nodes")
    ctx = fl.Context("reference")
    edges, nodes = (ctx.set(one.parts[name], name) for name in ("edges", "nodes"))
    ends = ctx.map(edges, nodes, one.table("ends"), "ends")
    u, r = ctx.dat(nodes, one.scatter("nodes", np.arange(4.0)), "u"), ctx.dat(nodes, np.zeros(4), "r")
    fl.Loop(spread, edges, u[ends], r[ends])()
    assert r.read().tolist() == [1.0, 2.0, 4.0, 2.0]


def test_errors_of_a_rank_alone_name_no_rank() -> None:
    with pytest.raises(DatError, match=r"^link 'ends': entry \[2, 1\] of this rank's slice is 3"):
        decompose(SelfComm(), {"edges": 3, "nodes": 3}, {"ends": Link("edges", "nodes", LINE)}, on="nodes")
    with pytest.raises(DatError, match="set 'edges' has 4 elements, but the ranks hold 3"):
        decompose(SelfComm(), {"edges": 4, "nodes": 4}, {"ends": Link("edges", "nodes", LINE)}, on="nodes")
    with pytest.raises(DatError, match=r"^link 'ends': a table of shape \(1, 3, 2\) is not"):
        decompose(SelfComm(), SIZES, {"ends": Link("edges", "nodes", LINE[None])}, on="nodes")


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-1, 4), min_size=5, max_size=5), min_size=1, max_size=12))
def test_majority(rows: list[list[int]]) -> None:
    def winner(row: list[int]) -> int:
        counts = Counter(rank for rank in row if rank >= 0)
        return min(counts, key=lambda rank: (-counts[rank], rank)) if counts else -1

    assert decompose_owner._majority(np.array(rows, dtype=np.int32)).tolist() == [winner(row) for row in rows]


def test_graph_link_is_the_one_that_shows_neighbours() -> None:
    links = {
        "cn": Link("cells", "nodes", np.zeros((4, 4), dtype=int)),
        "bc": Link("border", "cells", np.zeros((9, 1), dtype=int)),
        "few": Link("cuts", "cells", np.zeros((1, 2), dtype=int)),
        "ec": Link("edges", "cells", np.zeros((5, 2), dtype=int)),
    }
    sizes = {"cells": 4, "nodes": 9, "border": 9, "cuts": 1, "edges": 5}
    names = []
    for gone in (None, "ec", "few", "cn"):
        links.pop(gone, None)  # type: ignore[arg-type]
        names.append(decompose_owner.graph_link(links, sizes, "cells"))
    assert names == ["ec", "few", "cn", ""]
    assert decompose_owner.graph_link({"cn": Link("cells", "nodes", LINE)}, SIZES | {"cells": 3}, "nodes") == "cn"


def test_blocks() -> None:
    assert even_owner(np.arange(7), 7, np.ones(3)).tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert even_owner(np.arange(8), 8, np.array([3.0, 1.0])).tolist() == [0] * 6 + [1] * 2
    assert even_owner(np.arange(2), 2, np.ones(4)).tolist() == [1, 3]


@pytest.mark.parametrize("ranks", [3, 2**16 + 1])
def test_order_by_owner(ranks: int) -> None:
    owner = np.array([2, 0, 2, 1, 0], dtype=np.int32)
    order = stable_order(owner, ranks)
    assert order.tolist() == [1, 4, 3, 0, 2]
    pieces = by_rank(owner, ranks)
    assert len(pieces) == ranks
    assert [order[piece].tolist() for piece in pieces[:3]] == [[1, 4], [3], [0, 2]]


@pytest.mark.parametrize("ranks", [3, 5])
def test_places_by_rank(ranks: int) -> None:
    owner = np.array([2, 0, 2, 1, 0], dtype=np.int32)
    assert [places.tolist() for places in places_by_rank(owner, ranks)] == [[1, 4], [3], [0, 2], [], []][:ranks]


def test_mixed_rows() -> None:
    columns = [np.array(c, dtype=np.int32) for c in ([0, 1, -1, 2, -1, 0], [0, 2, 3, -1, -1, 0], [0, 1, 3, 2, -1, 1])]
    highest, mixed = mixed_rows(columns)
    assert highest.tolist() == [0, 2, 3, 2, -1, 1]
    assert mixed.tolist() == [1, 5]
    assert columns[0].tolist() == [0, 1, -1, 2, -1, 0]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_pieces_of_rows_of_others(size: int) -> None:
    table, starts = np.arange(12).reshape(6, 2) * 10, np.array([0, 1, 1, 6])

    def work(comm: Comm) -> None:
        wanted = np.random.default_rng(comm.rank).integers(-1, 6, 9 * comm.rank).astype(np.int32)
        mine = table[starts[comm.rank] : starts[comm.rank + 1]]
        found = list(fetch_pieces(comm, mine, starts, wanted, size, absent=-7))
        assert [piece.start for piece, _ in found] == list(range(0, wanted.size, size))
        values = np.concatenate([np.empty((0, 2), dtype=int), *(rows for _, rows in found)])
        assert np.array_equal(values, np.where(wanted[:, None] < 0, -7, table[wanted]))

    run_threads(3, work)


def test_rows_are_laid_out() -> None:
    out = np.zeros((5, 1), dtype=np.int64)
    own = lay_out([np.array([[7]]), np.empty((0, 1), dtype=int), np.array([[8], [9]])], 1, 2, out)
    own[:] = -1
    assert out.ravel().tolist() == [7, -1, -1, 8, 9]
    assert take(np.array([[1, 2], [3, 4]]), np.array([1, 1, 0], dtype=np.int32)).tolist() == [[3, 4], [3, 4], [1, 2]]


def test_find_sorted() -> None:
    assert find_sorted(np.array([2, 5, 9]), np.array([9, 1, 5, 10, -1])).tolist() == [2, -1, 1, -1, -1]
    assert find_sorted(np.zeros(0, dtype=np.int64), np.array([3])).tolist() == [-1]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_tables_are_encoded_in_32_bits(dtype: str) -> None:
    """One of 64 bits stays as it is."""
    table = np.array([[4, 9], [-1, 6]], dtype=dtype)
    coded = _encode(table, index_numbers(np.array([4, 6], dtype=np.int64)))
    assert coded.place.dtype == np.int32
    assert coded.place.tolist() == [[0, -2], [-1, 1]]
    assert (coded.spots.tolist(), coded.elsewhere.tolist()) == ([1], [9])
    assert np.shares_memory(coded.place, table) is (dtype == "int32")


@pytest.mark.parametrize(
    ("sizes", "links", "more", "message"),
    [
        ([3], {}, {}, "sizes: a dictionary by name is wanted, not list"),
        ({"cells": 3.0}, {}, {}, "set 'cells': its number of elements is a whole number, not 3.0"),
        ({"cells": 3}, None, {}, "links: a dictionary by name is wanted, not NoneType"),
        ({"cells": 3}, {"to": ("cells", "cells", [[0, 1]])}, {}, "link 'to': a Link.* is wanted, not tuple"),
        ({"cells": 3}, {}, {"shares": [float("nan")]}, r"shares: one positive number a rank is wanted, not \[nan\]"),
        ({"cells": 3}, {}, {"shares": 1.0}, "shares: one positive number a rank is wanted, not 1.0"),
    ],
)
def test_wrong_kinds(sizes, links, more, message: str) -> None:
    with pytest.raises(DatError, match=f"^{message}"):
        decompose(SelfComm(), sizes, links, on="cells", **more)
