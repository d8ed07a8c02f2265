"""Links against a search cell by cell."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import Labels, labels_of
from fluxloom.lbm.cells.links import find_links
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.shapes import Block, Circle, HalfSpace, Shape, Sphere

Found = dict[str | int, set[tuple[int, int, tuple[int, ...]]]]


def searched(box: Box, lattice: Lattice, labels: Labels, priority: list[str]) -> Found:
    """Return cell, direction and crossed sides of all links, by their definition."""
    found: Found = defaultdict(set)
    for x in product(*map(range, box.shape)):
        if labels[x]:
            continue
        for i, c in enumerate(lattice.velocities):
            source = [a - b for a, b in zip(x, c, strict=True)]
            for a, periodic in enumerate(box.periodic):
                source[a] = source[a] % box.shape[a] if periodic else source[a]
            crossed = tuple(-1 if s < 0 else int(s >= n) for s, n in zip(source, box.shape, strict=True))
            number = int(np.ravel_multi_index(x, box.grid_shape))
            if any(crossed):
                names = [name for name in priority if crossed[box.axis(name)[0]] == box.axis(name)[1]]
                found[names[0]].add((number, i, crossed))
            elif labels[tuple(source)]:
                found[int(labels[tuple(source)])].add((number, i, crossed))
    return found


CASES: list[tuple[Lattice, Box, list[Shape], list[str]]] = [
    (D2Q9, Box((7, 9), (False, False)), [Circle((3.2, 4.1), 1.6)], ["ymin", "ymax", "xmin", "xmax"]),
    (D2Q9, Box((7, 9), (False, False)), [Circle((3.2, 0.4), 1.6)], ["xmax", "xmin", "ymax", "ymin"]),
    (D2Q9, Box((8, 6), (True, False)), [Circle((7.8, 3.1), 1.3), Circle((3.9, 5.6), 1.5)], ["xmax", "xmin"]),
    (D2Q9, Box((1, 1), (False, False)), [], ["xmax", "xmin", "ymax", "ymin"]),
    (D2Q9, Box((5, 1), (False, True)), [], ["ymax", "ymin"]),
    (D2Q9, Box((5, 6), (True, True)), [], []),
    (D3Q19, Box((5, 6, 7), (True, False, False)), [Sphere((0.2, 3.1, 3.0), 1.7)], ["xmin", "ymin", "xmax", "ymax"]),
    (D3Q27, Box((5, 4, 6), (False, False, False)), [Block((-9, 1.5, 2.5), (1.4, 9, 3.5))],
     ["zmax", "xmin", "ymin", "xmax", "ymax", "zmin"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("chunk", [0, 40])
def test_links_are_those_of_the_search(
    case: tuple[Lattice, Box, list[Shape], list[str]], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lattice, box, shapes, priority = case
    if chunk:
        monkeypatch.setattr("fluxloom.lbm.cells.links.CHUNK", chunk)
    labels = labels_of(box, shapes)
    links = find_links(box, lattice, labels, shapes, priority)
    want = searched(box, lattice, labels, priority)
    assert list(links) == [*priority, *range(1, len(shapes) + 1)]
    for key, some in links.items():
        got = list(zip(some.cells.tolist(), some.directions.tolist(), map(tuple, some.crossed.tolist()), strict=True))
        assert got == sorted(want[key]), key
        assert isinstance(key, int) or (some.fractions == 0.5).all()
        assert ((some.fractions > 0) & (some.fractions <= 1)).all()


def test_fractions() -> None:
    """Over a periodic side, and with a second body that is met first on the way."""
    box = Box((9, 12), (True, True))
    ball, block = Circle((0.0, 11.8), 2.3), Block((3.6, -0.5), (4.4, 3.5))
    labels = labels_of(box, [ball, block])
    links = find_links(box, D2Q9, labels, [ball, block], [])
    at = np.stack(box.coordinates(links[1].cells), -1) - links[1].fractions[:, None] * np.array(D2Q9.velocities)[
        links[1].directions
    ]  # fmt: skip
    away = at - ball.center
    away -= np.round(away / box.shape) * box.shape
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), 2.3, atol=1e-12)
    crossing = np.any(np.abs(at - np.stack(box.coordinates(links[1].cells), -1) - np.round(at)) > 5, axis=1)
    assert len(links[1]) > 20
    assert crossing.any()
    straight = np.array(D2Q9.velocities)[links[2].directions][:, 1] == 0
    np.testing.assert_allclose(links[2].fractions[straight], 0.6, atol=1e-12)


@pytest.mark.parametrize("radii", [(1.2, 1.45), (1.45, 1.2)])
def test_the_first_surface_on_the_way(radii: tuple[float, float]) -> None:
    """A cell inside of two bodies has the label of one; the link ends at the one that it meets first."""
    box = Box((9, 9), (True, True))
    shapes = [Circle((4.0, 4.0), radius) for radius in radii]
    labels = labels_of(box, shapes)
    links = find_links(box, D2Q9, labels, shapes, [])
    at = np.stack(box.coordinates(links[1].cells), -1) - links[1].fractions[:, None] * np.array(D2Q9.velocities)[
        links[1].directions
    ]  # fmt: skip
    np.testing.assert_allclose(np.linalg.norm(at - 4.0, axis=1), 1.45, atol=1e-12)


def test_a_half_space_along_a_periodic_axis_is_cut_half_way() -> None:
    box = Box((4, 8), (True, True))
    wall = HalfSpace((0.0, 2.25), (0.0, 1.0))
    labels = labels_of(box, [wall])
    links = find_links(box, D2Q9, labels, [wall], [])[1]
    x = box.coordinates(links.cells)[1]
    np.testing.assert_allclose(links.fractions[x == 3], 0.75)
    np.testing.assert_allclose(links.fractions[x == 7], 0.5)
    assert set(x.tolist()) == {3, 7}


def test_selection() -> None:
    box = Box((4, 5), (False, True))
    links = find_links(box, D2Q9, labels_of(box, []), [], ["ymin", "ymax"])["ymax"]
    some = links[links.directions == links.directions[0]]
    assert len(some) == 5
    np.testing.assert_array_equal(links[np.array([3, 1])].cells, links.cells[[3, 1]])


def test_refused() -> None:
    box = Box((4, 5), (False, True))
    labels = labels_of(box, [Circle((2.0, 2.0), 1.0)])
    with pytest.raises(SolverError, match="ymin, ymax; conditions are given for ymin"):
        find_links(box, D2Q9, labels, [Circle((2.0, 2.0), 1.0)], ["ymin"])
    with pytest.raises(SolverError, match="over its grid"):
        find_links(box, D2Q9, labels[:4], [], ["ymin", "ymax"])
    with pytest.raises(SolverError, match="no shape has it inside"):
        find_links(box, D2Q9, labels, [], ["ymin", "ymax"])
