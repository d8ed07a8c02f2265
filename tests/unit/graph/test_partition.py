"""Partitions of graphs and points: sizes, cuts, ties, what is refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom import graph
from fluxloom.core import packages
from fluxloom.core.errors import DatError, DeviceUnavailable
from fluxloom.graph import partition

unhurried = settings(deadline=None, max_examples=60)


def grid(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbour pairs of an n x m grid of cells, and their centres."""
    cell = np.arange(n * m, dtype=np.int32).reshape(n, m)
    across = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], axis=1)
    along = np.stack([cell[:-1].ravel(), cell[1:].ravel()], axis=1)
    points = np.stack(np.meshgrid(np.arange(n), np.arange(m), indexing="ij"), axis=-1).reshape(-1, 2)
    return np.concatenate([across, along]), points + 0.5


def edges_of(pattern: graph.Csr) -> set[tuple[int, int]]:
    rows = np.repeat(np.arange(pattern.offsets.size - 1), np.diff(pattern.offsets))
    found = list(zip(rows.tolist(), pattern.indices.tolist(), strict=True))
    assert found == sorted(set(found)), "rows ascend without duplicates"
    assert {(b, a) for a, b in found} == set(found), "symmetric"
    return {(a, b) for a, b in found if a < b}


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    rows, arity, targets = draw(st.integers(0, 25)), draw(st.integers(1, 5)), draw(st.integers(1, 15))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(-1, targets, (rows, arity), dtype=np.int32), targets


# ---------------------------------------------------------------------------------------------- graphs


@unhurried
@given(tables(), st.integers(1, 3))
def test_dual_graph(case: tuple[np.ndarray, int], common: int) -> None:
    table, n = case
    rows = [set(row.tolist()) - {-1} for row in table]
    if common > 1:  # a row that names a target twice shares it twice
        table = np.array([np.pad(sorted(r), (0, table.shape[1] - len(r)), constant_values=-1) for r in rows],
                         dtype=np.int32).reshape(table.shape)  # fmt: skip
    expected = {(a, b) for a, b in combinations(range(len(rows)), 2) if len(rows[a] & rows[b]) >= common}
    assert edges_of(partition.dual_graph(table, n, common=common)) == expected


@unhurried
@given(tables())
def test_pair_graph(case: tuple[np.ndarray, int]) -> None:
    table, n = case
    expected = {pair for row in table for pair in combinations(sorted(set(row.tolist()) - {-1}), 2)}
    assert edges_of(partition.pair_graph(table, n)) == expected


@unhurried
@given(tables())
def test_components(case: tuple[np.ndarray, int]) -> None:
    table, n = case
    linked = partition.pair_graph(table, n)
    label = list(range(n))
    for a, b in sorted(edges_of(linked)) * n:
        label[a] = label[b] = min(label[a], label[b])
    assert partition.components(linked.offsets, linked.indices).tolist() == label


