r"""The gradient of a velocity that cells of a plane mesh have, by least squares over the faces between them.

.. math:: \min_g \sum_j |v_j|^{-2} (u_j - u - g \cdot v_j)^2

with the ways ``v_j`` to the neighbours across faces. Linear velocities have their gradient everywhere: a cell whose
neighbours lie on a line, as in a corner, has the mean of those of its neighbours that know theirs; if none does, the
gradient along the line.

References
----------
D. J. Mavriplis: *Revisiting the least-squares procedure for gradient reconstruction on unstructured meshes*. AIAA
2003-3986.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import select

__all__ = ["PlaneGradient"]

_FLAT = 1.0e-10
"""Determinant over squared trace below which neighbours lie on a line."""
_TINY = 1.0e-30


@kernel
def add_pair(x: Read, w: Read, sums: Inc, *, first: Const[int], least: float):
    """Add ``v v^T`` and ``v (u_j - u)`` of a face over ``|v|^2``, where there is fluid on both sides of it."""
    dx = x[1][0] - x[0][0]
    dy = x[1][1] - x[0][1]
    da = w[1][first] - w[0][first]
    db = w[1][first + 1] - w[0][first + 1]
    near = select(min(w[0][0], w[1][0]) > least, 1.0 / (dx * dx + dy * dy), 0.0)
    for i in range(2):
        sums[i][0] += near * dx * dx
        sums[i][1] += near * dx * dy
        sums[i][2] += near * dy * dy
        sums[i][3] += near * dx * da
        sums[i][4] += near * dy * da
        sums[i][5] += near * dx * db
        sums[i][6] += near * dy * db


@kernel
def solve_gradient(sums: RW, g: Write):
    """``g = (du/dx, du/dy, dv/dx, dv/dy, 1)``; the last is 0 where neighbours lie on a line. Clear the sums."""
    trace = sums[0] + sums[2]
    det = sums[0] * sums[2] - sums[1] * sums[1]
    known = det > _FLAT * trace * trace
    over = 1.0 / select(known, det, max(trace * trace, _TINY))
    a = over * select(known, sums[2], sums[0])
    b = over * select(known, -sums[1], sums[1])
    c = over * select(known, sums[0], sums[2])
    g[0] = a * sums[3] + b * sums[4]
    g[1] = b * sums[3] + c * sums[4]
    g[2] = a * sums[5] + b * sums[6]
    g[3] = b * sums[5] + c * sums[6]
    g[4] = select(known, 1.0, 0.0)
    for k in range(7):
        sums[k] = 0.0


@kernel
def lend_gradient(w: Read, g: Read, sums: Inc, *, least: float):
    """Give each side of a face the gradient of the other, ``sums_i += k_j g_j``, where it is known, ``k_j = 1``."""
    wet = select(min(w[0][0], w[1][0]) > least, 1.0, 0.0)
    for k in range(5):
        sums[0][k] += wet * g[1][4] * g[1][k]
        sums[1][k] += wet * g[0][4] * g[0][k]


@kernel
def complete_gradient(sums: RW, g: RW):
    """Take the mean of what neighbours know, ``sum k_j g_j / sum k_j``, where a gradient is unknown. Clear the sums."""
    for k in range(4):
        g[k] = select(g[4] < 0.5 and sums[4] > 0.5, sums[k] / max(sums[4], 1.0), g[k])
    for k in range(7):
        sums[k] = 0.0


class PlaneGradient:
    """``du_i / dx_j`` in the cells.

    Parameters
    ----------
    context
        Whose device finds it.
    cells
        Faces to their two cells.
    centres, w
        Of the cells: ``(2,)`` or more, and values that `before` fills, of which the velocity begins at `first`.
    before
        Loops that fill the values.
    first, least
        Place of the first component; a cell whose first value is not above `least` has no fluid, and is left out.
    """

    def __init__(
        self, context: Context, cells: TableMap, centres: Dat, w: Dat, before: Sequence[Loop], *, first: int,
        least: float = 0.0,
    ) -> None:  # fmt: skip
        over, faces = cells.target, cells.source
        sums = context.dat(over, name="gradient.sums", shape=(7,), dtype=w.scalar.numpy)
        self._found = g = context.dat(over, name="gradient", shape=(5,), dtype=w.scalar.numpy)
        self._chain = Chain([
            *before, Loop(add_pair, faces, centres[cells], w[cells], sums[cells], first=first, least=least),
            Loop(solve_gradient, over, sums, g),
            Loop(lend_gradient, faces, w[cells], g[cells], sums[cells], least=least),
            Loop(complete_gradient, over, sums, g),
        ], name="gradient")  # fmt: skip

    def now(self) -> npt.NDArray[np.float64]:
        """Return the gradients of the owned cells, ``(n, 2, 2)``. Collective."""
        self._chain()
        return self._found.read()[:, :4].astype(np.float64).reshape(-1, 2, 2)
