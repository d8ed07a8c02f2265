"""Distributing sets over ranks, against definitions written out in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.ranks import decompose_check, decompose_owner
from fluxloom.dsl.ranks.decompose import Decomposition, Link, Method, decompose
from fluxloom.dsl.ranks.decompose_rcb import parallel_rcb
from fluxloom.graph.partition import partition_kway, partition_rcb
from tests.parallel.launch import mpiexec


@dataclass(frozen=True)
class Whole:
    """All of a mesh: sizes, and links as (source, target, table)."""

    sizes: Mapping[str, int]
    links: Mapping[str, tuple[str, str, np.ndarray]]

    def starts(self, size: int, seed: int) -> dict[str, np.ndarray]:
        """Cut each set that links start from into random slices, some of them empty."""
        rng = np.random.default_rng(seed)
        return {
            name: np.sort(np.r_[0, rng.integers(0, n + 1, size - 1), n])
            if any(source == name for source, _, _ in self.links.values())
            else np.arange(size + 1) * n // size
            for name, n in self.sizes.items()
        }

    def of(self, rank: int, starts: Mapping[str, np.ndarray]) -> dict[str, Link]:
        """Return the links of one rank."""
        return {
            name: Link(source, target, table[starts[source][rank] : starts[source][rank + 1]])
            for name, (source, target, table) in self.links.items()
        }


def quads(n: int, m: int) -> Whole:
    """Return n x m quadrilaterals: cells, nodes, inner edges, boundary edges."""
    cell = np.arange(n * m).reshape(n, m)
    node = np.arange((n + 1) * (m + 1)).reshape(n + 1, m + 1)
    corners = np.stack([node[:-1, :-1], node[:-1, 1:], node[1:, 1:], node[1:, :-1]], axis=-1).reshape(-1, 4)
    across = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], axis=1)
    along = np.stack([cell[:-1].ravel(), cell[1:].ravel()], axis=1)
    ends = [
        np.stack([node[:-1, 1:-1].ravel(), node[1:, 1:-1].ravel()], axis=1),
        np.stack([node[1:-1, :-1].ravel(), node[1:-1, 1:].ravel()], axis=1),
    ]
    behind = np.concatenate([cell[0], cell[-1], cell[:, 0], cell[:, -1]])[:, None]
    edges = np.concatenate([across, along])
    return Whole(
        {"nodes": node.size, "cells": cell.size, "edges": len(edges), "border": len(behind)},
        {
            "cell_nodes": ("cells", "nodes", corners.astype(np.int32)),
            "edge_nodes": ("edges", "nodes", np.concatenate(ends)),
            "edge_cells": ("edges", "cells", edges),
            "border_cell": ("border", "cells", behind),
        },
    )


def tangle(seed: int) -> Whole:
    """Return sets with random links: chains, links both ways, to itself, missing targets, a set apart."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(8, 30)) for name in "abcde"} | {"apart": 11, "empty": 0}
    ends = {"ab": 3, "cb": 2, "cd": 1, "ea": 2, "bb": 2, "da": 4}
    links = {
        name: (name[0], name[1], rng.integers(-(rng.random() < 0.3), sizes[name[1]], (sizes[name[0]], arity)))
        for name, arity in ends.items()
    }
    return Whole(sizes, {**links, "none": ("empty", "a", np.zeros((0, 2), dtype=np.int64))})


