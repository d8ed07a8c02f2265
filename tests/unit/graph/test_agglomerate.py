"""Groups of the cells of a graph: the strongest first, sizes, numbers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import DatError
from fluxloom.graph.agglomerate import Grouping, agglomerate
from fluxloom.graph.csr import Csr

Array = np.ndarray


def graph(n: int, links: Array, weight: Array) -> tuple[Csr, Array]:
    """Return rows of a graph of links ``(m, 2)``."""
    row, column = np.concatenate([links, links[:, ::-1]]).T
    order = np.lexsort((column, row))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)
    return Csr(offsets, column[order].astype(np.int32)), np.concatenate([weight, weight])[order].astype(float)


def path(weight: Array) -> tuple[Csr, Array]:
    k = np.arange(len(weight))
    return graph(k.size + 1, np.stack([k, k + 1], axis=1), weight)


def numbers(*values: int) -> Array:
    return np.array(values, dtype=np.int32)


def groups(pattern: Csr, area: Array, passes: int = 1, first: Array | None = None, weak: float = 1 / 16) -> list[int]:
    volume = np.ones(pattern.offsets.size - 1)
    return agglomerate(pattern, area, volume, numbers() if first is None else first, Grouping(passes, weak)).tolist()


def test_strong_links_first() -> None:
    assert groups(*path(np.array([3.0, 1.0, 3.0, 1.0, 3.0]))) == [0, 0, 1, 1, 2, 2]
    assert groups(*path(np.array([1.0, 3.0, 1.0, 3.0, 1.0])), first=numbers(2)) == [0, 0, 0, 1, 1, 1]


def test_the_front_starts_where_it_is_told() -> None:
    """Of five cells in a row one is left over at the end of the front, and joins the pair beside it."""
    assert groups(*path(np.ones(4)), first=numbers(0)) == [0, 0, 1, 1, 1]
    assert groups(*path(np.ones(4)), first=numbers(4)) == [0, 0, 0, 1, 1]


def test_pairs_of_pairs() -> None:
    assert groups(*path(np.ones(11)), passes=2) == [0] * 4 + [1] * 4 + [2] * 4


def test_volumes_count() -> None:
    """A small cell is coupled stronger than a large one that shares as much."""
    pattern, area = path(np.ones(4))
    volume = np.array([4.0, 1.0, 0.5, 4.0, 4.0])
    assert agglomerate(pattern, area, volume, numbers(1), Grouping(1)).tolist() == [0, 0, 0, 1, 1]
    assert agglomerate(pattern, area, np.ones(5), numbers(1), Grouping(1)).tolist() == [0, 0, 1, 1, 1]


def test_weak_links_make_no_pairs() -> None:
    """A cell beside a pair that it is coupled strongly with joins it later, rather than to pair the weak way now."""
    pattern, area = path(np.array([2.0, 1.9, 0.1, 1.0]))
    assert groups(pattern, area, first=numbers(0), weak=0.5) == [0, 0, 0, 1, 1]
    assert groups(pattern, area, first=numbers(0), weak=0.0) == [0, 0, 1, 1, 1]


def test_left_over_cells_join() -> None:
    """A star: one pair, and the other points, which have no free neighbour, join it."""
    links = np.stack([np.zeros(7, dtype=int), np.arange(1, 8)], axis=1)
    found = groups(*graph(8, links, np.ones(7)), passes=2)
    assert found == [0] * 8


def test_cells_without_neighbours() -> None:
    assert groups(*graph(3, np.zeros((0, 2), dtype=int), np.zeros(0)), passes=3) == [0, 1, 2]
    assert groups(*graph(0, np.zeros((0, 2), dtype=int), np.zeros(0))) == []


@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_random_graphs(passes: int, seed: int) -> None:
    """Groups are numbered by their first cells, hang together, and have about the size that is wanted."""
    rng = np.random.default_rng(seed)
    n = 2000
    links = np.unique(np.sort(np.concatenate([
        np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.random.default_rng(seed).integers(0, n, (n, 2)),
    ]), axis=1), axis=0)  # fmt: skip
    links = links[links[:, 0] != links[:, 1]]
    pattern, area = graph(n, links, 0.5 + rng.random(len(links)))
    found = agglomerate(pattern, area, 0.5 + rng.random(n), numbers(5, 7), Grouping(passes))
    _, begin = np.unique(found, return_index=True)
    assert (np.diff(begin) > 0).all()
    size = np.bincount(found)
    assert 0.75 * 2**passes <= size.mean() <= 1.25 * 2**passes
    inside = links[found[links[:, 0]] == found[links[:, 1]]]
    label = np.arange(n)
    for _ in range(64):
        np.minimum.at(label, inside[:, 0], label[inside[:, 1]])
        np.minimum.at(label, inside[:, 1], label[inside[:, 0]])
    assert np.unique(label).size == size.size


def test_what_is_refused() -> None:
    pattern, area = path(np.ones(2))
    volume, first = np.ones(3), numbers(0)
    with pytest.raises(DatError, match=r"first\[0\] is 3; there are 3 cells"):
        agglomerate(pattern, area, volume, numbers(3), Grouping(1))
    with pytest.raises(DatError, match="area must be 4 contiguous numbers in float64"):
        agglomerate(pattern, area[:3], volume, first, Grouping(1))
    with pytest.raises(DatError, match="area must be above 0"):
        agglomerate(pattern, 0 * area, volume, first, Grouping(1))
    with pytest.raises(DatError, match="volume must be 3 contiguous"):
        agglomerate(pattern, area, volume.astype(np.float32), first, Grouping(1))  # type: ignore[arg-type]
    with pytest.raises(DatError, match="passes is 7"):
        Grouping(7)
    with pytest.raises(DatError, match="weak is 1"):
        Grouping(2, weak=1.0)
