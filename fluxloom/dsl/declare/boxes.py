"""Lattices cut into boxes, one a rank, and the layers that neighbouring boxes send each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.parts import Part, Places

__all__ = ["Box", "box_of", "broadcasts", "cut", "cut_values", "held"]

_IMBALANCE = 1.1
"""A cut is not taken when its largest box is more than this times the largest box of the most even cut."""

_SLAB = 1.4
"""Slabs may send this many times what the best cut sends: they send planes that lie together, to two neighbours,
and what lies between is computed while those travel."""

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Box:
    """What a rank has of a lattice, slowest axis first.

    Attributes
    ----------
    shape, offset
        Elements along each axis, and the place of the first one in the whole lattice.
    ghost
        Layers of storage on both sides of each axis.
    periodic
        Axes along which neighbours wrap round inside the box: those that are periodic and not cut.
    factors
        Boxes along each axis.
    part
        The same as a part of a set. What is sent and received are places of the storage, layers included.
        None of a rank alone.
    """

    shape: Shape
    offset: Shape
    ghost: Shape
    periodic: tuple[bool, ...]
    factors: Shape
    part: Part | None

    @property
    def window(self) -> tuple[slice, ...]:
        """Slices that cut the box out of an array over the whole lattice."""
        return tuple(slice(o, o + n) for o, n in zip(self.offset, self.shape, strict=True))


def held(
    box: Box, whole: Shape, beyond: Shape
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return the storage places that are a rank's own, their numbers among those of all ranks, and how many those are.

    They are its elements, and the ghosts that touch it beyond the ends of the lattice, which only the host sets.

    Parameters
    ----------
    whole
        Shape of the lattice.
    beyond
        Layers of ghosts beyond the ends of each axis; 0 where nobody sets them.
    """
    here: list[slice] = []
    there: list[slice] = []
    for n, g, first, total, b in zip(box.shape, box.ghost, box.offset, whole, beyond, strict=True):
        low, high = b * (first == 0), b * (first + n == total)
        here.append(slice(g - low, g + n + high))
        there.append(slice(first + b - low, first + b + n + high))
    full = tuple(n + 2 * g for n, g in zip(box.shape, box.ghost, strict=True))
    every = tuple(n + 2 * b for n, b in zip(whole, beyond, strict=True))
    return _flat(full, here), _flat(every, there), prod(every)