def points_of(whole: Whole, on: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((whole.sizes[on], 2))


# --------------------------------------------------------------------------------------- definitions


@dataclass(frozen=True)
class Expected:
    """The four ranges of one set on one rank, as global numbers in local order."""

    interior: list[int]
    boundary: list[int]
    execute: list[int]
    rest: list[int]


def expected(whole: Whole, owner: Mapping[str, np.ndarray], rank: int) -> dict[str, Expected]:
    """Apply the definitions, element by element."""
    targets = {
        name: [
            [(t, int(e)) for s, t, table in whole.links.values() if s == name for e in table[row] if e >= 0]
            for row in range(n)
        ]
        for name, n in whole.sizes.items()
    }

    def mine(name: str, element: int) -> bool:
        return bool(owner[name][element] == rank)

    def executed(name: str, element: int) -> bool:
        return mine(name, element) or any(mine(*t) for t in targets[name][element])

    def clean(name: str, element: int) -> bool:
        return mine(name, element) and all(mine(*t) for t in targets[name][element])

    stored = {(s, e) for s, n in whole.sizes.items() for e in range(n) if executed(s, e)}
    stored |= {t for s, e in sorted(stored) for t in targets[s][e]}
    spoiled = {t for s, n in whole.sizes.items() for e in range(n) if not clean(s, e) for t in targets[s][e]}
    result = {}
    for name, n in whole.sizes.items():
        inside = [e for e in range(n) if clean(name, e) and (name, e) not in spoiled]
        outside = [e for e in range(n) if mine(name, e) and e not in inside]
        others = sorted((int(owner[name][e]), e) for s, e in stored if s == name and not mine(name, e))
        halo = [e for _, e in others if executed(name, e)]
        result[name] = Expected(inside, outside, halo, [e for _, e in others if e not in halo])
    return result


def check(whole: Whole, found: list[Decomposition]) -> dict[str, np.ndarray]:
    """Compare the parts of all ranks with the definitions; return the owner of every element."""
    owner = {name: np.full(n, -1) for name, n in whole.sizes.items()}
    for rank, one in enumerate(found):
        for name, part in one.parts.items():
            own = part.numbers[: part.owned]
            assert (owner[name][own] == -1).all(), "each element has one owner"
            owner[name][own] = rank
    assert all((o >= 0).all() for o in owner.values()), "every element has an owner"
    for rank, one in enumerate(found):
        for name, want in expected(whole, owner, rank).items():
            check_part(one.parts[name], want, whole.sizes[name])
            check_lists([d.parts[name] for d in found], rank, owner[name])
        for name, (source, target, table) in whole.links.items():
            rows, numbers = one.parts[source], one.parts[target].numbers
            local = one.table(name)
            assert local.dtype == np.int32
            assert local.shape == (rows.executed, table.shape[1])
            named = np.where(local >= 0, np.append(numbers, -1)[local], -1)
            assert np.array_equal(named, table[rows.numbers[: rows.executed]])
    return owner


def check_part(part: Part, want: Expected, total: int) -> None:
    """Compare one part with its ranges."""
    assert (part.begin, part.total, part.numbers.dtype) == (0, total, np.int64)
    bounds = [0, part.inside, part.owned, part.executed, part.stored]
    ranges = [part.numbers[b:e].tolist() for b, e in pairwise(bounds)]
    assert ranges == [want.interior, want.boundary, want.execute, want.rest]
    assert part.numbers.size == part.stored


def check_lists(parts: list[Part], rank: int, owner: np.ndarray) -> None:
    """Send the global numbers along the lists of every rank: each arrives where it is stored."""
    part = parts[rank]
    assert list(part.neighbours) == sorted(set(part.neighbours) - {rank})
    assert len(part.send) == len(part.receive) == len(part.neighbours)
    covered = [np.zeros(0, dtype=np.int32)]
    for k, other in enumerate(part.neighbours):
        back = parts[other].neighbours.index(rank)
        sent = parts[other].numbers[parts[other].send[back]]
        assert np.array_equal(part.numbers[part.receive[k]], sent)
        assert (part.send[k] < part.owned).all()
        assert (owner[sent] == other).all()
        assert part.send[k].dtype == part.receive[k].dtype == np.int32
        assert part.send[k].size + part.receive[k].size
        covered.append(part.receive[k])
    assert np.array_equal(np.sort(np.concatenate(covered)), np.arange(part.owned, part.stored)), "the halo arrives once"
    assert part.halo == part.stored - part.owned


def distribute(
    whole: Whole, size: int, *, on: str, method: Method = "auto", seed: int = 0, shares: list[float] | None = None
) -> list[Decomposition]:
    """Decompose on threads, from random slices."""
    starts = whole.starts(size, seed)
    points = points_of(whole, on, seed)

    def work(comm: Comm) -> Decomposition:
        mine = points[starts[on][comm.rank] : starts[on][comm.rank + 1]]
        links = whole.of(comm.rank, starts)
        return decompose(comm, whole.sizes, links, on=on, method=method, points=mine, shares=shares)

    return run_threads(size, work)


# ---------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("method", ["kway", "rcb", "block"])
def test_quads_are_as_defined(size: int, method: Method) -> None:
    if method == "kway":
        pytest.importorskip("pymetis")
    whole = quads(7, 6)
    owner = check(whole, distribute(whole, size, on="cells", method=method, seed=size))
    assert np.array_equal(np.unique(owner["cells"]), np.arange(size))


@pytest.mark.parametrize("seed", range(12))
def test_random_sets_are_as_defined(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole, size, on = tangle(seed), int(rng.integers(1, 8)), "abc"[seed % 3]
    method: Method = ("rcb", "block")[seed % 2]
    found = distribute(whole, size, on=on, method=method, seed=seed)
    owner = check(whole, found)
    assert owner["apart"].tolist() == sorted(owner["apart"].tolist()), "blocks"
    for one in found:
        assert all(one.parts["apart"].inside == one.parts["apart"].stored for _ in found)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_may_be_partitioned(seed: int) -> None:
    pytest.importorskip("pymetis")
    whole = quads(5, 6)
    check(whole, distribute(whole, 4, on="nodes", method="kway", seed=seed))


def test_inheritance_is_by_majority() -> None:
    """Sets follow their targets, then what leads to them; ties go to the lowest rank."""
    whole, size = tangle(3), 4
    starts = whole.starts(size, 5)
    given = np.random.default_rng(0).integers(0, size, whole.sizes["a"])

    def work(comm: Comm) -> Decomposition:
        mine = given[starts["a"][comm.rank] : starts["a"][comm.rank + 1]]
        return decompose(comm, whole.sizes, whole.of(comm.rank, starts), on="a", owner=mine)

    found = run_threads(size, work)
    owner = check(whole, found)
    assert np.array_equal(owner["a"], given)
    assert found[0].report().method == "given"
    ends = np.arange(1, size) / size
    block = {name: np.searchsorted(ends * n, np.arange(n) + 0.5, "right") for name, n in whole.sizes.items()}

    def most(votes: list[int], name: str, element: int) -> int:
        counts = Counter(votes)
        return min(counts, key=lambda r: (-counts[r], r)) if counts else int(block[name][element])

    def targets(link: str, element: int) -> list[int]:
        _, target, table = whole.links[link]
        return [int(owner[target][e]) for e in table[element] if e >= 0]

    def sources(link: str, element: int) -> list[int]:
        source, _, table = whole.links[link]
        return [int(owner[source][row]) for row, leg in np.argwhere(table == element).tolist() if leg >= 0]

    # from a: d and e lead to a, a leads to b; then c leads to b (before it leads to d)
    for name, votes in {"d": ("da", targets), "e": ("ea", targets), "b": ("ab", sources), "c": ("cb", targets)}.items():
        wanted = [most(votes[1](votes[0], e), name, e) for e in range(whole.sizes[name])]
        assert owner[name].tolist() == wanted, name
    assert owner["apart"].tolist() == block["apart"].tolist()


def test_one_rank_keeps_the_numbers() -> None:
    whole = quads(4, 5)
    (one,) = distribute(whole, 1, on="cells")
    for name, n in whole.sizes.items():
        part = one.parts[name]
        assert (part.inside, part.owned, part.executed, part.stored) == (n, n, n, n)
        assert np.array_equal(part.numbers, np.arange(n))
        assert (part.neighbours, len(part.send), len(part.receive)) == ((), 0, 0)
        assert one.slice_of(name) == (0, n)
    for name, (_, _, table) in whole.links.items():
        assert np.array_equal(one.table(name), table)
        assert one.table(name).dtype == np.int32


@pytest.mark.parametrize("holder", [0, 2])
def test_one_rank_may_hold_everything(holder: int) -> None:
    whole, size = quads(6, 6), 4
    starts = {name: np.where(np.arange(size + 1) > holder, n, 0) for name, n in whole.sizes.items()}

    def work(comm: Comm) -> Decomposition:
        return decompose(comm, whole.sizes, whole.of(comm.rank, starts), on="cells")

    found = run_threads(size, work)
    check(whole, found)
    assert [one.slice_of("cells")[1] for one in found] == [36 if rank == holder else 0 for rank in range(size)]


def test_disconnected_meshes() -> None:
    pytest.importorskip("pymetis")
    one = quads(4, 4)
    sizes = {name: 3 * n for name, n in one.sizes.items()}
    links = {
        name: (source, target, np.concatenate([table + k * one.sizes[target] for k in range(3)]))
        for name, (source, target, table) in one.links.items()
    }
    whole = Whole(sizes, links)
    for method in ("kway", "rcb"):
        found = distribute(whole, 3, on="cells", method=method, seed=1)
        check(whole, found)
        if method == "kway":
            assert found[0].report().edge_cut == 0, "three parts of three equal pieces"


# ------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("method", ["kway", "rcb", "block"])
def test_shares_and_weights(method: Method) -> None:
    if method == "kway":
        pytest.importorskip("pymetis")
    whole = quads(30, 30)
    cells = np.arange(900)
    points = np.stack([cells // 30, cells % 30], axis=1).astype(float)
    weights = np.where(cells < 300, 4.0, 1.0)

    def work(comm: Comm, heavy: bool) -> Decomposition:
        starts = whole.starts(2, 0)
        mine = slice(*starts["cells"][comm.rank : comm.rank + 2])
        return decompose(
            comm, whole.sizes, whole.of(comm.rank, starts), on="cells", method=method, points=points[mine],
            shares=[0.7, 0.3], weights=weights[mine] if heavy else None,
        )  # fmt: skip

    light = run_threads(2, work, False)
    assert abs(light[0].parts["cells"].owned - 630) <= 9
    heavy = run_threads(2, work, True)
    load = sum(weights[heavy[0].parts["cells"].numbers[: heavy[0].parts["cells"].owned]])
    assert abs(load - 0.7 * 1800) <= 18
    assert heavy[0].parts["cells"].owned != light[0].parts["cells"].owned
    assert heavy[0].report().imbalance == pytest.approx(max(load / 1260, (1800 - load) / 540) - 1)


@pytest.mark.parametrize("seed", range(25))
def test_parallel_bisection_is_the_serial_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, dimensions = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    n = int(rng.integers(size, 120))
    signs = rng.choice([-1.0, 1.0], (n, dimensions))  # of zeros too
    points = [rng.normal(size=(n, dimensions)), rng.integers(-2, 2, (n, dimensions)) * signs, np.zeros((n, dimensions)),
              10.0 ** rng.integers(-300, 300, (n, dimensions))][seed % 4]  # fmt: skip
    shares = rng.integers(1, 6, size) * 1.0
    weights = rng.integers(0, 7, n) * 1.0 if seed % 3 else None
    starts = np.sort(np.r_[0, rng.integers(0, n + 1, size - 1), n])

    def work(comm: Comm) -> np.ndarray:
        mine = slice(starts[comm.rank], starts[comm.rank + 1])
        own = None if weights is None else weights[mine]
        return parallel_rcb(comm, points[mine], int(starts[comm.rank]), shares, own)

    found = np.concatenate(run_threads(size, work))
    assert np.array_equal(found, partition_rcb(points, shares, weights=weights))


def test_bisection_moves_little_data() -> None:
    """No rank sees the points of another: what it gathers does not grow with them."""
    largest = []

    def work(comm: Comm, n: int) -> None:
        plain = comm.reduce

        def spy(values: np.ndarray, operation: str) -> np.ndarray:
            largest.append(np.asarray(values).nbytes)
            return plain(values, operation)

        comm.reduce = spy  # type: ignore[method-assign]
        comm.exchange = comm.broadcast = None  # type: ignore[assignment, method-assign]
        points = np.random.default_rng(comm.rank).random((n, 3))
        parallel_rcb(comm, points, comm.rank * n, np.ones(3), np.ones(n))

    run_threads(3, work, 100)
    few = max(largest)
    largest.clear()
    run_threads(3, work, 20_000)
    assert max(largest) == few < 20_000 * 8


def test_auto_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymetis")
    whole = quads(6, 6)
    starts = whole.starts(2, 0)

    def method(points: bool) -> str:
        def work(comm: Comm) -> str:
            mine = points_of(whole, "cells", 0)[slice(*starts["cells"][comm.rank : comm.rank + 2])]
            links = whole.of(comm.rank, starts)
            return decompose(comm, whole.sizes, links, on="cells", points=mine if points else None).report().method

        (found,) = set(run_threads(2, work))
        return found

    assert method(points=True) == "kway"
    monkeypatch.setattr(decompose_owner, "_KWAY_UP_TO", 35)
    assert (method(points=True), method(points=False)) == ("rcb", "kway")
    monkeypatch.undo()
    monkeypatch.setattr(decompose_owner, "kway_available", lambda: False)
    assert method(points=True) == "rcb"


def test_kway_gathers_the_graph_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vertices and edges of the graph are those of the link; only rank 0 partitions."""
    pytest.importorskip("pymetis")
    calls = []

    def spy(offsets: np.ndarray, neighbours: np.ndarray, *rest: object, **more: object) -> np.ndarray:
        calls.append((offsets.size - 1, neighbours.size))
        return partition_kway(offsets, neighbours, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(decompose_owner, "partition_kway", spy)
    whole = quads(6, 6)
    found = distribute(whole, 3, on="cells", method="kway")
    assert calls == [(36, 2 * whole.sizes["edges"])]
    assert found[0].report().through == "edge_cells"
    bare = Whole({"cells": 36, "nodes": 49}, {"cell_nodes": whole.links["cell_nodes"]})
    check(bare, distribute(bare, 3, on="cells", method="kway"))
    assert calls[1] == (36, 2 * whole.sizes["edges"]), "cells with two common nodes share an edge"
    beside = np.stack([np.arange(9) - 1, np.r_[np.arange(1, 9), -1]], axis=1)
    ring = Whole({"cells": 9}, {"beside": ("cells", "cells", beside)})
    assert distribute(ring, 3, on="cells", method="kway")[0].report().edge_cut == 4, "two borders, from both sides"
    assert calls[2] == (9, 16)


def test_report() -> None:
    whole = quads(8, 8)
    given = np.repeat([0, 1], 32)
    starts = {name: np.array([0, n, n]) for name, n in whole.sizes.items()}

    def work(comm: Comm) -> Decomposition:
        mine = given if comm.rank == 0 else given[:0]
        return decompose(comm, whole.sizes, whole.of(comm.rank, starts), on="cells", owner=mine)

    found = run_threads(2, work)
    report = found[0].report()
    assert report == found[1].report()
    assert (report.ranks, report.method, report.through, report.edge_cut, report.imbalance) == (
        2, "given", "edge_cells", 8, 0.0,
    )  # fmt: skip
    cells = next(s for s in report.sets if s.name == "cells")
    assert (cells.total, cells.owned, cells.interior) == (64, (32, 32), (24, 24))
    assert (cells.execute_halo, cells.rest, cells.neighbours) == ((8, 0), (0, 8), ((1,), (0,)))
    assert report.neighbours == ((1,), (0,))
    lines = str(report).splitlines()
    assert lines[0] == "2 parts of cells by given, 8 of edge_cells cut, imbalance 0.00 %"
    assert ["cells", "0", "32", "24", "8", "0", "1"] in [line.split() for line in lines]
    assert len(lines) == 2 + 2 * len(whole.sizes)


# --------------------------------------------------------------------------------- scatter and gather


@pytest.mark.parametrize("seed", range(4))
def test_scatter_and_gather(seed: int) -> None:
    whole, size = tangle(seed), 2 + seed
    starts = whole.starts(size, seed)
    values = {name: np.random.default_rng(9).random((n, 2)) for name, n in whole.sizes.items()}

    def work(comm: Comm) -> None:
        one = decompose(comm, whole.sizes, whole.of(comm.rank, starts), on="a", method="block")
        for name, every in values.items():
            part = one.parts[name]
            first, count = one.slice_of(name)
            assert (first, first + count) == tuple(starts[name][comm.rank : comm.rank + 2])
            mine = every[first : first + count] if count or name == "empty" else []  # any type fits nothing
            owned = one.scatter(name, mine)
            assert np.array_equal(owned, every[part.numbers[: part.owned]])
            assert np.array_equal(one.gather(name, owned), every[first : first + count])
            numbers = one.scatter(name, np.arange(first, first + count, dtype=np.int16))
            assert numbers.dtype == np.int16
            assert np.array_equal(numbers, part.numbers[: part.owned])
            # other slices than those of the start: the last rank has everything
            last = comm.rank == comm.size - 1
            assert np.array_equal(one.scatter(name, every if last else every[:0]), owned)

    run_threads(size, work)


# ---------------------------------------------------------------------------------------------- errors


def refused(size: int, message: str, **changes: object) -> None:
    """Check that every rank gets the same error."""
    whole = quads(2, 2)
    starts = {name: np.arange(size + 1) * n // size for name, n in whole.sizes.items()}

    def work(comm: Comm) -> str:
        given = {
            name: value(comm.rank) if callable(value) else value for name, value in ({"on": "cells"} | changes).items()
        }
        links = {**whole.of(comm.rank, starts), **given.pop("links", {})}
        sizes = {**whole.sizes, **given.pop("sizes", {})}
        with pytest.raises(DatError, match=message) as caught:
            decompose(comm, sizes, links, **given)
        return str(caught.value)

    assert len(set(run_threads(size, work))) == 1


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("on: no set is called 'cell'; did you mean 'cells'", {"on": "cell"}),
        ("no method is called 'kwya'; did you mean 'kway'", {"method": "kwya"}),
        ("through: no link is called 'edge_cell'; did you mean 'edge_cells'", {"through": "edge_cell"}),
        ("'edge_nodes' has nothing to do with 'cells'", {"through": "edge_nodes"}),
        ("3 shares for 2 ranks", {"shares": [1, 1, 1]}),
        ("share 0 is -1.0", {"shares": [-1, 2]}),
        ("ranks 0 and 1 differ in shares", {"shares": lambda rank: [1.0, 1.0 + rank]}),
        ("ranks 0 and 1 differ in owner, points and weights.*give an empty array",
         {"weights": lambda rank: None if rank else np.ones(2)}),
        ("rank 1: the slice of 'cells' has different lengths: link 'cell_nodes': 2, weights: 3",
         {"weights": lambda rank: np.ones(2 + rank)}),
        ("rank 1: weight 0 is -1.0", {"weights": lambda rank: np.full(2, 1.0 - 2 * rank)}),
        ("rank 1: point 0 is", {"points": lambda rank: np.full((2, 2), [0.0, np.nan][rank])}),
        (r"rank 1: owner: ranks are 0 \.\.\. 1, got 2", {"owner": lambda rank: [2 * rank, 2 * rank]}),
        ("needs the points", {"method": "rcb"}),
        (r"set 'edges' has 5 elements, but the ranks hold 2 \+ 2", {"sizes": {"edges": 5}}),
        ("set 'nodes' has -1 elements", {"sizes": {"nodes": -1}}),
        (r"rank 1: link 'more': entry \[0, 1\] of this rank's slice is 4; 'cells' has the elements 0 \.\.\. 3",
         {"links": lambda rank: {"more": Link("edges", "cells", np.array([[0, 3 + rank], [0, 1]]))}}),
        (r"link 'more': entry \[0, 0\] of this rank's slice is -2",
         {"links": {"more": Link("edges", "cells", np.full((2, 1), -2))}}),
        ("link 'more': targets must be integers", {"links": {"more": Link("edges", "cells", np.zeros((2, 1)))}}),
        (r"link 'more': tables with \[2, 3\] columns",
         {"links": lambda rank: {"more": Link("edges", "cells", np.zeros((2, 2 + rank), dtype=int))}}),
        ("link 'more': no set is called 'edge'", {"links": {"more": Link("edge", "cells", np.zeros(2, dtype=int))}}),
    ],
)  # fmt: skip
def test_refused(message: str, changes: dict[str, object]) -> None:
    refused(2, message, **changes)


def test_too_many_ranks() -> None:
    refused(5, "set 'cells' has 4 elements, too few for 5 ranks: use at most 4")


def test_no_graph() -> None:
    def work(comm: Comm) -> None:
        with pytest.raises(DatError, match="no link joins elements of 'cells'"):
            decompose(comm, {"cells": 9}, {}, on="cells")
        assert decompose(comm, {"cells": 9}, {}, on="cells", method="block").report().edge_cut == -1

    run_threads(2, work)


def test_errors_of_the_partitioner_reach_every_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DatError("no")

    monkeypatch.setattr(decompose_owner, "partition_kway", fail)
    refused(3, "^no$", method="kway")


def test_wrong_names_and_values() -> None:
    whole = quads(3, 3)
    starts = whole.starts(2, 0)

    def work(comm: Comm) -> None:
        one = decompose(comm, whole.sizes, whole.of(comm.rank, starts), on="cells", method="block")
        with pytest.raises(DatError, match="no link is called 'cell_node'; did you mean 'cell_nodes'"):
            one.table("cell_node")
        with pytest.raises(DatError, match="no set is called 'cell'; did you mean 'cells'"):
            one.scatter("cell", np.zeros(3))
        with pytest.raises(DatError, match=r"the ranks give 5 \+ 5 values; there are 9"):
            one.scatter("cells", np.zeros(5))
        with pytest.raises(DatError, match=r"values of different kinds: float32 .* and float64"):
            one.scatter("cells", np.zeros(4 + comm.rank, dtype=("f4", "f8")[comm.rank]))
        with pytest.raises(DatError, match="a single number"):
            one.scatter("cells", 1.0)
        owned = one.parts["cells"].owned
        with pytest.raises(DatError, match=f"rank 0: .*{9 if comm.rank == 0 else ''}.* values for"):
            one.gather("cells", np.zeros(9 if comm.rank == 0 else 0))
        assert one.gather("cells", np.zeros(owned)).size == one.slice_of("cells")[1]

    run_threads(2, work)


def test_checks_leave_the_given_arrays_alone() -> None:
    table = np.array([[0, 1], [1, 2]])
    kept = table.copy()
    assert decompose_check._table("m", Link("a", "b", table), 3) is table
    (one,) = run_threads(1, lambda comm: decompose(comm, {"a": 2, "b": 3}, {"m": Link("a", "b", table)}, on="b"))
    one.table("m")[:] = 0
    assert np.array_equal(table, kept)


# ------------------------------------------------------------------------------------------------ MPI


@pytest.mark.mpi
def test_on_mpi_ranks_as_on_threads() -> None:
    """Three processes find the parts that three threads find."""
    pytest.importorskip("pymetis")
    program = """
        import numpy as np
        from fluxloom.comm.threads import run_threads
        from tests.parallel.test_decompose import check, decompose, quads
        whole = quads(9, 8)
        starts = whole.starts(comm.size, 4)

        def work(comm):
            return decompose(comm, whole.sizes, whole.of(comm.rank, starts), on="cells", method="kway")

        def plain(one):
            parts = {n: [p.numbers, p.inside, p.owned, p.executed, p.neighbours, *p.send, *p.receive]
                     for n, p in one.parts.items()}
            return repr((parts, dict(one.tables), one.report()))

        np.set_printoptions(threshold=10**6)
        threads = run_threads(comm.size, work)
        check(whole, threads)
        mine = work(comm)
        assert plain(mine) == plain(threads[comm.rank])
        first, count = mine.slice_of("cells")
        owned = mine.scatter("cells", np.arange(first, first + count))
        assert owned.tolist() == mine.parts["cells"].numbers[:owned.size].tolist()
        assert mine.gather("cells", owned).tolist() == list(range(first, first + count))
        if comm.rank == 0:
            print("alike")
    """
    assert "alike" in mpiexec(3, program, environment={"PYTHONPATH": "."}).stdout
