"""A tree of boxes about segments or triangles, and the least distance from many points to these.

Each box is turned the way its contents lie: about a piece of a smooth wall it is as thin as the piece is curved. Seen
from afar a few of them are then as near as the wall itself; of boxes along the axes, hundreds would be. The tree is
binary and complete: the boxes of a level are one table, and all points of a batch walk down together, level by level. A
pair of a point and a box goes on where the box is not farther than something else is known to be.

References
----------
S. Gottschalk, M. C. Lin, D. Manocha: *OBBTree*. SIGGRAPH 1996, section 4 (boxes from covariances).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.mesh import FloatArray
from fluxloom.mesh.geometry.simplices import ROUNDING, Simplices

__all__ = ["BoxTree", "Boxes"]

Index = npt.NDArray[np.integer]

_SLACK, _ROOM = 1e-10, 1e-17
"""Part of a squared distance, and of the longest side squared, by which a box may be too far and still counts.

More than the errors of rounding, ``e = 2 ROUNDING`` of the side: ``(r + e)^2 <= (1 + s) r^2 + (1 + 1 / s) e^2``.
"""

_PAIRS = 1 << 15
"""How many pairs of points and boxes go down together: what fits into a cache, and bounds the memory."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of one level, ``m`` of them.

    Attributes
    ----------
    place, side : (d, m)
        Where the longest side of a simplex begins, and where it leads: of one that is near the middle.
    scale : (m,)
        One over its length squared; 0 for a point.
    axes : (d, d, m)
        Three (two) unit vectors each, at right angles.
    low, high : (d, m)
        From the place to the sides, along each of the axes.
    """

    place: FloatArray
    side: FloatArray
    scale: FloatArray
    axes: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def about(cls, simplices: Simplices, rows: Index, axes: FloatArray) -> Boxes:
        """Return boxes with axes ``(m, d, d)``, row by row, about simplices by number, ``(m, k)``."""
        starts, sides = simplices.origin.T[rows], (simplices.length * simplices.axes[0]).T[rows]
        corners = simplices.corners[rows].reshape(len(rows), -1, axes.shape[2])
        across = axes.transpose(0, 2, 1)
        local = np.matmul(corners - corners[:, :1], across)
        middle = 0.5 * (local.min(axis=1) + local.max(axis=1))[:, None]
        away = np.matmul(starts + 0.5 * sides - corners[:, :1], across) - middle
        chosen = np.arange(len(rows)), np.argmin((away * away).sum(axis=2), axis=1)
        place, side = starts[chosen], sides[chosen]
        local = np.matmul(corners - place[:, None], across)
        low, high = local.min(axis=1), local.max(axis=1)
        room = ROUNDING * (high - low).max(axis=1)[:, None]
        square = (side * side).sum(axis=1)
        scale = np.where(square > 0.0, 1.0 / np.where(square > 0.0, square, 1.0), 0.0)
        return cls(*(_columns(values) for values in (place, side, scale, axes, low - room, high + room)))

    def bounds(self, points: FloatArray, boxes: Index) -> tuple[FloatArray, FloatArray]:
        """Return squared distances ``(m,)`` from points ``(d, m)`` to a box each, and to the side in it.

        What is nearest in the box lies between the two.
        """
        away = [component - start[boxes] for component, start in zip(points, self.place, strict=True)]
        least, most = np.zeros(boxes.size), np.zeros(boxes.size)
        side = [component[boxes] for component in self.side]
        share = self.scale[boxes] * sum((a * b for a, b in zip(away, side, strict=True)), start=most)
        share = np.minimum(np.maximum(share, 0.0), 1.0)
        for component, part in zip(away, side, strict=True):
            most += np.square(component - share * part)
        for axis, low, high in zip(self.axes, self.low, self.high, strict=True):
            along = away[0] * axis[0][boxes]
            for component, part in zip(away[1:], axis[1:], strict=True):
                along += component * part[boxes]
            along -= np.minimum(np.maximum(along, low[boxes]), high[boxes])
            least += along * along
        return least, most


@dataclass(frozen=True, eq=False)
class BoxTree:
    """Boxes in boxes about simplices.

    Attributes
    ----------
    simplices
        What is inside.
    leaves : (2^depth,)
        The simplex in each box of the last level; to fill them, a number may be there twice.
    levels
        Boxes of level 0, which is one, to the last; box ``j`` has ``2 j`` and ``2 j + 1`` of the next level in it.
    """

    simplices: Simplices
    leaves: Index
    levels: tuple[Boxes, ...]

    @classmethod
    def of(cls, simplices: Simplices) -> BoxTree:
        """Return the tree over at least one simplex: halves along the axis of a box on which middles differ most."""
        corners, n = simplices.corners, len(simplices)
        depth = (n - 1).bit_length()
        leaves = (np.arange(1 << depth) * n) >> depth
        levels: list[Boxes] = []
        for level in range(depth):
            rows = leaves.reshape(1 << level, -1)
            inside = corners[rows].reshape(len(rows), -1, corners.shape[2])
            about = inside - inside.mean(axis=1)[:, None]
            axes = np.linalg.eigh(np.matmul(about.transpose(0, 2, 1), about))[1].transpose(0, 2, 1)
            levels.append(Boxes.about(simplices, rows, axes))
            along = np.matmul(about, axes.transpose(0, 2, 1)).reshape(*rows.shape, *axes.shape[1:]).sum(axis=2)
            widest = np.argmax(np.ptp(along, axis=1), axis=1)  # of the middles: strips lie side by side
            along = np.take_along_axis(along, widest[:, None, None], axis=2)[..., 0]
            leaves = np.take_along_axis(rows, np.argsort(along, axis=1, kind="stable"), axis=1).reshape(-1)
        levels.append(Boxes.about(simplices, leaves[:, None], simplices.axes[..., leaves].transpose(2, 0, 1)))
        return cls(simplices, leaves, tuple(levels))

    def squared_distance(self, points: FloatArray) -> FloatArray:
        """Return the squared distance from points ``(d, n)`` to the nearest simplex, ``(n,)``.

        It is the least over all simplices of `Simplices.squared_distance` to the last bit, and does not depend on their
        order, nor on the other points.
        """
        first, second = (self.simplices.squared_distance(points, self._guess(points, by)) for by in (0.0, 1.0))
        best = np.minimum(first, second)
        bound, room = best.copy(), _ROOM * float(self.simplices.length.max()) ** 2
        todo = [(0, np.arange(best.size), np.zeros(best.size, dtype=np.int64))]
        while todo:
            level, who, box = todo.pop()
            if who.size > _PAIRS:
                half = who.size // 2
                todo += [(level, who[half:], box[half:]), (level, who[:half], box[:half])]
                continue
            least, most = self.levels[level].bounds(points[:, who], box)
            np.minimum.at(bound, who, (1.0 + _SLACK) * most + room)
            kept = np.flatnonzero((1.0 - _SLACK) * least <= bound[who])
            who, box = who[kept], box[kept]
            if level == len(self.levels) - 1:
                found = self.simplices.squared_distance(points[:, who], self.leaves[box])
                np.minimum.at(best, who, found)
                np.minimum.at(bound, who, found)
            elif who.size:
                who, box = np.repeat(who, 2), np.repeat(2 * box, 2)
                box[1::2] += 1
                todo.append((level + 1, who, box))
        return best

    def _guess(self, points: FloatArray, share: float) -> Index:
        """Return for points ``(d, n)`` a simplex that may be near: at the end of the way into the nearer halves.

        ``share`` says how much the side that a box knows counts beside the box itself.
        """
        box = np.zeros(points.shape[1], dtype=np.int64)
        for boxes in self.levels[1:]:
            (near, far), (other_near, other_far) = (boxes.bounds(points, 2 * box + side) for side in (0, 1))
            here, there = near + share * far, other_near + share * other_far
            box = 2 * box + np.where(here == there, other_far < far, there < here)
        return self.leaves[box]


def _columns(rows: FloatArray) -> FloatArray:
    """Return values ``(m, ...)`` with the boxes as the last axis."""
    return np.ascontiguousarray(np.moveaxis(rows, 0, -1))
