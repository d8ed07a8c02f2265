"""GMRES for the Newton steps of a compressible flow, with products by differences of its residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.fv.compressible_implicit import clear
from fluxloom.fv.newton_kernels import (
    combine,
    deduct,
    derivative,
    direction,
    measure,
    pass_on,
    perturb,
    project,
    scaled,
)
from fluxloom.solvers.compressible_sweeps import Sweeps

if TYPE_CHECKING:
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["KrylovSpace", "Solved"]

Array = npt.NDArray[np.float64]

_GROUP = 4
"""Vectors of the basis that a loop meets at a time."""


@dataclass(frozen=True)
class Solved:
    """What came of a linear system.

    Attributes
    ----------
    iterations
        Products.
    residual
        Of the linear system, as a part of its right-hand side; NaN where a product was not finite.
    """

    iterations: int
    residual: float


class KrylovSpace:
    r"""One cycle of GMRES for :math:`J z = R`, preconditioned from the right by sweeps.

    The product is that of the full residual,

    .. math:: J z = \frac{V}{\Delta t} \frac{\partial U}{\partial w} z - \frac{R(w + \epsilon z) - R(w)}{\epsilon},

    ``eps`` such that ``eps z`` is, as root of a mean square, a ``part`` of the size of the variables.

    Parameters
    ----------
    flow, sweeps
        The equations, and what preconditions them.
    rows, columns
        Inverses of the sizes of the components of a residual and of a state.
    base, trial, find
        ``R(w)``; states that are free to be used; what finds the flow's residual ``res`` of these.
    vectors
        At most in a cycle.
    cells
        Of all ranks.
    part
        Of perturbations.

    References
    ----------
    Y. Saad, M. H. Schultz: *GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems*.
    SIAM J. Sci. Stat. Comput. 7, 1986.
    """

    forgets = ("y", "basis", "h")

    def __init__(
        self, flow: CompressibleFlow, sweeps: Sweeps, rows: Global, columns: Global, base: Dat, trial: Dat,
        find: Callable[[], None],
        vectors: int,
        cells: int,
        part: float = 1e-7,
    ) -> None:  # fmt: skip
        context, over, nv = flow.context, flow.elements, flow.components
        self.vectors, self.sweeps, self.find = vectors, sweeps, find
        self.y = context.dat(over, name="y", shape=(nv,), layout=flow.w.layout)
        self.basis = [
            context.dat(over, name=f"q{k}", shape=(nv,), layout=flow.w.layout)
            for k in range(-(-vectors // _GROUP) * _GROUP)
        ]
        groups = range(len(self.basis) // _GROUP)
        self.h = [context.scalar(np.zeros(_GROUP), f"h{g}") for g in groups]
        self.square, self.left = context.scalar(0.0, "square"), context.scalar(0.0, "left")
        count = float(cells * nv)
        common: dict[str, Any] = {"nv": nv}
        self._clear = Loop(clear, over, sweeps.r, **common)
        self._directions = [Loop(direction, over, self.y, rows, q, sweeps.r, norm=1.0, **common) for q in self.basis]
        four = [self.basis[_GROUP * g : _GROUP * (g + 1)] for g in groups]
        self._first = Loop(project, over, *four[0], self.y, self.h[0], live=0, **common)
        self._pass_on = [
            Loop(pass_on, over, *four[g], self.h[g], *four[g + 1], self.y, self.h[g + 1], live=0, **common)
            for g in groups[:-1]
        ]
        self._deduct = [Loop(deduct, over, *four[g], self.h[g], self.y, self.left, **common) for g in groups]
        self._combine = [Loop(combine, over, *four[g], self.h[g], rows, sweeps.r, **common) for g in groups]
        self._begin = Chain(
            [Reset(self.left), Loop(scaled, over, base, rows, self.y, self.left, **common)], name="krylov.begin"
        )
        self._perturb = Chain([
            Reset(self.square), Loop(measure, over, sweeps.z, columns, self.square, **common),
            Loop(perturb, over, flow.w, sweeps.z, self.square, trial, count=count, part=part, **common),
        ], fuse=False, name="krylov.perturb")  # fmt: skip
        self._product = Loop(
            derivative, over, flow.w, sweeps.z, base, flow.res, sweeps.rate, rows, self.square, self.y,
            gamma=flow.gas.gamma, count=count, part=part, d=flow.dimension, **common,
        )  # fmt: skip

    def solve(self, tolerance: float) -> Solved:
        """Find increments whose linear residual is a part ``tolerance`` of the right-hand side, or as many can."""
        self._begin()
        begin = norm = sqrt(float(self.left.value))
        matrix = np.zeros((self.vectors + 1, self.vectors))
        found, rest, used = np.zeros(0), 1.0, 0
        while used < self.vectors and rest > tolerance and norm > 0.0:
            self._directions[used](norm=norm)
            self.sweeps.solve()
            self._perturb()
            self.find()
            self._product()
            used += 1
            parts, norm = self._orthogonal(used)
            if not isfinite(norm):
                return Solved(used, float("nan"))
            matrix[:used, used - 1] = parts
            matrix[used, used - 1] = norm
            found, rest = _least(matrix[: used + 1, :used])
        self._clear()
        weights = np.zeros(len(self.basis))
        weights[:used] = found * begin
        for g in range(-(-used // _GROUP)):
            self.h[g].value = weights[_GROUP * g : _GROUP * (g + 1)]
            self._combine[g]()
        self.sweeps.solve()
        return Solved(used, rest)

    def _orthogonal(self, used: int) -> tuple[Array, float]:
        """Make `y` orthogonal to the first vectors of the basis; return what it had of them, and its norm."""
        last = (used - 1) // _GROUP
        for h in (*self.h[: last + 1], self.left):
            h.value = 0.0
        self._first(live=min(used, _GROUP))
        for g in range(last):
            self._pass_on[g](live=min(used - _GROUP * (g + 1), _GROUP))
        self._deduct[last]()
        *parts, left = Global.read_all([*self.h[: last + 1], self.left])
        return np.concatenate(parts)[:used], sqrt(float(left)) if left >= 0.0 else float("nan")


def _least(matrix: Array) -> tuple[Array, float]:
    """Return the coefficients that bring the first unit vector nearest, and what is left of it."""
    right = np.zeros(len(matrix))
    right[0] = 1.0
    found = np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)
    return found, float(np.linalg.norm(matrix @ found - right))