def cut(shape: Shape, ranks: int, periodic: tuple[bool, ...], layers: Shape) -> Shape:
    """Choose how many boxes a lattice is cut into along each axis.

    Of the cuts into boxes of nearly equal size the one with the fewest elements to exchange is taken; slabs
    along the slowest axis if they send little more.

    Parameters
    ----------
    shape
        Elements along each axis, slowest first.
    ranks
        Number of boxes.
    periodic
        Axes whose ends are neighbours.
    layers
        Layers that boxes exchange along each axis; no box may be thinner.

    Raises
    ------
    DatError
        If every cut has a box that is too thin.
    """
    found = [f for f in _factorisations(ranks, len(shape)) if not _thin(shape, f, layers)]
    if not found:
        raise DatError(
            f"a lattice of shape {shape} cannot be cut into {ranks} boxes that are at least {layers} thick, "
            "as many as the layers that they exchange: take fewer ranks, a larger lattice or a smaller reach"
        )
    largest = {f: prod(-(-n // k) for n, k in zip(shape, f, strict=True)) for f in found}
    even = [f for f in found if largest[f] <= _IMBALANCE * min(largest.values())]
    sent = {f: _exchanged(shape, f, periodic, layers) for f in even}
    slabs = (ranks, *(1 for _ in shape[1:]))
    if slabs in sent and sent[slabs] <= _SLAB * min(sent.values()):
        return slabs
    return min(even, key=lambda f: (sent[f], [-k for k in f]))


def _factorisations(number: int, parts: int) -> Iterator[Shape]:
    """Yield all ways to write a number as an ordered product."""
    if parts == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            yield from ((first, *rest) for rest in _factorisations(number // first, parts - 1))


def _thin(shape: Shape, factors: Shape, layers: Shape) -> bool:
    """Whether some box has no elements, or fewer along a cut axis than its neighbour needs."""
    return any(n // k < max(1, w if k > 1 else 1) for n, k, w in zip(shape, factors, layers, strict=True))


def _exchanged(shape: Shape, factors: Shape, periodic: tuple[bool, ...], layers: Shape) -> int:
    """Return the elements in the layers on both sides of all cuts; edges and corners are not counted."""
    planes = [0 if k == 1 else k if wraps else k - 1 for k, wraps in zip(factors, periodic, strict=True)]
    return sum(2 * p * w * prod(shape) // n for p, w, n in zip(planes, layers, shape, strict=True))


def box_of(
    shape: Shape, rank: int, ranks: int, *, periodic: tuple[bool, ...], ghost: Shape, reach: Shape,
    factors: Shape | None = None, shares: Sequence[float] | None = None,
) -> Box:  # fmt: skip
    """Return a rank's box of a lattice and what it exchanges with its neighbours; the same rules on every rank.

    Parameters
    ----------
    shape
        Of the whole lattice.
    periodic, ghost
        As the user wants them for the whole lattice.
    reach
        Layers along each axis that have to be exchanged where the axis is cut.
    factors
        Boxes along each axis; by default as `cut` chooses.
    shares
        Part of the lattice that each rank gets, for ranks of unequal speed: slabs of so many layers, along the one axis
        that is cut (the slowest by default). By default all boxes are as even as can be.

    Notes
    -----
    What lies beyond an end of the lattice that is not periodic belongs to the box at that end: it is sent like the
    elements beside it to boxes that have it in a corner, and never received from beyond the end.

    Raises
    ------
    DatError
        If the factors do not fit the number of ranks, or boxes are thinner than what their neighbours need.
    """
    layers = tuple(max(g, r) for g, r in zip(ghost, reach, strict=True))
    if factors is None:
        factors = cut(shape, ranks, periodic, layers) if shares is None else (ranks, *(1 for _ in shape[1:]))
    _check_factors(shape, ranks, layers, factors)
    place = tuple(int(k) for k in np.unravel_index(rank, factors))
    bounds = [(i * n // k, (i + 1) * n // k) for i, n, k in zip(place, shape, factors, strict=True)]
    if shares is not None and ranks > 1:
        axis = _slab_axis(factors, shares)
        bounds[axis] = _slab(shape[axis], shares, rank, max(1, layers[axis]))
    local = tuple(end - begin for begin, end in bounds)
    offset = tuple(begin for begin, _ in bounds)
    stored = tuple(w if k > 1 else g for w, g, k in zip(layers, ghost, factors, strict=True))
    wraps = tuple(p and k == 1 for p, k in zip(periodic, factors, strict=True))
    part = None if ranks == 1 else _part(_Halo(local, stored, place, factors, periodic), shape, offset)
    return Box(local, offset, stored, wraps, factors, part)


def _slab_axis(factors: Shape, shares: Sequence[float]) -> int:
    """Return the axis that is cut into slabs."""
    axes = [axis for axis, k in enumerate(factors) if k > 1]
    if len(axes) != 1 or len(shares) != factors[axes[0]] or not all(np.isfinite(s) and s > 0 for s in shares):
        raise DatError(
            f"shares {tuple(shares)} do not fit cut={factors}: they need one positive number a rank and "
            "one axis that is cut"
        )
    return axes[0]


def _slab(length: int, shares: Sequence[float], rank: int, least: int) -> tuple[int, int]:
    """Return the first layer of a slab and the one behind its last; no slab is thinner than ``least`` layers."""
    if length < least * len(shares):
        raise DatError(f"{length} layers cannot be cut into {len(shares)} slabs of at least {least}: take fewer ranks")
    ends = np.rint(np.cumsum(np.asarray(shares, dtype=np.float64)) / sum(shares) * length).astype(np.int64)
    for k in range(len(ends)):  # room for this slab, and for those behind it
        low = least * (k + 1) if k == 0 else int(ends[k - 1]) + least
        ends[k] = min(max(int(ends[k]), low), length - least * (len(ends) - 1 - k))
    return (int(ends[rank - 1]) if rank else 0), int(ends[rank])


def _check_factors(shape: Shape, ranks: int, layers: Shape, factors: Shape) -> None:
    if len(factors) != len(shape) or min(factors) < 1 or prod(factors) != ranks:
        raise DatError(
            f"cut={factors} does not fit: it needs a number of boxes for each of the {len(shape)} axes, "
            f"{ranks} in all, one a rank"
        )
    if _thin(shape, factors, layers):
        raise DatError(
            f"cut={factors} of a lattice of shape {shape}: boxes have to be at least {layers} thick where they are "
            "cut, as many as the layers that they exchange: take fewer ranks, a larger lattice or a smaller reach"
        )


def _flat(shape: Shape, window: Sequence[slice]) -> npt.NDArray[np.int64]:
    """Return the numbers that the elements of a window have in a whole array of some shape."""
    numbers = np.zeros((1,) * len(shape), dtype=np.int64)
    for axis, along in enumerate(window):
        steps = np.arange(along.start, along.stop, dtype=np.int64) * prod(shape[axis + 1 :])
        numbers = numbers + steps.reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return numbers.ravel()


@dataclass(frozen=True)
class _Halo:
    """A box among its neighbours: elements, layers, its place among the boxes, boxes along each axis."""

    shape: Shape
    layers: Shape
    place: Shape
    factors: Shape
    periodic: tuple[bool, ...]

    def at_end(self, axis: int, side: int) -> bool:
        """Whether the lattice ends on a side (-1 or 1) of the box: there is nobody beyond."""
        last = self.place[axis] == (0 if side < 0 else self.factors[axis] - 1)
        return last and not self.periodic[axis]

    def exchanges(self, axis: int, side: int) -> bool:
        """Whether another box lies beyond a side, whose elements are needed here."""
        return self.factors[axis] > 1 and self.layers[axis] > 0 and not self.at_end(axis, side)

    def lists(self) -> tuple[tuple[int, ...], tuple[Places, ...], tuple[Places, ...]]:
        """Return the neighbours, and the places that are sent to and received from each.

        Both sides go through the directions in which the *receiver* looks, in one order: so each pair agrees
        on the order of what one message carries, also where a box is the neighbour on several sides.
        """
        full = tuple(n + 2 * w for n, w in zip(self.shape, self.layers, strict=True))
        send: dict[int, list[Places]] = {}
        receive: dict[int, list[Places]] = {}
        for looks in product((-1, 0, 1), repeat=len(full)):
            back = tuple(-d for d in looks)
            if (source := self._neighbour(looks)) is not None:
                receive.setdefault(source, []).append(_flat(full, self._beside(looks, inside=False)).astype(np.int32))
            if (target := self._neighbour(back)) is not None:
                send.setdefault(target, []).append(_flat(full, self._beside(back, inside=True)).astype(np.int32))
        neighbours = tuple(sorted(receive))
        return (
            neighbours,
            tuple(np.concatenate(send[r]) for r in neighbours),
            tuple(np.concatenate(receive[r]) for r in neighbours),
        )

    def _neighbour(self, direction: Shape) -> int | None:
        """Return the rank that lies in a direction, if something is exchanged with it."""
        moves = [(axis, d) for axis, d in enumerate(direction) if d]
        if not moves or not all(self.exchanges(axis, d) for axis, d in moves):
            return None
        at = tuple((i + d) % k for i, d, k in zip(self.place, direction, self.factors, strict=True))
        return int(np.ravel_multi_index(at, self.factors))

    def _beside(self, direction: Shape, *, inside: bool) -> tuple[slice, ...]:
        """Return the layers at the side in a direction: those beyond it, or the own elements next to it."""
        return tuple(
            self._along(axis) if not d else slice(w * inside, w + w * inside) if d < 0
            else slice(n + w - w * inside, n + 2 * w - w * inside)
            for axis, (d, n, w) in enumerate(zip(direction, self.shape, self.layers, strict=True))
        )  # fmt: skip

    def _along(self, axis: int) -> slice:
        """Return the elements along an axis, with the layers beyond the ends of the lattice."""
        n, w = self.shape[axis], self.layers[axis]
        return slice(0 if self.at_end(axis, -1) else w, 2 * w + n if self.at_end(axis, 1) else w + n)


def _part(halo: _Halo, whole: Shape, offset: Shape) -> Part:
    neighbours, send, receive = halo.lists()
    begin, inside = _interior(halo)
    size = prod(halo.shape)
    numbers = _flat(whole, [slice(o, o + n) for o, n in zip(offset, halo.shape, strict=True)])
    return Part(begin, inside, size, size, size, numbers, prod(whole), neighbours, send, receive)


def _interior(halo: _Halo) -> tuple[int, int]:
    """Return the elements of a slab that need no layer of another box: whole planes; of other boxes none."""
    if len(halo.shape) < 2 or any(k > 1 for k in halo.factors[1:]):
        return 0, 0
    planes, plane, layers = halo.shape[0], prod(halo.shape[1:]), halo.layers[0]
    begin = layers if halo.exchanges(0, -1) else 0
    inside = planes - (layers if halo.exchanges(0, 1) else 0)
    return min(begin, max(0, inside)) * plane, max(0, inside) * plane


def cut_values(
    values: npt.NDArray[Any], whole: tuple[int, ...], window: tuple[slice, ...]
) -> npt.NDArray[Any] | None:
    """Return the part of values over a lattice that a window cuts out; None if they fit neither.

    Values that broadcast to those of the window are returned as they are.
    """
    if broadcasts(values.shape, tuple(cut.stop - cut.start for cut in window)):
        return values
    if not broadcasts(values.shape, whole):
        return None
    last = window[len(whole) - values.ndim :]
    return values[tuple(slice(0, 1) if n == 1 else w for w, n in zip(last, values.shape, strict=True))]


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether NumPy broadcasts one shape to the other."""
    aligned = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(n in (1, m) for n, m in aligned)