def test_cut_edges() -> None:
    linked = partition.pair_graph(grid(4, 4)[0], 16)
    assert partition.cut_edges(linked.offsets, linked.indices, np.arange(16) // 8) == 4
    assert partition.cut_edges(linked.offsets, linked.indices, np.arange(16) % 2) == 12
    assert partition.cut_edges(linked.offsets, linked.indices, np.zeros(16, dtype=np.int32)) == 0


# ------------------------------------------------------------------------------------------------ kway


@pytest.mark.parametrize("shares", [[1, 1, 1, 1], [0.7, 0.3], [5, 1, 1, 1, 1], [1] * 7])
def test_kway_keeps_shares_and_cuts_little(shares: list[float]) -> None:
    pytest.importorskip("pymetis")
    pairs, _ = grid(60, 60)
    linked = partition.pair_graph(pairs, 3600)
    part = partition.partition_kway(linked.offsets, linked.indices, shares)
    assert part.dtype == np.int32
    load = np.bincount(part, minlength=len(shares)) / 3600
    np.testing.assert_allclose(load, partition.fractions(shares), rtol=0.02)
    # straight strips would cut 60 edges a border
    assert partition.cut_edges(linked.offsets, linked.indices, part) <= 75 * (len(shares) - 1)
    assert np.array_equal(part, partition.partition_kway(linked.offsets, linked.indices, shares)), "repeatable"
    inner = part[pairs[:, 0]] == part[pairs[:, 1]]
    pieces = partition.pair_graph(np.ascontiguousarray(pairs[inner]), 3600)
    assert np.unique(partition.components(pieces.offsets, pieces.indices)).size == len(shares), "connected parts"


@pytest.mark.parametrize("weights", ["whole", "real", "huge"])
def test_kway_balances_weights(weights: str) -> None:
    pytest.importorskip("pymetis")
    linked = partition.pair_graph(grid(50, 50)[0], 2500)
    weight = np.where(np.arange(2500) < 500, 9.0, 1.0) * {"whole": 1, "real": 1e-3 / 3, "huge": 1e30}[weights]
    part = partition.partition_kway(linked.offsets, linked.indices, [1, 2], weights=weight)
    load = np.bincount(part, weight) / weight.sum()
    np.testing.assert_allclose(load, [1 / 3, 2 / 3], rtol=0.02)
    assert abs(np.bincount(part)[0] / 2500 - 1 / 3) > 0.05, "the weights matter"


@unhurried
@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_kway_of_small_graphs(n: int, m: int, parts: int, seed: int) -> None:
    """Disconnected graphs, vertices without edges, nearly as many parts as vertices: no part is empty."""
    pytest.importorskip("pymetis")
    rng = np.random.default_rng(seed)
    linked = partition.pair_graph(rng.integers(0, n, (m, 2), dtype=np.int32), n)
    parts = min(parts, n)
    weights = rng.integers(0, 5, n)
    part = partition.partition_kway(linked.offsets, linked.indices, [1.0] * parts, weights=weights)
    assert part.shape == (n,)
    assert np.array_equal(np.unique(part), np.arange(parts))


def test_kway_of_a_large_disconnected_graph() -> None:
    pytest.importorskip("pymetis")
    pairs, _ = grid(20, 20)
    linked = partition.pair_graph(np.concatenate([pairs, pairs + 400, pairs + 800]), 1200)
    part = partition.partition_kway(linked.offsets, linked.indices, [1, 1])
    np.testing.assert_allclose(np.bincount(part), [600, 600], rtol=0.02)
    assert partition.cut_edges(linked.offsets, linked.indices, part) <= 40


def test_kway_of_nothing() -> None:
    nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    assert partition.partition_kway(*nothing, [1.0]).shape == (0,)
    with pytest.raises(DatError, match="0 vertices cannot be divided into 2 parts"):
        partition.partition_kway(*nothing, [1.0, 1.0])


def test_kway_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(packages, "import_module", refuse)
    linked = partition.pair_graph(grid(3, 3)[0], 9)
    with pytest.raises(DeviceUnavailable, match=r"k-way partitioning needs pymetis.*fluxloom\[mesh\]"):
        partition.partition_kway(linked.offsets, linked.indices, [1.0, 1.0])
    monkeypatch.setattr(partition, "find_spec", lambda _name: None)
    assert not partition.kway_available()


@pytest.mark.parametrize(
    ("shares", "weights", "message"),
    [
        ([1.0] * 10, None, "9 vertices cannot be divided into 10 parts: ask for at most 9"),
        ([1.0, 0.0], None, "share 1 is 0.0; shares must be positive"),
        ([1.0, np.nan], None, "share 1 is nan"),
        ([], None, "shares must list one number a part"),
        ([1.0], np.ones(8), r"weights have shape \(8,\); it must be \(9,\)"),
        ([1.0], np.r_[np.ones(8), -1.0], "weight 8 is -1.0"),
    ],
)
def test_refused(shares: list[float], weights: np.ndarray | None, message: str) -> None:
    pairs, points = grid(3, 3)
    linked = partition.pair_graph(pairs, 9)
    with pytest.raises(DatError, match=message):
        partition.partition_kway(linked.offsets, linked.indices, shares, weights=weights)
    with pytest.raises(DatError, match=message.replace("vertices", "points")):
        partition.partition_rcb(points, shares, weights=weights)


def test_graph_must_be_sound() -> None:
    with pytest.raises(DatError, match="neighbours"):
        partition.partition_kway(np.array([0, 1, 2]), np.array([1, 2], dtype=np.int32), [1.0])
    with pytest.raises(DatError, match="offsets must ascend"):
        partition.partition_kway(np.array([0, 2, 1]), np.array([1], dtype=np.int32), [1.0])


# ------------------------------------------------------------------------------------------------- rcb


def plain_rcb(points: list[list[float]], shares: list[float], weights: list[float]) -> list[int]:
    """Bisect by the definition: sort, and cut where the middle of an element's weight passes the aim."""
    part = [0] * len(points)

    def cut(chosen: list[int], low: int, high: int) -> None:
        if high - low == 1:
            for i in chosen:
                part[i] = low
            return
        middle = low + (high - low) // 2
        extents = [max(points[i][k] for i in chosen) - min(points[i][k] for i in chosen) for k in range(len(points[0]))]
        axis = extents.index(max(extents))
        ordered = sorted(chosen, key=lambda i: (points[i][axis], i))
        aim = sum(shares[low:middle]) * sum(weights[i] for i in chosen) / sum(shares[low:high])
        left = 0
        before = 0.0
        for i in ordered:
            left += before + weights[i] / 2 < aim
            before += weights[i]
        left = min(max(left, middle - low), len(ordered) - (high - middle))
        cut(ordered[:left], low, middle)
        cut(ordered[left:], middle, high)

    cut(list(range(len(points))), 0, len(shares))
    return part


@unhurried
@given(st.integers(1, 60), st.integers(1, 3), st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_rcb_is_its_definition(n: int, dimensions: int, parts: int, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (n, dimensions)).astype(float) if ties else rng.normal(size=(n, dimensions))
    parts = min(parts, n)
    shares = rng.integers(1, 5, parts) / 8
    weights = rng.integers(1, 6, n).astype(float)
    found = partition.partition_rcb(points, shares, weights=weights)
    assert found.tolist() == plain_rcb(points.tolist(), shares.tolist(), weights.tolist())
    assert np.array_equal(np.unique(found), np.arange(parts)), "no part is empty"


def test_rcb_of_a_square_is_exact() -> None:
    _, points = grid(8, 8)
    part = partition.partition_rcb(points, [1, 1, 1, 1]).reshape(8, 8)
    expected = np.kron([[0, 1], [2, 3]], np.ones((4, 4), dtype=int))
    assert np.array_equal(part, expected)
    assert np.bincount(partition.partition_rcb(points, [7, 1]), minlength=2).tolist() == [56, 8]


def test_rcb_breaks_ties_by_number() -> None:
    assert partition.partition_rcb(np.zeros((6, 2)), [1, 2]).tolist() == [0, 0, 1, 1, 1, 1]
    minus = np.array([[0.0], [-0.0], [0.0], [-0.0]])
    assert partition.partition_rcb(minus, [1, 1]).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros(3), r"points have shape \(3,\)"),
        (np.zeros((3, 0)), r"points have shape \(3, 0\)"),
        (np.array([[0.0], [np.inf]]), r"point 1 is \[inf\]"),
    ],
)
def test_rcb_refuses(points: np.ndarray, message: str) -> None:
    with pytest.raises(DatError, match=message):
        partition.partition_rcb(points, [1.0])


def test_kway_cuts_no_more_than_rcb_on_a_ring() -> None:
    """Round a hole, bisection by coordinates cuts the ring at more places than the graph needs."""
    pytest.importorskip("pymetis")
    pairs, polar = grid(240, 6)
    pairs = np.concatenate([pairs, np.stack([np.arange(6), 239 * 6 + np.arange(6)], axis=1)]).astype(np.int32)
    angle, radius = 2 * np.pi * polar[:, 0] / 240, 10 + polar[:, 1]
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    linked = partition.pair_graph(pairs, 1440)
    cuts = {
        "kway": partition.cut_edges(linked.offsets, linked.indices,
                                    partition.partition_kway(linked.offsets, linked.indices, [1] * 8)),
        "rcb": partition.cut_edges(linked.offsets, linked.indices, partition.partition_rcb(points, [1] * 8)),
    }  # fmt: skip
    assert 8 * 6 <= cuts["kway"] <= cuts["rcb"], cuts
