"""Cutting lattices into boxes, and what the boxes send each other."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import DatError
from fluxloom.device.reference import ReferenceDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.boxes import Box, box_of, cut
from fluxloom.dsl.declare.sets import Grid

ALL, NONE = (True, True, True), (False, False, False)


@pytest.mark.parametrize(
    ("shape", "ranks", "factors"),
    [
        ((128, 128, 128), 1, (1, 1, 1)),
        ((128, 128, 128), 2, (2, 1, 1)),
        ((128, 128, 128), 8, (8, 1, 1)),  # 4/3 of what cubes send, to two neighbours instead of 26
        ((128, 128, 128), 64, (4, 4, 4)),
        ((64, 64, 64), 7, (7, 1, 1)),
        ((4, 100, 50), 4, (1, 4, 1)),
        ((5, 90, 40), 4, (1, 4, 1)),  # five planes cannot be dealt evenly to four
        ((1, 1, 12), 3, (1, 1, 3)),
        ((2, 3, 1000), 12, (1, 1, 12)),
    ],
)
def test_cut(shape: tuple[int, ...], ranks: int, factors: tuple[int, ...]) -> None:
    assert cut(shape, ranks, ALL, (1, 1, 1)) == factors


def test_cut_avoids_the_axis_that_is_costly() -> None:
    assert cut((16, 16), 2, (False, False), (1, 1)) == (2, 1)
    assert cut((16, 16), 2, (True, False), (1, 1)) == (1, 2)  # one plane to exchange, not two
    assert cut((16, 16), 2, (False, False), (3, 1)) == (1, 2)


def test_cut_in_one_and_two_dimensions() -> None:
    assert cut((31,), 7, (True,), (2,)) == (7,)
    assert cut((300, 300), 64, (False, False), (1, 1)) == (8, 8)


@pytest.mark.parametrize(
    ("shape", "ranks", "layers"),
    [((3, 1, 1), 4, (1, 1, 1)), ((5, 5, 5), 3, (2, 2, 2)), ((4, 4, 4), 7, (1, 1, 1)), ((6, 6, 6), 7, (0, 0, 0))],
)
def test_too_thin(shape: tuple[int, ...], ranks: int, layers: tuple[int, ...]) -> None:
    with pytest.raises(DatError, match=rf"cannot be cut into {ranks} boxes .* take fewer ranks, a larger lattice"):
        cut(shape, ranks, ALL, layers)


def boxes(
    shape: tuple[int, ...], ranks: int, periodic: tuple[bool, ...], ghost: int, reach: int, factors: Any = None
) -> list[Box]:
    n = len(shape)
    return [
        box_of(shape, r, ranks, periodic=periodic, ghost=(ghost,) * n, reach=(reach,) * n, factors=factors)
        for r in range(ranks)
    ]


@pytest.mark.parametrize("factors", [(2, 1, 1), (3, 1, 1), (1, 7, 1), (2, 2, 2), (3, 1, 2)])
def test_boxes_tile_the_lattice(factors: tuple[int, ...]) -> None:
    shape = (7, 9, 5)
    met = np.zeros(prod(shape), dtype=int)
    for box in boxes(shape, prod(factors), NONE, 0, 1, factors):
        assert box.part is not None
        assert box.part.owned == box.part.executed == box.part.stored == prod(box.shape)
        assert box.part.total == prod(shape)
        assert np.array_equal(np.arange(prod(shape)).reshape(shape)[box.window].ravel(), box.part.numbers)
        assert (np.diff(box.part.numbers) > 0).all()
        met[box.part.numbers] += 1
    assert (met == 1).all()


def filled(box: Box, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> np.ndarray:
    """Return what each storage place of a box has to hold: a number for each place of the lattice and beyond its ends.

    Along axes that wrap inside the box, layers are nobody's: -1.
    """
    axes = [np.arange(o - w, o + n + w) for o, n, w in zip(box.offset, box.shape, box.ghost, strict=True)]
    values = np.zeros((1,) * len(shape), dtype=np.int64)
    nobody = np.zeros((1,) * len(shape), dtype=bool)
    for axis, (at, n) in enumerate(zip(axes, shape, strict=True)):
        lead = (-1, *(1,) * (len(shape) - axis - 1))
        nobody = nobody | (((at < 0) | (at >= n)) & box.periodic[axis]).reshape(lead)
        at = at % n if periodic[axis] else at
        values = values * 1000 + (at + 100).reshape(lead)
    return np.where(nobody, -1, values)


@pytest.mark.parametrize("periodic", list(product((False, True), repeat=3)))
@pytest.mark.parametrize(
    ("factors", "ghost", "reach"),
    [((2, 1, 1), 0, 1), ((3, 2, 1), 1, 1), ((2, 2, 2), 2, 1), ((1, 3, 2), 0, 2), ((1, 1, 2), 1, 2), ((7, 1, 1), 0, 1)],
)
def test_exchange_fills_every_layer(
    factors: tuple[int, ...], ghost: int, reach: int, periodic: tuple[bool, ...]
) -> None:
    shape, ranks = (8, 7, 6), prod(factors)
    found = boxes(shape, ranks, periodic, ghost, reach, factors)
    wanted = [filled(b, shape, periodic) for b in found]
    stores = []
    for box, values in zip(found, wanted, strict=True):  # a box begins with its elements and what is beyond the ends
        assert box.part is not None
        own = np.zeros(values.shape, dtype=bool)
        own[tuple(
            slice(0 if not periodic[k] and o == 0 else w, None if not periodic[k] and o + n == shape[k] else w + n)
            for k, (o, n, w) in enumerate(zip(box.offset, box.shape, box.ghost, strict=True))
        )] = True  # fmt: skip
        stores.append(np.where(own, values, -1))
        assert own.ravel()[np.concatenate([*box.part.send, np.empty(0, int)]).astype(int)].all()
        assert not own.ravel()[np.concatenate([*box.part.receive, np.empty(0, int)]).astype(int)].any()
    sent = [s.copy() for s in stores]
    for rank, box in enumerate(found):
        part = box.part
        assert part is not None
        assert rank not in part.neighbours
        for other, places in zip(part.neighbours, part.receive, strict=True):
            theirs = found[other].part
            assert theirs is not None
            given = theirs.send[theirs.neighbours.index(rank)]
            stores[rank].ravel()[places] = sent[other].ravel()[given]
    for store, values in zip(stores, wanted, strict=True):
        assert np.array_equal(store, values)


def test_interior_of_slabs() -> None:
    found = boxes((9, 4, 5), 3, NONE, 0, 1, (3, 1, 1))
    assert [(b.part.begin, b.part.inside) for b in found if b.part] == [(0, 40), (20, 40), (20, 60)]
    assert [(b.part.begin, b.part.inside) for b in boxes((9, 4, 5), 3, ALL, 0, 1) if b.part] == [(20, 40)] * 3
    thin = boxes((6, 4), 3, (True, True), 0, 2, (3, 1))
    assert all(b.part and b.part.begin == b.part.inside for b in thin)
    assert all(b.part and (b.part.begin, b.part.inside) == (0, 0) for b in boxes((8, 8), 4, NONE[:2], 0, 1, (2, 2)))
    assert all(b.part and (b.part.begin, b.part.inside) == (0, 0) for b in boxes((30,), 3, NONE[:1], 0, 1))


def test_26_neighbours_and_one_message_each() -> None:
    middle = boxes((9, 9, 9), 27, NONE, 0, 1, (3, 3, 3))[13].part
    assert middle is not None
    assert middle.neighbours == tuple(r for r in range(27) if r != 13)
    both = boxes((4, 3), 2, (True, True), 0, 1, (2, 1))[0].part  # the same neighbour on both sides
    assert both is not None
    assert both.neighbours == (1,)
    assert both.receive[0].tolist() == [0, 1, 2, 9, 10, 11]


def context(size: int, rank: int = 0) -> Context:
    """Return a context of several ranks; grids are declared without a message."""
    comm = SelfComm()
    comm.size, comm.rank = size, rank
    return Context(ReferenceDevice(), comm=comm)


def test_grid_of_a_rank() -> None:
    grid = context(3, 1).grid((9, 4), periodic=(False, True), ghost=(1, 0))
    assert (grid.shape, grid.offset, grid.global_shape) == ((3, 4), (3, 0), (9, 4))
    assert (grid.periodic, grid.ghost, grid.factors) == ((False, True), (1, 0), (3, 1))
    assert (grid.size, grid.total, grid.storage_size) == (12, 36, 20)
    y, x = grid.coordinates
    assert np.array_equal(y * 4 + x, np.arange(36).reshape(9, 4)[grid.window])


def test_grid_of_a_rank_alone() -> None:
    grid = Context("reference").grid((5, 4), periodic=(True, False), ghost=(0, 2), reach=3)
    assert grid.part is None
    assert (grid.shape, grid.global_shape, grid.offset, grid.factors) == ((5, 4), (5, 4), (0, 0), (1, 1))
    assert (grid.periodic, grid.ghost) == ((True, False), (0, 2))
    grid.check_reach("s", (5, 2))
    with pytest.raises(DatError, match="is longer than the periodic axis 0"):
        grid.check_reach("s", (6, 2))
    with pytest.raises(DatError, match="leaves the box"):
        grid.check_reach("s", (5, 3))


def test_reach_across_a_cut() -> None:
    grid = context(2).grid((8, 8), periodic=True)
    grid.check_reach("s", (1, 8))
    with pytest.raises(DatError, match=r"2 elements along axis 0, .* cut into 2 boxes .* give the grid reach=2"):
        grid.check_reach("s", (2, 0))
    context(2).grid((8, 8), periodic=True, reach=(2, 0), cut=(2, 1)).check_reach("s", (2, 8))


def test_layers_of_a_cut_are_no_ghosts_of_the_end() -> None:
    grid = context(2).grid((8, 8))
    assert grid.ghost == (1, 0)
    with pytest.raises(DatError, match="leaves the box; make the axis periodic or give the grid ghost=1"):
        grid.check_reach("s", (1, 0))


def test_local_values() -> None:
    grid: Grid = context(2, 1).grid((8, 3), periodic=True)
    whole = np.arange(24.0).reshape(8, 3)
    assert np.array_equal(grid.local(whole), whole[4:])
    assert np.array_equal(grid.local(whole[4:]), whole[4:])
    assert np.array_equal(grid.local(whole[:, :1]), whole[4:, :1])
    assert grid.local(5.0).shape == ()
    assert np.array_equal(grid.local(whole[0]), whole[0])
    vectors = np.arange(48.0).reshape(8, 3, 2)
    assert np.array_equal(grid.local(vectors, (2,)), vectors[4:])
    assert np.array_equal(grid.local(vectors[0, 0], (2,)), vectors[0, 0])
    with pytest.raises(DatError, match=r"values of shape \(7, 3\) do not fit the lattice, \(8, 3\)"):
        grid.local(whole[:7])


@pytest.mark.parametrize("wrong", [(3, 1), (2, 1, 1), (-2, -1), (2,)])
def test_wrong_cut(wrong: tuple[int, ...]) -> None:
    with pytest.raises(DatError, match=r"grid 'g': cut=.* does not fit: .* 2 in all, one a rank"):
        context(2).grid((8, 8), "g", cut=wrong)


def test_cut_into_boxes_that_are_too_thin() -> None:
    with pytest.raises(DatError, match=r"grid 'g': cut=\(1, 2\) of a lattice .* at least \(2, 2\) thick"):
        context(2).grid((8, 3), "g", cut=(1, 2), reach=2)


@pytest.mark.parametrize("reach", [(1,), (-1, 1), -1])
def test_wrong_reach(reach: Any) -> None:
    with pytest.raises(DatError, match="reach needs one entry, not negative, for each of the 2 axes"):
        context(2).grid((8, 8), reach=reach)
