"""The box and its layer, and where populations are between two steps."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.core.strategies import strategy_class
from fluxloom.lbm.cells.box import Box, side_names
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.streaming.schemes import InPlace, Streaming

BOXES = [
    (D2Q9, Box((3, 5), (True, True))),
    (D2Q9, Box((4, 3), (False, True))),
    (D3Q19, Box((3, 2, 4), (True, False, False))),
    (D3Q27, Box((2, 3, 1), (False, False, False))),
]


def test_sides() -> None:
    box = Box((3, 4, 5), (False, True, False))
    assert side_names(3) == ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")
    assert side_names(2) == ("xmin", "xmax", "ymin", "ymax")
    assert [box.axis(name) for name in side_names(3)] == [(2, -1), (2, 1), (1, -1), (1, 1), (0, -1), (0, 1)]
    assert box.grid_shape == (4, 4, 6)
    assert Box((33, 40), (False, False)).grid_shape == (34, 44), "long rows are a multiple of four"
    assert Box((33, 41), (False, True)).grid_shape == (34, 41)
    assert np.zeros(box.grid_shape)[box.inside].shape == box.shape == (3, 4, 5)
    assert (box.cells, box.dimensions) == (60, 3)
    with pytest.raises(SolverError, match="zmin"):
        Box((3, 4), (True, True)).axis("zmin")
    for shape, periodic in (((3,), (True,)), ((3, 0), (True, True)), ((3, 3), (True,))):
        with pytest.raises(SolverError):
            Box(shape, periodic)


@pytest.mark.parametrize(("lattice", "box"), BOXES, ids=lambda one: getattr(one, "name", ""))
def test_places(lattice: Lattice, box: Box) -> None:
    """Numbers and coordinates are one another's inverse; beyond an end of the grid is the other end."""
    places = np.arange(np.prod(box.grid_shape))
    at = box.coordinates(places)
    np.testing.assert_array_equal(box.place(at), places)
    for a, n in enumerate(box.grid_shape):
        moved = list(at)
        moved[a] = moved[a] - n
        np.testing.assert_array_equal(box.place(moved), places)
    numbers = places.reshape(box.grid_shape)
    axes = tuple(range(box.dimensions))
    for c in lattice.velocities:
        moved = np.roll(numbers, np.negative(c), axes).ravel()
        np.testing.assert_array_equal(box.shifted(places, np.array([c])), moved)


def test_the_layer_is_beyond_both_ends() -> None:
    box = Box((3, 4), (True, False))
    below, above = box.place([np.array([1]), np.array([-1])]), box.place([np.array([1]), np.array([4])])
    assert below == above == 1 * 5 + 4


def bulk(scheme: Streaming, lattice: Lattice, f: np.ndarray, parity: int) -> np.ndarray:
    """Return the populations after a step without collision, ``(*grid, q)``, as each scheme moves them."""
    axes, opposite = tuple(range(f.ndim - 1)), list(lattice.opposite)
    moved = np.stack([np.roll(f[..., k], c, axes) for k, c in enumerate(lattice.velocities)], -1)
    if not isinstance(scheme, InPlace):
        return moved
    if parity == 0:
        return f[..., opposite]
    # reads k in slot k' of the neighbour it comes from, writes it to slot k of the neighbour it goes to
    return np.stack(
        [np.roll(f[..., opposite[k]], np.multiply(2, c), axes) for k, c in enumerate(lattice.velocities)], -1
    )


@pytest.mark.parametrize(("lattice", "box"), BOXES, ids=lambda one: getattr(one, "name", ""))
@pytest.mark.parametrize("name", list(Streaming.choices))
def test_what_leaves_arrives(lattice: Lattice, box: Box, name: str) -> None:
    """Followed over four steps: each population is where ``departed`` and ``arriving`` say."""
    scheme = strategy_class(Streaming, name)()
    cells = np.arange(np.prod(box.grid_shape))[:, None]
    directions = np.arange(lattice.q)[None, :]
    shape = (*box.grid_shape, lattice.q)
    truth = np.arange(np.prod(shape)).reshape(-1, lattice.q)  # that left cell x along k
    f = np.full(shape, -1)
    f.reshape(-1, lattice.q)[scheme.departed(box, lattice, cells, directions, 0)] = truth
    assert (f >= 0).all(), "each has a place of its own"
    velocities = np.array(lattice.velocities)
    for step in range(4):
        flat = f.reshape(-1, lattice.q)
        np.testing.assert_array_equal(flat[scheme.departed(box, lattice, cells, directions, step)], truth)
        source = box.shifted(np.broadcast_to(cells, truth.shape), -velocities[None])
        arrives = truth[source, directions]
        np.testing.assert_array_equal(flat[scheme.arriving(box, lattice, cells, directions, step)], arrives)
        f, truth = bulk(scheme, lattice, f, step % 2), arrives


def test_schemes() -> None:
    assert {name: Streaming.choices[name].buffers for name in Streaming.choices} == {
        "pull": 2, "push": 2, "three-phase": 2, "in-place": 1,
    }  # fmt: skip
    with pytest.raises(FluxloomError, match="did you mean 'in-place'"):
        strategy_class(Streaming, "inplace")
